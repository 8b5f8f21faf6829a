"""Tables are built anew beside readers and writers, then take the place of the present ones.

The fresh set lies in the same file under another prefix. It is folded from the log in pages: only
writing a page takes the write lock, and appends go on between. The last pages, and the change of
names, are one transaction. Whoever rebuilds last wins: an older rebuild stops when it sees another.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from turnlog.core.errors import StateError
from turnlog.core.fold import fold as fold_frame
from turnlog.tables import database, frames
from turnlog.tables.catchup import Progress, fold_page, write_page
from turnlog.tables.folding import Fold, Folding
from turnlog.tables.schema import (
    BUILDING,
    DROPPING,
    TABLES_VERSION,
    create_statements,
    create_views,
    drop_views,
)

REST_S = 0.002
"""Between two pages, so that appenders who wait for the lock get it."""


def rebuild(
    connection: sqlite3.Connection,
    path: Path,
    progress: Progress | None = None,
    *,
    partitions: int = 1,
    fold: Fold = fold_frame,
) -> int:
    """Build the tables anew; gives the position they are folded up to, partitions added up.

    Raises StateError where the fold fails or another rebuild has begun; the present tables stay.
    """
    token = _begin(connection)
    folding = Folding(connection, BUILDING, fold=fold)
    try:
        ends = _build(connection, folding, path, [0] * partitions, progress, token=token)
    except sqlite3.OperationalError:
        _check(connection, path, token)  # the tables are missing where another has dropped them
        raise
    _drop(connection, DROPPING)
    end = sum(ends)
    if progress is not None:
        progress(end, end)
    return end


def _build(
    connection: sqlite3.Connection,
    folding: Folding,
    path: Path,
    reached: list[int],
    progress: Progress | None,
    *,
    token: int,
) -> list[int]:
    """Fold each partition from the position reached in it; gives where they end."""
    total = sum(frames.last_position(connection, each) for each in range(len(reached)))
    for partition in range(len(reached)):
        while True:
            page = frames.read_page(connection, reached[partition], partition=partition)
            if progress is not None:
                progress(sum(reached), max(total, sum(reached)))
            if page.last:
                break
            fold_page(folding, page.records, path)
            reached[partition] = page.records[-1].position
            with database.immediate(connection):
                _check(connection, path, token)
                write_page(folding, path, reached[partition])
            folding.keep()
            time.sleep(REST_S)
    with database.immediate(connection):
        _check(connection, path, token)
        for partition, position in enumerate(reached):
            reached[partition] = frames.last_position(connection, partition)
            for rest in frames.read_pages(
                connection, position, reached[partition], partition=partition
            ):
                fold_page(folding, rest, path)
        write_page(folding, path, sum(reached))
        _swap(connection, reached)
    return reached


def _begin(connection: sqlite3.Connection) -> int:
    """Take the place of any other rebuild; gives what tells ours from the next."""
    with database.immediate(connection):
        meta = database.read_meta(connection)
        for statement in drop_views(BUILDING):
            connection.execute(statement)
        _drop_all(connection, BUILDING)
        token = max(meta.generation, meta.building) + 1
        for statement in create_statements(BUILDING, token):
            connection.execute(statement)
        database.set_meta(connection, building=token)
    _drop(connection, DROPPING)
    return token


def _check(connection: sqlite3.Connection, path: Path, token: int) -> None:
    if database.read_meta(connection).building != token:
        raise StateError(
            f"{path}: another rebuild of these tables has begun and goes on; let it finish"
        )


def _swap(connection: sqlite3.Connection, positions: list[int]) -> None:
    """The fresh tables become the live ones. Old ones are only renamed: dropping takes longer."""
    building = database.read_meta(connection).building
    for statement in (*drop_views(""), *drop_views(BUILDING)):
        connection.execute(statement)
    for table in _present(connection, ""):
        connection.execute(f"ALTER TABLE {table} RENAME TO {DROPPING}{table}")
    for table in _present(connection, BUILDING):
        connection.execute(f"ALTER TABLE {BUILDING}{table} RENAME TO {table}")
    for statement in create_views(""):
        connection.execute(statement)
    database.set_meta(connection, tables_version=TABLES_VERSION, generation=building, building=0)
    for partition, position in enumerate(positions):
        database.set_position(connection, position, partition)


def _drop(connection: sqlite3.Connection, prefix: str) -> None:
    """Take a set away, a table in each transaction."""
    for table in _present(connection, prefix):
        with database.immediate(connection):
            connection.execute(f"DROP TABLE IF EXISTS {prefix}{table}")


def _drop_all(connection: sqlite3.Connection, prefix: str) -> None:
    for table in _present(connection, prefix):
        connection.execute(f"DROP TABLE {prefix}{table}")


_KEPT = frozenset({"meta", "positions", "names", "frames", "heartbeats", "files", "source"})
"""What is no fold of the log."""


def _present(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """The tables of a set that are there, without the prefix; an older version had others."""
    names = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    if prefix:
        return [name[len(prefix) :] for name in names if name.startswith(prefix)]
    return [
        name
        for name in names
        if name not in _KEPT and not name.startswith((BUILDING, DROPPING, "sqlite_"))
    ]
