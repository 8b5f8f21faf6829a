"""The three outcomes of an append, where the broker goes away and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, claiming, dispatching, guest, talking
from tests.contract.contract import read_all, settle
from tests.integration.kafka_topics import make_topic, open_log
from tests.story import fact
from turnlog.core.errors import AppendRefused, AppendUnknown, LogUnavailable
from turnlog.log.kafka.log import KafkaLog
from turnlog.testing.broker import Broker


def come_back(broker: Broker) -> None:
    (node,) = broker.nodes
    node.launch()
    node.wait(time.monotonic() + 60)


@pytest.fixture
async def log(broker: Broker, tmp_path: Path) -> AsyncIterator[KafkaLog]:
    url = await asyncio.to_thread(make_topic, broker.servers)
    options = {"append_s": 1.5, "away_s": 1.5, "ask_s": 1.5}
    async with open_log(url, tmp_path / "tables.db", **options) as log:
        yield log


async def until_heard(log: KafkaLog) -> None:
    """Return once what is there is read. A reader may hear of a broker that is back later than who
    appends, and says so until then."""
    while True:
        try:
            return await settle(log)
        except LogUnavailable as error:
            if not error.retriable:
                raise
            await asyncio.sleep(0.1)


async def test_nothing_acknowledged_is_lost_and_the_log_goes_on(
    broker: Broker, log: KafkaLog
) -> None:
    frames = talking("s", 6)
    positions = await append_all(log, frames[:3])
    await settle(log)
    await asyncio.to_thread(broker.nodes[0].kill)
    began = time.monotonic()
    waiting = asyncio.ensure_future(log.append(frames[3]))
    await asyncio.sleep(1.2)
    with pytest.raises(AppendRefused, match="no tool is started meanwhile") as refused:
        await log.append(dispatching("s", 4))
    assert refused.value.retriable
    with pytest.raises(AppendUnknown, match=r"session 's'.*append the same frame again"):
        await waiting
    assert 1 < time.monotonic() - began < 4
    with pytest.raises(AppendRefused, match="nothing was appended") as refused:  # a new producer
        await log.append(claiming("t"))
    assert refused.value.retriable
    for ask in (log.end(), log.tables.wait(99), anext(log.follow(positions[-1]))):
        with pytest.raises(LogUnavailable) as away:
            await asyncio.wait_for(ask, 8)
        assert away.value.retriable
    assert len(list(log.tables.records("s"))) == 3  # what was read is still there
    await asyncio.to_thread(come_back, broker)
    positions.append(await log.append(frames[3]))
    positions += await append_all(log, frames[4:])
    await asyncio.wait_for(until_heard(log), 10)
    stored = await read_all(log)
    assert [item.record for item in stored if item.position in positions] == [
        frame.record for frame in frames
    ]
    assert log.tables.get(("sessions", "s")).seq == 6
    assert list(log.verify()) == []


async def test_an_append_waits_for_a_broker_that_comes_back_in_time(
    broker: Broker, tmp_path: Path
) -> None:
    url = await asyncio.to_thread(make_topic, broker.servers)
    async with open_log(url, tmp_path / "tables.db") as log:
        await log.append(claiming("s"))
        await asyncio.to_thread(broker.nodes[0].kill)
        frames = [guest("s", fact(f"f{number}", number)) for number in range(50)]
        waiting = [asyncio.ensure_future(log.append(frame)) for frame in frames]
        await asyncio.to_thread(come_back, broker)
        positions = await asyncio.gather(*waiting)
        assert positions == sorted(positions)
        await settle(log)
        stored = await read_all(log, after=1)
        assert [item.record for item in stored] == [frame.record for frame in frames]


async def test_a_tool_may_start_as_soon_as_the_broker_has_answered(
    broker: Broker, tmp_path: Path
) -> None:
    """Who waited for it is told, and goes on at once."""
    url = await asyncio.to_thread(make_topic, broker.servers)
    (node,) = broker.nodes
    assert node.pid is not None
    async with open_log(url, tmp_path / "tables.db") as log:
        await log.append(claiming("s"))
        for number in range(3):
            os.kill(node.pid, signal.SIGSTOP)
            try:
                waiting = asyncio.ensure_future(log.append(claiming(f"t{number}")))
                while not log._appender.is_away(0):  # noqa: ASYNC110  # it has no event
                    await asyncio.sleep(0.05)
            finally:
                os.kill(node.pid, signal.SIGCONT)
            await waiting
            assert await log.append(dispatching("s", number + 1))


async def test_what_is_cancelled_before_it_is_sent_is_not_there(
    broker: Broker, log: KafkaLog
) -> None:
    await log.append(claiming("s"))
    task = asyncio.ensure_future(log.append(claiming("t")))
    await asyncio.sleep(0)
    task.cancel()
    await log.append(claiming("u"))
    sessions = {item.record.session for item in await read_all(log)}
    assert {"s", "u"} <= sessions <= {"s", "t", "u"}


async def test_closing_while_the_broker_is_away_takes_no_longer_than_an_append(
    broker: Broker, log: KafkaLog
) -> None:
    await log.append(claiming("s"))
    await asyncio.to_thread(broker.nodes[0].kill)
    waiting = asyncio.ensure_future(log.append(claiming("t")))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await log.close()
    assert time.monotonic() - began < 6
    with pytest.raises(AppendUnknown):
        await waiting
    await asyncio.to_thread(come_back, broker)
