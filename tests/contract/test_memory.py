"""The memory log keeps the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import Adapter, talking
from tests.contract.contract import EmbeddedContract, LogContract, read_all
from tests.contract.heartbeats import HeartbeatsContract
from tests.contract.tables import TablesContract
from turnlog.core.rows import key_of
from turnlog.log import EmbeddedLog, Stored
from turnlog.log.memory import MemoryLog


class MemoryAdapter(Adapter):
    def __init__(self) -> None:
        self.log: MemoryLog | None = None

    def open(self, **options: Any) -> EmbeddedLog:
        if self.log is None:
            self.log = MemoryLog(clock=self.clock, **options)
        return self.log

    async def skip(self, log: EmbeddedLog, positions: int) -> None:
        assert isinstance(log, MemoryLog)
        log._next += positions

    def tamper(self, log: EmbeddedLog, table: str, row: Any) -> None:
        assert isinstance(log, MemoryLog)
        log.tables.apply({key_of(table, row): row}, log.tables.position())


class TestMemory(LogContract, EmbeddedContract, TablesContract, HeartbeatsContract):
    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter:
        return MemoryAdapter()


async def test_a_stride_leaves_holes() -> None:
    async with MemoryLog(clock=lambda: 0, stride=7) as log:
        for frame in talking("s", 3):
            await log.append(frame)
        stored: list[Stored] = await read_all(log)
        assert [item.position for item in stored] == [7, 14, 21, 28]
