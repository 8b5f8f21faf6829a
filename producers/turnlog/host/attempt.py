"""One model request: before it, what it is asked with; after it, the answer and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from turnlog.core.errors import UsageError
from turnlog.core.frames import NewEvent
from turnlog.host.calls import ModelCall
from turnlog.host.content import answer_of
from turnlog.host.messages import calls_in, pending, queued
from turnlog.owner import places

if TYPE_CHECKING:
    from turnlog.host.turn import Turn

Json = Any


class Said(NamedTuple):
    """A model's answer as it is in the log: its entry, why it stopped, and the calls it makes."""

    entry: str
    stop_reason: str
    calls: list[ModelCall]


class Attempt:
    """`async with turn.attempt(model=…) as attempt:` around one model request.

    Steering inputs that are queued are placed when it is entered, so `session.context()` has them.
    """

    def __init__(
        self, turn: Turn, model: str, said: dict[str, Json], request_digest: str | None
    ) -> None:
        ids = turn.link.ambient.ids
        self.id = ids()
        self.entry = ids()
        self._turn = turn
        self._model = model
        self._said = said
        self._request_digest = request_digest
        self._is_settled = False

    async def __aenter__(self) -> Self:
        turn, link = self._turn, self._turn.link
        turn.check_open()
        view = link.view()
        for row in pending(view, "steer"):  # each in a frame that it fits
            parts = await link.blobs(queued(view, row))
            said = {"parent": link.leaf, "role": "user", "content": parts}
            link.put([link.event("message", said, row.entry)], leaf=row.entry)
        events: list[NewEvent] = []
        data = {
            "operation": turn.operation,
            "attempt": self.id,
            "assistant_entry": self.entry,
            "model": self._model,
        }
        if self._said:
            data["context"], changed = link.context_digest({**self._said, "model": self._model})
            events.extend(changed)
        if self._request_digest is not None:
            data["request_digest"] = self._request_digest
        events.append(link.event("model_attempted", data))
        link.put(events)
        link.asked_with = data.get("context", link.asked_with)
        await link.batch.relieve()
        link.ambient.reach(places.ATTEMPT_STARTED)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Without an answer the attempt stays as it is: a request that came to nothing."""

    async def finish(self, message: Json, *, usage: dict[str, Json] | None = None) -> Said:
        """The model has answered: text, content parts, or an object with `content` and perhaps
        `stop_reason`. `usage` counts tokens, and `cost_usd` is a decimal string.

        Raises SchemaError for what is no message, and writes nothing then; UsageError the second
        time.
        """
        if self._is_settled:
            raise UsageError(f"attempt {self.id!r} was finished already")
        self._turn.check_open()
        link = self._turn.link
        answer = answer_of(message)
        link.ambient.reach(places.ANSWER_READY)
        parts = await link.blobs(answer.content)
        data = {
            "parent": link.leaf,
            "role": "assistant",
            "content": parts,
            "attempt": self.id,
            "stop_reason": answer.stop_reason,
        }
        events = [link.event("message", data, self.entry)]
        if usage is not None:
            events.append(self._usage(usage))
        link.put(events, leaf=self.entry)
        self._is_settled = True
        said = Said(self.entry, answer.stop_reason, calls_in(self.entry, answer.said))
        self._turn.said = said
        await link.batch.relieve()
        return said

    async def fail(self, usage: dict[str, Json] | None = None) -> None:
        """The request came to nothing, though it may have cost something."""
        if usage is not None and not self._is_settled:
            link = self._turn.link
            link.put([self._usage(usage)])
            self._is_settled = True
            await link.batch.relieve()

    def _usage(self, usage: dict[str, Json]) -> NewEvent:
        data = {
            "operation": self._turn.operation,
            "attempt": self.id,
            "model": self._model,
            "usage": usage,
        }
        return self._turn.link.event("usage_settled", data)
