"""Frames into SQL rows: the fold over one connection, with the rows of hot sessions at hand.

A batch is folded first, which only reads, then written, each row once however often it changed.
Whoever calls does both in one transaction and then says how it ended: `keep` after its commit,
`drop` after a rollback, `forget` when anybody else has committed since.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import compress
from operator import is_not
from typing import Any, TypeAlias

import orjson

from turnlog.core.fold import fold as fold_frame
from turnlog.core.frames import Frame, Unreadable, is_entry
from turnlog.core.rows import Changes, Head, Key, Row, Tables
from turnlog.tables.codec import CODECS, Codec
from turnlog.tables.names import Names
from turnlog.tables.riders import RULES, Riders, branch_rider, surface_rider

Fold: TypeAlias = Callable[[Frame | Unreadable, int, Tables], Changes]

CACHE_ROWS = 8192
"""Rows of the younger half of the cache; an ordinary row takes about 1 KB."""
CACHE_CHARS = 16_384
"""A row in which an event's data is longer than this is read each time it is needed."""


class Cache:
    """The rows used last. When the younger half is full it becomes the older one, whose rows are
    taken over when they are used again; the others go with it."""

    def __init__(self, rows: int = CACHE_ROWS) -> None:
        self._rows = rows
        self.young: dict[Key, Row | None] = {}
        self._old: dict[Key, Row | None] = {}

    def get(self, key: Key, default: Any) -> Any:
        found = self.young.get(key, default)
        if found is default:
            found = self._old.get(key, default)
            if found is not default:
                self.put(key, found)
        return found

    def put(self, key: Key, row: Row | None) -> None:
        if len(self.young) >= self._rows:
            self._old, self.young = self.young, {}
        self.young[key] = row

    def put_all(self, rows: Changes) -> None:
        if len(self.young) + len(rows) <= self._rows:
            self.young.update(rows)
            return
        for key, row in rows.items():
            self.put(key, row)

    def remove(self, key: Key) -> None:
        self.young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self.young, self._old = {}, {}


_LATER = frozenset({"ids", "sessions"})
"""`ids` is an index of `entries`, and heads wait for their riders."""
_UNKNOWN: Any = object()
_PLACES = range(len(Head._fields))


class Folding:
    """One set of tables as the fold sees and changes it; see the module's text."""

    def __init__(
        self, connection: sqlite3.Connection, prefix: str = "", *, fold: Fold = fold_frame
    ) -> None:
        self.names = Names(connection)
        self._cursor = connection.cursor()
        self._fold = fold
        self._cache = Cache()
        self._changes: dict[Key, Row | None] = {}
        self._heads: dict[str, Head | None] = {}
        """The heads of `_changes` as they stand in the tables."""
        self._large: set[Key] = set()
        self._tables = {table: _Table(codec, prefix) for table, codec in CODECS.items()}
        entries = f"{prefix}entries"
        self._select_id = f"SELECT number FROM {entries} WHERE session = ? AND id = ?"
        self._select_ids = (
            "SELECT wanted.key, e.number FROM json_each(?) AS wanted CROSS JOIN"
            f" {entries} AS e ON e.session = wanted.value ->> 0 AND e.id = wanted.value ->> 1"
        )

    def get(self, key: Key, /) -> Row | None:
        """The row of a key as of what is folded so far: what the fold reads."""
        row = self._changes.get(key, _UNKNOWN)
        if row is _UNKNOWN:
            row = self._cache.young.get(key, _UNKNOWN)  # nearly always, so without another call
            if row is _UNKNOWN:
                row = self._cache.get(key, _UNKNOWN)
                if row is _UNKNOWN:
                    row = self._read(key)
        return row

    def look_up(self, frames: Sequence[Frame | Unreadable]) -> None:
        """Ask for the ids of many frames' entries at once: nearly all are new, so not cached."""
        if len(frames) < 3:
            return  # the fold's own questions cost less
        wanted = [
            ("ids", frame.header.session, event.id)
            for frame in frames
            if isinstance(frame, Frame)
            for event in frame.events
            if is_entry(event)
        ]
        asked = orjson.dumps([(self.names.find(key[1]), key[2]) for key in wanted]).decode()
        found = dict(self._cursor.execute(self._select_ids, (asked,)))
        for index, key in enumerate(wanted):
            if key not in self._changes:
                self._cache.put(key, found.get(index))

    def fold(self, frame: Frame | Unreadable, position: int) -> None:
        """Fold one frame. What the fold raises is its bug; the frames before it stay folded."""
        session = frame.session if isinstance(frame, Unreadable) else frame.header.session
        if session not in self._heads:
            self._heads[session] = self.get(("sessions", session))
        self._changes.update(self._fold(frame, position, self))

    def write(self) -> None:
        """Write the rows that changed, as part of the caller's transaction."""
        batch = _Batch(self.names)
        riders: dict[str, Riders] = {}
        for key, row in self._changes.items():
            if key[0] in _LATER or (key[0] in RULES and self._rides(key, row, riders)):
                continue
            table = self._tables[key[0]]
            values = batch.add(table, key, row)
            if table.is_large(row, values):
                self._large.add(key)
        for session, before in self._heads.items():
            key = ("sessions", session)
            head = self._changes.get(key)
            if head is not None:
                self._leave_page(batch, before, head)
                batch.add_head(self._tables["sessions"], head, before, riders.get(session, {}))
        batch.write(self._cursor)

    def _rides(self, key: Key, row: Row | None, riders: dict[str, Riders]) -> bool:
        """Put a row on its session's, where it fits."""
        session = key[1]
        head: Head | None = self._changes.get(("sessions", session))
        if row is None or head is None or self._heads[session] is None:
            return False
        before = self._cache.get(key, None)
        rider = (branch_rider if key[0] == "branches" else surface_rider)(row, before, head)
        if rider is None:
            return False
        if session in riders:
            riders[session].update(rider)
        else:
            riders[session] = rider
        return True

    def _leave_page(self, batch: _Batch, before: Head | None, head: Head) -> None:
        """Keep the page that was the last one: what rides from now on is about another."""
        if before is None or before.pages == head.pages:
            return
        key = ("surfaces", head.session, before.pages - 1)
        if 0 <= before.pages - 1 < head.pages - 1 and key not in self._changes:
            batch.add(self._tables["surfaces"], key, self.get(key))

    def keep(self) -> None:
        """What was written is committed."""
        self._cache.put_all(self._changes)
        for key in self._large:
            self._cache.remove(key)
        self._clear()

    def drop(self) -> None:
        """What was folded is rolled back."""
        self._clear()
        self.names.forget()

    def forget(self) -> None:
        """Somebody else has committed: read all rows again."""
        self.drop()
        self._cache.clear()

    def _clear(self) -> None:
        self._large.clear()
        self._heads = {}
        self._changes = {}

    def _read(self, key: Key) -> Row | None:
        table = self._tables.get(key[0])
        session = self.names.find(key[1])
        if session is None:
            return None
        select = self._select_id if table is None else table.select
        found = self._cursor.execute(select, (session, *key[2:])).fetchone()
        if found is None:
            row = None
        elif table is None:
            row = found[0]
        else:
            row = table.codec.decode(key[1], found)
            if key[0] != "sessions" and table.is_large(row, found):
                return row  # a head is always cached: every frame of its session needs it
        self._cache.put(key, row)
        return row


class _Table:
    """How the rows of one table are read and written."""

    def __init__(self, codec: Codec, prefix: str) -> None:
        self.codec = codec
        self.prefix = prefix
        self.select = codec.select(prefix)
        self.delete = codec.delete(prefix)
        self.upsert = codec.upsert(prefix)
        self.open_ended = codec.open_ended

    def is_large(self, row: Row | None, values: Sequence[Any]) -> bool:
        """Whether an event's data in a row is longer than what is cached."""
        if row is None:
            return False
        for index in self.open_ended:
            if row[index] is not None:
                return any(isinstance(value, str) and len(value) > CACHE_CHARS for value in values)
        return False


class _Batch:
    """The statements of one transaction, and the values that each is executed with."""

    def __init__(self, names: Names) -> None:
        self._find = names.find
        self._statements: dict[str, list[Sequence[Any]]] = {}

    def add(self, table: _Table, key: Key, row: Row | None) -> Sequence[Any]:
        """Write a row, all of it, or take it away; gives its values."""
        session = self._find(key[1]) or 0  # every session that is folded has a record
        if row is None:
            return self._add(table.delete, (session, *key[2:]))
        return self._add(table.upsert, table.codec.encode(row, session))

    def add_head(self, table: _Table, row: Head, before: Head | None, riders: Riders) -> None:
        """Write what has changed of a head, and its riders; other fields' indexes are spared."""
        codec = table.codec
        session = self._find(row.session) or 0
        if before is None:
            self._add(table.upsert, codec.encode(row, session))
            return
        # nearly all fields are the very same objects, and told apart without comparing them
        others = compress(_PLACES, map(is_not, row, before))
        changed = [place for place in others if row[place] != before[place]]
        names = (*[codec.names[i] for i in changed], *riders)
        values = [*codec.encode_fields(row, changed), *riders.values(), session]
        self._add(_update(table.prefix, names), values)

    def write(self, cursor: sqlite3.Cursor) -> None:
        """Execute all."""
        for sql, rows in self._statements.items():
            if len(rows) == 1:
                cursor.execute(sql, rows[0])
            else:
                cursor.executemany(sql, rows)

    def _add(self, sql: str, values: Sequence[Any]) -> Sequence[Any]:
        if sql in self._statements:
            self._statements[sql].append(values)
        else:
            self._statements[sql] = [values]
        return values


@lru_cache(256)
def _update(prefix: str, names: tuple[str, ...]) -> str:
    """The statement that changes some columns of a head; few sets of them ever occur."""
    return CODECS["sessions"].update(names, prefix)
