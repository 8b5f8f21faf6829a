"""Driving the real fold: rows in a dict, and what each frame cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.model.observe import Rows
from tests.model.ownership import Record
from turnlog.core.fold import fold
from turnlog.core.rows import Key


class Cost(NamedTuple):
    """What one fold read and wrote."""

    gets: int
    rows: int
    characters: int


class Tables:
    """Tables that a fold can only `get` from; it counts."""

    def __init__(self) -> None:
        self.rows: dict[Key, Any] = {}
        self.gets = 0

    def get(self, key: Key, /) -> Any:
        """See turnlog.core.rows.Tables."""
        self.gets += 1
        return self.rows.get(key)

    def apply(self, position: int, frame: Record) -> Cost:
        """Fold a frame and store its rows."""
        self.gets = 0
        changes = fold(frame, position, self)
        for key, row in changes.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        size = sum(len(repr(row)) for row in changes.values())
        return Cost(self.gets, len(changes), size)


def fold_all(frames: Iterable[tuple[int, Record]]) -> Rows:
    """The rows after all frames."""
    tables = Tables()
    for position, frame in frames:
        tables.apply(position, frame)
    return tables.rows
