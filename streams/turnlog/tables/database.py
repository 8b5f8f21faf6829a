"""SQLite files as turnlog keeps them: opening, the schema and its versions, and what errors mean.

A file is known by its application id. `meta` holds two versions: of `frames`, which are migrated,
and of the tables, which are built anew. A newer one of either is refused.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

from turnlog.core.errors import LogUnavailable, StateError
from turnlog.tables import frames
from turnlog.tables.schema import TABLES_VERSION, create_statements

APPLICATION_ID = 0x7475726E
"""The letters `turn`, in the header of the file."""
TABLES_APPLICATION_ID = 0x7475726F
"""Of a file that follows a log which lies elsewhere: nothing may be appended to it as to a log."""
SQLITE_MIN = (3, 37, 0)
"""The first SQLite with STRICT tables."""
CACHE_KIB = 16_000
"""For each connection: enough for the upper levels of every index of a log of some GB."""
CHECKPOINT_PAGES = 4_000
"""A commit that brings the write-ahead log to so many pages (16 MB) copies them to the file. Most
of them are the same few, so doing it less often than at SQLite's 1,000 is cheaper."""
WAL_BYTES = 64 * 1024 * 1024
"""What a write-ahead log that grew beside a long reader is cut back to."""

_CREATE_META = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE positions (partition INTEGER PRIMARY KEY, position INTEGER NOT NULL) STRICT",
    "INSERT INTO positions VALUES (0, 0)",
)

Connect = Callable[..., sqlite3.Connection]


class Meta(NamedTuple):
    """What a file says of itself.

    `position` is the last one that the tables hold, `end` the last one that the log holds, in the
    partition that was asked for.
    """

    frames_version: int
    tables_version: int
    generation: int
    building: int
    position: int
    end: int


class Connection(sqlite3.Connection):
    """A connection that closes its cursors with itself.

    One that is in the middle of its rows would keep the file open until somebody lets go of it,
    which may be no more than the traceback of an error.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        cursor = super().cursor(factory)
        self._cursors.add(cursor)
        return cursor

    # the originals make a cursor of their own

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.cursor()
        return cursor.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.cursor()
        return cursor.executemany(sql, parameters)

    def close(self) -> None:
        for cursor in list(self._cursors):
            with suppress(sqlite3.ProgrammingError):  # a connection that is closed a second time
                cursor.close()
        super().close()


def connect(
    path: Path, *, busy_ms: int, factory: type[sqlite3.Connection] = Connection
) -> sqlite3.Connection:
    """A connection with turnlog's settings; it may be used by one thread at a time."""
    connection = sqlite3.connect(
        path,
        timeout=busy_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=factory,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    return connection


@contextmanager
def immediate(connection: sqlite3.Connection) -> Generator[None]:
    """A write transaction: committed at the end, rolled back where anything raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction, where SQLite has not already done so by itself, or the log was closed."""
    with suppress(sqlite3.ProgrammingError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def read_meta(connection: sqlite3.Connection, partition: int = 0) -> Meta:
    """What the file says of itself, as of the transaction under way."""
    values = dict(connection.execute("SELECT name, value FROM meta"))
    return Meta(
        values["frames_version"],
        values["tables_version"],
        values["generation"],
        values["building"],
        read_position(connection, partition),
        frames.last_position(connection, partition),
    )


def read_position(connection: sqlite3.Connection, partition: int = 0) -> int:
    """The position up to which the tables are folded."""
    found = connection.execute(
        "SELECT position FROM positions WHERE partition = ?", (partition,)
    ).fetchone()
    return frames.folded_position(connection, found[0] if found else 0, partition)


def set_meta(connection: sqlite3.Connection, **values: int) -> None:
    """Change what the file says of itself."""
    connection.executemany("REPLACE INTO meta VALUES (?, ?)", values.items())


def set_position(connection: sqlite3.Connection, position: int, partition: int = 0) -> None:
    """Say up to which position the tables are folded, where they were not folded with each append
    (`frames.folded`), which is spared the write."""
    connection.execute("REPLACE INTO positions VALUES (?, ?)", (partition, position))


def prepare(
    connection: sqlite3.Connection, path: Path, application_id: int = APPLICATION_ID
) -> Meta:
    """Make a new file a log, or check and migrate one that is there."""
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        raise LogUnavailable(
            f"{path}: this Python has SQLite {sqlite3.sqlite_version}; turnlog needs"
            f" {'.'.join(map(str, SQLITE_MIN))} or newer: use a newer Python"
        )
    if _is_new(connection, path, application_id):
        _set_wal(connection)
        with immediate(connection):
            if _is_new(connection, path, application_id):  # nobody else was faster
                _create(connection, application_id)
    meta = read_meta(connection)
    check_versions(meta, path)
    if meta.frames_version < frames.FRAMES_VERSION:
        _migrate(connection)
    return read_meta(connection)


def check_versions(meta: Meta, path: Path) -> None:
    """Refuse a file that a newer turnlog has written."""
    newest = (meta.frames_version, meta.tables_version)
    ours = (frames.FRAMES_VERSION, TABLES_VERSION)
    if newest[0] > ours[0] or newest[1] > ours[1]:
        raise StateError(
            f"{path}: written by a newer turnlog (schema {newest[0]}.{newest[1]}, this one knows"
            f" {ours[0]}.{ours[1]}): upgrade turnlog, then open it again"
        )


def _is_new(connection: sqlite3.Connection, path: Path, application_id: int) -> bool:
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    if found == application_id:
        return False
    if found == TABLES_APPLICATION_ID:
        raise LogUnavailable(
            f"{path}: the tables of a log that lies elsewhere; open that log, such as file:FOLDER"
        )
    if found == APPLICATION_ID:
        raise LogUnavailable(
            f"{path}: a log of its own, and no tables beside one; give another path for tables"
        )
    (count,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if found or count:
        raise LogUnavailable(
            f"{path}: a SQLite database of something else than turnlog; give another path"
        )
    return True


def _set_wal(connection: sqlite3.Connection) -> None:
    """Switch a new file to write-ahead logging. SQLite does not wait by itself here."""
    (busy_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    for tries_left in range(busy_ms // 10, -1, -1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or not tries_left:
                raise
            time.sleep(0.01)


def _create(connection: sqlite3.Connection, application_id: int) -> None:
    for statement in (*_CREATE_META, *frames.CREATE, *create_statements("", 1)):
        connection.execute(statement)
    set_meta(
        connection,
        frames_version=frames.FRAMES_VERSION,
        tables_version=TABLES_VERSION,
        generation=1,
        building=0,
    )
    connection.execute(f"PRAGMA application_id = {application_id}")


def _migrate(connection: sqlite3.Connection) -> None:
    """All steps in one transaction: a file is of one version or the other, never in between."""
    with immediate(connection):
        version = read_meta(connection).frames_version
        for step in frames.MIGRATIONS[version - 1 :]:
            for statement in step:
                connection.execute(statement)
        set_meta(connection, frames_version=max(version, frames.FRAMES_VERSION))


# ---- errors -------------------------------------------------------------------------------


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without its extension; 0 where the error is not from SQLite itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return (code or 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection held the lock for longer than we wait."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_disk(error: sqlite3.Error) -> bool:
    """Whether the disk is full or fails, rather than what was asked being wrong."""
    return primary_code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is not, or no longer, what SQLite has written."""
    return primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_certain(error: sqlite3.Error) -> bool:
    """Whether a COMMIT that failed so has certainly committed nothing.

    What counts is whether the commit record, the last one of the transaction, could be written
    whole. If it was, and then could not be synced, it may still be found after a crash.
    """
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_IOERR_WRITE or primary_code(error) in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
    )


_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process holds its lock; try again, or see what holds it",
    sqlite3.SQLITE_LOCKED: "another connection holds its lock; try again",
    sqlite3.SQLITE_INTERRUPT: "this log was closed meanwhile; open it again",
    sqlite3.SQLITE_FULL: "the disk is full; make room, then try again",
    sqlite3.SQLITE_IOERR: "the disk failed; look at its health and free space, then try again",
    sqlite3.SQLITE_READONLY: "the file may not be written; look at its rights and its folder's",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; it must be a file, in a folder, both yours",
    sqlite3.SQLITE_PERM: "it may not be opened; look at its rights",
    sqlite3.SQLITE_AUTH: "it may not be opened; look at its rights",
    sqlite3.SQLITE_NOTADB: "no SQLite database; give another path, or restore a backup",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; keep a copy, then restore a backup, or what"
    " `turnlog dump` still reads",
}


def explain(error: sqlite3.Error, path: Path) -> str:
    """One line: what failed, where, and what to do."""
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return f"{path}: this log is closed; open it again"
    advice = _ADVICE.get(primary_code(error))
    return f"{path}: {advice} ({error})" if advice else f"{path}: {error}"


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Turn SQLite's errors into ours, where nothing is appended."""
    try:
        yield
    except sqlite3.Error as error:
        if "no such" in str(error):  # a table or a column
            raise StateError(
                f"{path}: its tables are of another version than this turnlog's, which began"
                f" before an upgrade: start it again ({error})"
            ) from error
        raise LogUnavailable(explain(error, path), retriable=is_busy(error)) from error
