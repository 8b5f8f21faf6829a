"""Queued inputs: pending until cancelled or until an entry with their preallocated id comes."""

from __future__ import annotations

from typing import cast

from turnlog.core.fold.draft import Draft
from turnlog.core.frames import Event, content_of
from turnlog.core.rows import Input

MAX_PENDING_INPUTS = 64


def queue_input(draft: Draft, event: Event) -> None:
    """A new input; the same one again changes nothing."""
    data = event.data
    old = _input(draft, data["input"])
    content = content_of(event)
    if old is not None:
        if old.digest != content:
            reason = f"input {data['input']!r} was queued with other content"
            draft.reject(event, reason, None)
        return
    placed = draft.number(data["entry"])
    if placed:
        status = "placed"
    elif len(draft.pending_inputs) >= MAX_PENDING_INPUTS:
        status = "refused"
        draft.add_overflow("pending_inputs")
    else:
        status = "queued"
        draft.pending_inputs = {**draft.pending_inputs, data["input"]: data["entry"]}
    row = Input(
        draft.session,
        data["input"],
        status,
        data.get("delivery"),
        data["entry"],
        draft.position,
        draft.entry(placed).position if placed else 0,
        content,
        draft.position,
    )
    draft.put("inputs", row, row.input)


def cancel_input(draft: Draft, event: Event) -> None:
    """A cancelled input that was placed stays placed."""
    _end(draft, event.data["input"], "cancelled", 0)


def place_input(draft: Draft, entry: str) -> None:
    """An entry has come; the pending inputs that it was preallocated for are placed."""
    for id_ in [id_ for id_, awaited in draft.pending_inputs.items() if awaited == entry]:
        _end(draft, id_, "placed", draft.position)


def _end(draft: Draft, id_: str, status: str, placed: int) -> None:
    if id_ not in draft.pending_inputs:
        return
    draft.pending_inputs = {
        other: entry for other, entry in draft.pending_inputs.items() if other != id_
    }
    row = cast("Input", _input(draft, id_))
    draft.put("inputs", row._replace(status=status, placed=placed, position=draft.position), id_)


def _input(draft: Draft, id_: str) -> Input | None:
    return cast("Input | None", draft.get(("inputs", draft.session, id_)))
