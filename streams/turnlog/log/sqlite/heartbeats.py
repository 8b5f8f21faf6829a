"""Signs of life in a SQLite log's file: a small table of its own beside the log and its tables.

It is made when a host first beats, is no fold of anything, and is written in short transactions of
its own. A beat that a power failure takes is of a boot that has ended, so none is synced.
"""

from __future__ import annotations

import sqlite3

import orjson

from turnlog.log.port import Heartbeat
from turnlog.tables.database import immediate

KEPT_S = 3600.0
"""How long an instance that beats no more is kept, to be told of; those of another boot are not."""

_CREATE = (
    "CREATE TABLE IF NOT EXISTS heartbeats (instance TEXT PRIMARY KEY, host TEXT NOT NULL,"
    " since INTEGER NOT NULL, boot TEXT NOT NULL, uptime REAL NOT NULL, time INTEGER NOT NULL,"
    " others TEXT) STRICT, WITHOUT ROWID"  # a file of before has no `others`, and never any
)
_IS_THERE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'heartbeats'"


def keep(connection: sqlite3.Connection, beat: Heartbeat) -> None:
    """Write a beat, and forget those that nobody will ask for."""
    connection.execute("PRAGMA synchronous = NORMAL")
    with immediate(connection):
        connection.execute(_CREATE)
        values: tuple[object, ...] = beat[:6]
        if beat.others:
            values = (*values, orjson.dumps(beat.others).decode())
        columns = ", ".join(Heartbeat._fields[: len(values)])
        marks = ", ".join("?" * len(values))
        connection.execute(f"REPLACE INTO heartbeats ({columns}) VALUES ({marks})", values)  # noqa: S608  # names of ours
        connection.execute(
            "DELETE FROM heartbeats WHERE boot <> ? OR uptime < ?",
            (beat.boot, beat.uptime - KEPT_S),
        )


def forget(connection: sqlite3.Connection, instance: str) -> None:
    """Take an instance away."""
    if not connection.execute(_IS_THERE).fetchone():
        return
    connection.execute("PRAGMA synchronous = NORMAL")
    with immediate(connection):
        connection.execute("DELETE FROM heartbeats WHERE instance = ?", (instance,))


def read(connection: sqlite3.Connection) -> list[Heartbeat]:
    """The beats that are kept, by instance."""
    if not connection.execute(_IS_THERE).fetchone():
        return []
    cursor = connection.execute("SELECT * FROM heartbeats ORDER BY instance")
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, values, strict=True)) for values in cursor]
    for row in rows:
        row["others"] = tuple(orjson.loads(row.get("others") or "[]"))
    return [Heartbeat(**row) for row in rows]
