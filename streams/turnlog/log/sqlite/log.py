"""The SQLite adapter: the port over one file, with its tables folded in the same transactions.

One thread writes, one reads pages for async readers, and `tables` is read by whoever asks. Any
number of processes may have the file open.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from turnlog.core.errors import LogUnavailable
from turnlog.core.fold import fold as fold_frame
from turnlog.core.frames import Frame, Record, SealedFrame
from turnlog.log.port import Difference, Heartbeat, Progress, Stored
from turnlog.log.sqlite import heartbeats
from turnlog.log.sqlite.writer import Job, Writer
from turnlog.tables import database, frames
from turnlog.tables.catchup import catch_up as catch_tables_up
from turnlog.tables.folding import Fold, Folding
from turnlog.tables.rebuild import rebuild
from turnlog.tables.schema import TABLES_VERSION
from turnlog.tables.signal import Signal
from turnlog.tables.sql import POLL_S, SqlStore
from turnlog.tables.store import check_partition
from turnlog.tables.verify import verify

_T = TypeVar("_T")


class SqliteLog:
    """See the module's text and `turnlog.log.open`, which makes it."""

    partitions = 1
    application_id = database.APPLICATION_ID

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
        self.url = f"sqlite:{path}"
        self._path = path
        self._clock = clock
        self._fold = fold
        self._connect = partial(connect, path, busy_ms=busy_ms)
        self._signal = Signal()
        self._closed = False
        self._writer: Writer | None = None
        self._reader: _Reader | None = None
        self._tables: SqlStore | None = None
        with database.reading(path):
            self._connection = self._connect()
            try:
                self._folding = Folding(self._connection, fold=fold)
                self._prepare(progress, catch_up=catch_up)
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, progress: Progress | None, *, catch_up: bool) -> None:
        meta = database.prepare(self._connection, self._path, self.application_id)
        if not catch_up:
            return
        if meta.tables_version < TABLES_VERSION:
            rebuild(self._connection, self._path, progress, fold=self._fold)
        elif meta.position < meta.end:
            catch_tables_up(self._connection, self._folding, self._path, progress)

    @property
    def tables(self) -> SqlStore:
        if self._tables is None:
            self._check_open()
            with database.reading(self._path):
                self._tables = SqlStore(self._connect, self._path, self._signal)
        return self._tables

    def partition_of(self, session: str) -> int:
        del session  # there is one for all
        return 0

    async def append(self, frame: SealedFrame) -> int:
        return (await self._hand_over((frame.record,), frame.frame))[0]

    async def load(self, records: Sequence[Record]) -> list[int]:
        for record in records:
            frames.check(record)
        return await self._hand_over(records, None) if records else []

    def _hand_over(
        self, records: Sequence[Record], sealed: Frame | None
    ) -> asyncio.Future[list[int]]:
        self._check_open()
        if self._writer is None:
            self._writer = self._make_writer()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[int]] = loop.create_future()
        self._writer.put(Job(records, sealed, loop, future))
        return future

    def _make_writer(self) -> Writer:
        return Writer(
            self._connection,
            self._folding,
            path=self._path,
            clock=self._clock,
            changed=self._signal.notify,
        )

    async def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        check_partition(partition)
        until: int | None = None
        while True:
            page = await self._read(frames.read_page, after, until, session)
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
            seen = self._signal.count
            page = await self._read(frames.read_page, after)
            for stored in page.records:
                yield stored
            if page.records:
                after = page.records[-1].position
            else:
                await self._signal.wait(seen, POLL_S)
                if pause_s:
                    await asyncio.sleep(pause_s)

    async def end(self, partition: int = 0) -> int:
        check_partition(partition)
        return await self._read(frames.last_position)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._closed = True
        self._signal.notify()
        if self._writer is None:
            self._connection.close()
        else:
            self._writer.close()
        if self._reader is not None:
            self._reader.close()
        if self._tables is not None:
            self._tables.close()

    def rebuild(self, progress: Progress | None = None) -> int:
        with self._aside() as connection:
            position = rebuild(connection, self._path, progress, fold=self._fold)
        self._signal.notify()
        return position

    def verify(self, progress: Progress | None = None) -> Iterator[Difference]:
        with self._aside() as connection:
            yield from verify(connection, self._path, progress, fold=self._fold)

    async def beat(self, beat: Heartbeat) -> None:
        await asyncio.to_thread(self._beside, heartbeats.keep, beat)

    async def end_beating(self, instance: str) -> None:
        await asyncio.to_thread(self._beside, heartbeats.forget, instance)

    async def heartbeats(self) -> list[Heartbeat]:
        return await asyncio.to_thread(self._beside, heartbeats.read)

    def _beside(self, function: Callable[..., _T], *args: Any) -> _T:
        with self._aside() as connection:
            return function(connection, *args)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    async def _read(self, function: Callable[..., _T], *args: Any) -> _T:
        self._check_open()
        with database.reading(self._path):
            if self._reader is None:
                self._reader = _Reader(self._connect())
            return await self._reader.run(function, *args)

    @contextmanager
    def _aside(self) -> Generator[sqlite3.Connection]:
        """A connection for one long task."""
        self._check_open()
        with database.reading(self._path):
            connection = self._connect()
            try:
                yield connection
            finally:
                connection.close()

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnavailable(f"{self._path}: this log is closed; open it again")


class _Reader:
    """A connection, and the thread that reads pages through it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, "turnlog read")

    async def run(self, function: Callable[..., _T], *args: Any) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, self._connection, *args)

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()
