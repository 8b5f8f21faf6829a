"""Rule 4: a compaction stands in the place of what it replaces, or is void and changes nothing."""

from __future__ import annotations

from typing import NamedTuple

from turnlog.core.fold.draft import Draft
from turnlog.core.fold.entries import Place, Shape, add_entry, find_place, resolve
from turnlog.core.fold.surfaces import replace_span, span
from turnlog.core.frames import Data, Event
from turnlog.core.rows import Entry


class Replaced(NamedTuple):
    """What a valid compaction replaces."""

    first: int
    last: int
    place: int
    role: str
    answers: tuple[int, int] | None


def apply_compaction(draft: Draft, event: Event) -> None:
    """A summary of a span of the surface, or one tool result trimmed."""
    place = find_place(draft, event)
    found = _check(draft, event.data, place)
    if isinstance(found, str):
        add_entry(draft, event, place, Shape(void=found))
        return
    shape = Shape(
        found.role,
        node=True,
        answers=found.answers,
        replaces=(found.first, found.last),
        place=found.place,
    )
    entry = add_entry(draft, event, place, shape)
    replace_span(draft, found.first, found.last, entry.number)


def _check(draft: Draft, data: Data, place: Place) -> Replaced | str:
    """What the compaction replaces, or the reason why it is void."""
    if place.late:
        return "late"
    if place.bridged or place.parent.number != draft.leaf:
        return "not_at_leaf"
    if data.get("prepared_at") is not None:
        prepared = resolve(draft, data["prepared_at"])
        if prepared is None or not draft.on_path(prepared.number):
            return "prepared_elsewhere"
    first = _node(draft, data["replaces"]["first"])
    last = _node(draft, data["replaces"]["last"])
    nodes = span(draft, first, last) if first is not None and last is not None else None
    if nodes is None or first is None or last is None:
        return "not_on_surface"
    rows = [draft.entry(node) for node in nodes if node]
    if data["kind"] == "prune":
        if len(nodes) != 1 or not rows or rows[0].role != "tool":
            return "not_one_result"
        return Replaced(first, last, rows[0].place, "tool", rows[0].answers)
    if not _is_balanced(rows):
        return "unbalanced"
    place_of_last = draft.entry(last).place if last else 0
    return Replaced(first, last, place_of_last, "user", None)


def _node(draft: Draft, id_: str) -> int | None:
    """The number of a surface node by its id; a fork's node 0 goes by the id in its parent."""
    number = draft.number(id_)
    if number:
        return number
    fork_at = draft.fields.get("fork_at", draft.before.fork_at)
    return 0 if fork_at is not None and fork_at["entry"] == id_ else None


def _is_balanced(rows: list[Entry]) -> bool:
    """Every call of the span is answered in it, and every answer in it has its call there."""
    calls: set[tuple[int, int]] = set()
    answers: set[tuple[int, int]] = set()
    for row in rows:
        calls.update((row.number, index) for index in range(len(row.calls)))
        if row.answers is not None:
            answers.add(row.answers)
    return calls == answers
