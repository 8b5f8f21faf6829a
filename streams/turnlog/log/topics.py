"""The topics of Kafka logs, for those who look after them: make, check, describe. Synchronous."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from turnlog.log.kafka import topic
from turnlog.log.kafka.address import Address, parse
from turnlog.log.kafka.cluster import Cluster
from turnlog.log.kafka.loop import LoopThread
from turnlog.log.kafka.settings import Client
from turnlog.log.kafka.topic import RULES, Found, Problem

__all__ = ["PARTITIONS", "REPLICATION", "RULES", "Found", "Problem", "check", "create", "look"]

PARTITIONS = 12
"""How many by default: enough for a dozen workers, and few enough for one. It can never change."""
REPLICATION = 3
"""Copies by default, where there are so many brokers."""

_T = TypeVar("_T")


def create(
    url: str,
    *,
    partitions: int = PARTITIONS,
    replication: int | None = None,
    kafka: Mapping[str, object] | None = None,
) -> Found:
    """Make the topic of a log, and its `-meta` topic; give it as it is then.

    `kafka` holds settings of its clients, under Kafka's names (docs/settings.md).
    Where it is there already it is left as it is, but for writing down one that holds nothing.
    Raises UsageError for a URL that is none of Kafka's, LogUnavailable where no broker answers or
    one refuses, and StateError for a topic that holds something else.
    """

    async def make(cluster: Cluster, address: Address) -> Found:
        copies = replication or min(REPLICATION, await cluster.nodes())
        return await topic.create(cluster, address.topic, partitions=partitions, replication=copies)

    return _run(url, kafka, make)


def look(url: str, *, kafka: Mapping[str, object] | None = None) -> Found:
    """A log's topic as it is, with what is wrong. Raises as `create` does."""
    return _run(url, kafka, lambda cluster, address: topic.look(cluster, address.topic))


def check(url: str | None, kafka: Mapping[str, object]) -> None:
    """Raise UsageError for a URL or settings that cannot be used. No broker is asked."""
    Client(parse(url).servers if url is not None else "", kafka)


def _run(
    url: str,
    kafka: Mapping[str, object] | None,
    work: Callable[[Cluster, Address], Awaitable[_T]],
) -> _T:
    address = parse(url)

    async def run() -> _T:
        cluster = Cluster(address.servers, kafka or {})
        try:
            return await work(cluster, address)
        finally:
            await cluster.close()

    thread = LoopThread(f"turnlog {address.url}")  # whoever calls may be in an event loop
    try:
        return thread.call(run())
    finally:
        thread.close()
