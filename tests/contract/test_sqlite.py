"""The SQLite log keeps the contract."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import Adapter
from tests.contract.closing import RemakingContract
from tests.contract.contract import EmbeddedContract, LogContract
from tests.contract.heartbeats import HeartbeatsContract, beat
from tests.contract.lasting import LastingContract
from tests.contract.tables import TablesContract
from turnlog.log import EmbeddedLog
from turnlog.log.sqlite.heartbeats import KEPT_S
from turnlog.log.sqlite.log import SqliteLog
from turnlog.tables.codec import CODECS
from turnlog.tables.names import Names


class SqliteAdapter(Adapter):
    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, **options: Any) -> EmbeddedLog:
        return SqliteLog(self.path, clock=self.clock, busy_ms=5_000, **options)

    async def skip(self, log: EmbeddedLog, positions: int) -> None:
        """As if a record far behind had been appended and taken away again by hand."""
        with sqlite3.connect(self.path) as connection:
            connection.execute("UPDATE positions SET position = ?", (await log.end() + positions,))
        connection.close()

    def tamper(self, log: EmbeddedLog, table: str, row: Any) -> None:
        codec = CODECS[table]
        with sqlite3.connect(self.path) as connection:
            key = Names(connection).make(row.session)
            connection.execute(codec.upsert(), codec.encode(row, key))
        connection.close()


class TestSqlite(
    LogContract,
    EmbeddedContract,
    TablesContract,
    HeartbeatsContract,
    LastingContract,
    RemakingContract,
):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "folder"
        folder.mkdir()
        return folder

    @pytest.fixture
    def adapter(self, folder: Path) -> Adapter:
        return SqliteAdapter(folder / "log.db")

    async def test_old_beats_and_those_of_another_boot_are_forgotten(
        self, adapter: Adapter
    ) -> None:
        async with adapter.open() as log:
            for one in (beat("old", uptime=10.0), beat("before", boot="a", uptime=9e9)):
                await log.beat(one)
            assert len(await log.heartbeats()) == 1
            last = beat("new", uptime=10.0 + KEPT_S)
            await log.beat(beat("old", uptime=10.0))
            await log.beat(last)
            assert len(await log.heartbeats()) == 2
            await log.beat(last._replace(uptime=11.0 + KEPT_S))
            assert [one.instance for one in await log.heartbeats()] == ["new"]
        async with adapter.open() as log:
            assert [one.instance for one in await log.heartbeats()] == ["new"]
