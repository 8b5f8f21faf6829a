"""The Kafka log keeps the contract, on a real broker."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import Adapter, append_all, claiming, talking
from tests.contract.closing import ClosingContract
from tests.contract.contract import LogContract, read_all, take
from tests.contract.heartbeats import HeartbeatsContract
from tests.contract.tables import TablesContract
from tests.integration.kafka_topics import make_topic, open_log
from turnlog.core.errors import AppendRefused, AppendUnknown
from turnlog.log import EmbeddedLog
from turnlog.tables.codec import CODECS
from turnlog.tables.names import Names


class KafkaAdapter(Adapter):
    """`open` again is what another process on this machine does: it shares the tables."""

    has_clock = False

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self.path = path

    def open(self, **options: Any) -> EmbeddedLog:
        return open_log(self.url, self.path, **options)

    async def skip(self, log: EmbeddedLog, positions: int) -> None:
        raise NotImplementedError

    def tamper(self, log: EmbeddedLog, table: str, row: Any) -> None:
        codec = CODECS[table]
        with sqlite3.connect(self.path) as connection:
            key = Names(connection).make(row.session)
            connection.execute(codec.upsert(), codec.encode(row, key))
        connection.close()


class TestKafka(LogContract, TablesContract, HeartbeatsContract, ClosingContract):
    ends = ClosingContract.ends | {AppendRefused, AppendUnknown}

    @pytest.fixture
    def folder(self, adapter: KafkaAdapter) -> Path:
        return adapter.path.parent

    @pytest.fixture
    def adapter(self, tmp_path: Path, kafka_servers: str) -> Adapter:
        return KafkaAdapter(make_topic(kafka_servers), tmp_path / "tables.db")

    @pytest.mark.parametrize("shared", [True, False])
    async def test_two_who_have_it_open_see_each_other(
        self, adapter: KafkaAdapter, tmp_path: Path, shared: bool
    ) -> None:
        frames = talking("s", 8)
        elsewhere = adapter if shared else KafkaAdapter(adapter.url, tmp_path / "others.db")
        async with adapter.open() as one, elsewhere.open() as other:
            follower = other.follow()
            for index, frame in enumerate(frames):
                await (one, other)[index % 2].append(frame)
            seen = await take(follower, len(frames))
            assert [item.record for item in seen] == [frame.record for frame in frames]
            position = await one.append(claiming("t"))
            await other.tables.wait(position)
            assert other.tables.get(("sessions", "t")).epoch == 1
            await one.tables.wait(position)
            assert list(other.verify()) == list(one.verify()) == []
            await follower.aclose()  # type: ignore[attr-defined]  # a generator

    async def test_who_opens_it_has_all_there_is(
        self, adapter: KafkaAdapter, tmp_path: Path
    ) -> None:
        frames = talking("s", 5)
        async with adapter.open() as log:
            positions = await append_all(log, frames[:3])
        fresh = KafkaAdapter(adapter.url, tmp_path / "fresh.db")
        for again in (adapter, fresh):
            seen: list[tuple[int, int]] = []
            log = again.open(progress=lambda *reached, seen=seen: seen.append(reached))
            async with log:
                assert log.tables.position() == 3
                assert log.tables.get(("sessions", "s")).position == positions[-1]
                assert [item.record for item in await read_all(log)] == [
                    frame.record for frame in frames[:3]
                ]
            assert seen[-1] == (3, 3)
