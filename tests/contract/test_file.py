"""The log in files keeps the contract, in both formats."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import Adapter
from tests.contract.closing import RemakingContract
from tests.contract.contract import LogContract
from tests.contract.heartbeats import HeartbeatsContract
from tests.contract.lasting import LastingContract
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


class FileContract(
    LogContract, TablesContract, HeartbeatsContract, LastingContract, RemakingContract
):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "log"


class TestZstd(FileContract):
    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter:
        return FileAdapter(tmp_path / "log")


class TestJsonl(FileContract):
    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter:
        return FileAdapter(tmp_path / "log", "jsonl")
