"""Rows are plain tuples; their keys are their leading fields."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    asked,
    blob_part,
    fact,
    queued,
    result,
    state,
    used,
    user,
)
from turnlog.core.rows import KEY_LENGTHS, TABLES, Head, key_of

KEYS = {
    "sessions": ("session",),
    "entries": ("session", "number"),
    "branches": ("session", "first"),
    "app_states": ("session",),
    "surfaces": ("session", "page"),
    "operations": ("session", "operation"),
    "attempts": ("session", "attempt"),
    "dispatches": ("session", "dispatch"),
    "inputs": ("session", "input"),
    "blobs": ("session", "digest"),
    "quarantine": ("session", "position", "event_index"),
    "facts": ("session", "name"),
    "approvals": ("session", "operation", "assistant_entry", "call_id"),
    "reservations": ("session", "entry"),
}


@pytest.mark.parametrize("table", TABLES)
def test_the_key_of_a_row_is_its_leading_fields(table: str) -> None:
    assert TABLES[table]._fields[: KEY_LENGTHS[table]] == KEYS[table]


def everything() -> Story:
    story = Story().called("c1", "c2")
    story.own(
        state("s1", "a1", k=1),
        result("r1", "s1", "c1", dispatch="d1"),
        used("at1", "op", input=1, cost_usd="0.5"),
        asked("op", "a1", "c2"),
        fact("title", "T"),
        blob_part("d", 0, 1, "QUJD"),
        user("r1", None),
    )
    story.guest(queued("i", "u9"))
    return story


def test_every_row_that_the_fold_writes_stands_under_its_own_key() -> None:
    story = everything()
    rows = {key: row for key, row in story.rows.items() if key[0] != "ids"}
    assert {key[0] for key in rows} == set(TABLES)
    for key, row in rows.items():
        assert isinstance(row, TABLES[key[0]])
        assert key == key_of(key[0], row)


def test_the_derived_index_gives_the_number_of_an_id() -> None:
    story = everything()
    ids = {key[2]: row for key, row in story.rows.items() if key[0] == "ids"}
    assert ids == {row.id: row.number for row in story.view.rows("entries")}


def is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_plain(item) for name, item in value.items())
    return value is None or type(value) in (str, int, float, bool)


def test_rows_hold_plain_json_values_only() -> None:
    for row in everything().rows.values():
        assert is_plain(row)


def test_a_session_before_its_first_record_is_empty() -> None:
    head = Head("s")
    assert (head.position, head.epoch, head.seq, head.leaf, head.status) == (0, 0, 0, 0, "idle")
    assert not head.listed
    assert not head.created
    assert set(head.counts.values()) == {0}
