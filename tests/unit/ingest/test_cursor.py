"""The cursor: what is read is what was written, and nothing else is taken for one."""

from typing import Any

import pytest

from turnlog.ingest.cursor import Cursor, read_cursor

CURSOR = Cursor("pi", 1, "/f", (5, 9), "abc", 7, True, False, 3, 12, 4)


def test_a_cursor_is_read_as_it_was_written() -> None:
    assert read_cursor(CURSOR.value()) == CURSOR
    assert CURSOR.end == 9
    assert CURSOR._replace(cuts=()).end == 0


@pytest.mark.parametrize(
    "change",
    [
        {"cuts": None},
        {"cuts": []},
        {"cuts": [9, 5]},
        {"cuts": [5, 5]},
        {"cuts": [0]},
        {"cuts": ["5"]},
        {"cuts": [True]},
        {"digest": None},
    ],
)
def test_what_is_no_cursor_is_none(change: dict[str, Any]) -> None:
    assert read_cursor({**CURSOR.value(), **change}) is None
    assert read_cursor("text") is None


def test_odd_counts_are_none_at_all() -> None:
    odd = read_cursor({**CURSOR.value(), "units": -1, "lines": "x", "done": 1})
    assert odd is not None
    assert (odd.units, odd.lines, odd.done) == (0, 0, False)
