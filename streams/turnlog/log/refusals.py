"""The only appends that an embedded log refuses for what they say: those that could do no good.

A claim that would lose, and a T1 whose owner is not in force, are seen in the transaction that
would append them. Nothing else is refused: a fenced frame may be evidence of an effect.
"""

from __future__ import annotations

from turnlog.core.errors import ClaimLost, Fenced, OwnershipError
from turnlog.core.frames import Frame
from turnlog.core.ownership import Ownership, after_claim, sole_claim
from turnlog.core.rows import Head, Tables


def refusal(frame: Frame, tables: Tables) -> OwnershipError | None:
    """Why a frame is not appended after what its session's tables hold, or None."""
    header = frame.header
    if header.claim is None:
        return _lost_claim(frame, tables)
    start = next((event for event in frame.events if event.type == "tool_dispatched"), None)
    if start is None:
        return None
    head = _head(frame, tables)
    if (header.claim, header.epoch) == (head.claim, head.epoch) and not head.released:
        return None
    return Fenced(
        f"session {header.session!r}: dispatch {start.data.get('dispatch')!r} was not started:"
        f" its claim {header.claim!r} (epoch {header.epoch}) is not in force, {_in_force(head)};"
        " nothing was appended: claim the session again before you go on"
    )


def _lost_claim(frame: Frame, tables: Tables) -> ClaimLost | None:
    event = sole_claim(frame)
    if event is None:
        return None
    head = _head(frame, tables)
    claim = event.data["claim"]
    if claim == head.claim:
        return None  # a copy of the claim that won: sent again after an unknown outcome
    own = Ownership(head.claim, head.epoch, head.seq, head.digest, head.released, head.lost_claims)
    won, _ = after_claim(own, event.data)
    if won:
        return None
    saw = f"epoch {event.data['expects']}"
    if event.data.get("expects_seq") is not None:
        saw += f" at seq {event.data['expects_seq']}"
    return ClaimLost(
        f"session {frame.header.session!r}: claim {claim!r} expects {saw},"
        f" but {_in_force(head)}; nothing was appended: read the session again, then claim anew"
    )


def _head(frame: Frame, tables: Tables) -> Head:
    session = frame.header.session
    head: Head | None = tables.get(("sessions", session))
    return head or Head(session)


def _in_force(head: Head) -> str:
    if not head.epoch:
        return "nobody has claimed it"
    state = "released" if head.released else f"held by {head.owner or 'an unnamed host'}"
    return f"epoch {head.epoch} at seq {head.seq} is in force, {state}"
