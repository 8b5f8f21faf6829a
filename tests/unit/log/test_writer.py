"""The three outcomes of an append to SQLite, and that a failure loses nothing that was told."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, claiming, rows_of, talking
from tests.contract.contract import read_all
from tests.unit.log.faults import FaultyLog
from turnlog.core.errors import AppendRefused, AppendUnknown, LogError, StateError
from turnlog.core.fold import fold
from turnlog.core.frames import Frame, Unreadable
from turnlog.core.rows import Changes, Tables
from turnlog.log.sqlite import writer
from turnlog.log.sqlite.log import SqliteLog
from turnlog.tables import database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[FaultyLog]:
    with FaultyLog(path) as log:
        yield log


CERTAIN = [
    ("BEGIN", sqlite3.SQLITE_BUSY, True, "another process holds its lock"),
    ("BEGIN", sqlite3.SQLITE_IOERR_READ, False, "the disk failed"),
    ("BEGIN", sqlite3.SQLITE_READONLY, False, "the file may not be written"),
    ("BEGIN", sqlite3.SQLITE_CORRUPT, False, "the file is damaged"),
    ("COMMIT", sqlite3.SQLITE_FULL, False, "the disk is full; make room"),
    ("COMMIT", sqlite3.SQLITE_IOERR_WRITE, False, "the disk failed"),
    ("COMMIT", sqlite3.SQLITE_BUSY, True, "another process holds its lock"),
]


@pytest.mark.parametrize(("statement", "code", "retriable", "says"), CERTAIN)
async def test_what_certainly_failed_is_refused_and_is_not_there(
    log: FaultyLog, path: Path, statement: str, code: int, retriable: bool, says: str
) -> None:
    frames = talking("s", 3)
    positions = await append_all(log, frames[:2])
    log.fail(statement, code)
    for _ in range(2):
        with pytest.raises(AppendRefused, match=f"{path}: {says}.*nothing was appended") as caught:
            await log.append(frames[2])
        assert caught.value.retriable is retriable
    log.heal()
    assert [item.position for item in await read_all(log)] == positions
    await append_all(log, frames[2:])
    assert [item.record for item in await read_all(log)] == [item.record for item in frames]
    assert list(log.verify()) == []


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_ERROR]
)
async def test_a_commit_that_may_hold_is_unknown_until_it_is_sent_again(
    log: FaultyLog, late: bool, code: int
) -> None:
    frames = talking("s", 3)
    await append_all(log, frames[:2])
    log.fail("COMMIT", code, late=late)
    with pytest.raises(AppendUnknown, match="append the same frame again") as caught:
        await log.append(frames[2])
    assert caught.value.retriable
    log.heal()
    there = len(await read_all(log))
    assert there == (3 if late else 2)
    await append_all(log, frames[2:])
    assert {item.record for item in await read_all(log)} == {item.record for item in frames}
    head = log.tables.get(("sessions", "s"))
    assert (head.leaf, head.counts["duplicates"]) == (3, 1 if late else 0)
    assert list(log.verify()) == []


async def test_all_who_share_a_commit_share_its_fate(log: FaultyLog) -> None:
    await log.append(claiming("s"))
    log.fail("COMMIT", sqlite3.SQLITE_FULL)
    found = await asyncio.gather(
        *(log.append(claiming(f"s{number}")) for number in range(20)), return_exceptions=True
    )
    assert {type(item) for item in found} == {AppendRefused}
    assert len({id(item) for item in found}) == 20
    log.heal()
    assert len(await read_all(log)) == 1


async def test_what_waits_together_shares_a_commit(log: FaultyLog) -> None:
    await log.append(claiming("s"))
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    log.writing.set_trace_callback(count)
    await asyncio.gather(*(log.append(claiming(f"s{number}")) for number in range(100)))
    assert commits <= 10


async def test_a_commit_takes_a_limited_batch(
    log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BATCH_JOBS", 3)
    await asyncio.gather(*(log.append(claiming(f"s{number}")) for number in range(10)))
    monkeypatch.setattr(writer, "BATCH_BYTES", 1)
    await asyncio.gather(*(log.append(claiming(f"t{number}")) for number in range(10)))
    assert len(await read_all(log)) == 20
    assert list(log.verify()) == []


async def test_a_lock_held_too_long_refuses_and_may_be_tried_again(
    log: FaultyLog, path: Path
) -> None:
    await log.append(claiming("s"))
    other = database.connect(path, busy_ms=0)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(AppendRefused, match="another process holds its lock") as caught:
        await log.append(claiming("t"))
    assert caught.value.retriable
    assert len(await read_all(log)) == 1
    other.execute("COMMIT")
    other.close()
    await log.append(claiming("t"))
    assert len(await read_all(log)) == 2


async def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(log: FaultyLog) -> None:
    frames = talking("s", 400)
    await append_all(log, frames[:50])
    (pages,) = log.writing.execute("PRAGMA page_count").fetchone()
    log.writing.execute(f"PRAGMA max_page_count = {pages + 10}")
    rest = iter(frames[50:])
    refused: AppendRefused | None = None
    acknowledged = 50
    while refused is None:
        try:
            await log.append(next(rest))
        except AppendRefused as error:
            refused = error
        else:
            acknowledged += 1
    assert "the disk is full" in str(refused)
    assert 50 < acknowledged < 400
    assert [item.record for item in await read_all(log)] == [
        frame.record for frame in frames[:acknowledged]
    ]
    log.writing.execute("PRAGMA max_page_count = 1000000")
    await append_all(log, frames[acknowledged:])
    assert len(await read_all(log)) == len(frames)
    assert list(log.verify()) == []


async def test_a_writer_outlives_its_own_bugs(path: Path) -> None:
    broken = True

    def clock() -> int:
        if broken:
            raise ZeroDivisionError("the clock stopped")
        return 7

    with FaultyLog(path, clock=clock) as log:
        with pytest.raises(StateError, match=r"ZeroDivisionError: the clock stopped.*bug"):
            await log.append(claiming("s"))
        broken = False
        await log.append(claiming("s"))
        assert [item.time for item in await read_all(log)] == [7]


# ---- tables that fail ----------------------------------------------------------------------


class WrongRows:
    """A fold that gives a row which SQL refuses, from a position on."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.wrong = True

    def __call__(self, frame: Frame | Unreadable, position: int, tables: Tables) -> Changes:
        changes = dict(fold(frame, position, tables))
        if self.wrong and position >= self.position:
            key = ("sessions", "s")
            changes[key] = changes[key]._replace(title=b"no text")
        return changes


async def test_a_row_that_cannot_be_written_costs_no_frame(path: Path) -> None:
    frames = talking("s", 5)
    wrong = WrongRows(4)
    with FaultyLog(path, fold=wrong) as log:
        await append_all(log, frames)
        assert len(await read_all(log)) == 6
        assert log.tables.position() == 3
    with pytest.raises(StateError, match=r"cannot be brought to position 6.*turnlog dump"):
        SqliteLog(path, clock=lambda: 0, busy_ms=50, fold=wrong)
    with SqliteLog(path, clock=lambda: 0, busy_ms=50) as healed:
        assert healed.tables.position() == 6
        assert list(healed.verify()) == []


async def test_one_bad_frame_in_a_batch_costs_no_other(path: Path) -> None:
    def fold_some(frame: Frame | Unreadable, position: int, tables: Tables) -> Changes:
        if isinstance(frame, Frame) and frame.header.session == "s7":
            raise ZeroDivisionError
        return fold(frame, position, tables)

    with FaultyLog(path, fold=fold_some) as log:
        frames = [claiming(f"s{number}") for number in range(20)]
        await asyncio.gather(*map(log.append, frames))
        assert len(await read_all(log)) == 20
    with SqliteLog(path, clock=lambda: 0, busy_ms=50) as healed:
        assert len(list(healed.tables.scan("sessions"))) == 20
        assert list(healed.verify()) == []


async def test_tables_that_cannot_be_read_cost_no_frame(log: FaultyLog, path: Path) -> None:
    await log.append(claiming("s"))
    with sqlite3.connect(path) as other:
        other.execute("UPDATE sessions SET counts = 'no JSON'")
    other.close()
    await log.append(talking("s", 1)[1])
    assert len(await read_all(log)) == 2
    assert log.tables.position() == 1
    assert log.rebuild() == 2
    assert list(log.verify()) == []
    await log.append(claiming("t"))
    assert log.tables.get(("sessions", "t")).epoch == 1


async def test_a_disk_that_fails_under_the_tables_refuses_the_frame(log: FaultyLog) -> None:
    """The frames lie on the same disk, so writing them without the tables would not help."""
    await log.append(claiming("s"))
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ

    def failing(frame: Frame | Unreadable, position: int, tables: Tables) -> Changes:
        raise error

    log.folding._fold = failing
    with pytest.raises(AppendRefused, match="the disk failed"):
        await log.append(claiming("t"))
    log.folding._fold = fold
    await log.append(claiming("t"))
    assert log.tables.position() == 2


# ---- others --------------------------------------------------------------------------------


async def test_cached_rows_are_read_again_when_another_has_committed(path: Path) -> None:
    frames = talking("s", 30)
    with FaultyLog(path) as one, FaultyLog(path) as other:
        for start in range(0, len(frames), 4):
            await append_all(one, frames[start : start + 2])
            await append_all(other, frames[start + 2 : start + 4])
        assert rows_of(one.tables) == rows_of(other.tables)
        assert one.tables.get(("sessions", "s")).leaf == 30
        assert list(one.verify()) == []


async def test_a_hot_session_is_appended_to_without_reading_its_rows(log: FaultyLog) -> None:
    frames = talking("s", 20)
    await append_all(log, frames[:10])
    statements: list[str] = []
    log.writing.set_trace_callback(statements.append)
    await append_all(log, frames[10:])
    log.writing.set_trace_callback(None)
    read = [statement for statement in statements if statement.startswith("SELECT")]
    assert all(statement.startswith("SELECT number FROM entries") for statement in read)
    assert len(read) == len(frames[10:])  # whether the new entry's id is known
    assert len(statements) <= 10 * len(frames[10:])


async def test_a_log_that_was_upgraded_meanwhile_takes_no_more_frames(
    log: FaultyLog, path: Path
) -> None:
    await log.append(claiming("s"))
    other = database.connect(path, busy_ms=1_000)
    database.set_meta(other, frames_version=99)
    with pytest.raises(LogError, match=r"a newer turnlog.*upgrade"):
        await log.append(claiming("t"))
    database.set_meta(other, frames_version=1, tables_version=99)
    await log.append(claiming("t"))  # a frame is a frame, the tables are another's
    assert log.tables.position() == 1
    other.close()
