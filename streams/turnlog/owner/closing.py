"""The events that close what is open: answers, settlements and the finish of an operation.

A host that ends a turn and a recovery that closes what a dead host left write the same ones, as one
frame. A result has the id that its T1 promised, or one made from its call, so that closing again
adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnlog.core.context import TELL
from turnlog.core.frames import NewEvent
from turnlog.core.recovery import Instruction
from turnlog.core.rows import Dispatch
from turnlog.owner.ambient import Ambient

CLOSES = ("answer", "settle", "finish", "park")
"""The instructions of `turnlog.core.recovery.plan` that are carried out by writing alone."""


class Closers(NamedTuple):
    """Events that belong in one frame, and the leaf after them."""

    events: list[NewEvent]
    leaf: str | None


def closers(
    steps: Sequence[Instruction],
    dispatches: Sequence[Dispatch],
    leaf: str | None,
    *,
    by: str,
    ambient: Ambient,
) -> Closers:
    """The events for those of `steps` that CLOSES names, in this order.

    `dispatches` are those that the steps name, `leaf` is the id of the present leaf, `by` is
    host or recovery. A step may have its own `text` for the model, and `error` for a finish.
    """
    rows = {row.dispatch: row for row in dispatches}
    events: list[NewEvent] = []
    for step in steps:
        if step["do"] == "answer":
            event = _answer(step, rows, leaf, by=by, ambient=ambient)
            leaf = event.id
        elif step["do"] == "settle":
            event = _settle(step, rows, by=by, ambient=ambient)
        elif step["do"] == "finish":
            event = _new(ambient, "operation_finished", _finish(step))
        elif step["do"] == "park":
            data = {"operation": step["operation"], "reason": step["reason"]}
            event = _new(ambient, "operation_parked", data)
        else:
            continue
        events.append(event)
    return Closers(events, leaf)


def _answer(
    step: Instruction,
    rows: Mapping[str, Dispatch],
    leaf: str | None,
    *,
    by: str,
    ambient: Ambient,
) -> NewEvent:
    row = rows.get(step.get("dispatch") or "")
    status: str = step["status"]
    data: dict[str, Any] = {
        "parent": leaf,
        "role": "tool",
        "content": [{"type": "text", "text": step.get("text") or TELL[status]}],
        "call_id": row.call_id if row is not None else step["call_id"],
        "tool": step["tool"],
        "status": status,
        "settled_by": by,
    }
    if row is not None:
        data["dispatch"] = row.dispatch
    return NewEvent("message", step["result_entry"], ambient.now(), data)


def _settle(
    step: Instruction, rows: Mapping[str, Dispatch], *, by: str, ambient: Ambient
) -> NewEvent:
    row = rows[step["dispatch"]]
    data = {
        "dispatch": row.dispatch,
        "status": step["status"],
        "try": row.tries[-1]["try"],
        "settled_by": by,
    }
    if step.get("text"):
        data["note"] = step["text"]
    return _new(ambient, "dispatch_settled", data)


def _finish(step: Instruction) -> dict[str, Any]:
    data = {"operation": step["operation"], "outcome": step["outcome"]}
    if step.get("inferred"):
        data["inferred"] = True
    if step.get("error") is not None:
        data["error"] = step["error"]
    return data


def _new(ambient: Ambient, type_: str, data: dict[str, Any]) -> NewEvent:
    return NewEvent(type_, ambient.ids(), ambient.now(), data)
