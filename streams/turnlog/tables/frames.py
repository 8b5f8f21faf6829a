"""The SQL table `frames`: every record of the log, byte for byte, with its header beside the body.

It is the truth that the other tables are folded from, so it is never rebuilt: it has its own
version and is migrated. Positions are given by whoever appends, greater than any there was. The
sessions that records are filed under are in `names`; everywhere else stands their short key. Where
a log has partitions, the column `position` holds the partition above the position (`place_of`): one
key then orders each partition by itself, and a file with one partition looks as it always did.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from turnlog.core.errors import SchemaError
from turnlog.core.frames import Header, Record
from turnlog.tables.store import Stored

FRAMES_VERSION = 1

CREATE = (
    "CREATE TABLE names (key INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE) STRICT",
    # No AUTOINCREMENT: it would write a row of its own for each append to keep positions from being
    # given again, and `last_position` sees to that.
    "CREATE TABLE frames ("
    " position INTEGER PRIMARY KEY, time INTEGER NOT NULL, session INTEGER NOT NULL,"
    # 0 where no header can be read; header_session only where it is another than session
    " header INTEGER NOT NULL, header_session TEXT, claim TEXT, epoch INTEGER, seq INTEGER,"
    # folded: 1 where the tables took the frame in, in the transaction that appended it
    " writer TEXT, folded INTEGER NOT NULL DEFAULT 0, body BLOB NOT NULL) STRICT",
    "CREATE INDEX frames_by_session ON frames (session)",
)
MIGRATIONS: tuple[tuple[str, ...], ...] = ()
"""The statements that bring frames from version n to n + 1, the first for n = 1."""

PAGE_ROWS = 512
PAGE_BYTES = 2_000_000
"""A page of records ends at either, so a reader never holds more than this and one record."""

PLACES = 1 << 48
"""How many positions a partition can have. So there can be 32,768 partitions."""

ZSTD = b"\x28\xb5\x2f\xfd"
"""What every zstd frame begins with. A body that itself begins so is always compressed, so what is
stored with these bytes is always to be decompressed."""
COMPRESS_FROM = 2048
"""Bytes. Frames of real sessions from here on shrink to 40 % in about 10 µs, which the smaller
write gives back; shorter ones keep more than 60 %, and stay legible."""

_COLUMNS = "position, time, session, header, header_session, claim, epoch, seq, writer, body"
INSERT = f"INSERT INTO frames (folded, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT = f"""
SELECT {_COLUMNS.replace("session", "names.session", 1)}
FROM frames CROSS JOIN names ON names.key = frames.session
"""


def check(record: Record) -> None:
    """Refuse what SQL cannot hold, before anything is written."""
    header = record.header
    for value in (record.session, *(header or ())):
        if isinstance(value, str):
            if not value.isascii():
                _check_text(value, record.session)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise SchemaError(
                f"session {record.session!r}: the header's number {value} does not fit 64 bits;"
                " give the record without a header"
            )


def _check_text(value: str, session: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            f"session {session!r}: {value!r} in the header holds half a character (a lone"
            " surrogate); make it well-formed with turnlog.core.text.well_formed"
        ) from None


Row: TypeAlias = tuple[Any, ...]
"""The values of a row of `frames`, in the order of INSERT."""


def place_of(position: int, partition: int) -> int:
    """Where a position of a partition stands among those of all."""
    return partition * PLACES + position


def to_row(stored: Stored, key: int, *, folded: bool, partition: int = 0) -> Row:
    """The values for INSERT; `key` is that of the session."""
    position, time, (session, header, body) = stored
    position = place_of(position, partition)
    body = pack(body)
    if header is None:
        return folded, position, time, key, 0, None, None, None, None, None, body
    other = None if header.session == session else header.session
    return folded, position, time, key, 1, other, *header[1:], body


def from_row(row: tuple[Any, ...]) -> Stored:
    """The record of a row of `frames`, with the session's name in the place of its key."""
    place, time, session, has_header, other, claim, epoch, seq, writer, body = row
    header = None
    if has_header:
        header = Header(session if other is None else other, claim, epoch, seq, writer)
    return Stored(place % PLACES, time, Record(session, header, unpack(body)))


def pack(body: bytes) -> bytes:
    """A body as it is stored."""
    if body[:4] == ZSTD:
        return _compress(body)
    if len(body) < COMPRESS_FROM:
        return body
    packed = _compress(body)
    return packed if len(packed) < len(body) * 3 // 4 else body


def unpack(stored: bytes) -> bytes:
    """A body as it was given; what is broken is given as it is stored, for `decode` to judge."""
    if stored[:4] != ZSTD:
        return stored
    try:
        return _Zstd.of_thread().decompress(stored)
    except (_Zstd.of_thread().error, MemoryError):
        return stored


def _compress(body: bytes) -> bytes:
    return _Zstd.of_thread().compress(body)


class _Zstd:
    """zstd for one thread: its objects cost more to make than to use, and cannot be shared."""

    _local = threading.local()

    def __init__(self) -> None:
        import zstandard  # only where a log holds large frames

        self.compress = zstandard.ZstdCompressor(level=3, write_checksum=True).compress
        self.decompress = zstandard.ZstdDecompressor().decompress
        self.error = zstandard.ZstdError

    @classmethod
    def of_thread(cls) -> _Zstd:
        found: _Zstd | None = getattr(cls._local, "zstd", None)
        if found is None:
            found = cls._local.zstd = cls()
        return found


# ---- reading ------------------------------------------------------------------------------


def last_position(connection: sqlite3.Connection, partition: int = 0) -> int:
    """The position of the last record, 0 where there is none."""
    (place,) = connection.execute(
        "SELECT max(position) FROM frames WHERE position > ? AND position < ?",
        (place_of(0, partition), place_of(0, partition + 1)),
    ).fetchone()
    return place % PLACES if place else 0


def folded_position(connection: sqlite3.Connection, known: int, partition: int = 0) -> int:
    """The position up to which the tables are folded: at least a known one, and then as far as
    frames and tables were written together. That is nearly always the end, found in one step."""
    (place,) = connection.execute(
        "SELECT max(position) FROM frames WHERE folded = 1 AND position > ? AND position < ?",
        (place_of(known, partition), place_of(0, partition + 1)),
    ).fetchone()
    return place % PLACES if place else known


def get_record(connection: sqlite3.Connection, position: int, partition: int = 0) -> Stored | None:
    """The record at a position."""
    place = place_of(position, partition)
    row = connection.execute(f"{_SELECT} WHERE position = ?", (place,)).fetchone()
    return None if row is None else from_row(row)


def partition_of(connection: sqlite3.Connection, session: str) -> int:
    """The partition that a session's records are in, which is one for all of them."""
    (place,) = connection.execute(
        "SELECT min(position) FROM frames"
        " WHERE session = (SELECT key FROM names WHERE session = ?)",
        (session,),
    ).fetchone()
    return (place or 0) // PLACES


class Page(NamedTuple):
    """Some records in order; `last` where no more can follow up to the position asked for."""

    records: list[Stored]
    until: int
    last: bool


def read_page(
    connection: sqlite3.Connection,
    after: int,
    until: int | None = None,
    session: str | None = None,
    *,
    partition: int = 0,
) -> Page:
    """The next records after a position, up to another or else to the end as it is now."""
    if until is None:
        until = last_position(connection, partition)
    where = "position > ? AND position <= ?"
    values: list[Any] = [place_of(after, partition), place_of(until, partition)]
    if session is not None:
        where = f"frames.session = (SELECT key FROM names WHERE session = ?) AND {where}"
        values = [session, *values]
    cursor = connection.execute(f"{_SELECT} WHERE {where} ORDER BY position", values)
    records: list[Stored] = []
    size = 0
    for row in cursor:
        stored = from_row(row)
        records.append(stored)
        size += len(stored.record.body)
        if size >= PAGE_BYTES or len(records) >= PAGE_ROWS:
            cursor.close()
            return Page(records, until, last=stored.position == until)
    return Page(records, until, last=True)


def read_pages(
    connection: sqlite3.Connection,
    after: int,
    until: int,
    session: str | None = None,
    *,
    partition: int = 0,
) -> Iterator[list[Stored]]:
    """All records after a position up to another, of a session or of all, page by page."""
    while after < until:
        page = read_page(connection, after, until, session, partition=partition)
        if page.records:
            yield page.records
            after = page.records[-1].position
        if page.last:
            return
