"""Three real brokers, and the leader of a partition killed under load."""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.adapter import claiming, dispatching, guest, talking
from tests.integration.kafka_topics import make_topic, open_log, with_cluster
from tests.story import fact
from turnlog.core.errors import AppendRefused, AppendUnknown
from turnlog.core.frames import Record, SealedFrame
from turnlog.log.kafka.log import KafkaLog
from turnlog.testing.broker import Broker
from turnlog.testing.broker_jars import Java

SESSIONS = 8
FRAMES = 60
GAP_S_MAX = 15.0
KILLS = (1, 10)
"""In `make test`, and in `make proof`."""
Frames = dict[str, list[SealedFrame]]


@pytest.fixture(scope="module")
def broker(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker"), nodes=3, java=java) as broker:
        yield broker


@pytest.mark.timeout(900)
@pytest.mark.xdist_group("three nodes")
async def test_a_leader_killed_under_load_loses_nothing(
    broker: Broker, tmp_path: Path, *, proof: bool
) -> None:
    """Nothing acknowledged is lost, nothing is folded twice, and order holds."""
    gaps_s = [
        await kill_one(broker, tmp_path / str(seed), random.Random(seed))
        for seed in range(KILLS[proof])
    ]
    low, middle, high = min(gaps_s), statistics.median(gaps_s), max(gaps_s)
    print(f"no acknowledgement for {low:.1f} / {middle:.1f} / {high:.1f} s (least/median/most)")


@pytest.mark.xdist_group("three nodes")
async def test_a_partition_without_a_leader_holds_up_no_other(
    broker: Broker, tmp_path: Path
) -> None:
    """Neither appends nor tools: what waits for it is more than the client takes at once."""
    url = await asyncio.to_thread(make_topic, broker.servers, 3)
    async with open_log(url, tmp_path / "tables.db", append_s=8.0) as log:
        sessions = {log.partition_of(f"s{each}"): f"s{each}" for each in range(30)}
        for session in sessions.values():
            await log.append(claiming(session))
        dead = 0
        found = await asyncio.to_thread(
            with_cluster, broker.servers, lambda cluster: cluster.topic(url_topic(log))
        )
        await asyncio.to_thread(broker.nodes[found.partitions[dead].leader - 1].kill)
        bytes_of = random.Random(1).randbytes
        held_up = [
            asyncio.ensure_future(log.load([Record(sessions[dead], None, bytes_of(100_000))]))
            for _ in range(12)
        ]
        async with asyncio.timeout(60):
            while not log._appender.is_away(dead):  # noqa: ASYNC110  # nobody is told
                await asyncio.sleep(0.05)
            with pytest.raises(AppendRefused, match="no tool is started meanwhile"):
                await log.append(dispatching(sessions[dead], 1))
            for session in (sessions[1], sessions[2]):
                await log.append(dispatching(session, 1))
        await asyncio.to_thread(all_up, broker)
        await asyncio.gather(*held_up, return_exceptions=True)
        again = guest(sessions[dead], fact("f", 1))
        await append(log, again)


async def kill_one(broker: Broker, folder: Path, dice: random.Random) -> float:
    """A topic under load, and the leader of one of its partitions dies; gives the longest silence.
    Afterwards all nodes are up again."""
    await asyncio.to_thread(folder.mkdir)
    url = await asyncio.to_thread(make_topic, broker.servers, 3, 3)
    async with open_log(url, folder / "tables.db") as log:
        frames = {f"s{each}": talking(f"s{each}", FRAMES - 1) for each in range(SESSIONS)}
        gap_s, positions = await append_while_one_dies(broker, log, frames, dice)
        assert gap_s < GAP_S_MAX
        await check(log, frames, positions)
    async with open_log(url, folder / "fresh.db") as log:
        await check(log, frames, positions)
    await asyncio.to_thread(all_up, broker)
    return gap_s


def all_up(broker: Broker) -> None:
    """Start again what was killed, and return once the brokers know of each other."""
    until = time.monotonic() + 60
    for node in broker.nodes:
        if node.pid is None:
            node.launch()
            node.wait(until)
    while with_cluster(broker.servers, lambda cluster: cluster.nodes()) < len(broker.nodes):
        assert time.monotonic() < until
        time.sleep(0.1)


Positions = dict[str, list[int]]


async def append_while_one_dies(
    broker: Broker, log: KafkaLog, sent: Frames, dice: random.Random
) -> tuple[float, Positions]:
    """Append all frames and kill the leader of a partition meanwhile; the longest silence, and
    where each frame is said to be."""
    times = [time.monotonic()]
    positions: Positions = {session: [] for session in sent}
    partition, enough = dice.randrange(3), dice.randrange(FRAMES, SESSIONS * FRAMES // 2)

    async def write(session: str) -> None:
        for frame in sent[session]:
            positions[session].append(await append(log, frame))
            times.append(time.monotonic())
            await asyncio.sleep(dice.uniform(0, 0.03))

    async def kill() -> None:
        while len(times) < enough:  # noqa: ASYNC110  # nobody is told
            await asyncio.sleep(0.01)
        topic = url_topic(log)
        found = await asyncio.to_thread(
            with_cluster, broker.servers, lambda cluster: cluster.topic(topic)
        )
        await asyncio.to_thread(broker.nodes[found.partitions[partition].leader - 1].kill)

    await asyncio.gather(kill(), *map(write, sent))
    return max(later - earlier for earlier, later in itertools.pairwise(times)), positions


async def append(log: KafkaLog, frame: SealedFrame) -> int:
    for _ in range(3):
        try:
            return await log.append(frame)
        except AppendUnknown:
            continue
    raise AssertionError("never known")


def url_topic(log: KafkaLog) -> str:
    return log.url.rpartition("/")[2]


async def check(log: KafkaLog, sent: Frames, positions: Positions) -> None:
    """Each frame is where it was acknowledged, in order, and in force once."""
    for session, frames in sent.items():
        assert positions[session] == sorted(positions[session])
        partition = log.partition_of(session)
        stored = [each async for each in log.read(session=session, partition=partition)]
        seen = list(dict.fromkeys(each.record for each in stored))
        assert seen == [frame.record for frame in frames]
        there = {each.position: each.record for each in stored}
        assert [there[position] for position in positions[session]] == seen
        await log.tables.wait(stored[-1].position, partition)
        head = log.tables.get(("sessions", session))
        assert (head.seq, head.leaf) == (FRAMES - 1, FRAMES - 1)
        assert (head.counts["messages"], len(list(log.tables.scan("entries", session)))) == (
            FRAMES - 1,
            FRAMES - 1,
        )
        assert not head.damage
    assert list(log.verify()) == []
