"""The thread that appends to a log in files: the SQLite log's, with files in front of its commit.

A batch is written to the files, and while these are synced it is folded, and frames and rows are
written to the tables by another thread; their commit makes it known. Whatever fails before that is
cut off again.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    LogUnavailable,
    StateError,
    TurnlogError,
)
from turnlog.log.file.files import Files
from turnlog.log.file.folder import Busy, Folder, Lock
from turnlog.log.file.following import take_in
from turnlog.log.sqlite.writer import Job, Outcome, Writer
from turnlog.tables import database
from turnlog.tables.catchup import catch_up
from turnlog.tables.folding import Folding
from turnlog.tables.schema import TABLES_VERSION
from turnlog.tables.store import Stored

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class FileWriter(Writer):
    """See the module's text."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        folding: Folding,
        *,
        path: Path,
        clock: Callable[[], int],
        changed: Callable[[], None],
        folder: Folder,
        wait_s: float,
    ) -> None:
        self._folder = folder
        self._wait_s = wait_s
        self._files = Files(folder, connection, folding.names)
        self._held: Lock | None = None
        self._beside = _Beside(f"turnlog rows {path}")
        super().__init__(connection, folding, path=path, clock=clock, changed=changed)

    def close(self) -> None:
        super().close()
        self._files.close()
        self._beside.close()

    def _transact(self, batch: list[Job]) -> list[Outcome]:
        try:
            with self._folder.locked(self._wait_s) as self._held:
                try:
                    self._settle(self._held)
                    return super()._transact(batch)
                except BaseException:
                    self._undo()
                    raise
        except Busy:
            raise AppendRefused(
                f"{self._folder.path}: another process holds its lock; try again, or see what"
                " holds it; nothing was appended",
                retriable=True,
            ) from None
        finally:
            self._held = None

    def _settle(self, lock: Lock) -> None:
        """Where the last position that was given is not the end, somebody died between: take what
        is whole in the files into the tables."""
        version: int = self._cursor.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version and lock.position == self._end:
            return
        self._files.forget()
        if lock.position == database.read_meta(self._connection).end:
            return
        self._version = -1
        take_in(self._connection, self._folder)
        meta = database.read_meta(self._connection)
        if meta.position < meta.end and meta.tables_version == TABLES_VERSION:
            with suppress(StateError):  # then they lag until somebody opens the log
                catch_up(self._connection, self._folding, self._path)

    def _refresh(self) -> None:
        super()._refresh()
        assert self._held is not None
        self._end = max(self._end, self._held.position)

    def _write(self, batch: list[Job], placed: list[Stored], *, folds: bool) -> None:
        assert self._held is not None
        together = any(len(job.records) > 1 for job in batch)
        self._files.write(self._held, placed, together=together)
        self._beside.begin(lambda: self._write_rows(batch, placed, folds=folds))
        try:
            self._files.sync()
        finally:
            failure = self._beside.wait()  # whatever happens, the connection is ours again
        if failure is not None:
            raise failure

    def _write_rows(self, batch: list[Job], placed: list[Stored], *, folds: bool) -> None:
        super()._write(batch, placed, folds=folds)
        self._files.record(self._cursor)

    def _commit(self) -> None:
        try:
            super()._commit()
        except AppendUnknown:
            self._files.forget()  # it is in the files: the next to append takes it in
            raise
        self._files.keep()

    def _undo(self) -> None:
        super()._undo()
        self._files.undo()

    def _failure(self, error: BaseException) -> TurnlogError:
        if isinstance(error, OSError):
            said = f"{error.filename or self._folder.path}: {_reason(error)}"
            return AppendRefused(f"{said}; nothing was appended")
        if isinstance(error, LogUnavailable):
            return AppendRefused(f"{error}; nothing was appended", retriable=error.retriable)
        return super()._failure(error)


class _Beside:
    """A thread that does one thing while the writer waits for the disk. A pool of one would do, but
    it costs an append a tenth more of the processor's time."""

    def __init__(self, name: str) -> None:
        self._begun: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[], None]) -> None:
        self._begun.put(work)

    def wait(self) -> BaseException | None:
        """What was raised by what was begun, when it is done."""
        return self._done.get()

    def close(self) -> None:
        self._begun.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (work := self._begun.get()) is not None:
            try:
                work()
            except BaseException as error:  # it is raised where it is waited for
                self._done.put(error)
            else:
                self._done.put(None)


def _reason(error: OSError) -> str:
    if error.errno in _FULL:
        return f"the disk is full; make room, then try again ({error.strerror})"
    return f"the disk failed; look at its health and rights, then try again ({error.strerror})"
