"""A rebuild beside readers and writers: nobody waits for it, nobody sees a half of it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, rows_of, talking
from tests.contract.tables import FailingFold, history
from turnlog.core.errors import StateError
from turnlog.log.sqlite.log import SqliteLog
from turnlog.tables import database, frames, rebuild

open_log = partial(SqliteLog, clock=lambda: 0, busy_ms=5_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def tables_of(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    return names


async def test_readers_and_writers_go_on_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "PAGE_ROWS", 20)
    async with open_log(path) as log, open_log(path) as other:
        await log.load(history(4, 150))
        frames_ = talking("hot", 400)
        done = threading.Event()
        reached: list[int] = []

        def build() -> None:
            log.rebuild(lambda position, _: reached.append(position))
            done.set()

        building = asyncio.ensure_future(asyncio.to_thread(build))
        appended = 0
        while not done.is_set() and appended < len(frames_):
            position = await (log, other)[appended % 2].append(frames_[appended])
            appended += 1
            for each in (log, other):
                head = each.tables.get(("sessions", "hot"))
                assert head.position == position
                assert head.leaf == appended - 1
        await building
        await append_all(log, frames_[appended:])
        assert len(reached) > 3
        assert log.tables.get(("sessions", "hot")).leaf == 400
        assert rows_of(log.tables) == rows_of(other.tables)
        assert list(log.verify()) == []


async def test_nothing_is_left_beside_the_tables(path: Path) -> None:
    with open_log(path) as log:
        await log.load(history(5, 60))
        before = tables_of(path)
        log.rebuild()
        log.rebuild()
    after = tables_of(path)
    assert {name for name in after if "_1" not in name and "_3" not in name} == {
        name for name in before if "_1" not in name
    }
    assert len(after) == len(before)


async def test_a_rebuild_that_was_killed_is_tidied_up_by_the_next(path: Path) -> None:
    with open_log(path) as log:
        await log.load(history(6, 60))
        before = len(tables_of(path))
        connection = database.connect(path, busy_ms=1_000)
        rebuild._begin(connection)
        connection.execute("CREATE TABLE dropping_entries (a)")
        connection.close()
        assert len(tables_of(path)) > before
        log.rebuild()
        assert list(log.verify()) == []
    assert len(tables_of(path)) == before


async def test_of_two_rebuilds_the_later_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "PAGE_ROWS", 10)
    with open_log(path) as log:
        await log.load(history(7, 60))

        def begin_another(position: int, end: int) -> None:
            if 10 <= position < end:
                rebuild.rebuild(connection, path)

        connection = database.connect(path, busy_ms=1_000)
        with pytest.raises(StateError, match="another rebuild"):
            log.rebuild(begin_another)
        connection.close()
        assert list(log.verify()) == []


async def test_where_the_fold_fails_the_present_tables_stay(path: Path) -> None:
    failing = FailingFold(30)
    failing.broken = False
    with open_log(path, fold=failing) as log:
        await log.load(history(8, 60))
        before = rows_of(log.tables)
        failing.broken = True
        with pytest.raises(StateError, match="position 30"):
            log.rebuild()
        failing.broken = False
        assert rows_of(log.tables) == before
        await append_all(log, talking("t", 3))
        assert list(log.verify()) == []


async def test_a_tables_position_survives_a_rebuild_and_reopening(path: Path) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 5))
        assert log.rebuild() == 6
        assert log.tables.position() == 6
    with open_log(path) as log:
        assert log.tables.position() == 6
        await append_all(log, talking("t", 5))
        assert log.tables.position() == 12
