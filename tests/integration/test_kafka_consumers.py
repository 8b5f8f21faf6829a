"""Consumers that are ended while their broker is away."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.contract.closing import linux
from tests.integration.kafka_topics import make_topic
from turnlog.log.kafka import consumers
from turnlog.testing.broker import Broker


def sockets() -> set[str]:
    """The connections of this process; Linux tells."""
    found: set[str] = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found.add(str(link.readlink()))
    return {each for each in found if each.startswith("socket:")}


async def following(broker: Broker, url: str) -> AIOKafkaConsumer:
    where = TopicPartition(url.rpartition("/")[2], 0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.servers, enable_auto_commit=False, auto_offset_reset="none"
    )
    await consumer.start()
    consumer.assign([where])
    consumer.seek(where, 0)
    await consumer.getmany(where, timeout_ms=100)
    return consumer


@linux
async def test_one_that_waits_to_fetch_again_ends(broker: Broker) -> None:
    """aiokafka's own end would be cancelled then, and leave connections open."""
    url = await asyncio.to_thread(make_topic, broker.servers)
    before = sockets()
    some = [await following(broker, url) for _ in range(20)]
    await asyncio.to_thread(broker.nodes[0].kill)
    for consumer in some:
        await asyncio.sleep(0.05)
        await consumers.end(consumer)
    assert sockets() <= before
