"""What each frame of a session was when it came, found by following its claims from the start.

It is the fold's own judgement (`turnlog.core.ownership`), told apart here for people: the tables
count fenced frames and lost claims and do not say where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from turnlog.core.frames import Frame, Unreadable, decode
from turnlog.core.ownership import Ownership, follow, sole_claim
from turnlog.tables.store import Stored, View

GUEST = "guest"
CLAIM = "claim"
LOST_CLAIM = "lost_claim"
MISFILED = "misfiled"
"""Filed under another session than its own, or without a header that can be read."""


class Judged(NamedTuple):
    """A record, what could be read of it, and what it is.

    `standing` is a word of `turnlog.core.ownership.Admission` for an owner's frame, else one of the
    words above.
    """

    stored: Stored
    frame: Frame | Unreadable
    standing: str


class Judge:
    """Judges the records filed under a session, which must come in order and from the first on."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._own = Ownership()

    def judge(self, stored: Stored) -> Judged:
        """What the next record is."""
        frame = decode(stored.record)
        before = self._own
        admission, self._own = follow(before, frame)
        if admission is not None:
            standing = str(admission)
        elif frame.header is None or frame.header.session != self._session:
            standing = MISFILED
        elif sole_claim(frame) is None:
            standing = GUEST
        else:
            standing = CLAIM if self._own.epoch > before.epoch else LOST_CLAIM
        return Judged(stored, frame, standing)


def judged_frames(view: View, session: str) -> Iterator[Judged]:
    """The records filed under a session, in order."""
    judge = Judge(session)
    return (judge.judge(stored) for stored in view.records(session))
