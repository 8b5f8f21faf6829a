"""The SQLite adapter: the port over one file, with its tables folded in the same transactions.

One thread writes; see `turnlog.log.sqlite.file` for what reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Self

from turnlog.core.fold import fold as fold_frame
from turnlog.core.frames import Frame, Record, SealedFrame
from turnlog.log.port import Progress, Stored
from turnlog.log.sqlite.file import SqliteFile, finish
from turnlog.log.sqlite.writer import Job, Writer
from turnlog.tables import database, frames
from turnlog.tables.folding import Fold
from turnlog.tables.sql import POLL_S
from turnlog.tables.store import check_partition


class SqliteLog(SqliteFile):
    """See the module's text and `turnlog.log.open`, which makes it."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], int],
        busy_ms: int,
        catch_up: bool = True,
        progress: Progress | None = None,
        fold: Fold = fold_frame,
        connect: database.Connect = database.connect,
    ) -> None:
        super().__init__(path, partitions=1, busy_ms=busy_ms, fold=fold, connect=connect)
        self.url = f"sqlite:{path}"
        self._clock = clock
        self._writer: Writer | None = None
        self.prepare(progress, catch_up=catch_up)

    def partition_of(self, session: str) -> int:
        del session  # there is one for all
        return 0

    async def append(self, frame: SealedFrame) -> int:
        return (await self._hand_over((frame.record,), frame.frame))[0]

    async def load(self, records: Sequence[Record]) -> list[int]:
        for record in records:
            self.check_record(record)
        return await self._hand_over(records, None) if records else []

    def _hand_over(
        self, records: Sequence[Record], sealed: Frame | None
    ) -> asyncio.Future[list[int]]:
        self.check_open()
        if self._writer is None:
            with self._opening:
                self.check_open()
                self._writer = self._make_writer()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[int]] = loop.create_future()
        self._writer.put(Job(records, sealed, loop, future))
        return future

    def _make_writer(self) -> Writer:
        return Writer(
            self.connection,
            self.folding,
            path=self.path,
            clock=self._clock,
            changed=self.signal.notify,
        )

    async def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        check_partition(partition)
        until: int | None = None
        while True:
            page = await self.read_aside(frames.read_page, after, until, session)
            for stored in page.records:
                yield stored
            if page.last:
                return
            after, until = page.records[-1].position, page.until

    async def follow(
        self, after: int = 0, *, partition: int = 0, pause_s: float = 0.0
    ) -> AsyncIterator[Stored]:
        check_partition(partition)
        while True:
            seen = self.signal.count
            page = await self.read_aside(frames.read_page, after)
            for stored in page.records:
                yield stored
            if page.records:
                after = page.records[-1].position
            else:
                await self.signal.wait(seen, POLL_S)
                if pause_s:
                    await asyncio.sleep(pause_s)

    async def end(self, partition: int = 0) -> int:
        check_partition(partition)
        return await self.read_aside(frames.last_position)

    async def close(self) -> None:
        self.closed = True
        await finish(asyncio.to_thread(self._close))

    def _close(self) -> None:
        with self._opening:
            self.closed = True
        self.signal.notify()
        if self._writer is None:
            self.connection.close()
        else:
            self._writer.close()
        self.close_readers()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()
