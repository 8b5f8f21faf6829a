"""The thread that appends to a SQLite log: whatever waits together shares one commit.

A batch is folded, its frames and rows are written, and then it is committed: before that nobody is
told anything, and where it fails everybody learns the same. Frames never depend on the tables: if
folding or writing rows fails, the batch is written again without them and the tables lag from there
until somebody opens the log.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    LogError,
    LogUnavailable,
    StateError,
    TurnlogError,
)
from turnlog.core.frames import Frame, Record, Unreadable, decode
from turnlog.core.rows import Key, Row
from turnlog.log.refusals import refusal
from turnlog.tables import database, frames
from turnlog.tables.folding import Folding
from turnlog.tables.schema import TABLES_VERSION
from turnlog.tables.store import Stored

BATCH_JOBS = 256
BATCH_BYTES = 8_000_000
"""A commit takes no more jobs once it has either; one job may be larger by itself."""

Clock = Callable[[], int]
Outcome = list[int] | TurnlogError


class Job(NamedTuple):
    """Records that are appended together or not at all, and who waits for their positions.

    `sealed` is the frame of an append, which may be refused; a load has none and is not refused.
    """

    records: Sequence[Record]
    sealed: Frame | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[int]]


class _TablesFailed(Exception):
    """The tables could not be read, folded or written, which must not cost a frame."""


class Writer:
    """See the module's text. `changed` is called in the thread after each commit."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        folding: Folding,
        *,
        path: Path,
        clock: Clock,
        changed: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._folding = folding
        self._path = path
        self._clock = clock
        self._changed = changed
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._version = -1
        """PRAGMA data_version as of `_end` and `_folds`: another one, and others have written."""
        self._end = 0
        self._folds = False
        self._unfolded: list[tuple[Frame | Unreadable, int]] = []
        self._thread = threading.Thread(target=self._run, name=f"turnlog {path}", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Hand a job over; its future gets the outcome."""
        with self._lock:
            if self._closed:
                raise LogUnavailable(f"{self._path}: this log is closed; open it again")
            self._queue.put(job)

    def close(self) -> None:
        """Finish what was handed over; gives back nothing before that is done."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    # ---- the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        open_ = True
        while open_:
            job = self._queue.get()
            batch: list[Job] = []
            size = 0
            while job is not None:
                batch.append(job)
                for record in job.records:
                    size += len(record.body)
                if len(batch) >= BATCH_JOBS or size >= BATCH_BYTES:
                    break
                try:
                    job = self._queue.get_nowait()
                except Empty:
                    break
            open_ = job is not None
            if batch:
                self._append(batch)
        self._connection.close()

    def _append(self, batch: list[Job]) -> None:
        # one that was cancelled before it was begun is certainly not there
        batch = [job for job in batch if not job.future.cancelled()]
        outcomes: list[Outcome]
        try:
            outcomes = self._transact(batch)
        except BaseException as error:  # the thread must live, and nobody may wait for ever
            self._undo()
            outcomes = [self._failure(error) for _ in batch]
        _resolve(batch, outcomes)
        self._folding.keep()
        self._changed()

    def _transact(self, batch: list[Job]) -> list[Outcome]:
        """Append a batch. Gives one outcome for each job, or raises one for all."""
        try:
            return self._attempt(batch, tables=True)
        except _TablesFailed:
            self._undo()
            return self._attempt(batch, tables=False)

    def _attempt(self, batch: list[Job], *, tables: bool) -> list[Outcome]:
        now = self._clock()
        self._cursor.execute("BEGIN IMMEDIATE")
        self._refresh()
        folds = tables and self._folds
        placed, outcomes = self._place(batch, now, folds=folds)
        if placed:
            self._write(batch, placed, folds=folds)
        self._commit()
        self._end += len(placed)
        self._folds = folds
        return outcomes

    def _place(
        self, batch: list[Job], now: int, *, folds: bool
    ) -> tuple[list[Stored], list[Outcome]]:
        """Give each record its position, or find out why it is refused."""
        placed: list[Stored] = []
        outcomes: list[Outcome] = []
        position = self._end
        try:
            for job in batch:
                sealed = job.sealed
                if folds and sealed is not None:
                    refused = refusal(sealed, self)
                    if refused is not None:
                        outcomes.append(refused)
                        continue
                first = position + 1
                for record in job.records:
                    position += 1
                    placed.append(Stored(position, now, record))
                    self._folding.names.make(record.session)
                    if folds:
                        self._unfolded.append((sealed or decode(record), position))
                outcomes.append(list(range(first, position + 1)))
        except Exception as error:
            _raise_for_disk(error)
            raise _TablesFailed from error
        return placed, outcomes

    def get(self, key: Key, /) -> Row | None:
        """A row as of what is placed so far, which is what a refusal depends on."""
        self._fold()
        return self._folding.get(key)

    def _fold(self) -> None:
        """Fold what is placed. Few frames may be refused, so it is mostly done after the writing of
        frames, and where that waits for a disk, meanwhile."""
        unfolded, self._unfolded = self._unfolded, []
        self._folding.look_up([frame for frame, _ in unfolded])
        for frame, position in unfolded:
            self._folding.fold(frame, position)

    def _write(self, batch: list[Job], placed: list[Stored], *, folds: bool) -> None:
        """Write frames and rows, as part of the transaction."""
        del batch  # it matters where a load is more than one transaction
        make = self._folding.names.make
        rows = [frames.to_row(item, make(item.record.session), folded=folds) for item in placed]
        self._cursor.executemany(frames.INSERT, rows)
        if folds:
            try:
                self._fold()
                self._folding.write()
            except Exception as error:
                _raise_for_disk(error)
                raise _TablesFailed from error

    def _refresh(self) -> None:
        """See what others have committed since our last transaction."""
        version: int = self._cursor.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version:
            return
        self._folding.forget()
        meta = database.read_meta(self._connection)
        if meta.frames_version > frames.FRAMES_VERSION:
            raise AppendRefused(
                f"{self._path}: a newer turnlog has upgraded this log; nothing was appended:"
                " upgrade turnlog and start again"
            )
        self._version, self._end = version, max(meta.end, meta.position)
        self._folds = meta.position >= meta.end and meta.tables_version == TABLES_VERSION

    def _commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            if database.is_certain(error):
                raise
            raise AppendUnknown(
                f"{self._path}: the commit failed in a way that leaves open whether it holds"
                f" ({error}): append the same frame again"
            ) from error

    def _undo(self) -> None:
        self._unfolded.clear()
        self._folding.drop()
        with suppress(sqlite3.Error):  # SQLite has ended it by itself
            database.roll_back(self._connection)
        self._version = -1  # read again whatever the file says

    def _failure(self, error: BaseException) -> TurnlogError:
        """What each job of a batch is told: an error of its own, since they are raised apart."""
        if isinstance(error, LogError):
            return type(error)(str(error), retriable=error.retriable)
        if isinstance(error, sqlite3.Error):
            said = database.explain(error, self._path)
            return AppendRefused(f"{said}; nothing was appended", retriable=database.is_busy(error))
        return StateError(
            f"{self._path}: nothing was appended: {type(error).__name__}: {error};"
            " this is a bug of turnlog, please report it"
        )


def _raise_for_disk(error: Exception) -> None:
    """Where the disk fails the frames cannot be written either."""
    if isinstance(error, sqlite3.OperationalError) and database.is_disk(error):
        raise error


def _resolve(batch: list[Job], outcomes: list[Outcome]) -> None:
    """Tell everybody, with one call into each event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[list[int]], Outcome]]] = {}
    for job, outcome in zip(batch, outcomes, strict=True):
        loops.setdefault(job.loop, []).append((job.future, outcome))
    for loop, told in loops.items():
        try:
            loop.call_soon_threadsafe(_tell, told)
        except RuntimeError:
            continue  # that loop is closed: nobody waits there any more


def _tell(told: list[tuple[asyncio.Future[list[int]], Outcome]]) -> None:
    for future, outcome in told:
        if future.done():
            continue
        if isinstance(outcome, list):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)
