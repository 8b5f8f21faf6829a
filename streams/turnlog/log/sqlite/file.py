"""One SQLite file of frames and their tables: what a log in it, or one beside it, has in common.

One thread reads pages for async readers, and `tables` is read by whoever asks. Any number of
processes may have the file open. Who writes the frames is the log's affair.

When a log is closed it has no connection any more, whatever is under way in other threads. SQLite's
last connection to a file takes the -wal and -shm of its name away, and one that ends late would
take those of a log that was made anew in the same place.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from turnlog.core.errors import LogUnavailable
from turnlog.core.frames import Record
from turnlog.log.port import Difference, Heartbeat, Progress
from turnlog.log.sqlite import heartbeats
from turnlog.tables import database, frames
from turnlog.tables.catchup import catch_up as catch_tables_up
from turnlog.tables.folding import Fold, Folding
from turnlog.tables.rebuild import rebuild
from turnlog.tables.schema import TABLES_VERSION
from turnlog.tables.signal import Signal
from turnlog.tables.sql import SqlStore
from turnlog.tables.verify import verify

CHECK_STEPS = 10_000
"""Of SQLite's machine, some ms: so often a long task looks whether its log is closed."""

_T = TypeVar("_T")


class SqliteFile:
    """See the module's text. A log on it is a subclass, and has the same methods.

    `connection` and `folding` are for the one thread that writes.
    """

    application_id = database.APPLICATION_ID

    def __init__(
        self,
        path: Path,
        *,
        partitions: int,
        busy_ms: int,
        fold: Fold,
        connect: database.Connect,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        self.partitions = partitions
        self.fold = fold
        self.signal = Signal()
        self.closed = False
        self._process = os.getpid()
        self._watch = watch
        self._connect = partial(connect, path, busy_ms=busy_ms)
        self._opening = threading.Lock()
        """Held to open what `close` closes, and to set `closed`: nothing is opened after that."""
        self._reader: _Reader | None = None
        self._tables: SqlStore | None = None
        self._asides: set[_Aside] = set()
        with database.reading(path):
            self.connection = self._connect()
        self.folding = Folding(self.connection, fold=fold)

    def prepare(self, progress: Progress | None, *, catch_up: bool) -> None:
        """Make or check the file, and bring its tables up to the frames in it. Closes the
        connection where that fails."""
        try:
            with database.reading(self.path):
                meta = database.prepare(self.connection, self.path, self.application_id)
                if not catch_up:
                    return
                if meta.tables_version < TABLES_VERSION:
                    self._rebuild(self.connection, progress)
                elif self._lags():
                    catch_tables_up(
                        self.connection,
                        self.folding,
                        self.path,
                        progress,
                        partitions=self.partitions,
                    )
        except BaseException:
            self.connection.close()
            raise

    def _lags(self) -> bool:
        metas = (database.read_meta(self.connection, each) for each in range(self.partitions))
        return any(meta.position < meta.end for meta in metas)

    @property
    def tables(self) -> SqlStore:
        with self._opening:
            if self._tables is None:
                self.check_open()
                with database.reading(self.path):
                    self._tables = SqlStore(
                        self._connect,
                        self.path,
                        self.signal,
                        partitions=self.partitions,
                        watch=self._watch,
                    )
            return self._tables

    def check_record(self, record: Record) -> None:
        frames.check(record)

    def rebuild(self, progress: Progress | None = None) -> int:
        with self._aside() as connection:
            position = self._rebuild(connection, progress)
        self.signal.notify()
        return position

    def _rebuild(self, connection: sqlite3.Connection, progress: Progress | None) -> int:
        return rebuild(connection, self.path, progress, partitions=self.partitions, fold=self.fold)

    def verify(self, progress: Progress | None = None) -> Iterator[Difference]:
        return self._find_aside(
            partial(
                verify,
                path=self.path,
                progress=progress,
                partitions=self.partitions,
                fold=self.fold,
            )
        )

    async def beat(self, beat: Heartbeat) -> None:
        await asyncio.to_thread(self._beside, heartbeats.keep, beat)

    async def end_beating(self, instance: str) -> None:
        await asyncio.to_thread(self._beside, heartbeats.forget, instance)

    async def heartbeats(self) -> list[Heartbeat]:
        return await asyncio.to_thread(self._beside, heartbeats.read)

    def _beside(self, function: Callable[..., _T], *args: Any) -> _T:
        with self._aside() as connection:
            return function(connection, *args)

    async def read_aside(self, function: Callable[..., _T], *args: Any, **named: Any) -> _T:
        """Ask something of the file in the thread that reads."""
        with database.reading(self.path):
            with self._opening:
                self.check_open()
                if self._reader is None:
                    self._reader = _Reader(self._connect())
                answer = self._reader.run(partial(function, **named), *args)
            return await answer

    def close_readers(self) -> None:
        """Give back everything but the connection of who writes."""
        with self._opening:
            self.closed = True
            asides = list(self._asides)
        self.signal.notify()
        if self._reader is not None:
            self._reader.close()
        if self._tables is not None:
            self._tables.close()
        for aside in asides:
            aside.close()

    @contextmanager
    def _aside(self) -> Generator[sqlite3.Connection]:
        """A connection for one long task. It is given up soon after the log is closed."""
        with database.reading(self.path), self._open_aside() as aside, aside.lock:
            yield aside.connection

    def _find_aside(self, find: Callable[[sqlite3.Connection], Iterator[_T]]) -> Iterator[_T]:
        """What a long task finds, one by one; while that is looked at the log may be closed."""
        with database.reading(self.path), self._open_aside() as aside:
            found = find(aside.connection)
            while True:
                with aside.lock:
                    self.check_open()
                    each = next(found, None)
                if each is None:
                    return
                yield each

    @contextmanager
    def _open_aside(self) -> Generator[_Aside]:
        with self._opening:
            self.check_open()
            aside = _Aside(self._connect())
            aside.connection.set_progress_handler(lambda: self.closed, CHECK_STEPS)
            self._asides.add(aside)
        try:
            yield aside
        finally:
            aside.close()
            with self._opening:
                self._asides.discard(aside)

    def check_open(self) -> None:
        """Raise LogUnavailable where this log is closed, or was opened before a fork: its threads
        are not in the child, which would wait for them for ever."""
        if os.getpid() != self._process:
            raise LogUnavailable(
                f"{self.path}: this log was opened before this process was forked; open it after"
            )
        if self.closed:
            raise LogUnavailable(f"{self.path}: this log is closed; open it again")


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Return when something is done, also where who waits for it is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class _Aside:
    """A connection for one long task; `lock` is held while it is used."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock = threading.RLock()

    def close(self) -> None:
        with self.lock:
            self.connection.close()


class _Reader:
    """A connection, and the thread that reads pages through it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, "turnlog read")

    def run(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._thread, function, self._connection, *args)

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()
