"""Files: which are ours, of which version, and what is said of the others."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, talking
from turnlog.core.errors import LogUnavailable, StateError
from turnlog.log.sqlite.log import SqliteLog
from turnlog.tables import database, frames
from turnlog.tables.schema import TABLES_VERSION

open_log = partial(SqliteLog, clock=lambda: 0, busy_ms=2_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def change(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()


def test_a_new_file_is_a_log_with_safe_settings(path: Path) -> None:
    with open_log(path) as log:
        assert log.tables.position() == 0
    connection = database.connect(path, busy_ms=0)
    meta = database.prepare(connection, path)
    assert meta == (frames.FRAMES_VERSION, TABLES_VERSION, 1, 0, 0, 0)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA application_id").fetchone() == (0x7475726E,)
    connection.close()


def test_an_empty_file_becomes_a_log(path: Path) -> None:
    path.touch()
    with open_log(path) as log:
        assert log.tables.position() == 0


def test_many_may_make_the_same_log_at_once(path: Path) -> None:
    def make(_: int) -> int:
        with open_log(path) as log:
            return log.tables.position()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(make, range(16))) == [0] * 16


def test_what_is_no_database_is_said_in_one_line(path: Path) -> None:
    path.write_bytes(b"This is a letter to somebody, not a database. " * 100)
    with pytest.raises(LogUnavailable, match=f"^{path}: no SQLite database; give") as caught:
        open_log(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes().startswith(b"This is a letter")


def test_a_database_of_something_else_is_left_alone(path: Path) -> None:
    change(path, "CREATE TABLE contacts (name TEXT)")
    with pytest.raises(LogUnavailable, match="database of something else"):
        open_log(path)
    change(path, "PRAGMA application_id = 99")
    with pytest.raises(LogUnavailable, match="database of something else"):
        open_log(path)


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 60)
        file.write(b"\xff" * (path.stat().st_size - 4096 * 70))


async def test_a_damaged_file_is_said_and_not_made_worse(path: Path) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 600))
    damage(path)
    with open_log(path) as log:
        with pytest.raises(LogUnavailable, match=f"{path}: the file is damaged; keep a copy"):
            [stored async for stored in log.read()]
        with pytest.raises(LogUnavailable, match="the file is damaged"):
            list(log.verify())
        with pytest.raises(LogUnavailable, match="the file is damaged"):
            list(log.tables.scan("entries"))


@pytest.mark.parametrize("name", ["frames_version", "tables_version"])
def test_a_file_of_a_newer_turnlog_is_refused(path: Path, name: str) -> None:
    open_log(path)._close()
    change(path, f"UPDATE meta SET value = 99 WHERE name = '{name}'")
    with pytest.raises(StateError, match=f"{path}: written by a newer turnlog.*upgrade turnlog"):
        open_log(path)


async def test_tables_of_an_older_turnlog_are_built_anew(path: Path) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 9))
    change(path, "UPDATE meta SET value = 0 WHERE name = 'tables_version'")
    change(path, "DROP TABLE branches_kept")
    change(path, "CREATE TABLE of_old (a)")
    change(path, "DELETE FROM entries WHERE number > 3")
    seen: list[tuple[int, int]] = []
    with open_log(path, progress=lambda *reached: seen.append(reached)) as log:
        assert log.tables.get(("sessions", "s")).leaf == 9
        assert list(log.verify()) == []
    assert seen[-1] == (10, 10)
    connection = database.connect(path, busy_ms=0)
    assert database.read_meta(connection).tables_version == TABLES_VERSION
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert not {name for name in names if name.startswith(("building_", "dropping_", "of_old"))}
    connection.close()


async def test_frames_are_migrated_a_version_at_a_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 3))
    steps = (
        ("ALTER TABLE frames ADD COLUMN one INTEGER",),
        ("ALTER TABLE frames ADD COLUMN two INTEGER", "UPDATE frames SET two = position"),
    )
    monkeypatch.setattr(frames, "MIGRATIONS", steps)
    monkeypatch.setattr(frames, "FRAMES_VERSION", 3)
    with open_log(path) as log:
        assert len([stored async for stored in log.read()]) == 4
    connection = database.connect(path, busy_ms=0)
    assert database.read_meta(connection).frames_version == 3
    assert connection.execute("SELECT one, two FROM frames").fetchall()[2] == (None, 3)
    connection.close()


async def test_a_migration_happens_wholly_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 3))
    monkeypatch.setattr(frames, "FRAMES_VERSION", 3)
    steps = (("ALTER TABLE frames ADD COLUMN one INTEGER",), ("SELECT no_such_column",))
    monkeypatch.setattr(frames, "MIGRATIONS", steps)
    with pytest.raises((LogUnavailable, StateError)):
        open_log(path)
    connection = database.connect(path, busy_ms=0)
    assert database.read_meta(connection).frames_version == 1
    columns = [row[1] for row in connection.execute("PRAGMA table_info(frames)")]
    assert "one" not in columns
    connection.close()


def test_an_old_sqlite_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(LogUnavailable, match=r"needs 3\.37\.0 or newer: use a newer Python"):
        open_log(path)


def test_a_lock_on_a_new_file_is_waited_for_a_while(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LogUnavailable, match="another process holds its lock") as caught:
        SqliteLog(path, clock=lambda: 0, busy_ms=50)
    assert caught.value.retriable
    other.execute("COMMIT")
    other.close()
    open_log(path)._close()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (sqlite3.SQLITE_CANTOPEN, "it cannot be opened"),
        (sqlite3.SQLITE_NOTADB, "no SQLite database"),
        (sqlite3.SQLITE_IOERR_SHORT_READ, "the disk failed"),
        (sqlite3.SQLITE_MISUSE, "on demand"),
    ],
)
def test_errors_say_what_where_and_what_to_do(path: Path, code: int, says: str) -> None:
    error = sqlite3.OperationalError("on demand")
    error.sqlite_errorcode = code
    with pytest.raises(LogUnavailable, match=f"^{path}: {says}"), database.reading(path):
        raise error


def test_a_table_that_is_missing_means_another_version(path: Path) -> None:
    with open_log(path) as log:
        change(path, "ALTER TABLE facts RENAME COLUMN value TO worth")
        with pytest.raises(StateError, match="another version than this turnlog's"):
            log.tables.get(("facts", "s", "title"))


def test_a_closed_connection_has_nothing_open_though_a_cursor_is_held(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    connection = database.connect(path, busy_ms=0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1), (2), (3)")
    cursor = connection.execute("SELECT a FROM t")
    assert next(cursor) == (1,)
    connection.close()
    connection.close()
    assert [file.name for file in tmp_path.iterdir()] == ["log.db"], "SQLite has tidied up"
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        next(cursor)
