"""The SQL schema is that of the row classes, and a file of another version is not mistaken."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any

import pytest

from turnlog.core.rows import KEY_LENGTHS, TABLES
from turnlog.tables import schema
from turnlog.tables.riders import kept
from turnlog.tables.schema import FIELDS, INDEXES, Kind, create_statements, key_fields

FINGERPRINT = "2:0d10acc2041c3117"
"""Of the tables of TABLES_VERSION."""


def statements() -> list[str]:
    return list(create_statements("", 1))


def test_every_field_of_every_row_is_a_column() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in statements():
        connection.execute(statement)
    for table, row in TABLES.items():
        found = connection.execute(f"PRAGMA table_info({kept(table)})").fetchall()
        names = tuple(name for _, name, *_ in found)
        assert names[: len(row._fields)] == row._fields
        assert len(names) == len(row._fields) or table == "sessions"
        keys = sorted((order, name) for _, name, _, _, _, order in found if order)
        assert tuple(name for _, name in keys) == key_fields(table) == row._fields[: len(keys)]
        assert len(keys) == KEY_LENGTHS[table]
    connection.close()


def test_indexes_are_on_columns_that_exist() -> None:
    for index in INDEXES:
        assert set(index.columns) <= {field.name for field in FIELDS[index.table]}


def test_an_append_of_a_message_touches_one_index_beside_the_keys() -> None:
    hot = {"sessions", "entries", "branches", "surfaces"}
    changes = {"status", "cwd", "parent_session"}
    assert [
        index.name for index in INDEXES if index.table in hot and not set(index.columns) <= changes
    ] == ["ids"]


def test_another_version_of_the_tables_has_another_number() -> None:
    """Change TABLES_VERSION with the tables, then the fingerprint here: files out there are
    rebuilt only where the number says so."""
    text = "\n".join(statements())
    found = f"{schema.TABLES_VERSION}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    assert found == FINGERPRINT


@pytest.mark.parametrize(
    ("hint", "kind", "nullable"),
    [
        (int, Kind.INTEGER, False),
        (int | None, Kind.INTEGER, True),
        (bool, Kind.BOOLEAN, False),
        (str | None, Kind.TEXT, True),
        (tuple[int, int] | None, Kind.TUPLES, True),
        (dict[str, Any], Kind.TUPLES, False),
        (Any, Kind.JSON, True),
    ],
)
def test_a_hint_says_how_a_field_is_kept(hint: Any, kind: Kind, nullable: bool) -> None:
    field = schema._field("field", hint)
    assert (field.kind, field.nullable) == (kind, nullable)


def test_a_hint_that_no_column_fits_is_a_fault_at_import() -> None:
    with pytest.raises(AssertionError, match="no column for field"):
        schema._field("field", bytes)
