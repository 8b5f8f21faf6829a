"""The SQLite log where it differs from any log: connections, threads and readers."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, claiming, talking
from tests.forking import REFUSED, fork_and_append
from tests.unit.log.faults import FaultyLog
from turnlog.core.errors import LogUnavailable
from turnlog.log.sqlite.log import SqliteLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(path, clock=lambda: 0, busy_ms=1_000) as log:
        yield log


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if "turnlog" in thread.name}


def test_who_was_forked_is_refused(log: SqliteLog) -> None:
    """The thread that writes is not in the child, which would wait for it for ever."""
    asyncio.run(append_all(log, talking("s", 1)))
    assert fork_and_append(log) == REFUSED


async def test_closing_gives_threads_and_files_back(path: Path) -> None:
    before = threads()
    log = SqliteLog(path, clock=lambda: 0, busy_ms=1_000)
    assert threads() == before, "who only reads rows needs no thread"
    await append_all(log, talking("s", 3))
    assert [stored async for stored in log.read()]
    assert log.tables.position() == 4
    assert len(threads()) == len(before) + 2
    await log.close()
    assert threads() == before
    assert [file.name for file in path.parent.iterdir()] == ["log.db"], "no WAL is left"
    with pytest.raises(LogUnavailable, match="this log is closed"):
        log.tables.position()
    with pytest.raises(LogUnavailable, match="this log is closed"):
        log.rebuild()
    gc.collect()


async def test_a_closed_log_has_no_tables_to_begin_with(path: Path) -> None:
    log = SqliteLog(path, clock=lambda: 0, busy_ms=1_000)
    await log.close()
    with pytest.raises(LogUnavailable, match="this log is closed"):
        _ = log.tables


async def test_rows_may_be_read_from_any_thread(log: SqliteLog) -> None:
    await append_all(log, talking("s", 50))

    def read() -> int:
        return sum(len(list(log.tables.scan("entries", "s"))) for _ in range(20))

    found = await asyncio.gather(*(asyncio.to_thread(read) for _ in range(4)))
    assert found == [1_000] * 4


async def test_a_reader_never_holds_up_a_writer(log: SqliteLog) -> None:
    frames = talking("s", 40)
    await append_all(log, frames[:20])
    with log.tables.snapshot() as view:
        scan = view.scan("entries")
        next(scan)
        async for stored in log.read():
            if stored.position <= 20:
                await log.append(frames[19 + stored.position])
        assert view.get(("sessions", "s")).leaf == 19
    assert log.tables.get(("sessions", "s")).leaf == 39


async def test_a_snapshot_is_given_back_also_after_an_error(log: SqliteLog) -> None:
    await log.append(claiming("s"))
    with pytest.raises(ZeroDivisionError), log.tables.snapshot() as view:
        raise ZeroDivisionError
    with pytest.raises(LogUnavailable, match="closed"):
        view.position()


async def test_reading_fails_clearly_where_the_file_does(path: Path) -> None:
    with FaultyLog(path) as log:
        await log.append(claiming("s"))
        await log.end()
        assert log._reader is not None
        reading = log._reader._connection
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
        reading.faults = {"SELECT": error}  # type: ignore[attr-defined]  # it is a Faulty
        with pytest.raises(LogUnavailable, match=f"{path}: the disk failed"):
            await anext(log.read())
