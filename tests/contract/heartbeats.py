"""The contract of signs of life: every embedded adapter's tests subclass `HeartbeatsContract`."""

from __future__ import annotations

import pytest

from tests.contract.adapter import Adapter, append_all, rows_of, talking
from tests.contract.contract import read_all, settle
from turnlog.core.errors import LogUnavailable
from turnlog.log import EmbeddedLog, Heartbeat


def beat(instance: str = "i", **fields: object) -> Heartbeat:
    known = {"host": "h", "since": 0, "boot": "b", "uptime": 1.5, "time": 1_000}
    return Heartbeat(instance=instance, **{**known, **fields})  # type: ignore[arg-type]


class HeartbeatsContract:
    async def test_nobody_has_beaten(self, log: EmbeddedLog) -> None:
        assert await log.heartbeats() == []
        await log.end_beating("nobody")
        assert await log.heartbeats() == []

    async def test_the_last_beat_of_each_instance_is_kept(self, log: EmbeddedLog) -> None:
        await log.beat(beat("one"))
        await log.beat(beat("two", since=7))
        await log.beat(beat("one", uptime=2.5, time=2_000))
        last = [beat("one", uptime=2.5, time=2_000), beat("two", since=7)]
        assert await log.heartbeats() == last
        await log.end_beating("one")
        assert await log.heartbeats() == last[1:]

    async def test_each_partition_has_its_own_since(self, log: EmbeddedLog) -> None:
        one = beat("one", since=3, others=(0, 2**40))
        await log.beat(one)
        assert await log.heartbeats() == [one]
        assert [one.since_in(partition) for partition in range(3)] == [3, 0, 2**40]

    async def test_any_name_and_number_comes_back(self, log: EmbeddedLog) -> None:
        odd = [beat("", host="", boot=""), beat("ä'\n", host="\0", since=2**62, time=-1)]
        for one in odd:
            await log.beat(one)
        assert [one for one in await log.heartbeats() if one.instance in ("", "ä'\n")]

    async def test_they_are_no_part_of_the_log_or_its_tables(self, log: EmbeddedLog) -> None:
        await append_all(log, talking("s", 3))
        await settle(log)
        rows, end = rows_of(log.tables), await log.end()
        await log.beat(beat())
        assert await log.end() == end
        assert rows_of(log.tables) == rows
        assert list(log.verify()) == []
        assert log.rebuild() == end
        assert await log.heartbeats() == [beat()]
        assert len(await read_all(log)) == 4

    async def test_appends_go_on_between_beats(self, adapter: Adapter, log: EmbeddedLog) -> None:
        other = adapter.open()
        for index, frame in enumerate(talking("s", 6)):
            await log.append(frame)
            await other.beat(beat(uptime=float(index)))
        assert [one.uptime for one in await log.heartbeats()] == [6.0]
        assert list(log.verify()) == []
        if other is not log:
            await other.close()

    async def test_a_closed_log_takes_none(self, adapter: Adapter) -> None:
        log = adapter.open()
        await log.close()
        for call in (log.beat(beat()), log.end_beating("i"), log.heartbeats()):
            with pytest.raises(LogUnavailable):
                await call
