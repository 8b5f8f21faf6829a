"""The Kafka adapter: appends go to the topic, and what is in the topic is read in a local file.

The file holds frames and tables of all partitions, folded by the same code as those of an embedded
log; it can be deleted, and is made again from the topic. A partition is followed from when somebody
first asks for it. Nothing is refused for what it says, since who owns a session is known only once
it is read back; but while the brokers are away no T1 is sent, whose tool could start only much
later. A position is the offset + 1.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self

from aiokafka import TopicPartition

from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    LogUnavailable,
    StateError,
    TooLarge,
)
from turnlog.core.fold import fold as fold_frame
from turnlog.core.frames import Record, SealedFrame
from turnlog.log.kafka.address import Address, default_tables
from turnlog.log.kafka.appender import Appender, Job, Load
from turnlog.log.kafka.cluster import ASK_S, Cluster, Ends
from turnlog.log.kafka.identity import Identity
from turnlog.log.kafka.loop import LoopThread
from turnlog.log.kafka.mirror import Mirror
from turnlog.log.kafka.partition import partition_of
from turnlog.log.kafka.records import Message, to_message
from turnlog.log.kafka.tail import AWAY_S, Tail
from turnlog.log.kafka.topic import Found, look
from turnlog.log.port import Progress, Stored
from turnlog.log.sqlite.file import SqliteFile, finish
from turnlog.tables import database, frames
from turnlog.tables.folding import Fold
from turnlog.tables.sql import POLL_S
from turnlog.tables.store import check_partition

APPEND_S = 30.0
"""How long an append may wait for a broker that is away."""
_LOG = logging.getLogger(__name__)


class KafkaLog(SqliteFile):
    """See the module's text and `turnlog.log.open`, which makes it.

    `tables` is the local file, by default one of the topic's own in the user's data folder, and
    `kafka` settings of its clients, see `turnlog.log.client`. Without `catch_up` what is wrong with
    the topic is only warned of, so that what is left can be read. An append waits `append_s` at
    most for brokers that are away, a question `ask_s`, and who waits for a partition `away_s`.
    """

    application_id = database.TABLES_APPLICATION_ID

    def __init__(
        self,
        address: Address,
        *,
        tables: Path | None = None,
        kafka: Mapping[str, object] | None = None,
        busy_ms: int,
        catch_up: bool = True,
        progress: Progress | None = None,
        fold: Fold = fold_frame,
        append_s: float = APPEND_S,
        away_s: float = AWAY_S,
        ask_s: float = ASK_S,
    ) -> None:
        self.url = address.url
        self._topic = address.topic
        self._away_s = away_s
        self._tails: dict[int, Tail] = {}
        self._thread = LoopThread(f"turnlog {address.url}")
        try:
            self._cluster, found = self._thread.call(_connect(address, kafka or {}, ask_s))
        except BaseException:
            self._thread.close()
            raise
        try:
            self._check(found, strict=catch_up)
            self._id = found.topic.id
            self._begins = found.begins
            self._identity = Identity(self._cluster, found, self._thread)
            self._max_bytes = int(found.settings["max.message.bytes"])
            count = len(found.topic.partitions)
            path = _made(tables or default_tables(found.topic.id))
            super().__init__(
                path,
                # where some were added, what is left lies in those that it was made with
                partitions=min(count, found.meta.partitions) if found.meta else count,
                busy_ms=busy_ms,
                fold=fold,
                connect=database.connect,
                watch=self._watch_for,
            )
        except BaseException:
            self._thread.call(self._cluster.close())
            self._thread.close()
            raise
        self._ends = Ends(self._cluster, self._topic)
        self._writing = ThreadPoolExecutor(1, "turnlog mirror")
        self._appender = self._thread.call(self._make_appender(append_s))
        try:
            self._begin(found, progress, catch_up=catch_up)
        except BaseException:
            self._close()
            raise

    def _check(self, found: Found, *, strict: bool) -> None:
        if found.problems and strict:
            raise StateError("; and ".join(map(str, found.problems)))
        for problem in found.problems:
            _LOG.warning("%s", problem)

    async def _make_appender(self, append_s: float) -> Appender:
        return Appender(self._cluster.client, self._topic, deadline_s=append_s)

    def _begin(self, found: Found, progress: Progress | None, *, catch_up: bool) -> None:
        """Bring the file up to what the topic holds."""
        # what is lost with the machine is read again
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.prepare(None, catch_up=False)
        self._mirror = Mirror(self)
        self._mirror.name_source(self._topic, self._id, self.partitions)
        for partition, end in enumerate(found.ends[: self.partitions]):
            known = self._mirror.reached(partition)
            if known > end:
                raise StateError(
                    f"topic {self._topic!r}, partition {partition}: ends at position {end}, and"
                    f" {self.path} has read it up to {known}: the topic has lost records;"
                    " `turnlog dump` what the file holds before you delete it"
                )
        self.prepare(progress, catch_up=catch_up)
        if catch_up:
            self._catch_up(found.ends, progress)

    def _catch_up(self, ends: Sequence[int], progress: Progress | None) -> None:
        """Read every partition to the end that it had when this log was opened."""
        known = [self._mirror.reached(partition) for partition in range(self.partitions)]
        behind = [number for number, end in enumerate(ends) if known[number] < end]
        tails = [self._thread.call(self._tail(number)) for number in behind]
        while tails:
            for number, tail in zip(behind, tails, strict=True):
                known[number] = max(known[number], tail.position)
                tail.check()
            if progress is not None:
                progress(min(sum(known), sum(ends)), sum(ends))
            if all(known[number] >= ends[number] for number in behind):
                break
            time.sleep(POLL_S)
        self._thread.call(self._end_tails())  # from here on only those that somebody asks for

    def partition_of(self, session: str) -> int:
        return partition_of(session, self.partitions)

    # ---- appending -----------------------------------------------------------------------

    async def append(self, frame: SealedFrame) -> int:
        partition = self.partition_of(frame.record.session)
        if self._appender.is_away(partition) and any(
            event.type == "tool_dispatched" for event in frame.frame.events
        ):
            raise AppendRefused(
                f"session {frame.record.session!r}: the brokers of topic {self._topic!r} do not"
                " answer, and no tool is started meanwhile: nothing was appended",
                retriable=True,
            )
        look = self._identity.look()
        (future,) = self._hand_over([frame.record])
        position = await future
        await self._identity.see(look)
        return position

    async def load(self, records: Sequence[Record]) -> list[int]:
        """As the port says, but not in one piece: after AppendUnknown the first ones of each
        session may be there, and no others."""
        for record in records:
            frames.check(record)
        look = self._identity.look()
        futures = self._hand_over(records, Load()) if records else []
        found = await asyncio.gather(*futures, return_exceptions=True)
        await self._identity.see(look)
        errors = [item for item in found if isinstance(item, BaseException)]
        if not errors:
            return [item for item in found if isinstance(item, int)]
        if len(errors) == len(found) and all(isinstance(each, AppendRefused) for each in errors):
            raise errors[0]
        raise AppendUnknown(f"of {len(found)} records some may be in the log: {errors[0]}")

    def check_record(self, record: Record) -> None:
        super().check_record(record)
        self._message(record)

    def _hand_over(
        self, records: Sequence[Record], load: Load | None = None
    ) -> list[asyncio.Future[int]]:
        self.check_open()
        messages = [self._message(record) for record in records]
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        jobs = [
            Job(message, record.session, loop.create_future(), began, load)
            for message, record in zip(messages, records, strict=True)
        ]
        self._appender.put(jobs)
        return [job.future for job in jobs]

    def _message(self, record: Record) -> Message:
        message = to_message(record, self.partitions)
        self._check_topic(message.partition)  # it would be lost in another topic
        if message.size > self._max_bytes:
            raise TooLarge(
                f"session {record.session!r}: the record has {message.size:,} bytes, over the"
                f" {self._max_bytes:,} that topic {self._topic!r} takes; nothing was appended"
            )
        return message

    def _check_topic(self, partition: int) -> None:
        self._identity.check()
        tail = self._tails.get(partition)
        if tail is not None:
            tail.check_topic()

    # ---- reading -------------------------------------------------------------------------

    async def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        tail = self._tails.get(partition)
        known = tail.position if tail is not None else 0
        until = await self.end(partition)
        if until < known:
            raise StateError(
                f"topic {self._topic!r}, partition {partition}: ends at position {until}, and was"
                f" read up to {known}: it has lost records; run turnlog topics check"
            )
        await self._reach(partition, until)
        while after < until:
            page = await self.read_aside(
                frames.read_page, after, until, session, partition=partition
            )
            for stored in page.records:
                yield stored
            if page.last:
                return
            after = page.records[-1].position

    async def follow(
        self, after: int = 0, *, partition: int = 0, pause_s: float = 0.0
    ) -> AsyncIterator[Stored]:
        check_partition(partition, self.partitions)
        while True:
            seen = self.signal.count
            page = await self.read_aside(frames.read_page, after, partition=partition)
            for stored in page.records:
                yield stored
            if page.records:
                after = page.records[-1].position
            else:
                self._watch_for(partition)
                await self.signal.wait(seen, POLL_S)
                if pause_s:
                    await asyncio.sleep(pause_s)

    async def end(self, partition: int = 0) -> int:
        check_partition(partition, self.partitions)
        self.check_open()
        return await self._thread.ask(self._ends.get(partition))

    async def _reach(self, partition: int, position: int) -> None:
        """Return once the file holds a partition up to a position."""
        while True:
            seen = self.signal.count
            self.check_open()
            tail = self._tails.get(partition)
            if tail is not None:
                tail.check_topic()  # its end may be that of another topic
                if tail.position >= position:
                    return
            self._watch_for(partition)
            await self.signal.wait(seen, POLL_S)

    def _watch_for(self, partition: int) -> None:
        """Somebody waits for a partition: it is followed. Raises where that is in vain."""
        self.check_open()
        tail = self._tails.get(partition)
        if tail is None:
            self._thread.tell(self._start_tail, partition)
        else:
            tail.check()

    async def _tail(self, partition: int) -> Tail:
        return self._start_tail(partition)

    def _start_tail(self, partition: int) -> Tail:
        tail = self._tails.get(partition)
        if tail is None:
            tail = self._tails[partition] = Tail(
                TopicPartition(self._topic, partition),
                self.partitions,
                client=self._cluster.client,
                mirror=self._mirror,
                writing=self._writing,
                confirm=partial(self._identity.confirm, partition),
                changed=self.signal.notify,
                begins=self._begins[partition],
                away_s=self._away_s,
            )
        return tail

    # ---- ending --------------------------------------------------------------------------

    async def close(self) -> None:
        self.closed = True
        await finish(asyncio.to_thread(self._close))

    def _close(self) -> None:
        with self._opening:
            self.closed = True
        self.signal.notify()
        if not self._thread.is_alive:
            return
        self._thread.call(self._end())
        self._thread.close()
        self._writing.shutdown()
        self.connection.close()
        self.close_readers()

    async def _end(self) -> None:
        await self._appender.close()
        await self._end_tails()
        await self._cluster.close()

    async def _end_tails(self) -> None:
        tails = list(self._tails.values())
        self._tails.clear()
        await asyncio.gather(*(tail.close() for tail in tails))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()


def _made(path: Path) -> Path:
    """A file that is there. It holds what people told nobody else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError as error:
        raise LogUnavailable(
            f"{path}: the tables of the log cannot be made ({error.strerror}); look at the rights"
            " of its folder, or give another place"
        ) from error
    return path


async def _connect(
    address: Address, kafka: Mapping[str, object], ask_s: float
) -> tuple[Cluster, Found]:
    cluster = Cluster(address.servers, kafka, ask_s=ask_s)
    try:
        return cluster, await look(cluster, address.topic)
    except BaseException:
        await cluster.close()
        raise
