"""From the files to the tables: taking in what the tables do not hold, and comparing all of it.

`frames` of `tables.db` holds every record of the files; folding it is left to those who fold any
log's. `take_in` reads what lies behind the known part of each file; `compare` reads that part.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import orjson

from turnlog.core.errors import StateError
from turnlog.core.frames import Record, digest_of, header_of
from turnlog.core.shapes import is_object
from turnlog.log.file import loading
from turnlog.log.file.files import UPSERT
from turnlog.log.file.folder import TEMPORARY, Folder
from turnlog.log.file.frames import Found, Torn, Window, scan
from turnlog.tables import database, frames
from turnlog.tables.names import Names
from turnlog.tables.store import Difference, Stored


class Known(NamedTuple):
    """What the tables know of a file: its session, and how far they hold it."""

    session: str
    size: int
    seq: int


class Copy(NamedTuple):
    """A record in a `Difference`: where it stands, what it says, whether it is whole."""

    where: str
    digest: str
    header: dict[str, Any] | None
    whole: bool


class Pair(NamedTuple):
    """A record of the tables and one of a file that should be the same, and are not."""

    session: str
    name: str
    stored: Stored | None
    found: Found | None


def is_behind(connection: sqlite3.Connection, folder: Folder) -> bool:
    """Whether the tables hold something else than the files, as far as their sizes tell."""
    known = {name: item.size for name, item in read_known(connection).items()}
    return known != _sizes(folder) or folder.load.exists()


def read_known(connection: sqlite3.Connection) -> dict[str, Known]:
    """What the tables know of the files, by name."""
    found = connection.execute(
        "SELECT files.name, names.session, files.size, files.seq"
        " FROM files CROSS JOIN names ON names.key = files.session ORDER BY files.name"
    )
    return {name: Known(*values) for name, *values in found}


def take_in(connection: sqlite3.Connection, folder: Folder, *, anew: bool = False) -> None:
    """Take into `frames` what stands behind the known part of each file; what is torn is cut off.

    The folder's lock must be held. With `anew`, files that are shorter than they were known, or
    gone, are read anew, and the tables are marked to be built again; else they are left alone.
    Raises LogUnavailable for files of another log, StateError where two have one position.
    """
    loading.finish(folder)
    with database.immediate(connection):
        taking = _Taking(connection, folder)
        known, sizes = read_known(connection), _sizes(folder)
        for name, item in known.items():
            if anew and sizes.get(name, -1) < item.size:
                taking.drop(item.session)
        for name in sorted(sizes):
            there = taking.known.get(name)
            if there is None or there.size < sizes[name]:
                taking.take(name, sizes[name], there)
        taking.place()
        if taking.has_new_files:
            folder.disk.sync_folder(folder.sessions)
    _tidy_up(folder)


class _Taking:
    """One `take_in`."""

    def __init__(self, connection: sqlite3.Connection, folder: Folder) -> None:
        self.known = read_known(connection)
        self.has_new_files = False
        self._connection = connection
        self._folder = folder
        self._names = Names(connection)
        self._lost: list[tuple[int, Found]] = []
        """What is to be placed behind a position, when all positions are known."""
        self._end = frames.last_position(connection)

    def drop(self, session: str) -> None:
        """Forget what the tables have of a session."""
        key = self._names.find(session)
        for table in ("frames", "files"):
            self._connection.execute(f"DELETE FROM {table} WHERE session = ?", (key,))  # noqa: S608
        self.known = read_known(self._connection)
        database.set_meta(self._connection, tables_version=0)

    def take(self, name: str, size: int, known: Known | None) -> None:
        """Read a file on from where it is known."""
        disk = self._folder.disk
        file = disk.open(self._folder.sessions / name)
        try:
            window = Window(disk, file, size)
            if known is None:
                self.has_new_files = True
                session, start = _begin(self._folder, window, name)
                known = Known(session, start, 0)
                synced = 0
            else:
                synced = known.size
            size, seq = self._take(window, name, known, synced)
            if size < window.size:
                disk.truncate(file, size)
            disk.sync(file)  # who wrote it may have died before that
        finally:
            disk.close(file)
        key = self._names.make(known.session)
        self._connection.execute(UPSERT, (key, name, size, seq))

    def _take(self, window: Window, name: str, known: Known, synced: int) -> tuple[int, int]:
        """Gives how far the file is whole, and the number of its last frame."""
        session, start, seq = known
        position = self._end if synced else 0
        for found in scan(window, self._folder.format, session, start=start, seq=seq, known=synced):
            if isinstance(found, Torn):
                return found.start, seq
            seq = found.seq
            if found.position is None:
                self._lost.append((position, found))
            else:
                position = found.position
                self._insert(Stored(position, found.time, found.record), name, found.start)
        return window.size, seq

    def place(self) -> None:
        """Give what was lost, of which no position is known, the first ones that are free."""
        for behind, found in self._lost:
            position = behind + 1
            while frames.get_record(self._connection, position) is not None:
                position += 1
            self._insert(Stored(position, 0, found.record), "", found.start)

    def _insert(self, stored: Stored, name: str, start: int) -> None:
        key = self._names.make(stored.record.session)
        try:
            self._connection.execute(frames.INSERT, frames.to_row(stored, key, folded=False))
        except sqlite3.IntegrityError as error:
            other = frames.get_record(self._connection, stored.position)
            raise StateError(
                f"{self._folder.sessions / name}: its frame at byte {start} has position"
                f" {stored.position}, which session"
                f" {other.record.session if other else ''!r} has, too: a file was put back from"
                " elsewhere; move it out of the folder, then open the log again"
            ) from error


def compare(connection: sqlite3.Connection, folder: Folder) -> Iterator[Pair]:
    """Compare every record of the tables with the files, as far as these are known.

    The connection is in a transaction. What is known of a file does not change, so no lock is held.
    """
    for name, known in read_known(connection).items():
        yield from _compare_file(connection, folder, name, known)


def _compare_file(
    connection: sqlite3.Connection, folder: Folder, name: str, known: Known
) -> Iterator[Pair]:
    copies = _copies(connection, known.session)
    copy = next(copies, None)
    # closed at once where this fails, and not when somebody has let go of the error
    with closing(_read_known_part(folder, name, known)) as there:
        for found in there:
            at = found.position
            while copy is not None and at is not None and copy.position < at:
                yield Pair(known.session, name, copy, None)
                copy = next(copies, None)
            if copy is not None and at in (None, copy.position):
                if copy.record != found.record or (found.whole and copy.time != found.time):
                    yield Pair(known.session, name, copy, found)
                copy = next(copies, None)
            else:
                yield Pair(known.session, name, None, found)
    while copy is not None:
        yield Pair(known.session, name, copy, None)
        copy = next(copies, None)


def _copies(connection: sqlite3.Connection, session: str) -> Iterator[Stored]:
    end = frames.last_position(connection)
    for page in frames.read_pages(connection, 0, end, session):
        yield from page


def _read_known_part(folder: Folder, name: str, known: Known) -> Generator[Found]:
    disk = folder.disk
    try:
        file = disk.open(folder.sessions / name)
    except FileNotFoundError:
        return
    try:
        window = Window(disk, file, min(known.size, (folder.sessions / name).stat().st_size))
        start = folder.read_header(window, name)[1]
        for found in scan(window, folder.format, known.session, start=start):
            if isinstance(found, Found):
                yield found
    finally:
        disk.close(file)


def differences(connection: sqlite3.Connection, folder: Folder) -> Iterator[Difference]:
    """What `compare` finds, as rows of `frames`."""
    connection.execute("BEGIN")
    try:
        for session, name, stored, found in compare(connection, folder):
            position = stored.position if stored is not None else found and found.position
            one = other = None
            if stored is not None:
                one = _as_copy("tables.db", stored.record, whole=True)
            if found is not None:
                other = _as_copy(f"{name}: byte {found.start}", found.record, whole=found.whole)
            yield Difference("frames", ("frames", session, position), one, other)
    finally:
        database.roll_back(connection)


def _as_copy(where: str, record: Record, *, whole: bool) -> Copy:
    header = record.header and record.header._asdict()
    return Copy(where, digest_of(record.body), header, whole)


def put_right(connection: sqlite3.Connection, folder: Folder) -> None:
    """Make `frames` what the files say. A record whose file is broken stays as the tables have it:
    it is the only copy that is left, and `differences` goes on to tell of it."""
    with database.immediate(connection):
        names = Names(connection)
        pairs = list(compare(connection, folder))
        broken = {pair.session for pair in pairs if pair.found and not pair.found.whole}
        for session, _, stored, found in pairs:
            if (found is None and session in broken) or (found is not None and not found.whole):
                continue
            if stored is not None:
                sql = "DELETE FROM frames WHERE position = ?"
                connection.execute(sql, (stored.position,))
            if found is not None and found.position is not None:
                item = Stored(found.position, found.time, found.record)
                row = frames.to_row(item, names.make(session), folded=False)
                connection.execute(frames.INSERT, row)


def _sizes(folder: Folder) -> dict[str, int]:
    return {entry.name: entry.stat().st_size for entry in folder.files()}


def _begin(folder: Folder, window: Window, name: str) -> tuple[str, int]:
    """The session of a file that the tables do not know, and where its frames begin.

    Where the header is broken its frames name the session, and its name must fit. Where not even
    they do, what is left is filed under the file's own name, so that it is seen.
    """
    session, start = folder.read_header(window, name)
    if session is not None:
        return session, start
    for found in scan(window, folder.format, ""):
        header = found.record.header if isinstance(found, Found) else None
        for candidate in (_in_body(found), header and header.session):
            if candidate and folder.name_of(candidate) == name:
                return candidate, 0
    return name, 0


def _in_body(found: Found | Torn) -> str | None:
    if isinstance(found, Torn) or not found.whole:
        return None
    try:
        value = orjson.loads(found.record.body)
    except orjson.JSONDecodeError:
        return None
    header = header_of(value) if is_object(value) else None
    return header.session if header else None


def _tidy_up(folder: Folder) -> None:
    """Take away what somebody was making when he died; the lock is held, so nobody is."""
    for path in (folder.path, folder.sessions):
        for left in path.glob(f"{TEMPORARY}*"):
            folder.disk.unlink(left)
