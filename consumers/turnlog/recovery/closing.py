"""The events that close or park what was left open, from the instructions of reports.

A result on the leaf's path has the entry id that its T1 promised, or one derived from its call, so
closing twice adds nothing. What is off the path is settled by a record, which moves no leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from turnlog.core.context import TELL
from turnlog.core.frames import MAX_EVENTS, MAX_FRAME_BYTES, NewEvent
from turnlog.core.recovery import Instruction
from turnlog.core.rows import Dispatch
from turnlog.owner.ambient import Ambient
from turnlog.tables.evidence import Report
from turnlog.tables.view import SessionView

FRAME_BYTES = MAX_FRAME_BYTES - 100_000
"""Room is left for what a frame has around its events."""
EVENT_BYTES = 200
"""Of an event, besides its ids and data."""


def closers(reports: Sequence[Report], view: SessionView, ambient: Ambient) -> list[NewEvent]:
    """What carries out the instructions of reports on a session, in order, under its leaf."""
    return list(_Closing(view, ambient).of(reports))


def in_frames(events: Iterable[NewEvent]) -> list[list[NewEvent]]:
    """Events in as few frames as the limits allow: one, unless calls without a T1 are many or ids
    are very long. Any beginning of them may be repeated, and none says that it is the end."""
    frames: list[list[NewEvent]] = [[]]
    size = 0
    for event in events:
        bytes_ = len(orjson.dumps(event.data)) + len(event.id.encode()) + EVENT_BYTES
        if frames[-1] and (len(frames[-1]) >= MAX_EVENTS or size + bytes_ > FRAME_BYTES):
            frames.append([])
            size = 0
        frames[-1].append(event)
        size += bytes_
    return frames


class _Closing:
    def __init__(self, view: SessionView, ambient: Ambient) -> None:
        leaf = view.head.leaf
        self._leaf = view.entry(leaf).id if leaf else None
        self._view = view
        self._ambient = ambient
        self._answered: set[str] = set()

    def of(self, reports: Sequence[Report]) -> Iterable[NewEvent]:
        for report in reports:
            rows = {row.dispatch: row for row in report.evidence.dispatches}
            for step in report.instructions:
                row = rows.get(step.get("dispatch", ""))
                if step["do"] == "answer" and not self._is_taken(step["result_entry"]):
                    yield self._result(step, row)
                elif step["do"] in ("answer", "settle") and row is not None:
                    yield self._settled(step, row)
                elif step["do"] == "finish":
                    yield self._record("operation_finished", step, "outcome", "inferred")
                elif step["do"] == "park":
                    yield self._record("operation_parked", step, "reason")

    def _is_taken(self, entry: str) -> bool:
        """Damaged sessions only: something else has that id, or two prompts list one call."""
        known = self._view.reader.get(("ids", self._view.session, entry))
        return known is not None or entry in self._answered

    def _result(self, step: Instruction, row: Dispatch | None) -> NewEvent:
        status = step["status"]
        data = {
            "parent": self._leaf,
            "role": "tool",
            "call_id": row.call_id if row is not None else step["call_id"],
            "tool": step["tool"],
            "dispatch": row.dispatch if row is not None else None,
            "status": status,
            "settled_by": "recovery",
            "content": [{"type": "text", "text": TELL[status]}],
        }
        self._leaf = step["result_entry"]
        self._answered.add(step["result_entry"])
        return NewEvent("message", step["result_entry"], self._ambient.now(), data)

    def _settled(self, step: Instruction, row: Dispatch) -> NewEvent:
        data: dict[str, Any] = {
            "dispatch": step["dispatch"],
            "status": step["status"],
            "try": row.tries[-1]["try"],
            "settled_by": "recovery",
            "by": None,
            "note": "its host is gone, and no result can be placed on the path of the leaf",
        }
        return NewEvent("dispatch_settled", self._ambient.ids(), self._ambient.now(), data)

    def _record(self, type_: str, step: Instruction, *names: str) -> NewEvent:
        data = {"operation": step["operation"], **{name: step[name] for name in names}}
        return NewEvent(type_, self._ambient.ids(), self._ambient.now(), data)
