"""What tests of the Kafka log do to a topic behind the log's back."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from turnlog.log.kafka import topic
from turnlog.log.kafka.address import parse
from turnlog.log.kafka.cluster import Cluster
from turnlog.log.kafka.log import KafkaLog

_NUMBERS = itertools.count(1)


def new_name() -> str:
    return f"test-{os.getpid()}-{next(_NUMBERS)}"


def with_cluster(servers: str, work: Callable[[Cluster], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        cluster = Cluster(servers, {})
        try:
            return await work(cluster)
        finally:
            await cluster.close()

    return asyncio.run(run())


def make_topic(servers: str, partitions: int = 1, replication: int = 1) -> str:
    """A topic of its own; gives its URL."""
    name = new_name()
    with_cluster(
        servers,
        lambda cluster: topic.create(cluster, name, partitions=partitions, replication=replication),
    )
    return f"kafka://{servers}/{name}"


def make_raw(servers: str, name: str, settings: Mapping[str, str], partitions: int = 1) -> None:
    """A topic with any settings, and nothing written down of it."""
    with_cluster(servers, lambda cluster: cluster.create(name, partitions, 1, settings))


def open_log(url: str, tables: Path, **options: Any) -> KafkaLog:
    return KafkaLog(parse(url), tables=tables, busy_ms=5_000, **options)


@asynccontextmanager
async def producing(servers: str, **settings: Any) -> Any:
    producer = AIOKafkaProducer(bootstrap_servers=servers, **settings)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def administering(servers: str) -> Any:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()
