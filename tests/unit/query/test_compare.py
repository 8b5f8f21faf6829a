"""Rows of two logs, compared but for the positions in them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.story import Story, user
from tests.unit.query.logs import random_session, stored
from turnlog.core.rows import TABLES
from turnlog.query.compare import differing_rows, placeless

STRIDE = 1_000_003
"""All positions are above it, and nothing else in these histories is."""


def numbers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int):
        yield value


@pytest.mark.parametrize("seed", range(40))
def test_the_same_frames_elsewhere_are_the_same(seed: int) -> None:
    records = random_session(seed, "s")
    one = stored(records)
    other = stored(random_session(seed + 1, "other", 20), records, stride=7)
    assert list(differing_rows(one.tables, other.tables, "s")) == []


def test_histories_like_these_fill_every_table() -> None:
    views = [stored(random_session(seed, "s")).tables for seed in range(20)]
    filled = {table for view in views for table in TABLES for _ in view.scan(table, "s")}
    assert filled == set(TABLES)


@pytest.mark.parametrize("seed", range(5))
def test_no_position_is_left_in_a_row(seed: int) -> None:
    log = stored(random_session(seed, "s"), stride=STRIDE)
    for key, row in placeless(log.tables, "s"):
        assert not [number for number in numbers((key, row)) if abs(number) >= STRIDE]


def test_a_difference_is_told_by_its_key() -> None:
    one, other = Story("s").begin(), Story("s").begin()
    one.own(user("u", None))
    other.own(user("v", None))
    keys = list(differing_rows(stored(one).tables, stored(other).tables, "s"))
    assert ("sessions", "s") in keys
    assert ("entries", "s", 1) in keys


def test_a_row_that_one_side_lacks_ends_the_comparison() -> None:
    one, other = Story("s").begin(), Story("s").begin()
    one.own(user("u", None))
    keys = list(differing_rows(stored(one).tables, stored(other).tables, "s"))
    assert keys[-1] == ("entries", "s", 1)
    assert list(differing_rows(stored(one).tables, stored().tables, "s")) == [("sessions", "s")]
