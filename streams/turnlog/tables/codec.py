"""Rows to column values and back: one canonical form for each kind of field.

What is read back equals (`==`) what was written, so the fold gives the same rows over a dict as
over SQL. It holds for rows as the fold makes them: arrays are tuples in the fields that the fold
composes, and lists in those that hold an event's own JSON (`schema.Kind`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from turnlog.core.rows import KEY_LENGTHS, TABLES
from turnlog.core.shapes import is_list, is_object
from turnlog.tables.riders import kept
from turnlog.tables.schema import FIELDS, PLAIN, Kind, columns, key_fields

Values = Sequence[Any]
"""One value for each column, in the order of the row's fields."""


def _dump(value: Any) -> str | None:
    if value is None:
        return None
    if not value and value.__class__ in _EMPTY:
        return _EMPTY[value.__class__]
    return orjson.dumps(value).decode()


_EMPTY: dict[type, str] = {dict: "{}", tuple: "[]", list: "[]"}
"""Most compound fields of most rows: not worth the encoder."""


def _load(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def _load_tuples(text: str | None) -> Any:
    if text is None:
        return None
    if text == "[]":
        return ()
    value = orjson.loads(text)
    return _tuples(value) if "[" in text else value


def _tuples(value: Any) -> Any:
    if is_list(value):
        return tuple([_tuples(item) for item in value])
    if is_object(value):
        return {name: _tuples(item) for name, item in value.items()}
    return value


_DECODERS: Mapping[Kind, Callable[[Any], Any]] = {
    Kind.BOOLEAN: bool,
    Kind.JSON: _load,
    Kind.TUPLES: _load_tuples,
}


class Codec:
    """How the rows of one table are written and read."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.kept = kept(table)
        self.row = TABLES[table]
        self.key_length = KEY_LENGTHS[table]
        self.names = self.row._fields
        self.key_names = key_fields(table)
        self._compound = frozenset(
            index
            for index, field in enumerate(FIELDS[table])
            if field.kind in (Kind.JSON, Kind.TUPLES)
        )
        self.open_ended = tuple(
            index for index, field in enumerate(FIELDS[table]) if field.kind is Kind.JSON
        )
        """Fields that hold an event's own data, of whatever size."""
        self._decoders = [
            (index, _DECODERS[field.kind])
            for index, field in enumerate(FIELDS[table])
            if field.kind in _DECODERS
        ]

    def encode(self, row: Any, session: int) -> list[Any]:
        """The column values of a row, under its session's key."""
        values = list(row)
        values[0] = session
        for index in self._compound:
            value = values[index]
            if value is not None:
                values[index] = _dump(value)
        return values

    def encode_fields(self, row: Any, fields: Sequence[int]) -> list[Any]:
        """The column values of some fields, by index."""
        compound = self._compound
        return [_dump(row[index]) if index in compound else row[index] for index in fields]

    def decode(self, session: str, values: Values) -> Any:
        """The row of a session's column values, those behind the session."""
        fields = [session, *values]
        for index, decoder in self._decoders:
            fields[index] = decoder(fields[index])
        return self.row._make(fields)

    # ---- statements ----------------------------------------------------------------------

    def select(self, prefix: str = "") -> str:
        """What `decode` takes of one row; the key begins with the session's."""
        return f"SELECT {columns(self.names[1:])} FROM {prefix}{self.table} WHERE {self._is_key()}"

    def select_named(self) -> str:
        """The same of the live tables by the session's name."""
        named = "session = (SELECT key FROM names WHERE names.session = ?)"
        return self.select().replace("session = ?", named, 1)

    def delete(self, prefix: str = "") -> str:
        """Take one row away by its key."""
        return f"DELETE FROM {prefix}{self.kept} WHERE {self._is_key()}"

    def upsert(self, prefix: str = "") -> str:
        """Write one row, new or not, all of its columns."""
        marks = ", ".join("?" * len(self.names))
        into = f"INTO {prefix}{self.kept} ({columns(self.names)}) VALUES ({marks})"
        if self.table not in PLAIN:
            return f"REPLACE {into}"
        # REPLACE would give the row another place in its table, and would silently take away
        # another one that is in the way of a unique index
        changed = self.names[self.key_length :]
        sets = ", ".join(f"{name} = excluded.{name}" for name in changed)
        return f"INSERT {into} ON CONFLICT ({columns(self.key_names)}) DO UPDATE SET {sets}"

    def update(self, names: Sequence[str], prefix: str = "") -> str:
        """Write some columns of a row that exists; their values come before the key's. Indexes
        on other columns stay untouched."""
        sets = ", ".join(f"{name} = ?" for name in names)
        return f"UPDATE {prefix}{self.kept} SET {sets} WHERE {self._is_key()}"

    def _is_key(self) -> str:
        return " AND ".join(f"{name} = ?" for name in self.key_names)


CODECS: Mapping[str, Codec] = {table: Codec(table) for table in TABLES}
