"""Who owns a session, from the frames' headers alone (design, "Who owns a session").

The fold, the owner that follows its own frames, and the SQLite adapter's checks all decide by the
functions of this file, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from turnlog.core.frames import Event, Frame, Header, Unreadable

MAX_LOST_CLAIMS = 256


class Ownership(NamedTuple):
    """The claim in force. `lost_claims` holds (claim, expects, expects_seq) that could yet win."""

    claim: str | None = None
    epoch: int = 0
    seq: int = 0
    digest: str | None = None
    released: bool = False
    lost_claims: tuple[Any, ...] = ()


class Admission(StrEnum):
    """What an owner frame is, seen from the claim in force."""

    APPLIES = "applies"
    GAP = "gap"
    DUPLICATE = "duplicate"
    SEQ_CONFLICT = "seq_conflict"
    FENCED = "fenced"
    FOREIGN = "foreign"


def admit(own: Ownership, header: Header, digest: str) -> Admission:
    """Judge an owner frame by its header and digest; guest frames are not asked about."""
    epoch, seq = header.epoch or 0, header.seq or 0
    if epoch > own.epoch or (epoch == own.epoch and header.claim != own.claim):
        return Admission.FOREIGN
    if epoch < own.epoch or own.released:
        return Admission.FENCED
    if seq == own.seq + 1:
        return Admission.APPLIES
    if seq > own.seq:
        return Admission.GAP
    if seq == own.seq and digest != own.digest:
        return Admission.SEQ_CONFLICT
    return Admission.DUPLICATE


def after_frame(own: Ownership, header: Header, digest: str) -> Ownership:
    """The ownership after a frame that applies (with or without a gap)."""
    return Ownership(own.claim, own.epoch, header.seq or 0, digest, own.released, own.lost_claims)


def after_claim(own: Ownership, data: Mapping[str, Any]) -> tuple[bool, Ownership]:
    """Whether a claim wins, and the ownership after it. The first copy of a claim counts."""
    claim, expects, expects_seq = data["claim"], data["expects"], data.get("expects_seq")
    if _is_remembered(own, claim):
        return False, own
    if expects == own.epoch and expects_seq in (None, own.seq):
        lost = tuple(item for item in own.lost_claims if _may_win(item, expects + 1, 0))
        return True, Ownership(claim, expects + 1, lost_claims=lost)
    item = (claim, expects, expects_seq)
    if not _may_win(item, own.epoch, own.seq) or len(own.lost_claims) >= MAX_LOST_CLAIMS:
        return False, own
    return False, own._replace(lost_claims=(*own.lost_claims, item))


def is_beyond(own: Ownership, data: Mapping[str, Any]) -> bool:
    """Whether a claim that lost should be remembered and there is no room for it."""
    item = (data["claim"], data["expects"], data.get("expects_seq"))
    return (
        len(own.lost_claims) >= MAX_LOST_CLAIMS
        and not _is_remembered(own, data["claim"])
        and _may_win(item, own.epoch, own.seq)
    )


def sole_claim(frame: Frame | Unreadable) -> Event | None:
    """The claim of a guest frame that holds nothing else, or None."""
    if not isinstance(frame, Frame) or not frame.header.is_guest or len(frame.events) != 1:
        return None
    event = frame.events[0]
    is_claim = event.type == "session_claimed" and event.fault is None and not event.newer
    return event if is_claim else None


def follow(own: Ownership, frame: Frame | Unreadable) -> tuple[Admission | None, Ownership]:
    """One step of a reader that only asks who owns the session.

    Gives what an owner frame is (None for a guest frame and for what has no readable header).
    """
    claim = sole_claim(frame)
    if claim is not None:
        return None, after_claim(own, claim.data)[1]
    header = frame.header
    if header is None or header.is_guest or header.session != _filed_under(frame):
        return None, own
    admission = admit(own, header, frame.digest)
    if admission in (Admission.APPLIES, Admission.GAP):
        own = after_frame(own, header, frame.digest)
        if isinstance(frame, Frame) and _releases(frame, own):
            own = own._replace(released=True)
    return admission, own


def _filed_under(frame: Frame | Unreadable) -> str:
    return frame.session if isinstance(frame, Unreadable) else frame.header.session


def _releases(frame: Frame, own: Ownership) -> bool:
    if has_claim(frame):
        return False
    return any(
        event.type == "session_released"
        and event.fault is None
        and not event.newer
        and event.data["claim"] == own.claim
        for event in frame.events
    )


def has_claim(frame: Frame) -> bool:
    """Whether a frame holds a `session_claimed`, malformed or not."""
    return any(event.type == "session_claimed" and not event.newer for event in frame.events)


def _is_remembered(own: Ownership, claim: str) -> bool:
    return claim == own.claim or any(claim == lost[0] for lost in own.lost_claims)


def _may_win(claim: tuple[Any, ...], epoch: int, seq: int) -> bool:
    """Whether a copy of a claim that lost would win, now or later, if it counted."""
    _, expects, expects_seq = claim
    return expects > epoch or (expects == epoch and (expects_seq is None or expects_seq >= seq))
