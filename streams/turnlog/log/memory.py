"""The log in memory: for tests, and for the tests of users. It keeps the whole contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Self

from turnlog.core.errors import LogUnavailable, StateError
from turnlog.core.fold import fold as fold_frame
from turnlog.core.frames import Frame, Record, SealedFrame, Unreadable, decode
from turnlog.core.rows import Changes, Tables
from turnlog.log.port import Difference, Heartbeat, Progress, Stored
from turnlog.log.refusals import refusal
from turnlog.tables.frames import check
from turnlog.tables.memory import DictStore, differences
from turnlog.tables.signal import Signal
from turnlog.tables.store import check_partition

Fold = Callable[[Frame | Unreadable, int, Tables], Changes]


class MemoryLog:
    """See the module's text. `stride` is the distance between positions: from 2 on it has holes,
    as a log on Kafka has, and shows who counts on there being none."""

    url = "memory:"
    partitions = 1

    def __init__(
        self, *, clock: Callable[[], int], stride: int = 1, fold: Fold = fold_frame
    ) -> None:
        self._clock = clock
        self._stride = stride
        self._next = stride
        self._fold = fold
        self._records: list[Stored] = []
        self._signal = Signal()
        self._closed = False
        self._beats: dict[str, Heartbeat] = {}
        self.tables = DictStore(self._records, self._signal)

    def partition_of(self, session: str) -> int:
        del session  # there is one for all
        return 0

    async def append(self, frame: SealedFrame) -> int:
        self._check_open()
        if self.tables.stopped is None:
            refused = refusal(frame.frame, self.tables)
            if refused is not None:
                raise refused
        position = self._add(frame.record, frame.frame)
        self._signal.notify()
        return position

    async def load(self, records: Sequence[Record]) -> list[int]:
        self._check_open()
        for record in records:
            self.check_record(record)
        positions = [self._add(record, decode(record)) for record in records]
        self._signal.notify()
        return positions

    def check_record(self, record: Record) -> None:
        check(record)

    async def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        check_partition(partition)
        self._check_open()
        for stored in self._records[:]:
            if stored.position > after and session in (None, stored.record.session):
                yield stored

    async def follow(
        self, after: int = 0, *, partition: int = 0, pause_s: float = 0.0
    ) -> AsyncIterator[Stored]:
        check_partition(partition)
        index = 0
        while True:
            seen = self._signal.count
            self._check_open()
            while index < len(self._records):
                stored = self._records[index]
                index += 1
                if stored.position > after:
                    yield stored
            await self._signal.wait(seen)
            if pause_s:
                await asyncio.sleep(pause_s)

    async def end(self, partition: int = 0) -> int:
        check_partition(partition)
        self._check_open()
        return self._end()

    async def close(self) -> None:
        self._closed = True
        self._signal.notify()

    def rebuild(self, progress: Progress | None = None) -> int:
        self.tables.take(self._fresh(self._end(), progress))
        self._signal.notify()
        return self._end()

    def verify(self, progress: Progress | None = None) -> Iterator[Difference]:
        fresh = self._fresh(self.tables.position(), progress)
        return differences(self.tables, fresh)

    async def beat(self, beat: Heartbeat) -> None:
        self._check_open()
        self._beats[beat.instance] = beat

    async def end_beating(self, instance: str) -> None:
        self._check_open()
        self._beats.pop(instance, None)

    async def heartbeats(self) -> list[Heartbeat]:
        self._check_open()
        return [self._beats[instance] for instance in sorted(self._beats)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._closed = True
        self._signal.notify()

    def _end(self) -> int:
        return self._records[-1].position if self._records else 0

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnavailable("memory: this log is closed, and what it held is gone")

    def _add(self, record: Record, frame: Frame | Unreadable) -> int:
        """Append a record whatever becomes of the tables, as every log does."""
        position, self._next = self._next, self._next + self._stride
        self._records.append(Stored(position, self._clock(), record))
        if self.tables.stopped is None:
            try:
                changes = self._fold(frame, position, self.tables)
            except Exception:
                self.tables.stopped = position
            else:
                self.tables.apply(changes, position)
        return position

    def _fresh(self, end: int, progress: Progress | None) -> DictStore:
        fresh = DictStore(self._records, self._signal)
        for stored in self._records:
            if stored.position > end:
                break
            frame = decode(stored.record)
            try:
                changes = self._fold(frame, stored.position, fresh)
            except Exception as error:
                raise StateError(
                    f"memory: the record at position {stored.position} of session"
                    f" {stored.record.session!r} cannot be folded: {type(error).__name__}: {error}"
                ) from error
            fresh.apply(changes, stored.position)
            if progress is not None:
                progress(stored.position, end)
        return fresh
