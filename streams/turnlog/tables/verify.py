"""Are the stored tables what a fresh fold of the log gives? Row for row, in bounded memory.

The log is folded again into a temporary database that SQLite keeps on disk, up to the position of
the stored tables, and both sides are read in key order side by side.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from turnlog.core.fold import fold as fold_frame
from turnlog.core.rows import TABLES
from turnlog.tables import database, frames
from turnlog.tables.catchup import Progress, fold_page, write_page
from turnlog.tables.codec import CODECS, Codec, Values
from turnlog.tables.folding import Fold, Folding
from turnlog.tables.schema import create_statements
from turnlog.tables.sql import in_key_order
from turnlog.tables.store import Difference


def verify(
    connection: sqlite3.Connection,
    path: Path,
    progress: Progress | None = None,
    *,
    partitions: int = 1,
    fold: Fold = fold_frame,
) -> Iterator[Difference]:
    """The rows in which the stored tables and a fresh fold differ, table by table in key order.

    The connection is kept in one read transaction, so others may append meanwhile. Raises
    StateError where the fold fails.
    """
    with database.reading(path):
        connection.execute("BEGIN")
        fresh = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        try:
            _prepare(fresh, connection)
            _fold_into(fresh, connection, path, progress, partitions=partitions, fold=fold)
            for table in TABLES:
                yield from _compare(CODECS[table], connection, fresh)
        finally:
            fresh.close()
            database.roll_back(connection)


def _prepare(fresh: sqlite3.Connection, connection: sqlite3.Connection) -> None:
    fresh.execute("PRAGMA journal_mode = OFF")
    fresh.execute("PRAGMA synchronous = OFF")
    fresh.execute(f"PRAGMA cache_size = -{database.CACHE_KIB}")
    for statement in (*frames.CREATE, *create_statements("", 1)):
        fresh.execute(statement)
    names = connection.execute("SELECT key, session FROM names")
    fresh.executemany("INSERT INTO names VALUES (?, ?)", names)


def _fold_into(
    fresh: sqlite3.Connection,
    connection: sqlite3.Connection,
    path: Path,
    progress: Progress | None,
    *,
    partitions: int,
    fold: Fold,
) -> None:
    folding = Folding(fresh, fold=fold)
    positions = [database.read_position(connection, each) for each in range(partitions)]
    before = 0
    for partition, position in enumerate(positions):
        for page in frames.read_pages(connection, 0, position, partition=partition):
            fold_page(folding, page, path)
            with database.immediate(fresh):
                write_page(folding, path, page[-1].position)
            folding.keep()
            if progress is not None:
                progress(before + page[-1].position, sum(positions))
        before += position


def _compare(
    codec: Codec, stored: sqlite3.Connection, fresh: sqlite3.Connection
) -> Iterator[Difference]:
    """Walk both sides in key order; a side that is behind the other lacks nothing, it has more."""
    left, right = _rows(codec, stored), _rows(codec, fresh)
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if one == other:
            one, other = next(left, None), next(right, None)
            continue
        left_key, right_key = _key(codec, one), _key(codec, other)
        if other is None or (one is not None and left_key < right_key):
            yield Difference(codec.table, left_key, _row(codec, one), None)
            one = next(left, None)
        elif one is None or right_key < left_key:
            yield Difference(codec.table, right_key, None, _row(codec, other))
            other = next(right, None)
        else:
            if (was := _row(codec, one)) != (is_ := _row(codec, other)):
                yield Difference(codec.table, left_key, was, is_)
            one, other = next(left, None), next(right, None)


def _rows(codec: Codec, connection: sqlite3.Connection) -> Iterator[Values]:
    cursor = connection.execute(in_key_order(codec))
    while rows := list(islice(cursor, 256)):
        yield from rows


def _key(codec: Codec, values: Values | None) -> tuple[Any, ...]:
    return (codec.table, *values[: codec.key_length]) if values is not None else ()


def _row(codec: Codec, values: Values | None) -> Any:
    """The row, or its bare values where they are none."""
    try:
        return None if values is None else codec.decode(values[0], values[1:])
    except ValueError:  # JSON that somebody has changed by hand
        return tuple(values or ())
