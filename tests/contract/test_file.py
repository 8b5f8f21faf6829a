"""The log in files keeps the contract, in both formats."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import Adapter, append_all, claiming, talking
from tests.contract.closing import RemakingContract
from tests.contract.contract import LogContract, read_all, take
from tests.contract.heartbeats import HeartbeatsContract
from tests.contract.tables import TablesContract
from turnlog.log import EmbeddedLog
from turnlog.log.file.log import FileLog
from turnlog.tables.codec import CODECS
from turnlog.tables.names import Names


class FileAdapter(Adapter):
    def __init__(self, path: Path, format_: str = "zstd") -> None:
        self.path = path
        self.format = format_
        path.mkdir(exist_ok=True)

    def open(self, **options: Any) -> EmbeddedLog:
        return FileLog(self.path, clock=self.clock, busy_ms=5_000, format_=self.format, **options)

    async def skip(self, log: EmbeddedLog, positions: int) -> None:
        """As if somebody had been given a position and died before writing anything."""
        assert isinstance(log, FileLog)
        with log._folder.locked(5.0) as lock:
            lock.reserve(max(lock.position, await log.end()) + positions)

    def tamper(self, log: EmbeddedLog, table: str, row: Any) -> None:
        codec = CODECS[table]
        with sqlite3.connect(self.path / "tables.db") as connection:
            key = Names(connection).make(row.session)
            connection.execute(codec.upsert(), codec.encode(row, key))
        connection.close()


class FileContract(LogContract, TablesContract, HeartbeatsContract, RemakingContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "log"

    async def test_what_was_appended_is_there_after_reopening(self, adapter: Adapter) -> None:
        frames = talking("s", 5)
        async with adapter.open() as log:
            positions = await append_all(log, frames[:3])
        async with adapter.open() as log:
            positions += await append_all(log, frames[3:])
            stored = await read_all(log)
            assert [item.record for item in stored] == [frame.record for frame in frames]
            assert [item.position for item in stored] == positions
            assert list(log.verify()) == []

    async def test_two_who_have_it_open_see_each_other(self, adapter: Adapter) -> None:
        frames = talking("s", 8)
        async with adapter.open() as one, adapter.open() as other:
            follower = other.follow()
            for index, frame in enumerate(frames):
                await (one, other)[index % 2].append(frame)
            seen = await take(follower, len(frames))
            assert [item.record for item in seen] == [frame.record for frame in frames]
            await one.append(claiming("t"))
            await other.tables.wait(await one.end())
            assert other.tables.get(("sessions", "t")).epoch == 1
            assert list(other.verify()) == []


class TestZstd(FileContract):
    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter:
        return FileAdapter(tmp_path / "log")


class TestJsonl(FileContract):
    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter:
        return FileAdapter(tmp_path / "log", "jsonl")
