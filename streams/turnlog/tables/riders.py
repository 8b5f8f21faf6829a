"""What every append changes of a session's branch and surface rides on the session's row.

A message moves the tip of the branch that holds the leaf and adds to the last page of the surface.
Written to tables of their own that would be two pages more in every commit; the session's row is
written anyway. So `branches_kept` and `surfaces_kept` hold rows as they were when anything else of
them changed, the row of `sessions` what has changed since, and the views `branches` and `surfaces`
give the rows as they are. A rider counts iff its position is above that of the row it is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import orjson

from turnlog.core.rows import Branch, Head, Surface

Riders: TypeAlias = dict[str, Any]
"""Values for columns of `sessions`, by name."""

COLUMNS = (
    "branch_position INTEGER NOT NULL DEFAULT 0",
    "tail_page INTEGER NOT NULL DEFAULT -1",
    "tail_position INTEGER NOT NULL DEFAULT 0",
    "tail TEXT NOT NULL DEFAULT '[]'",
)
"""Columns of `sessions` that are no fields of a head."""


class Rule(NamedTuple):
    """When a rider counts for a kept row, and what it stands for."""

    counts: str
    fields: Mapping[str, str]


RULES: Mapping[str, Rule] = {
    "branches": Rule(
        "kept.active AND head.branch_position > kept.position",
        {"tip": "head.leaf", "depth": "head.depth", "position": "head.branch_position"},
    ),
    "surfaces": Rule(
        "kept.page = head.tail_page AND head.tail_position > kept.position",
        {"nodes": "head.tail", "position": "head.tail_position"},
    ),
}


def kept(table: str) -> str:
    """The table that holds the rows of a table or view."""
    return f"{table}_kept" if table in RULES else table


def create_view(table: str, fields: tuple[str, ...], prefix: str) -> str:
    """The view that gives a table's rows as they are."""
    rule = RULES[table]
    columns = ", ".join(
        f"CASE WHEN {rule.counts} THEN {rule.fields[name]} ELSE kept.{name} END AS {name}"
        if name in rule.fields
        else f"kept.{name}"
        for name in fields
    )
    return (
        f"CREATE VIEW {prefix}{table} AS SELECT {columns} FROM {prefix}{kept(table)} AS kept"
        f" JOIN {prefix}sessions AS head ON head.session = kept.session"
    )


def branch_rider(row: Branch, before: Branch | None, head: Head) -> Riders | None:
    """What rides where nothing but the tip of the branch that holds the leaf has moved."""
    if before is None or not row.active or (row.tip, row.depth) != (head.leaf, head.depth):
        return None
    if (row.fork_point, row.label, row.active) != (before.fork_point, before.label, before.active):
        return None
    return {"branch_position": row.position}


def surface_rider(row: Surface, before: Surface | None, head: Head) -> Riders | None:
    """What rides of the last page, once it has a row."""
    if before is None or row.page != head.pages - 1:
        return None
    return {
        "tail_page": row.page,
        "tail_position": row.position,
        "tail": orjson.dumps(row.nodes).decode(),
    }
