"""Who owns the session, frame by frame: what becomes of a frame before anybody reads its events.

It is the section "Frames" of docs/RULES.md. The model keeps every claim that it has ever seen,
where the fold keeps the few that can still win.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from turnlog.core.events import GUEST_TYPES, TYPES
from turnlog.core.frames import Event, Frame, Unreadable

Record: TypeAlias = Frame | Unreadable
LOST_MAX = 256


class Ruling(NamedTuple):
    """What becomes of a frame.

    `how` is one of old (nothing at all), claimed, lost, guest (its events as a guest's), applied
    (as the owner's), closed (its seq counts and nothing in it), fenced, duplicate, refused.
    `stage` is set where the whole frame is quarantined.
    """

    how: str
    stage: str | None = None
    damage: tuple[str, ...] = ()


def is_known(event: Event, type_: str) -> bool:
    """Whether an event is of this type in a version that we know, well-formed or not."""
    return event.type == type_ and not event.newer


class Ownership:
    """The claim in force and how it came to be."""

    def __init__(self, overflow: Callable[[str], None]) -> None:
        self.overflow = overflow
        self.position: int | None = None
        self.claim: str | None = None
        self.epoch = 0
        self.owner: str | None = None
        self.reason: str | None = None
        self.seq = 0
        self.digest: str | None = None
        self.released = False
        self.frames_applied = 0
        self.claims_seen: list[Event] = []

    def judge(self, position: int, frame: Record) -> Ruling:
        """The ruling on the next frame; the ownership is then as it is after that frame."""
        if self.position is not None and position <= self.position:
            return Ruling("old")
        self.position = position
        header = frame.header
        if isinstance(frame, Unreadable):
            if header is None:
                return Ruling("refused", "decode", ("no_header",))
            if header.session != frame.session or header.is_guest:
                return Ruling("refused", "decode")
        elif header is not None and header.is_guest:
            return self._judge_guest(frame)
        return self._judge_owner(frame)

    def _judge_guest(self, frame: Frame) -> Ruling:
        claims = [event for event in frame.events if is_known(event, "session_claimed")]
        if claims and len(frame.events) > 1:
            return Ruling("refused", "fold")
        for event in frame.events:
            if event.type in TYPES and not event.newer and event.type not in GUEST_TYPES:
                return Ruling("refused", "fold")
            is_verdict = is_known(event, "dispatch_settled") and event.fault is None
            if is_verdict and event.data.get("settled_by") != "person":
                return Ruling("refused", "fold")
        if claims and claims[0].fault is None:
            return self._judge_claim(claims[0])
        return Ruling("guest")

    def _judge_claim(self, event: Event) -> Ruling:
        claim, expects_seq = event.data["claim"], event.data.get("expects_seq")
        if claim in [seen.data["claim"] for seen in self.claims_seen]:
            return Ruling("lost")
        if event.data["expects"] != self.epoch or expects_seq not in (None, self.seq):
            if self.may_win(event) and sum(map(self.may_win, self.claims_seen)) >= LOST_MAX:
                self.overflow("lost_claims")
            else:
                self.claims_seen.append(event)
            return Ruling("lost")
        self.claims_seen.append(event)
        self.claim, self.epoch = claim, self.epoch + 1
        self.owner, self.reason = event.data.get("host"), event.data.get("reason")
        self.seq, self.digest, self.released = 0, None, False
        return Ruling("claimed")

    def may_win(self, event: Event) -> bool:
        """Whether a copy of a claim that lost would win now or later, if nobody remembered it."""
        expects, expects_seq = event.data["expects"], event.data.get("expects_seq") or 0
        return bool((expects, expects_seq) > (self.epoch, self.seq))

    def _judge_owner(self, frame: Record) -> Ruling:
        header = frame.header
        assert header is not None
        assert header.epoch is not None
        assert header.seq is not None
        stage = "decode" if isinstance(frame, Unreadable) else "fold"
        whole = stage if isinstance(frame, Unreadable) else None
        if header.epoch < self.epoch:
            return Ruling("fenced", whole)
        if header.epoch > self.epoch or header.claim != self.claim:
            return Ruling("refused", stage)
        if self.released:
            return Ruling("fenced", whole)
        if header.seq < self.seq or (header.seq == self.seq and frame.digest == self.digest):
            return Ruling("duplicate")
        if header.seq == self.seq:
            return Ruling("refused", stage, ("seq_conflict",))
        gap = ("gap",) if header.seq > self.seq + 1 else ()
        self.seq, self.digest = header.seq, frame.digest
        self.frames_applied += 1
        if isinstance(frame, Unreadable):
            return Ruling("closed", "decode", (*gap, "unreadable"))
        if any(is_known(event, "session_claimed") for event in frame.events):
            return Ruling("closed", "fold", (*gap, "misplaced_claim"))
        self.released = any(self.releases(event) for event in frame.events)
        return Ruling("applied", None, gap)

    def releases(self, event: Event) -> bool:
        """Whether an event of a frame in force gives the session up."""
        return (
            is_known(event, "session_released")
            and event.fault is None
            and event.data["claim"] == self.claim
        )
