"""The events that close what is open: answers, settlements, parking, and the end of an operation.

A host that ends a turn and a recovery that closes what a dead host left write the same ones. A
result on the leaf's path has the entry id that its T1 promised, or one made from its call, so that
closing twice adds nothing. What is off the path is settled by a record, which moves no leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from turnlog.core.context import TELL
from turnlog.core.frames import MAX_EVENTS, MAX_FRAME_BYTES, NewEvent
from turnlog.core.recovery import Instruction
from turnlog.core.rows import Dispatch
from turnlog.owner.ambient import Ambient
from turnlog.tables.view import SessionView

CLOSES = ("answer", "settle", "finish", "park")
"""The instructions of `turnlog.core.recovery.plan` that are carried out by writing alone."""
FRAME_BYTES = MAX_FRAME_BYTES - 100_000
"""Room is left for what a frame has around its events."""
EVENT_BYTES = 200
"""Of an event, besides its ids and data."""


class Closers(NamedTuple):
    """Events in order, and the id of the leaf after them."""

    events: list[NewEvent]
    leaf: str | None


def closers(
    view: SessionView, steps: Sequence[Instruction], *, by: str, ambient: Ambient
) -> Closers:
    """The events for those of `steps` that CLOSES names, under the leaf of the session.

    `by` is host or recovery. An answer may have its own `text` for the model or `why` for people, a
    finish its `error`.
    """
    closing = _Closing(view, by, ambient)
    return Closers(list(closing.of(steps)), closing.leaf)


def in_frames(events: Iterable[NewEvent]) -> list[list[NewEvent]]:
    """Events in as few frames as the limits allow: one, unless calls without a T1 are many or ids
    are very long. Any beginning of them may be repeated, and none says that it is the end."""
    frames: list[list[NewEvent]] = [[]]
    size = 0
    for event in events:
        bytes_ = len(_encoded(event.data)) + len(event.id.encode()) + EVENT_BYTES
        if frames[-1] and (len(frames[-1]) >= MAX_EVENTS or size + bytes_ > FRAME_BYTES):
            frames.append([])
            size = 0
        frames[-1].append(event)
        size += bytes_
    return frames


def _encoded(data: Mapping[str, Any]) -> bytes:
    """What a host gave as an error may be no JSON: that is for `seal` to say."""
    try:
        return orjson.dumps(data)
    except TypeError:
        return b""


class _Closing:
    def __init__(self, view: SessionView, by: str, ambient: Ambient) -> None:
        leaf = view.head.leaf
        self.leaf = view.entry(leaf).id if leaf else None
        self._view = view
        self._by = by
        self._ambient = ambient
        self._answered: set[str] = set()

    def of(self, steps: Sequence[Instruction]) -> Iterator[NewEvent]:
        view = self._view
        for step in steps:
            row: Dispatch | None = view.reader.get(
                ("dispatches", view.session, step.get("dispatch") or "")
            )
            if step["do"] == "answer" and not self._is_taken(step["result_entry"]):
                yield self._result(step, row)
            elif step["do"] in ("answer", "settle") and row is not None:
                yield self._settled(step, row)
            elif step["do"] == "finish":
                yield self._record("operation_finished", step, "outcome", "inferred", "error")
            elif step["do"] == "park":
                yield self._record("operation_parked", step, "reason")

    def _is_taken(self, entry: str) -> bool:
        """Damaged sessions only: something else has that id, or two prompts list one call."""
        known = self._view.reader.get(("ids", self._view.session, entry))
        return known is not None or entry in self._answered

    def _result(self, step: Instruction, row: Dispatch | None) -> NewEvent:
        status: str = step["status"]
        data = {
            "parent": self.leaf,
            "role": "tool",
            "call_id": row.call_id if row is not None else step["call_id"],
            "tool": step["tool"],
            "dispatch": row.dispatch if row is not None else None,
            "status": status,
            "settled_by": self._by,
            "content": [{"type": "text", "text": step.get("text") or TELL[status]}],
        }
        self.leaf = step["result_entry"]
        self._answered.add(step["result_entry"])
        return NewEvent("message", step["result_entry"], self._ambient.now(), data)

    def _settled(self, step: Instruction, row: Dispatch) -> NewEvent:
        data: dict[str, Any] = {
            "dispatch": step["dispatch"],
            "status": step["status"],
            "try": row.tries[-1]["try"],
            "settled_by": self._by,
            "by": None,
            "note": step.get("why") or "no result can be placed on the path of the leaf",
        }
        return NewEvent("dispatch_settled", self._ambient.ids(), self._ambient.now(), data)

    def _record(self, type_: str, step: Instruction, *names: str) -> NewEvent:
        data = {"operation": step["operation"], **{name: step.get(name) for name in names}}
        said = {name: value for name, value in data.items() if value is not None}
        return NewEvent(type_, self._ambient.ids(), self._ambient.now(), said)
