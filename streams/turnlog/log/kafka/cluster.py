"""What is asked of the brokers: a topic and its id, where its partitions begin and end, settings.

Every answer is a broker's own, never one that a client keeps. What is not known is an error.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import urlsafe_b64encode
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from aiokafka import AIOKafkaClient
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError, for_code
from aiokafka.protocol.admin import CreateTopicsRequest, DescribeConfigsRequest
from aiokafka.protocol.offset import OffsetRequest

from turnlog.core.errors import LogError, LogUnavailable
from turnlog.log.kafka.reach import Obstacle, denial, find_obstacle
from turnlog.log.kafka.settings import Client
from turnlog.log.kafka.wire import TopicRequest

BEGINNING, END = -2, -1
ASK_S = 15.0
"""How long a question is asked again before it fails."""
CLOSE_S = 1.0
"""How long what is asked may still be answered at the end."""
GRACE_S = 0.1
"""How long connections may take to end that the client did not wait for: TLS says goodbye."""
TELL_S = 2.0
"""After so long without an answer people are told that it is waited for."""
ODD_S = 5.0
"""How long whoever was never spoken to may end connections, as what stands before a broker does
that is only starting; then it is said."""
PAUSE_S = 0.1
NEWS_S = 1.0
"""How long a new topic may be unknown to one of several brokers."""
_UNKNOWN_TOPIC, _EXISTS = 3, 36
_TOPIC_RESOURCE = 2
_LOG = logging.getLogger(__name__)


class Partition(NamedTuple):
    """One partition, as of now; a leader of -1 is none."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class Topic(NamedTuple):
    """A topic as the brokers know it; another one of the same name has another id."""

    name: str
    id: str
    partitions: tuple[Partition, ...]


class Cluster:
    """The brokers behind some addresses. Raises LogUnavailable where none answers in time, and at
    once where none will: for a wrong password, or a certificate that is not trusted.

    `kafka` holds settings under Kafka's names (`turnlog.log.client`).
    """

    def __init__(self, servers: str, kafka: Mapping[str, object], *, ask_s: float = ASK_S) -> None:
        self.servers = servers
        self.client = Client(servers, kafka)
        self._client = AIOKafkaClient(**self.client.every)
        self._ask_s = ask_s
        self._connected = False
        self._spoken = False
        self._closed = False
        self._has_failed = False
        self._asking = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def close(self) -> None:
        """Give the connections back, when nothing is asked any more: one that is being made would
        be left open."""
        self._closed = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), CLOSE_S)
        await self._client.close()
        if self._has_failed:
            await asyncio.sleep(GRACE_S)

    async def nodes(self) -> int:
        """How many brokers there are."""
        await self._ask(TopicRequest("__consumer_offsets"))  # any question tells it
        return len(self._client.cluster.brokers())

    async def topic(self, name: str, *, wanted: str = "Describe") -> Topic | None:
        """A topic, None where there is none. `wanted` is the right that is asked for, where there
        is not even that to see it."""
        until = time.monotonic() + NEWS_S
        while True:
            answer = await self._ask(TopicRequest(name))
            ((code, _, id_, _, partitions, *_),) = answer.topics
            if code != _UNKNOWN_TOPIC:
                break
            if len(self._client.cluster.brokers()) < 2 or time.monotonic() > until:
                return None
            await asyncio.sleep(PAUSE_S)
        if code:
            raise self._refused(wanted, name, code)
        found: dict[int, Partition] = {}
        for _, number, leader, _, replicas, in_sync, *_ in partitions:
            found[number] = Partition(leader, tuple(replicas), tuple(in_sync))
        text = urlsafe_b64encode(id_).decode().rstrip("=")
        return Topic(name, text, tuple(found[number] for number in sorted(found)))

    async def offsets(
        self, name: str, which: int, partitions: Sequence[int] | None = None
    ) -> list[int]:
        """The offset that partitions begin with, or that their next record will have; all by
        default. The end is that of everybody, open transactions or not."""
        until = time.monotonic() + self._ask_s
        while True:
            topic = await self.topic(name)
            if topic is None:
                raise LogUnavailable(f"{self.servers}: there is no topic {name!r} any more")
            numbers = range(len(topic.partitions)) if partitions is None else partitions
            found = await asyncio.gather(*(self._offset(topic, each, which) for each in numbers))
            known = [offset for offset in found if offset is not None]
            if len(known) == len(found):
                return known
            if time.monotonic() > until:
                raise LogUnavailable(
                    f"{self.servers}: partition {numbers[found.index(None)]} of topic {name!r} has"
                    " no leader that answers, so its end is not known; look at its nodes, then try"
                    " again",
                    retriable=True,
                )
            await asyncio.sleep(PAUSE_S)

    async def _offset(self, topic: Topic, partition: int, which: int) -> int | None:
        """Ask the partition's leader; None where it does not tell."""
        leader = topic.partitions[partition].leader
        if leader < 0:
            return None
        request = OffsetRequest(-1, 0, [(topic.name, [(partition, which)])])
        try:
            with self._counted():
                answer = await self._client.send(leader, request)
        except KafkaError:
            self._client.force_metadata_update()
            return None
        ((_, ((_, code, _, offset, *_),)),) = answer.topics
        return offset if code == 0 and offset >= 0 else None

    async def settings_of(self, name: str) -> dict[str, str]:
        """The settings in force of a topic that is there, defaults among them."""
        until = time.monotonic() + NEWS_S
        while True:
            answer = await self._ask(DescribeConfigsRequest([(_TOPIC_RESOURCE, name, None)]))
            ((code, _, _, _, entries),) = answer.resources
            if code != _UNKNOWN_TOPIC or time.monotonic() > until:
                break
            await asyncio.sleep(PAUSE_S)
        if code:
            raise self._refused("DescribeConfigs", name, code)
        return {entry[0]: entry[1] or "" for entry in entries}

    async def create(
        self, name: str, partitions: int, replication: int, settings: Mapping[str, str]
    ) -> bool:
        """Make a topic; whether it is new."""
        wanted: Any = (name, partitions, replication, [], list(settings.items()))
        timeout_ms = int(self._ask_s * 1000)
        answer = await self._ask(CreateTopicsRequest([wanted], timeout_ms, False))
        ((_, code, message),) = answer.topic_errors
        if code == _EXISTS:
            return False
        if code:
            raise self._refused("Create", name, code, message)
        await self._wait_for(name, partitions)
        return True

    async def _wait_for(self, name: str, partitions: int) -> None:
        """Return once every partition of a new topic has a leader."""
        until = time.monotonic() + self._ask_s
        while time.monotonic() < until:
            topic = await self.topic(name)
            leaders = [each.leader for each in topic.partitions] if topic is not None else []
            if len(leaders) == partitions and min(leaders) >= 0:
                return
            await asyncio.sleep(PAUSE_S)
        raise LogUnavailable(f"{self.servers}: topic {name!r} was made, and gets no leaders")

    async def _ask(self, request: Any) -> Any:
        """Ask any broker, and another one where that fails."""
        with self._counted():
            return await self._ask_until(request)

    @contextmanager
    def _counted(self) -> Generator[None]:
        """Something is asked meanwhile."""
        self._asking += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._quiet.set()

    async def _ask_until(self, request: Any) -> Any:
        began = time.monotonic()
        is_told = False
        while not self._closed:
            try:
                async with asyncio.timeout(self._ask_s):
                    answer = await self._ask_once(request)
            except (KafkaError, OSError, TimeoutError) as error:
                self._has_failed = True
                obstacle = await self._find_obstacle()
                waited_s = time.monotonic() - began
                self._give_up(obstacle, error, waited_s=waited_s)
                if not is_told and waited_s > TELL_S:
                    is_told = True
                    _LOG.warning(
                        "kafka://%s: no broker answers; asking on, for %.0f s in all",
                        self.servers,
                        self._ask_s,
                    )
            else:
                self._spoken = True
                return answer
            self._connected = False  # the nodes may have moved: look for them anew
            await asyncio.sleep(PAUSE_S)
        raise LogUnavailable(f"kafka://{self.servers}: this log is closed; open it again")

    async def _find_obstacle(self) -> Obstacle | None:
        """Why it failed: at the addresses that were given, or at those that the brokers tell."""
        nodes = [(each.host, each.port) for each in self._client.cluster.brokers()]
        return await find_obstacle(self.client) or (
            await find_obstacle(self.client, nodes) if nodes else None
        )

    def _give_up(self, obstacle: Obstacle | None, error: Exception, *, waited_s: float) -> None:
        """Raise where asking again is in vain, or has been for too long."""
        if obstacle is not None and (
            obstacle.final or (obstacle.odd and not self._spoken and waited_s > ODD_S)
        ):
            raise LogUnavailable(
                f"kafka://{self.servers}: {obstacle.said}", retriable=not obstacle.final
            ) from error
        if waited_s > self._ask_s:
            why = obstacle.said if obstacle is not None else repr(error)
            raise LogUnavailable(
                f"kafka://{self.servers}: no broker answers ({why}); see that it runs and that the"
                " address is right, then try again",
                retriable=True,
            ) from error

    async def _ask_once(self, request: Any) -> Any:
        if not self._connected:
            await self._client.bootstrap()
            self._connected = True
        node = self._client.get_random_node()
        if node is None:
            raise KafkaError("no node is known")
        return await self._client.send(node, request)

    def _refused(
        self, operation: str, topic: str, code: int, message: str | None = None
    ) -> LogError:
        error = for_code(code)
        if error is TopicAuthorizationFailedError:
            return LogUnavailable(denial(self.client, operation, topic))
        said = message or error.description
        place = f"kafka://{self.servers}: topic {topic!r}"
        return LogUnavailable(f"{place}: {operation}: {error.__name__}: {said}")


class Ends:
    """The ends of a topic's partitions, asked once for all who ask at the same time.

    Each gets an answer to a question that was sent after it asked, never an older one.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._next: dict[int, asyncio.Task[int]] = {}
        self._asking: dict[int, asyncio.Lock] = {}

    async def get(self, partition: int) -> int:
        """The end of a partition. Raises LogUnavailable where it is not to be had."""
        question = self._next.get(partition)
        if question is None:
            question = asyncio.create_task(self._ask(partition))
            self._next[partition] = question
        return await asyncio.shield(question)

    async def _ask(self, partition: int) -> int:
        async with self._asking.setdefault(partition, asyncio.Lock()):
            del self._next[partition]  # who comes from here on needs a later answer
            (end,) = await self._cluster.offsets(self._topic, END, [partition])
            return end
