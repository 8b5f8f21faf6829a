"""Appending: one idempotent producer for the whole process, and what each append came to.

aiokafka's idempotent producer tells less than it seems to. It never gives up a batch that it has
sent; it fails one whose partition has no leader, although an earlier try may have landed; and it
calls a batch a success that the broker knows as a duplicate without saying where it stands, and
counts its records from offset -1. So an append is *there* only with an offset and the broker's own
time (LogAppendTime), *refused* only where it was never handed over or the broker refused its only
try, and *unknown* otherwise. After anything but success there is a new producer: the old one's
sequence has a gap, and what it still holds must not be tried for ever.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)
from aiokafka.structs import RecordMetadata

from turnlog.core.errors import AppendRefused, AppendUnknown, LogError, LogUnavailable
from turnlog.log.kafka.reach import denial, find_obstacle
from turnlog.log.kafka.records import Message
from turnlog.log.kafka.settings import Client

BACKOFF_MS = 100
"""The client waits so long before it sends a batch again. So what failed sooner had one try."""
LOOK_S = 0.2
AWAY_S = 2.0
"""After so long without an answer the brokers count as away."""
_LOG = logging.getLogger(__name__)
_LOG_APPEND_TIME = 1
_DENIALS = (ClusterAuthorizationFailedError, TopicAuthorizationFailedError)
"""The first is said to who may write to no topic at all, and asks for a producer's id."""
_REFUSALS = (*_DENIALS, InvalidTopicError, MessageSizeTooLargeError)
"""What a broker says before it appends anything."""

Outcome = int | LogError


class Load:
    """Records that are appended together. After one that failed none of them is sent any more, so
    what is there of each session are its first ones."""

    def __init__(self) -> None:
        self.has_failed = False


class Job(NamedTuple):
    """A message and who waits for its position. `session` is for what is said of it."""

    message: Message
    session: str
    future: asyncio.Future[int]
    began: float
    load: Load | None = None


class Appender:
    """See the module's text. It lives in the event loop of its log, but for `put`.

    `deadline_s` bounds how long an append may wait.
    """

    def __init__(self, client: Client, topic: str, *, deadline_s: float) -> None:
        self._client = client
        self._topic = topic
        self._deadline_s = deadline_s
        self._handed: deque[list[Job]] = deque()
        self._is_called = False
        """Whether the event loop has been told that something was handed over."""
        self._waiting: dict[int, deque[Job]] = {}
        """What is to be sent, by partition: one without a leader does not hold up the others."""
        self._senders: dict[int, asyncio.Task[None]] = {}
        self._sent: dict[asyncio.Future[RecordMetadata], Job] = {}
        """What the producer has, the oldest first."""
        self._told: list[tuple[Job, Outcome]] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._away: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._watching = self._loop.create_task(self._watch())
        self._discarding: set[asyncio.Task[None]] = set()

    def put(self, jobs: list[Job]) -> None:
        """Hand jobs over, from any thread; they are sent in this order."""
        self._handed.append(jobs)
        if not self._is_called:  # one call for many: it costs more than all the rest here
            self._is_called = True
            self._loop.call_soon_threadsafe(self._take)

    def is_away(self, partition: int) -> bool:
        """Whether something has waited for an answer for so long that its broker seems away."""
        return partition in self._away

    async def close(self) -> None:
        """Finish what was handed over, as far as the deadline allows."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), self._deadline_s + 1)
        tasks = [self._watching, *self._senders.values()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for job in chain.from_iterable(self._waiting.values()):
            self._tell(job, self._refused(job, "the log was closed", retriable=False))
        self._waiting.clear()
        self._give_up("the log was closed")
        while self._discarding:
            await asyncio.wait(self._discarding)

    # ---- sending -------------------------------------------------------------------------

    def _take(self) -> None:
        self._is_called = False  # before it looks, so that what comes meanwhile calls again
        self._idle.clear()
        while self._handed:
            for job in self._handed.popleft():
                self._waiting.setdefault(job.message.partition, deque()).append(job)
        for partition in self._waiting.keys() - self._senders.keys():
            self._senders[partition] = self._loop.create_task(self._send_all(partition))

    async def _send_all(self, partition: int) -> None:
        """Send what waits for a partition, in order, until nothing does."""
        waiting = self._waiting[partition]
        while waiting:
            try:
                await self._send(waiting[0])
            except Exception as error:
                self._tell_of_bug(waiting[0], error)
            waiting.popleft()
        del self._waiting[partition], self._senders[partition]
        self._rest()

    async def _send(self, job: Job) -> None:
        if job.future.cancelled():  # certainly not there
            if job.load is not None:
                job.load.has_failed = True
            return
        if job.load is not None and job.load.has_failed:
            why = "a record before it failed"
            self._tell(job, self._refused(job, why, retriable=True))
            return
        message = job.message
        try:
            producer = await self._started(job.began + self._deadline_s)
            # it waits here where much is under way already
            sent = await producer.send(
                self._topic,
                message.value,
                message.key,
                message.partition,
                headers=message.headers,
            )
        except KafkaTimeoutError:
            why = "no broker took it in time"
            self._tell(job, self._refused(job, why, retriable=True))
        except LogUnavailable as error:
            self._tell(job, self._refused(job, str(error), retriable=False))
        except (KafkaError, OSError, TimeoutError, AssertionError) as error:
            self._tell(job, self._refused(job, self._said(error), retriable=True))
        else:
            if producer is not self._producer:  # given up meanwhile, so it will not send this
                self._tell(job, self._refused(job, "its producer was given up", retriable=True))
                return
            self._sent[sent] = job
            sent.add_done_callback(self._done)

    def _tell_of_bug(self, job: Job, error: Exception) -> None:
        """Of turnlog or of its client: whether it was taken is not known. The rest goes on."""
        _LOG.exception("%s: a bug", self._place(job))
        self._tell(job, self._unknown(job, self._said(error)))
        self._give_up(f"another append failed ({self._said(error)})")

    async def _started(self, until: float) -> AIOKafkaProducer:
        """The producer, which is made if need be. Raises KafkaError after a time."""
        if self._producer is not None:
            return self._producer
        async with self._starting:
            return await self._start(until)

    async def _start(self, until: float) -> AIOKafkaProducer:
        while self._producer is None:
            if time.monotonic() > until:
                raise KafkaTimeoutError  # it has waited behind others for long enough
            producer = AIOKafkaProducer(
                **self._client.producer,
                acks="all",
                enable_idempotence=True,
                max_request_size=1 << 30,  # what is too large was refused before
                retry_backoff_ms=BACKOFF_MS,
            )
            left = max(0.1, until - time.monotonic())
            try:
                await asyncio.wait_for(producer.start(), left)
                await asyncio.wait_for(producer.partitions_for(self._topic), left)
            except BaseException as error:
                await _discard(producer)
                await self._check(error)
                known = isinstance(error, KafkaError | OSError | TimeoutError)
                if not known or time.monotonic() + LOOK_S > until:
                    raise
                await asyncio.sleep(LOOK_S)
            else:
                self._producer = producer
        return self._producer

    async def _check(self, error: BaseException) -> None:
        """Raise LogUnavailable where no other producer will fare better than one that failed."""
        if isinstance(error, _DENIALS):
            raise LogUnavailable(self._said(error)) from error
        if isinstance(error, KafkaConnectionError):
            obstacle = await find_obstacle(self._client)
            if obstacle is not None and obstacle.final:
                raise LogUnavailable(obstacle.said) from error

    # ---- outcomes ------------------------------------------------------------------------

    def _done(self, sent: asyncio.Future[RecordMetadata]) -> None:
        job = self._sent.pop(sent, None)
        if job is None:
            if not sent.cancelled():
                sent.exception()  # given up before; asyncio complains of what nobody looks at
            return
        error = sent.exception()
        if error is not None:
            soon = time.monotonic() - job.began < BACKOFF_MS / 1000
            if soon and isinstance(error, _REFUSALS):
                self._tell(job, self._refused(job, self._said(error), retriable=False))
            else:
                self._tell(job, self._unknown(job, self._said(error)))
            self._give_up(f"another append failed ({self._said(error)})")
            return
        found = sent.result()
        if found.timestamp_type != _LOG_APPEND_TIME or found.offset < 0:
            said = "the broker has it already, and does not say where"
            self._tell(job, self._unknown(job, said))
            self._give_up(said)
            return
        self._away.discard(job.message.partition)  # who waited for this may start a tool next
        self._tell(job, found.offset + 1)
        self._rest()

    async def _watch(self) -> None:
        """Give the producer up when what it has had for longest has waited too long."""
        away_s = min(AWAY_S, self._deadline_s / 2)
        while True:
            await asyncio.sleep(min(LOOK_S, self._deadline_s))
            now = time.monotonic()
            began: dict[int, float] = {}
            for job in self._sent.values():
                began.setdefault(job.message.partition, job.began)
            is_late = any(now - each > self._deadline_s for each in began.values())
            for partition, waiting in self._waiting.items():
                began.setdefault(partition, waiting[0].began)
            self._away = {each for each, since in began.items() if now - since > away_s}
            if is_late:
                self._give_up(f"no acknowledgement within {self._deadline_s:g} s")

    def _give_up(self, why: str) -> None:
        """The next append gets a new producer; what this one has is unknown."""
        producer, self._producer = self._producer, None
        jobs = list(self._sent.values())
        self._sent.clear()
        for job in jobs:
            self._tell(job, self._unknown(job, why))
        if producer is not None:
            task = self._loop.create_task(_discard(producer))
            self._discarding.add(task)
            task.add_done_callback(self._discarding.discard)
        self._rest()

    def _rest(self) -> None:
        if not self._senders and not self._sent:
            self._idle.set()

    def _refused(self, job: Job, why: str, *, retriable: bool) -> AppendRefused:
        return AppendRefused(
            f"{self._place(job)}: nothing was appended: {why}", retriable=retriable
        )

    def _unknown(self, job: Job, why: str) -> AppendUnknown:
        return AppendUnknown(
            f"{self._place(job)}: the frame may be in the log, or still arrive: {why}; append the"
            " same frame again"
        )

    def _said(self, error: BaseException) -> str:
        if isinstance(error, _DENIALS):
            return denial(self._client, "Write", self._topic)
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

    def _place(self, job: Job) -> str:
        return f"session {job.session!r}, topic {self._topic!r}, partition {job.message.partition}"

    def _tell(self, job: Job, outcome: Outcome) -> None:
        if job.load is not None and isinstance(outcome, LogError):
            job.load.has_failed = True
        if not self._told:
            self._loop.call_soon(self._tell_all)
        self._told.append((job, outcome))

    def _tell_all(self) -> None:
        """Tell everybody, with one call into each event loop."""
        told, self._told = self._told, []
        loops: dict[asyncio.AbstractEventLoop, list[tuple[Job, Outcome]]] = {}
        for job, outcome in told:
            loops.setdefault(job.future.get_loop(), []).append((job, outcome))
        for loop, outcomes in loops.items():
            with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: list[tuple[Job, Outcome]]) -> None:
    for job, outcome in outcomes:
        if job.future.done():
            continue
        if isinstance(outcome, int):
            job.future.set_result(outcome)
        else:
            job.future.set_exception(outcome)


async def _discard(producer: AIOKafkaProducer) -> None:
    """End a producer without waiting for what it holds: `stop` would wait for all of it.

    Its sender goes first, so that nothing is sent again once the connections are closed.
    """
    producer._closed = True  # pyright: ignore[reportPrivateUsage]  # there is no other way
    inner = producer._sender  # pyright: ignore[reportPrivateUsage]  # nor here
    sender: asyncio.Task[None] | None = inner.sender_task
    if sender is not None:
        sender.cancel()
    await producer.client.close()
    if sender is not None:
        with suppress(Exception):
            await asyncio.wait_for(asyncio.gather(sender, return_exceptions=True), 1)
