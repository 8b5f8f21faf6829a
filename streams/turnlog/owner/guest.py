"""The guest writer: what anybody may say to a session without owning it.

A guest's frame has no claim, epoch or seq, and needs none: each of its events is known by its own
ids, so the same bytes may arrive twice. Whether a word takes effect is for the fold to say: read
the tables up to the position that `write_guest` returns. The functions below make the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from turnlog.core.frames import Header, NewEvent, seal
from turnlog.log.port import Log
from turnlog.owner.ambient import Ambient
from turnlog.owner.owner import append
from turnlog.owner.places import FRAME_SENT

Json = Any
Delivery = Literal["steer", "follow_up"]
Status = Literal["ok", "error", "unknown", "not_started"]


async def write_guest(
    log: Log, session: str, events: Sequence[NewEvent], *, writer: str, ambient: Ambient
) -> int:
    """Append events of a guest as one frame and return its position.

    After an unknown outcome the same bytes are sent again, a few times. Raises SchemaError and
    TooLarge before anything is written, AppendRefused where the frame is certainly not in the log,
    and AppendUnknown where it still may arrive.
    """
    frame = seal(Header(session, None, None, None, writer), events)
    position = await append(log, frame)
    ambient.reach(FRAME_SENT)
    return position


def queue_input(
    content: str | Sequence[dict[str, Json]],
    ambient: Ambient,
    *,
    delivery: Delivery = "follow_up",
    input_: str | None = None,
    entry: str | None = None,
) -> NewEvent:
    """Something for the agent to read: text, or content parts. `entry` is the id that its message
    will have; who queues the same input again gives both ids."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return _event(
        "input_queued",
        ambient,
        input=ambient.ids() if input_ is None else input_,
        delivery=delivery,
        entry=ambient.ids() if entry is None else entry,
        content=parts,
    )


def cancel_input(input_: str, ambient: Ambient) -> NewEvent:
    """Take a queued input back; one that was placed stays placed."""
    return _event("input_cancelled", ambient, input=input_)


def request_abort(operation: str, ambient: Ambient) -> NewEvent:
    """Ask for an operation to be stopped."""
    return _event("abort_requested", ambient, operation=operation)


def decide_approval(
    operation: str,
    ambient: Ambient,
    *,
    assistant_entry: str,
    call_id: str,
    decision: Literal["allow", "deny"],
    by: str | None = None,
) -> NewEvent:
    """A person's decision on a call that waits; the first one of a call wins."""
    return _event(
        "approval_decided",
        ambient,
        operation=operation,
        assistant_entry=assistant_entry,
        call_id=call_id,
        decision=decision,
        by=by,
    )


def settle_dispatch(
    dispatch: str,
    status: Status,
    ambient: Ambient,
    *,
    by: str | None = None,
    note: str | None = None,
    try_: int | None = None,
) -> NewEvent:
    """A person's verdict on a dispatch: it replaces `unknown` only (rule 7)."""
    said: dict[str, Json] = {"settled_by": "person", "by": by, "note": note, "try": try_}
    return _event("dispatch_settled", ambient, dispatch=dispatch, status=status, **said)


def allow_rerun(
    dispatch: str,
    ambient: Ambient,
    *,
    by: str | None = None,
    note: str | None = None,
    try_: int | None = None,
) -> NewEvent:
    """A person allows one T1 more of a dispatch whose outcome is unknown (rule 9)."""
    said: dict[str, Json] = {"by": by, "note": note, "try": try_}
    return _event("rerun_allowed", ambient, dispatch=dispatch, **said)


def _event(type_: str, ambient: Ambient, **data: Json) -> NewEvent:
    return NewEvent(type_, ambient.ids(), ambient.now(), data)
