"""Turns: where one begins and how it ended, as far as a foreign file tells.

No foreign format marks the end of a turn. It is inferred: from the stop reason of its last answer,
from the next prompt, or from an interruption that the file tells. What is at the end of a file and
has not ended stays open, so that recovery can speak of it. Nothing is said of dispatches: no format
tells when a tool was started.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from turnlog.core.fold.messages import TERMINAL_STOPS
from turnlog.ingest.thread import Call, Data, Thread, derived

Json = Any
ID_MAX = 480
"""A foreign id that is longer is replaced by a digest, so that ours, made from it, fit."""


class Answer(NamedTuple):
    """An answer of the model as a file has it."""

    id: str
    time: str | None
    content: list[Data]
    calls: Sequence[Call]
    stop: str | None
    model: str | None
    usage: Data | None
    row: int
    extra: Data
    lost_parent: str | None = None


class Turn:
    """The turn that is open."""

    def __init__(self, operation: str, time: str | None) -> None:
        self.operation = operation
        self.time = time
        self.stop: str | None = None
        self.calls = False
        self.answer = 0


class Turns:
    """The operations of a thread."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.turn: Turn | None = None

    @property
    def operation(self) -> str | None:
        """The operation of the open turn."""
        return self.turn.operation if self.turn is not None else None

    def prompt(
        self,
        id_: str,
        time: str | None,
        data: Data,
        *,
        row: int,
        lost_parent: str | None = None,
    ) -> None:
        """A user entry and the turn that it begins, in one unit."""
        self.end(passed=True)
        self.thread.answer_open(id_, time)
        start = self.thread.leaf_id
        self.thread.add(
            "message", id_, time, {"role": "user", **data}, row=row, role=1, lost_parent=lost_parent
        )
        self._accept(id_, id_, start, time, "user")
        self.thread.close()

    def answer(self, answer: Answer, *, goes_on: bool = False) -> None:
        """An assistant entry with its attempt and usage, in one unit."""
        thread = self.thread
        if not goes_on:
            thread.answer_open(answer.id, answer.time)
        if self.turn is None:
            asked = thread.nearest_input()
            if asked is None:
                self._tell_alone(answer)
                return
            self._accept(answer.id, asked, thread.leaf_id, answer.time, None)
        turn = self.turn
        assert turn is not None
        attempt = named("attempt", answer.id)
        thread.record(
            "model_attempted",
            f"{attempt}.asked",
            answer.time,
            {
                "operation": turn.operation,
                "attempt": attempt,
                "assistant_entry": answer.id,
                "model": answer.model,
            },
        )
        data: Data = {
            "role": "assistant",
            "content": answer.content,
            "attempt": attempt,
            "stop_reason": answer.stop,
            **answer.extra,
        }
        turn.answer = thread.add_assistant(
            answer.id,
            answer.time,
            data,
            answer.calls,
            row=answer.row,
            lost_parent=answer.lost_parent,
        )
        turn.stop, turn.calls, turn.time = answer.stop, bool(answer.calls), answer.time
        if answer.usage is not None:
            settled: Data = {
                "operation": turn.operation,
                "attempt": attempt,
                "model": answer.model,
                "usage": answer.usage,
            }
            thread.record("usage_settled", f"{attempt}.usage", answer.time, settled)
        thread.close()

    def _tell_alone(self, answer: Answer) -> None:
        """An answer whose question is not in the file: a turn cannot be told without it. What it
        used is told as the file has it."""
        extra = answer.extra
        if answer.usage is not None:
            source: Data = extra.get("source", {})
            extra = {**extra, "source": {**source, "usage": answer.usage}}
        data: Data = {
            "role": "assistant",
            "content": answer.content,
            "attempt": None,
            "stop_reason": answer.stop,
            **extra,
        }
        self.thread.add_assistant(
            answer.id,
            answer.time,
            data,
            answer.calls,
            row=answer.row,
            lost_parent=answer.lost_parent,
        )
        self.thread.close()

    def touch(self, time: str | None) -> None:
        """Something else of the turn happened."""
        if self.turn is not None and time is not None:
            self.turn.time = time

    def end(self, *, passed: bool, outcome: str | None = None) -> None:
        """End the open turn, if it can be told how.

        `passed`: something came that is not of this turn, so it is over whatever it did. Without,
        the file ends here, and only a last answer that ends a turn by its stop reason ends it.
        """
        turn = self.turn
        if turn is None:
            return
        outcome = outcome or self._outcome(turn, passed=passed)
        if outcome is None:
            return
        self.turn = None
        data = {"operation": turn.operation, "outcome": outcome, "inferred": True}
        self.thread.record("operation_finished", f"{turn.operation}.finished", turn.time, data)
        self.thread.close()

    def _outcome(self, turn: Turn, *, passed: bool) -> str | None:
        said_all = turn.answer != 0 and not turn.calls
        known = TERMINAL_STOPS.get(turn.stop or "")
        if passed:
            # older files do not say why the model stopped
            inferred = "completed" if said_all and turn.stop is None else "interrupted"
            return known or inferred
        return known if said_all and turn.answer == self.thread.last_message else None

    def _accept(
        self,
        id_: str,
        entry: str | None,
        start: str | None,
        time: str | None,
        trigger: str | None,
    ) -> None:
        operation = named("turn", id_)
        self.turn = Turn(operation, time)
        data = {
            "operation": operation,
            "kind": "prompt",
            "input_entry": entry,
            "start_leaf": start,
            "trigger": trigger,
        }
        self.thread.record("operation_accepted", f"{operation}.accepted", time, data)


def named(kind: str, id_: str) -> str:
    """Our own id made from a foreign one."""
    return f"{kind}-{id_}" if len(id_) <= ID_MAX else derived(kind, id_)
