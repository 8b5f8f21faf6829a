"""Tables that lag (an older turnlog, a fold that failed) are made good by who opens the log."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, rows_of, talking
from tests.contract.contract import read_all
from tests.contract.tables import FailingFold, history
from turnlog.core.errors import LogError, StateError
from turnlog.core.frames import Record
from turnlog.log.sqlite.log import SqliteLog
from turnlog.tables import frames
from turnlog.tables.names import Names

open_log = partial(SqliteLog, clock=lambda: 0, busy_ms=5_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def write_frames_only(path: Path, records: list[Record]) -> None:
    """What a turnlog does that does not know these tables."""
    with sqlite3.connect(path) as connection:
        position = frames.last_position(connection)
        for number, record in enumerate(records, position + 1):
            key = Names(connection).make(record.session)
            row = frames.to_row(frames.Stored(number, 0, record), key, folded=False)
            connection.execute(frames.INSERT, row)
    connection.close()


async def test_who_opens_brings_the_tables_up_to_date(path: Path) -> None:
    frames_ = talking("s", 30)
    with open_log(path) as log:
        await append_all(log, frames_[:10])
    write_frames_only(path, [frame.record for frame in frames_[10:]])
    seen: list[tuple[int, int]] = []
    with open_log(path, progress=lambda *reached: seen.append(reached)) as log:
        assert log.tables.position() == 31
        assert log.tables.get(("sessions", "s")).leaf == 30
        assert list(log.verify()) == []
    assert seen == [(10, 31), (31, 31)]


async def test_it_goes_by_pages(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "PAGE_ROWS", 10)
    open_log(path)._close()
    write_frames_only(path, history(1, 60))
    seen: list[tuple[int, int]] = []
    with open_log(path, progress=lambda *reached: seen.append(reached)) as log:
        assert list(log.verify()) == []
        caught_up = rows_of(log.tables)
    end = seen[-1][1]
    assert [position for position, _ in seen] == [*range(0, end, 10), end]
    with open_log(path.with_name("other.db")) as log:
        await log.load(history(1, 60))
        assert rows_of(log.tables) == caught_up


async def test_who_has_it_open_leaves_lagging_tables_alone(path: Path) -> None:
    frames_ = talking("s", 9)
    with open_log(path) as log:
        await append_all(log, frames_[:3])
        write_frames_only(path, [frame.record for frame in frames_[3:5]])
        await append_all(log, frames_[5:8])
        assert log.tables.position() == 3
        with open_log(path) as other:
            assert other.tables.position() == 8
        await append_all(log, frames_[8:])  # and it folds again
        assert log.tables.position() == len(await read_all(log)) == 10
        assert list(log.verify()) == []


async def test_a_fold_that_still_fails_is_said_and_the_log_can_be_read(path: Path) -> None:
    frames_ = talking("s", 6)
    failing = FailingFold(4)
    with open_log(path, fold=failing) as log:
        await append_all(log, frames_)
    with pytest.raises(
        StateError, match=f"{path}: the record at position 4 of session 's'.*bug.*turnlog dump"
    ):
        open_log(path, fold=failing)
    with open_log(path, fold=failing, catch_up=False) as log:
        assert [item.record for item in await read_all(log)] == [item.record for item in frames_]
        assert log.tables.position() == 3
    failing.broken = False
    with open_log(path, fold=failing) as log:
        assert log.tables.position() == 7
        assert list(log.verify()) == []


def test_many_may_catch_up_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "PAGE_ROWS", 5)
    open_log(path)._close()
    records = history(2, 80)
    write_frames_only(path, records)

    def open_it(_: int) -> int:
        with open_log(path) as log:
            return log.tables.position()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(open_it, range(6))) == {len(records)}
    with open_log(path) as log:
        assert list(log.verify()) == []


async def test_a_disk_that_fails_meanwhile_is_an_error_of_the_disk(path: Path) -> None:
    open_log(path)._close()
    write_frames_only(path, history(3, 40))
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(LogError, match="another process holds its lock"):
        SqliteLog(path, clock=lambda: 0, busy_ms=20)
    blocker.close()
