"""The files of sessions as who appends sees them. Everything here is done under the folder's lock.

The table `files` of `tables.db` says how far each is known. What is written stands behind that, is
synced, and is either kept, with the commit that takes it into the tables, or undone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from turnlog.core.errors import AppendRefused, AppendUnknown
from turnlog.log.file import loading
from turnlog.log.file.folder import Folder, Lock
from turnlog.log.file.loading import Part
from turnlog.tables.names import Names
from turnlog.tables.store import Stored

CREATE = (
    "CREATE TABLE IF NOT EXISTS files (session INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " size INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT"
)
"""`size` is how many bytes of a file are synced and in `frames`, `seq` the number of its last."""
UPSERT = (
    "INSERT INTO files (session, name, size, seq) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (session) DO UPDATE SET size = excluded.size, seq = excluded.seq"
)
"""A name never changes, so its index is spared the write."""
OPEN_FILES = 256
SYNCS = 32
"""Threads; syncs that wait together share the disk's work, so many are hardly slower than one."""


class _File:
    """An open file, and how far it is known."""

    def __init__(self, file: int, name: str, size: int, seq: int) -> None:
        self.file = file
        self.name = name
        self.size = size
        self.seq = seq


class _Write:
    """What is being appended to a file."""

    def __init__(self, session: str, file: _File) -> None:
        self.session = session
        self.file = file
        self.data = b""
        self.seq = file.seq
        self.begun = False


class Files:
    """See the module's text."""

    def __init__(self, folder: Folder, connection: sqlite3.Connection, names: Names) -> None:
        self._folder = folder
        self._connection = connection
        self._names = names
        self._open: dict[str, _File] = {}
        self._writes: dict[str, _Write] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._lock: Lock | None = None
        self._loads = False

    def write(self, lock: Lock, placed: Iterable[Stored], *, together: bool) -> None:
        """Write records behind what is there; `together`, if all of them or none are to be there
        whatever happens. Raises OSError or AppendRefused."""
        encode = self._folder.format.encode
        last = 0
        for stored in placed:
            session = stored.record.session
            write = self._writes.get(session)
            if write is None:
                write = self._writes[session] = _Write(session, self._find(session))
            write.seq += 1
            write.data += encode(stored, write.seq)
            last = stored.position
        self._lock = lock
        lock.reserve(last)
        # of several frames in one file the first may be torn and another whole, and that would look
        # like damage: so these are written like a load
        if together or any(w.seq - w.file.seq > 1 for w in self._writes.values()):
            parts = [Part(w.file.name, w.file.size, w.data) for w in self._writes.values()]
            loading.finish(self._folder)  # one that is done, but could not be taken away
            self._loads = True
            loading.announce(self._folder, parts)
        disk = self._folder.disk
        for write in self._writes.values():
            write.begun = True
            disk.write(write.file.file, write.data, write.file.size)

    def sync(self) -> None:
        """Return when what was written is on the disk. Raises OSError."""
        first, *others = (write.file.file for write in self._writes.values())
        if others and self._threads is None:
            self._threads = ThreadPoolExecutor(SYNCS, "turnlog sync")
        sync, threads = self._folder.disk.sync, self._threads
        syncs = [threads.submit(sync, file) for file in others] if threads is not None else []
        try:
            sync(first)
        finally:
            wait(syncs)
        for done in syncs:
            done.result()

    def record(self, cursor: sqlite3.Cursor) -> None:
        """Say in the tables how far the files go."""
        rows = [
            (
                self._names.make(write.session),
                write.file.name,
                write.file.size + len(write.data),
                write.seq,
            )
            for write in self._writes.values()
        ]
        cursor.executemany(UPSERT, rows)

    def keep(self) -> None:
        """What was written is in the tables."""
        for write in self._writes.values():
            write.file.size += len(write.data)
            write.file.seq = write.seq
        loads = self._loads
        self._clear()
        if loads:
            with suppress(OSError):  # whoever finds it sees that nothing is left to do
                loading.withdraw(self._folder)
        while len(self._open) > OPEN_FILES:
            self._close(next(iter(self._open)))

    def undo(self) -> None:
        """Cut off what was written. Raises AppendUnknown where that cannot be done for good."""
        if self._lock is None:
            self._clear()
            return
        disk = self._folder.disk
        begun = [write.file for write in self._writes.values() if write.begun]
        try:
            for file in begun:
                disk.truncate(file.file, file.size)
                disk.sync(file.file)
            if self._loads and self._folder.load.exists():
                loading.withdraw(self._folder)
            # the end as it was; a hole would do no harm, so this need not succeed
            self._lock.reserve(self._lock.position)
        except OSError as error:
            self.forget()
            raise AppendUnknown(
                f"{error.filename or self._folder.path}: writing failed, and what was written"
                f" cannot be taken back ({error.strerror}): append the same frame again"
            ) from error
        self._clear()

    def forget(self) -> None:
        """Leave what was written as it is, and ask the tables again how far each file goes."""
        self._clear()
        for session in list(self._open):
            self._close(session)

    def close(self) -> None:
        """Give all files and threads back."""
        self.forget()
        if self._threads is not None:
            self._threads.shutdown()

    def _clear(self) -> None:
        self._writes.clear()
        self._lock = None
        self._loads = False

    def _close(self, session: str) -> None:
        self._folder.disk.close(self._open.pop(session).file)

    def _find(self, session: str) -> _File:
        """The file of a session, made if need be."""
        found = self._open.get(session)
        if found is None:
            try:
                found = self._open[session] = self._look_up(session)
            except FileNotFoundError:
                raise self._changed(session) from None
        about = os.fstat(found.file)
        if about.st_size != found.size or not about.st_nlink:
            raise self._changed(session)
        return found

    def _changed(self, session: str) -> AppendRefused:
        return AppendRefused(
            f"{self._folder.sessions / self._folder.name_of(session)}: somebody else has changed"
            " this file, or taken it away; nothing was appended: close the log and open it again,"
            " which reads it anew"
        )

    def _look_up(self, session: str) -> _File:
        disk, name = self._folder.disk, self._folder.name_of(session)
        key = self._names.find(session)
        sql = "SELECT size, seq FROM files WHERE session = ?"
        row = self._connection.execute(sql, (key,)).fetchone()
        header = self._folder.header_of(session)
        if row is None:
            # somebody may have made it, and died before anything was written to it
            with suppress(FileExistsError):
                self._folder.make(name, header)
            row = len(header), 0
        return _File(disk.open(self._folder.sessions / name), name, *row)
