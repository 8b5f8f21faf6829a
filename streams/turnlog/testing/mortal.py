"""One host's handle on a log, which is of no more use once the host is dead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Self

from turnlog.core.frames import Record, SealedFrame
from turnlog.log.port import Difference, EmbeddedLog, Heartbeat, Progress, Store, Stored


class MortalLog:
    """A log as one host has it. `check` raises where the host is dead; then nothing of it reaches
    the log, and nothing that is under way is answered. Closing the handle leaves the log open."""

    def __init__(self, log: EmbeddedLog, check: Callable[[], None]) -> None:
        self._log = log
        self._check = check
        self.url = log.url
        self.partitions = log.partitions

    @property
    def tables(self) -> Store:
        return self._log.tables

    def partition_of(self, session: str) -> int:
        return self._log.partition_of(session)

    async def append(self, frame: SealedFrame) -> int:
        self._check()
        position = await self._log.append(frame)
        self._check()
        return position

    async def load(self, records: Sequence[Record]) -> list[int]:
        self._check()
        positions = await self._log.load(records)
        self._check()
        return positions

    def check_record(self, record: Record) -> None:
        self._log.check_record(record)

    async def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        self._check()
        async for stored in self._log.read(after, session=session, partition=partition):
            self._check()
            yield stored

    async def follow(
        self, after: int = 0, *, partition: int = 0, pause_s: float = 0.0
    ) -> AsyncIterator[Stored]:
        self._check()
        async for stored in self._log.follow(after, partition=partition, pause_s=pause_s):
            self._check()
            yield stored

    async def end(self, partition: int = 0) -> int:
        self._check()
        return await self._log.end(partition)

    def rebuild(self, progress: Progress | None = None) -> int:
        self._check()
        return self._log.rebuild(progress)

    def verify(self, progress: Progress | None = None) -> Iterator[Difference]:
        self._check()
        return self._log.verify(progress)

    async def beat(self, beat: Heartbeat) -> None:
        self._check()
        await self._log.beat(beat)

    async def end_beating(self, instance: str) -> None:
        self._check()
        await self._log.end_beating(instance)

    async def heartbeats(self) -> list[Heartbeat]:
        self._check()
        return await self._log.heartbeats()

    async def close(self) -> None:
        self._check()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._check()
