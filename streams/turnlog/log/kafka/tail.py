"""The reader of one partition: it follows what is appended, checks it, and has it mirrored.

One for each partition in use, shared by everybody in the process. Each has a consumer of its own:
aiokafka asks a node for one answer at a time, and a quiet partition would hold a busy one up.
It reads uncommitted: nobody may write transactions to this topic, and if somebody does, an open one
must not hide what is behind it. Positions that hold nothing are noticed, for only a transaction's
marker or compaction leaves such.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import (
    CorruptRecordException,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from turnlog.core.errors import LogError, LogUnavailable, StateError, TurnlogError
from turnlog.log.kafka import consumers
from turnlog.log.kafka.mirror import Mirror
from turnlog.log.kafka.reach import denial, find_obstacle
from turnlog.log.kafka.records import to_record
from turnlog.log.kafka.settings import Client
from turnlog.tables.store import Stored

AWAY_S = 30.0
"""How long nothing may be heard of a partition's leader before who waits is told."""
WAIT_MS = 500
"""How long the broker waits for something new before it says that there is nothing."""
PAGE_RECORDS = 1_000
PAUSE_S = 0.5
CLOSE_S = 2.0
"""How long an orderly end may take."""
_LOG = logging.getLogger(__name__)


class Tail:
    """See the module's text. It lives in the event loop of its log; `check` is for any thread.

    `confirm` is awaited for each page before it is kept, and raises where the topic is no longer
    the one it was.
    """

    def __init__(
        self,
        where: TopicPartition,
        partitions: int,
        *,
        client: Client,
        mirror: Mirror,
        writing: Executor,
        confirm: Callable[[], Coroutine[Any, Any, None]],
        changed: Callable[[], None],
        begins: int = 0,
        away_s: float = AWAY_S,
    ) -> None:
        self._where = where
        self._partitions = partitions
        self._client = client
        self._mirror = mirror
        self._writing = writing
        self._confirm = confirm
        self._changed = changed
        self._begins = begins
        self._away_s = away_s
        self._heard = time.monotonic()
        self._polled: int | None = None
        self._warned_of_open = False
        self._trouble: str | None = None
        self._hopeless = False
        self._failure: TurnlogError | None = None
        self._closing = False
        self._taking: asyncio.Task[Mapping[TopicPartition, list[ConsumerRecord]]] | None = None
        self.position = 0
        """Everything up to here is in the file, or was deleted before this log was opened."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def check_topic(self) -> None:
        """Raise where what is read is not the topic that it was, or is broken."""
        if self._failure is not None:
            raise type(self._failure)(str(self._failure))

    def check(self) -> None:
        """Raise where waiting for more is in vain: for that, or since nothing has been heard of the
        partition for too long."""
        self.check_topic()
        if self._hopeless:
            raise LogUnavailable(f"{self._name}: {self._trouble}")
        silent_s = time.monotonic() - self._heard
        if silent_s > self._away_s:
            why = f" ({self._trouble})" if self._trouble else ""
            raise LogUnavailable(
                f"{self._name}: nothing heard of it for {silent_s:.0f} s{why}; see that its broker"
                " runs, then try again",
                retriable=True,
            )

    async def close(self) -> None:
        """End it where it waits for records: of a client that is broken off in the middle of
        connecting a connection may be left open."""
        self._closing = True
        if self._taking is not None:
            self._taking.cancel()
        done, _ = await asyncio.wait([self._task], timeout=CLOSE_S)
        if not done:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def _name(self) -> str:
        return f"topic {self._where.topic!r}, partition {self._where.partition}"

    async def _run(self) -> None:
        while self._failure is None and not self._closing:
            try:
                await self._follow()
            except (StateError, OffsetOutOfRangeError, CorruptRecordException) as error:
                self._failure = self._explain(error)
                self._changed()
            except TopicAuthorizationFailedError:
                # somebody may give the right yet, but nobody has to wait for it
                self._trouble = denial(self._client, "Read", self._where.topic)
                self._hopeless = True
                self._changed()
                await asyncio.sleep(PAUSE_S)
            except (KafkaError, LogError, OSError, sqlite3.Error) as error:
                self._trouble = f"{type(error).__name__}: {error}"
                await self._ask_why()
                await asyncio.sleep(PAUSE_S)
            except Exception as error:
                _LOG.exception("%s: a bug of turnlog", self._name)
                self._failure = StateError(f"{self._name}: {type(error).__name__}: {error}")
                self._changed()

    async def _follow(self) -> None:
        consumer = AIOKafkaConsumer(
            **self._client.consumer,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_uncommitted",
            fetch_max_wait_ms=WAIT_MS,
        )
        try:
            await consumer.start()
            known = await self._write(self._mirror.reached, self._where.partition)
            at = max(known, self._begins)
            self.position = at
            consumer.assign([self._where])
            consumer.seek(self._where, at)
            while not self._closing:
                records = await self._take(consumer)
                until = await consumer.position(self._where)
                if until != at:
                    await self._keep(records, at, until)
                    at = until
                self._listen(consumer)
                if time.monotonic() - self._heard > self._away_s / 3:
                    await self._ask_why()
        finally:
            await consumers.end(consumer)

    async def _ask_why(self) -> None:
        """Is it known why nothing is heard?"""
        obstacle = await find_obstacle(self._client)
        if obstacle is not None:
            self._trouble, self._hopeless = obstacle.said, obstacle.final
            self._changed()

    async def _take(self, consumer: AIOKafkaConsumer) -> list[ConsumerRecord]:
        """The next records, none where there are none yet, or this is being closed."""
        self._taking = asyncio.ensure_future(
            consumer.getmany(self._where, timeout_ms=WAIT_MS, max_records=PAGE_RECORDS)
        )
        try:
            return (await self._taking).get(self._where, [])
        except asyncio.CancelledError:
            if not self._closing:
                raise
            return []

    def _listen(self, consumer: AIOKafkaConsumer) -> None:
        """Was anything heard of the leader? The consumer itself tries again in silence."""
        polled = consumer.last_poll_timestamp(self._where)
        if polled is not None and polled != self._polled:
            self._polled, self._heard, self._trouble = polled, time.monotonic(), None
            self._hopeless = False
        stable, end = consumer.last_stable_offset(self._where), consumer.highwater(self._where)
        if stable is not None and end is not None and 0 <= stable < end:
            if not self._warned_of_open:
                self._warned_of_open = True
                _LOG.warning(
                    "%s: somebody writes a transaction here, open since position %d: nobody may;"
                    " find who does",
                    self._name,
                    stable + 1,
                )
        else:
            self._warned_of_open = False

    async def _keep(self, records: Sequence[ConsumerRecord], at: int, until: int) -> None:
        """Mirror a page that reaches from one offset to another."""
        number = self._where.partition
        page: list[Stored] = []
        for record in records:
            if record.offset != at:
                self._warn_of_hole(at, record.offset)
            at = record.offset + 1
            kept = to_record(
                record.key,
                record.headers,
                record.value,
                partition=number,
                partitions=self._partitions,
            )
            page.append(Stored(at, record.timestamp, kept))
        if until != at:
            self._warn_of_hole(at, until)
        await self._confirm()
        await self._write(self._add, page, until)

    def _add(self, page: Sequence[Stored], until: int) -> None:
        """Run by the thread that writes, which then wakes who waits, once and at once."""
        self._mirror.add(self._where.partition, page, until)
        self.position = until
        self._changed()

    def _warn_of_hole(self, start: int, end: int) -> None:
        _LOG.warning(
            "%s: positions %d to %d hold no record: somebody wrote a transaction here, or the topic"
            " was compacted; neither may be: run turnlog topics check",
            self._name,
            start + 1,
            end,
        )

    async def _write(self, function: Callable[..., Any], *args: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writing, function, *args)

    def _explain(self, error: Exception) -> TurnlogError:
        if isinstance(error, StateError):
            return error
        if isinstance(error, OffsetOutOfRangeError):
            return StateError(
                f"{self._name}: position {self.position + 1} is asked for and not there: records"
                " were deleted, or the topic was made anew; run turnlog topics check"
            )
        return StateError(f"{self._name}: what is stored behind {self.position} is broken: {error}")
