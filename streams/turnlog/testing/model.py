"""A model that answers what the test wrote down, and remembers what it was asked with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from inspect import isawaitable
from typing import Any

from turnlog.core.errors import UsageError
from turnlog.host.loop import Reply

Json = Any
Context = list[dict[str, Json]]
Answer = (
    str | list[dict[str, Json]] | dict[str, Json] | Reply | Exception | Callable[[Context], Json]
)
"""Text, content parts, an object with `content`, a reply with usage, an error to raise, or a
function of the context that gives one of these, or an awaitable of one."""


class ScriptEnded(UsageError):
    """A scripted model was asked more often than the test had answers for."""


class ScriptedModel:
    """A model for `run_turn`: gives its answers in order.

        model = ScriptedModel([[call("pay", amount=3)], "Paid."])

    `contexts` holds what it was asked with, each time. With `by_context` the answer is chosen by
    the number of assistant messages in the context, as if it had been in the conversation from the
    beginning: a second host's model, made from the same answers, then goes on where the first was.

    Raises, when asked, ScriptEnded where no answer is left, and whatever error an answer is.
    """

    def __init__(self, answers: Iterable[Answer], *, by_context: bool = False) -> None:
        self._answers = list(answers)
        self._by_context = by_context
        self.contexts: list[Context] = []

    async def __call__(self, context: Context) -> Reply:
        index = _spoken(context) if self._by_context else len(self.contexts)
        self.contexts.append(deepcopy(context))
        if index >= len(self._answers):
            raise ScriptEnded(self._ended(index, context))
        answer: Json = self._answers[index]
        if callable(answer):
            answer = answer(deepcopy(context))
            if isawaitable(answer):
                answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer)

    @property
    def left(self) -> int:
        """How many answers have not been given; for a model that answers in order."""
        return max(0, len(self._answers) - len(self.contexts))

    def _ended(self, index: int, context: Context) -> str:
        last = _told(context[-1]) if context else "nothing"
        return (
            f"the scripted model has {len(self._answers)} answers and is asked for number"
            f" {index + 1}; the last message it is asked with: {last}. Give it more answers, or a"
            " function of the context"
        )


def call(name: str, *, call_id: str | None = None, **args: Json) -> dict[str, Json]:
    """A content part that calls a tool. Without `call_id` the host gives it one."""
    part: dict[str, Json] = {"type": "tool_call", "name": name, "args": args}
    return part if call_id is None else {**part, "call_id": call_id}


def _spoken(context: Context) -> int:
    return sum(message["role"] == "assistant" for message in context)


def _told(message: Mapping[str, Json]) -> str:
    text = repr(message.get("content"))
    return f"{message.get('role')} {text if len(text) <= 200 else text[:197] + '...'}"
