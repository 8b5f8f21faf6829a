"""Three real brokers, and the leader of a partition killed under load."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from pathlib import Path

import pytest

from tests.contract.adapter import talking
from tests.integration.kafka_topics import make_topic, open_log, with_cluster
from turnlog.core.errors import AppendUnknown, UsageError
from turnlog.core.frames import SealedFrame
from turnlog.log.kafka.log import KafkaLog
from turnlog.testing.broker import Broker
from turnlog.testing.broker_jars import find_java

SESSIONS = 8
FRAMES = 60
GAP_S_MAX = 15.0
Frames = dict[str, list[SealedFrame]]


@pytest.mark.timeout(240)
async def test_a_leader_killed_under_load_loses_nothing(tmp_path: Path) -> None:
    """Nothing acknowledged is lost, nothing is folded twice, and order holds."""
    try:
        java = find_java()
    except UsageError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    broker = Broker(tmp_path / "broker", nodes=3, java=java)
    await asyncio.to_thread(broker.start)
    try:
        url = await asyncio.to_thread(make_topic, broker.servers, 3, 3)
        async with open_log(url, tmp_path / "tables.db") as log:
            frames = {f"s{each}": talking(f"s{each}", FRAMES - 1) for each in range(SESSIONS)}
            gap_s = await append_while_one_dies(broker, log, frames)
            print(f"no acknowledgement for {gap_s:.1f} s at most")
            assert gap_s < GAP_S_MAX
            await check(log, frames)
        async with open_log(url, tmp_path / "fresh.db") as log:
            await check(log, frames)
    finally:
        await asyncio.to_thread(broker.stop)


async def append_while_one_dies(broker: Broker, log: KafkaLog, sent: Frames) -> float:
    """Append all frames, kill the leader of partition 0 in the middle; the longest silence."""
    times = [time.monotonic()]
    done = 0

    async def write(frames: list[SealedFrame]) -> None:
        nonlocal done
        last = 0
        for frame in frames:
            position = await append(log, frame)
            assert position > last
            last = position
            times.append(time.monotonic())
            done += 1
            await asyncio.sleep(0.02)

    async def kill() -> None:
        while done < SESSIONS * FRAMES // 3:  # noqa: ASYNC110  # nobody is told
            await asyncio.sleep(0.01)
        topic = url_topic(log)
        found = await asyncio.to_thread(
            with_cluster, broker.servers, lambda cluster: cluster.topic(topic)
        )
        await asyncio.to_thread(broker.nodes[found.partitions[0].leader - 1].kill)

    await asyncio.gather(kill(), *map(write, sent.values()))
    return max(later - earlier for earlier, later in itertools.pairwise(times))


async def append(log: KafkaLog, frame: SealedFrame) -> int:
    for _ in range(3):
        try:
            return await log.append(frame)
        except AppendUnknown:
            continue
    raise AssertionError("never known")


def url_topic(log: KafkaLog) -> str:
    return log.url.rpartition("/")[2]


async def check(log: KafkaLog, sent: Frames) -> None:
    for session, frames in sent.items():
        partition = log.partition_of(session)
        stored = [each async for each in log.read(session=session, partition=partition)]
        seen = list(dict.fromkeys(each.record for each in stored))
        assert seen == [frame.record for frame in frames]
        await log.tables.wait(stored[-1].position, partition)
        head = log.tables.get(("sessions", session))
        assert (head.seq, head.leaf) == (FRAMES - 1, FRAMES - 1)
        assert not head.damage
    assert list(log.verify()) == []
