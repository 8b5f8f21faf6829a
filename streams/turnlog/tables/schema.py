"""The SQL tables, derived from the row classes of `turnlog.core.rows`: one schema for every store.

A field is a column of the same name; a compound one is JSON text, and `session` is the session's
key in `names`. A set of tables has a prefix, so that a fresh set can be built beside the live one.
Whoever changes a row class, a column, an index or what the fold gives raises TABLES_VERSION: tables
are a fold of the log, so another version means that they are built anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from turnlog.core.rows import KEY_LENGTHS, TABLES
from turnlog.tables import riders

TABLES_VERSION = 2

BUILDING = "building_"
"""The prefix of a set that is being built beside the live tables."""
DROPPING = "dropping_"
"""The prefix of a set that was live before."""


class Kind(Enum):
    """How a field is kept, and what it is when it is read back."""

    INTEGER = "INTEGER"
    BOOLEAN = "BOOLEAN"
    TEXT = "TEXT"
    JSON = "JSON"
    """Any JSON value; arrays are lists."""
    TUPLES = "TUPLES"
    """A tuple or dict that the fold made; every array in it is a tuple."""


class Field(NamedTuple):
    """One field of a row class, and so one column."""

    name: str
    kind: Kind
    nullable: bool

    @property
    def column(self) -> str:
        """The column in DDL."""
        is_number = self.kind in (Kind.INTEGER, Kind.BOOLEAN) or self.name == "session"
        type_ = "INTEGER" if is_number else "TEXT"
        return f"{self.name} {type_}" + ("" if self.nullable else " NOT NULL")


class Index(NamedTuple):
    """An index beside the primary key."""

    name: str
    table: str
    columns: tuple[str, ...]
    unique: bool = False
    where: str = ""


INDEXES = (
    Index("ids", "entries", ("session", "id"), unique=True),
    Index("by_status", "sessions", ("status",)),
    Index("by_cwd", "sessions", ("cwd",)),
    Index("by_parent", "sessions", ("parent_session",), where="parent_session IS NOT NULL"),
    Index("open", "operations", ("session",), where="outcome IS NULL AND superseded = 0"),
    Index("by_operation", "dispatches", ("session", "operation")),
    Index("by_status", "dispatches", ("status", "session")),
)
"""What queries need beyond the keys. An append writes to `ids` only; sessions that keep their
status and folder are updated without touching the indexes on these."""

PLAIN = frozenset({"sessions", "app_states", "entries", "dispatches", "facts"})
"""Kept as SQLite's plain tables: good at rows of many KB, and at `entries`, where the sessions that
are at work together write one page at the end, not each its own. All others are clustered on their
key (WITHOUT ROWID): one tree in the place of two."""


def _field(name: str, hint: Any) -> Field:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    types = [get_origin(member) or member for member in members if member is not NoneType]
    kinds: dict[Any, Kind] = {
        int: Kind.INTEGER,
        bool: Kind.BOOLEAN,
        str: Kind.TEXT,
        tuple: Kind.TUPLES,
        dict: Kind.TUPLES,
        Any: Kind.JSON,
    }
    assert len(types) == 1 and types[0] in kinds, f"no column for {name}: {hint}"  # noqa: PT018
    return Field(name, kinds[types[0]], NoneType in members or types[0] is Any)


FIELDS: Mapping[str, tuple[Field, ...]] = {
    table: tuple(_field(name, get_type_hints(row)[name]) for name in row._fields)
    for table, row in TABLES.items()
}


def key_fields(table: str) -> tuple[str, ...]:
    """The columns of a table's key."""
    return tuple(field.name for field in FIELDS[table][: KEY_LENGTHS[table]])


def columns(names: Sequence[str]) -> str:
    """Column names for SQL. They are not quoted: a quoted name that is no column is a text to
    SQLite, and a table of another version would be misread in silence."""
    return ", ".join(names)


def create_statements(prefix: str, generation: int) -> Iterator[str]:
    """The DDL of one set of tables; `generation` keeps apart the names of its indexes."""
    for table, fields in FIELDS.items():
        lines = [field.column for field in fields]
        if table == "sessions":
            lines.extend(riders.COLUMNS)
        lines.append(f"PRIMARY KEY ({columns(key_fields(table))})")
        options = "STRICT" if table in PLAIN else "STRICT, WITHOUT ROWID"
        yield f"CREATE TABLE {prefix}{riders.kept(table)} ({', '.join(lines)}) {options}"
    for index in INDEXES:
        unique = "UNIQUE " if index.unique else ""
        where = f" WHERE {index.where}" if index.where else ""
        yield (
            f"CREATE {unique}INDEX {index.table}_{index.name}_{generation}"
            f" ON {prefix}{index.table} ({columns(index.columns)}){where}"
        )
    yield from create_views(prefix)


def create_views(prefix: str) -> Iterator[str]:
    """The DDL of what reads like a table and is none. The names of views cannot be changed."""
    for table in riders.RULES:
        yield riders.create_view(table, tuple(field.name for field in FIELDS[table]), prefix)


def drop_views(prefix: str) -> Iterator[str]:
    """Take the views of a set away, which must be done before its tables are renamed."""
    for table in riders.RULES:
        yield f"DROP VIEW IF EXISTS {prefix}{table}"
