"""Tables in a SQLite file, as readers see them: synchronous, from any thread, beside any writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from turnlog.core.errors import LogUnavailable, StateError
from turnlog.core.rows import Key, Row, key_of
from turnlog.tables import frames
from turnlog.tables.codec import CODECS, Codec
from turnlog.tables.database import read_position, reading
from turnlog.tables.schema import columns
from turnlog.tables.signal import Signal
from turnlog.tables.store import Stored, View, check_partition

POLL_S = 0.02
"""How often one looks for what other processes have written; our own writing is told at once."""
LAG_S = 5.0
"""How long tables may lag without moving before who waits for them is told."""
SCAN_ROWS = 256

Connect = Callable[[], sqlite3.Connection]


class SqlView:
    """The tables as one connection sees them."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, partitions: int = 1) -> None:
        self._connection = connection
        self._path = path
        self._partitions = partitions
        self._lock = threading.RLock()

    def get(self, key: Key, /) -> Row | None:
        table = key[0]
        if table == "ids":
            sql = f"SELECT number FROM entries WHERE session = {_KEY} AND id = ?"
            found = self._all(sql, key[1:])
            return found[0][0] if found else None
        codec = CODECS[table]
        found = self._all(codec.select_named(), key[1:])
        return codec.decode(key[1], found[0]) if found else None

    def scan(
        self,
        table: str,
        session: str | None = None,
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[Row]:
        codec = CODECS[table]
        if session is None:
            rows = self._scan_all(codec, after, reverse=reverse)
        else:
            rows = self._scan_session(codec, session, after, reverse=reverse)
        yield from islice(rows, limit)

    def _scan_all(self, codec: Codec, after: Key | None, *, reverse: bool) -> Iterator[Row]:
        """Page by page; a session that a page ends in is read to its end by itself."""
        while True:
            if after is not None:
                yield from self._scan_session(codec, after[1], after, reverse=reverse)
            behind = None if after is None else after[1]
            found = self._all(*_all_behind(codec, behind, reverse=reverse))
            if not found:
                return
            rows = [codec.decode(name, values) for name, *values in found]
            yield from rows
            after = key_of(codec.table, rows[-1])

    def _scan_session(
        self, codec: Codec, session: str, after: Key | None, *, reverse: bool
    ) -> Iterator[Row]:
        if after is not None and codec.key_length == 1:
            return  # the session has one row, which is that of the key
        while True:
            found = self._all(*_session_behind(codec, session, after, reverse=reverse))
            rows = [codec.decode(session, values) for values in found]
            yield from rows
            if len(rows) < SCAN_ROWS:
                return
            after = key_of(codec.table, rows[-1])

    def find(self, table: str, session: str, field: str, value: str) -> Iterator[Row]:
        codec = CODECS[table]
        keys = columns(codec.key_names[1:])
        found = self._all(
            f"SELECT {columns(codec.names[1:])} FROM {table}"
            f" WHERE session = {_KEY} AND {field} = ? ORDER BY {keys}",
            (session, value),
        )
        return (codec.decode(session, values) for values in found)

    def position(self, partition: int = 0) -> int:
        check_partition(partition, self._partitions)
        with self._lock, reading(self._path):
            return read_position(self._connection, partition)

    def partition_of(self, session: str) -> int:
        if self._partitions == 1:
            return 0
        with self._lock, reading(self._path):
            return frames.partition_of(self._connection, session)

    def record(self, session: str, position: int) -> Stored | None:
        partition = self.partition_of(session)
        with self._lock, reading(self._path):
            stored = frames.get_record(self._connection, position, partition)
        return stored if stored is not None and stored.record.session == session else None

    def records(self, session: str, *, after: int = 0) -> Iterator[Stored]:
        until: int | None = None
        partition = self.partition_of(session)
        while True:
            with self._lock, reading(self._path):
                page = frames.read_page(
                    self._connection, after, until, session, partition=partition
                )
            yield from page.records
            if page.last:
                return
            after, until = page.records[-1].position, page.until

    def end(self, partition: int = 0) -> int:
        """The position of the last record that is stored."""
        with self._lock, reading(self._path):
            return frames.last_position(self._connection, partition)

    def close(self) -> None:
        """Give the connection back. May be called twice."""
        with self._lock:
            self._connection.close()

    def _all(self, sql: str, values: Any) -> list[tuple[Any, ...]]:
        with self._lock, reading(self._path):
            return self._connection.execute(sql, values).fetchall()


_KEY = "(SELECT key FROM names WHERE names.session = ?)"


def in_key_order(codec: Codec, where: str = "", turn: str = "") -> str:
    """All rows of a table, each behind its session's name."""
    fields = ", ".join(f"rows.{name}" for name in codec.names[1:])
    order = ["names.session", *(f"rows.{name}" for name in codec.key_names[1:])]
    return (
        f"SELECT names.session, {fields} FROM names CROSS JOIN {codec.table} AS rows"
        f" ON rows.session = names.key {where} ORDER BY {', '.join(by + turn for by in order)}"
    )


def _all_behind(codec: Codec, session: str | None, *, reverse: bool) -> tuple[str, tuple[Any, ...]]:
    """A page of the rows of the sessions behind one."""
    sign, turn = ("<", " DESC") if reverse else (">", "")
    where = "" if session is None else f"WHERE names.session {sign} ?"
    sql = f"{in_key_order(codec, where, turn)} LIMIT {SCAN_ROWS}"
    return sql, () if session is None else (session,)


def _session_behind(
    codec: Codec, session: str, after: Key | None, *, reverse: bool
) -> tuple[str, tuple[Any, ...]]:
    """A page of a session's rows behind a key."""
    sign, turn = ("<", " DESC") if reverse else (">", "")
    rest = codec.key_names[1:]
    where, values = f"session = {_KEY}", (session,)
    if after is not None:
        where += f" AND ({columns(rest)}) {sign} ({', '.join('?' * len(rest))})"
        values = (session, *after[2:])
    by = f" ORDER BY {', '.join(name + turn for name in rest)}" if rest else ""
    select = f"SELECT {columns(codec.names[1:])} FROM {codec.table} WHERE {where}"
    return f"{select}{by} LIMIT {SCAN_ROWS}", values


class SqlStore(SqlView):
    """The tables as they are now, each question by itself; see `Store`.

    `watch` is called with a partition whenever somebody who waits for it looks again; it may raise,
    where waiting is in vain.
    """

    def __init__(
        self,
        connect: Connect,
        path: Path,
        signal: Signal,
        *,
        partitions: int = 1,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(connect(), path, partitions=partitions)
        self._connect = connect
        self._signal = signal
        self._watch = watch
        self._closed = False
        self._views: set[SqlView] = set()

    async def wait(self, position: int, partition: int = 0) -> None:
        at, waited_s = -1, 0.0
        while True:
            seen = self._signal.count
            before, at = at, self.position(partition)
            if at >= position:
                return
            if self._watch is not None:
                self._watch(partition)
            lags = at == before and self.end(partition) >= position
            waited_s = waited_s + POLL_S if lags else 0.0
            if waited_s > LAG_S:
                raise StateError(
                    f"{self._path}: the tables lag at position {at}, before {position}: a frame"
                    " could not be folded, or an older turnlog wrote it; close this log and open"
                    " it again, which brings them up to date"
                )
            await self._signal.wait(seen, POLL_S)

    @contextmanager
    def snapshot(self) -> Generator[View]:
        view = self._open_view()
        try:
            view.position()  # the snapshot begins with the first read
            yield view
        finally:
            view.close()
            self._views.discard(view)

    def _open_view(self) -> SqlView:
        with self._lock, reading(self._path):
            if self._closed:
                raise LogUnavailable(f"{self._path}: this log is closed; open it again")
            connection = self._connect()
            connection.execute("BEGIN")
            view = SqlView(connection, self._path, partitions=self._partitions)
            self._views.add(view)
        return view

    def close(self) -> None:
        with self._lock:
            self._closed = True
            views = list(self._views)
        for view in views:
            view.close()
        super().close()
