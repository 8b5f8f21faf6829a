"""What a contract test needs of an adapter under test, and the frames that it appends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tests.story import assistant, claimed, created, event, t1, user
from turnlog.core.frames import Header, NewEvent, Record, SealedFrame, decode, seal
from turnlog.core.rows import TABLES, Key, Row, key_of
from turnlog.log import EmbeddedLog
from turnlog.tables.store import View


class Adapter(ABC):
    """One log of one kind. `now` is what its clock says, if it has one of its own."""

    now = 1_000
    has_clock = True

    def clock(self) -> int:
        return self.now

    @abstractmethod
    def open(self, **options: Any) -> EmbeddedLog:
        """Open the log, also when it is open already, then as another process would."""

    @abstractmethod
    async def skip(self, log: EmbeddedLog, positions: int) -> None:
        """Leave a hole behind the last position."""

    @abstractmethod
    def tamper(self, log: EmbeddedLog, table: str, row: Any) -> None:
        """Write a row that no fold gave."""


def owned(
    session: str, seq: int, *events: NewEvent, claim: str = "c1", epoch: int = 1
) -> SealedFrame:
    return seal(Header(session, claim, epoch, seq, "host"), events)


def guest(session: str, *events: NewEvent) -> SealedFrame:
    return seal(Header(session, None, None, None, "guest"), events)


def claiming(session: str, claim: str = "c1", expects: int = 0, **data: Any) -> SealedFrame:
    return guest(session, claimed(claim, expects, host="host", reason="open", **data))


def beginning(session: str) -> list[SealedFrame]:
    """A claim, the session's creation with a first message, and an answer with a call."""
    return [
        claiming(session),
        owned(session, 1, created(title="T", cwd="/home"), user("u1", None)),
        owned(session, 2, assistant("a1", "u1", "c1")),
    ]


def dispatching(session: str, seq: int, dispatch: str = "d1", **header: Any) -> SealedFrame:
    """A T1 of the call that `beginning` made."""
    t1_event = t1(dispatch, "op", "a1", f"r-{dispatch}")
    return owned(session, seq, t1_event, **header)


def talking(session: str, count: int) -> list[SealedFrame]:
    """A claim, then messages, each in a frame of its own."""
    frames = [claiming(session)]
    parent: str | None = None
    for number in range(1, count + 1):
        frames.append(owned(session, number, user(f"m{number}", parent, f"message {number}")))
        parent = f"m{number}"
    return frames


def large(session: str, seq: int, size: int) -> SealedFrame:
    """A frame of about a size in bytes, in parts that the limits allow."""
    part = "x" * 200_000
    content = [{"type": "text", "text": part} for _ in range(size // len(part))]
    data = {"parent": None, "role": "user", "content": content}
    return owned(session, seq, event("message", f"large-{seq}", **data))


def sealed(record: Record) -> SealedFrame:
    frame = decode(record)
    return SealedFrame(record, frame)  # type: ignore[arg-type]  # as an owner would hold it


async def append_all(log: EmbeddedLog, frames: list[SealedFrame]) -> list[int]:
    return [await log.append(frame) for frame in frames]


def rows_of(view: View) -> dict[Key, Row]:
    return {key_of(table, row): row for table in TABLES for row in view.scan(table)}
