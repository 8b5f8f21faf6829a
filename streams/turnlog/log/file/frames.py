"""How a session's file is read: frame by frame, past what is broken, up to what is torn.

Two formats write and find frames (`Format`); what to make of the bytes between is the same for both
and decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from turnlog.core.frames import Record
from turnlog.log.file.disk import Disk
from turnlog.tables.store import Stored

SECTOR = 512
"""Bytes that a disk writes wholly or not at all, or a divisor of that."""
_READ_BYTES = 1 << 18


class Found(NamedTuple):
    """A frame of a file. What is not `whole` is damage: the record says as much as is known of it.

    `seq` is its number in the file, from 1 without holes. A position of None is not known.
    """

    start: int
    end: int
    seq: int
    position: int | None
    time: int
    record: Record
    whole: bool = True


class Torn(NamedTuple):
    """Where a file ends in a write that was never finished."""

    start: int


class Window:
    """A file's bytes, read a piece at a time; it never holds much more than was asked for."""

    def __init__(self, disk: Disk, file: int, size: int) -> None:
        self.size = size
        self._disk = disk
        self._file = file
        self._start = 0
        self._bytes = b""

    def get(self, start: int, length: int) -> bytes:
        """So many bytes; fewer only where the file ends."""
        length = min(length, self.size - start)
        at = start - self._start
        if at < 0 or at + length > len(self._bytes):
            self._bytes = self._disk.read(
                self._file, min(max(length, _READ_BYTES), self.size - start), start
            )
            self._start, at = start, 0
        return self._bytes[at : at + length]

    def find(self, what: bytes, start: int) -> int:
        """Where some bytes begin next, or the file's size."""
        while start < self.size:
            if not 0 <= start - self._start <= len(self._bytes) - len(what):
                self.get(start, _READ_BYTES)
            found = self._bytes.find(what, start - self._start)
            if found >= 0:
                return self._start + found
            start = self._start + len(self._bytes)
            if start < self.size:
                start -= len(what) - 1
        return self.size


class Format(Protocol):
    """How frames are written, and found again."""

    name: str
    suffix: str
    marker: bytes
    """What every frame begins with."""

    def encode(self, stored: Stored, seq: int) -> bytes:
        """The bytes of a frame."""
        ...

    def parse(self, window: Window, start: int, session: str) -> Found | None:
        """The frame that begins at a place, or None; broken, where its extent is known."""
        ...

    def is_short(self, window: Window, start: int) -> bool:
        """Whether the bytes from a place to the file's end are the beginning of a frame."""
        ...


def scan(
    window: Window, format_: Format, session: str, *, start: int = 0, seq: int = 0, known: int = 0
) -> Iterator[Found | Torn]:
    """The frames of a session from a place in its file on, behind the frame of a number.

    `known` is how far the file is known to have been synced, 0 where nothing is known.
    """
    lost: Found | None = None
    while start < window.size:
        found = format_.parse(window, start, session)
        if found is None:
            end = _next(window, format_, session, start)
            if _is_torn(window, format_, start, end, known):
                yield Torn(start)
                return
            record = Record(session, None, window.get(start, end - start))
            lost = Found(start, end, seq + 1, None, 0, record, whole=False)
            start = end
            continue
        if not found.whole and _has_zeros(window, found, known):
            yield Torn(start)
            return
        start = found.end
        if found.seq <= seq:
            continue  # a frame that stands here a second time does not count
        if found.seq > seq + 1:
            nothing = Found(found.start, found.start, seq + 1, None, 0, Record(session, None, b""))
            yield lost or nothing._replace(whole=False)
        lost, seq = None, found.seq
        yield found
    if lost is not None:
        yield lost


def _next(window: Window, format_: Format, session: str, start: int) -> int:
    """Where the next frame begins behind a place, or the file's size."""
    while start < window.size:
        start = window.find(format_.marker, start + 1)
        if start < window.size and format_.parse(window, start, session) is not None:
            return start
    return window.size


def _is_torn(window: Window, format_: Format, start: int, end: int, known: int) -> bool:
    if end == window.size and format_.is_short(window, start):
        return True
    return _may_be_torn(window, start, end, known) and has_zero_sector(window, start, end)


def _has_zeros(window: Window, found: Found, known: int) -> bool:
    may_be = _may_be_torn(window, found.start, found.end, known)
    return may_be and has_zero_sector(window, found.start, found.end)


def _may_be_torn(window: Window, start: int, end: int, known: int) -> bool:
    """Only what was not known to be synced, and where that is not known, only the last frame."""
    return start >= known > 0 or end == window.size


def has_zero_sector(window: Window, start: int, end: int) -> bool:
    """Whether a sector's worth of some bytes is zero: space that was never written to.

    The last piece may be less than a sector, but not so little that it could be zero by chance.
    """
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        if (stop < end or stop - start >= 4) and not any(window.get(start, stop - start)):
            return True
        start = stop
    return False
