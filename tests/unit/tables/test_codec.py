"""What is written to a column comes back as it was, for every row that the fold gives."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from tests.contract.tables import SEEDS, history
from turnlog.core.fold import fold
from turnlog.core.frames import decode
from turnlog.core.rows import TABLES, Approval, Fact, Head, Key, Row, key_of
from turnlog.tables.codec import CODECS
from turnlog.tables.schema import BUILDING, create_statements


def folded(seed: int) -> dict[Key, Row]:
    """Every row that a random history ever had."""
    rows: dict[Key, Any] = {}
    ever: dict[Any, Row] = {}
    for position, record in enumerate(history(seed), 1):
        changes = fold(decode(record), position, rows)
        rows.update(changes)
        ever.update({(key, position): row for key, row in changes.items() if row is not None})
    return ever


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, Row]]:
    return [
        (key[0][0], row)
        for seed in SEEDS
        for key, row in folded(seed).items()
        if key[0][0] != "ids"
    ]


def test_the_histories_reach_every_table(rows: list[tuple[str, Row]]) -> None:
    assert {table for table, _ in rows} == set(TABLES)


def test_a_row_comes_back_equal(rows: list[tuple[str, Row]]) -> None:
    for table, row in rows:
        codec = CODECS[table]
        back = codec.decode(row.session, codec.encode(row, 7)[1:])
        assert back == row
        assert type(back) is type(row)


def test_a_row_comes_back_equal_from_sql(rows: list[tuple[str, Row]]) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in create_statements(BUILDING, 7):
        connection.execute(statement)
    last: dict[Key, Row] = {}
    for table, row in rows:
        codec = CODECS[table]
        key = key_of(table, row)
        # rows of one key in different histories may claim the same entry id: one at a time
        connection.execute(codec.delete(BUILDING), (7, *key[2:]))
        if table == "entries":
            connection.execute(f"DELETE FROM {BUILDING}entries WHERE id = ?", (row.id,))
        connection.execute(codec.upsert(BUILDING), codec.encode(row, 7))
        (found,) = connection.execute(codec.select(BUILDING), (7, *key[2:])).fetchall()
        assert codec.decode(row.session, found) == row
        last[key] = row
    connection.close()
    assert len(last) > 100


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        2**64 - 1,
        -(2**63),
        1.5,
        -0.0,
        "",
        "\0",
        "✓ \U0001f600",
        [],
        {},
        [[], [1, [2]]],
        {"": [{"a": None}]},
    ],
)
def test_any_json_value_comes_back_as_it_was(value: Any) -> None:
    codec = CODECS["facts"]
    row = Fact("s", "name", "event", value, 1)
    back = codec.decode("s", codec.encode(row, 1)[1:])
    assert back == row
    assert type(back.value) is type(value)


def test_arrays_that_the_fold_composes_are_tuples_at_every_depth() -> None:
    head = Head(
        "s",
        lost_claims=(("c", 1, None), ("d", 2, 3)),
        damage=(("gap", 3, "text"),),
        open_operations={"op": {"kind": "prompt", "more": (1, (2,))}},
        origin={"path": ["stays", "a list"]},
    )
    codec = CODECS["sessions"]
    assert codec.decode("s", codec.encode(head, 1)[1:]) == head


def test_only_the_fields_that_are_asked_for_are_updated() -> None:
    codec = CODECS["approvals"]
    row = Approval("s", "op", "a", "c", 1, None, None, 1)
    names = ("decision", "position")
    assert codec.update(names) == (
        "UPDATE approvals SET decision = ?, position = ? WHERE session = ?"
        " AND operation = ? AND assistant_entry = ? AND call_id = ?"
    )
    later = row._replace(decision="allow", position=9)
    changed = [codec.names.index(name) for name in names]
    assert codec.encode_fields(later, changed) == ["allow", 9]
