"""Do two logs say the same of a session? Its rows, compared but for the positions in them.

A position is where a frame stands in its log; the same frames stand elsewhere in another one. So
each position is replaced by the ordinal of its frame in the session before rows are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from turnlog.core.rows import TABLES, Key, key_of
from turnlog.tables.store import View

Move = Callable[[int], int]
Change = Callable[[Any, Move], Any]


def differing_rows(one: View, other: View, session: str) -> Iterator[Key]:
    """The keys of the rows in which two logs differ on a session, positions left aside."""
    here, there = placeless(one, session), placeless(other, session)
    for left, right in zip_longest(here, there):
        if left == right:
            continue
        yield left[0] if left is not None else right[0]
        if left is None or right is None or left[0] != right[0]:
            return  # the sides are out of step; one difference is enough to say so


def placeless(view: View, session: str) -> Iterator[tuple[Key, Any]]:
    """All rows of a session with their keys, ordinals in the place of positions."""
    ordinals = {
        stored.position: ordinal for ordinal, stored in enumerate(view.records(session), start=1)
    }

    def move(position: int) -> int:
        return ordinals.get(position, -position)

    for table in TABLES:
        for row in view.scan(table, session):
            moved = _moved(table, row, move)
            yield key_of(table, moved), moved


def _moved(table: str, row: Any, move: Move) -> Any:
    changes = {name: _NESTED.get(name, _place)(getattr(row, name), move) for name in _FIELDS[table]}
    return row._replace(**changes)


def _place(value: Any, move: Move) -> Any:
    return move(value)


def _damage(value: Any, move: Move) -> Any:
    return tuple((kind, move(position), detail) for kind, position, detail in value)


def _by_id(value: Any, move: Move) -> Any:
    return {id_: move(position) for id_, position in value.items()}


def _piece(value: Any, move: Move) -> Any:
    return None if value is None else {**value, "position": move(value["position"])}


def _pieces(value: Any, move: Move) -> Any:
    return tuple(_piece(item, move) for item in value)


def _parts(value: Any, move: Move) -> Any:
    return {name: (move(place[0]), place[1]) for name, place in value.items()}


_NESTED: Mapping[str, Change] = {
    "damage": _damage,
    "missing_parents": _by_id,
    "tries": _pieces,
    "evidence": _pieces,
    "notes": _pieces,
    "answer": _piece,
    "positions": _parts,
}
"""How positions are moved in the fields that hold more than one, or one among other things."""

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "sessions": ("position", "damage", "missing_parents"),
    "entries": ("position",),
    "branches": ("position",),
    "app_states": ("position",),
    "surfaces": ("position",),
    "operations": ("position", "accepted", "finished"),
    "attempts": ("position",),
    "dispatches": ("position", "tries", "answer", "evidence", "notes"),
    "inputs": ("position", "queued", "placed"),
    "blobs": ("position", "positions"),
    "quarantine": ("position",),
    "facts": ("position",),
    "approvals": ("position", "asked"),
    "reservations": (),
}
"""Where the rows of each table hold positions. `Quarantine.damage` is a flag."""
