"""One session as plain data: the shape that `turnlog show --json` promises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from turnlog.core.context import Node, text_of
from turnlog.core.errors import EntryNotFound
from turnlog.core.recovery import recover
from turnlog.core.rows import Dispatch, Operation
from turnlog.core.text import parts_text
from turnlog.query.sessions import usage_of
from turnlog.tables.evidence import evidence_of
from turnlog.tables.view import SessionView

Json = Any


def show_session(view: SessionView, at: str | None = None) -> dict[str, Json]:
    """Everything about a session.

    `at` is an entry id: `surface`, `state` and `depth` are then those of that entry, and `at` names
    it; all else stays as it is now. Raises EntryNotFound.
    """
    head = view.head
    number = None if at is None else view.number(at)
    return {
        **about(view),
        "at": at,
        "depth": head.depth if number is None else view.entry(view.real(number)).depth,
        "state": view.state(number),
        "surface": [surface_node(node) for node in view.nodes(number)],
        "branches": branches(view),
        "operations": operations(view, view.rows("operations")),
        "dispatches": [dispatch(row) for row in view.rows("dispatches")],
        "damage": damage(view),
    }


def about(view: SessionView) -> dict[str, Json]:
    """What a session is, without anything that grows with it."""
    head = view.head
    return {
        "session": head.session,
        "title": head.title,
        "cwd": head.cwd,
        "agent": head.agent,
        "status": head.status,
        "epoch": head.epoch,
        "owner": head.owner,
        "released": head.released,
        "leaf": entry_id(view, head.leaf),
        "depth": head.depth,
        "pending_inputs": pending_inputs(view),
        "usage": usage_of(head),
        "counts": dict(head.counts),
        "overflow": dict(head.overflow),
        "newer": head.newer,
        "first_time": head.first_time,
        "last_time": head.last_time,
        "parent_session": head.parent_session,
        "fork_at": head.fork_at,
        "spawned_by": head.spawned_by,
        "origin": head.origin,
    }


def entry_id(view: SessionView, number: int) -> str | None:
    """The id of an entry; None for the root position."""
    return view.entry(number).id if number else None


def find_entry(view: SessionView, text: str) -> str:
    """The entry of an id, or of the beginning of one. Raises EntryNotFound."""
    if view.reader.get(("ids", view.session, text)) is not None or not text:
        return view.entry(view.number(text)).id
    found = [row.id for row in view.reader.scan("entries", view.session) if row.id.startswith(text)]
    if len(found) > 1:
        raise EntryNotFound(
            f"session {view.session!r}: {text!r} begins {len(found)} entry ids:"
            f" {', '.join(found[:8])}{' …' if len(found) > 8 else ''}; give more of it"
        )
    return found[0] if found else view.entry(view.number(text)).id


def surface_node(node: Node) -> dict[str, Json]:
    """A node of a surface. A fork's parent's nodes come first, under their ids there."""
    entry = node.entry
    return {
        "entry": entry.id,
        "kind": entry.kind,
        "role": entry.role,
        "text": text_of(entry, node.data),
    }


def branches(view: SessionView) -> list[dict[str, Json]]:
    """The branches in the order in which they began."""
    return [
        {
            "tip": entry_id(view, row.tip),
            "active": row.active,
            "fork_point": entry_id(view, row.fork_point),
        }
        for row in view.rows("branches")
    ]


def operations(view: SessionView, rows: Iterable[Operation]) -> list[dict[str, Json]]:
    """Operations in the order in which they were accepted, each with its verdict."""
    return [
        {
            "operation": row.operation,
            "kind": row.kind,
            "outcome": row.outcome,
            "superseded": row.superseded,
            "verdict": recover(row, evidence_of(view, row)).name,
            "corruption": list(row.corruption),
        }
        for row in sorted(rows, key=lambda row: row.accepted)
    ]


def dispatch(row: Dispatch) -> dict[str, Json]:
    """What is known of a tool call that was dispatched."""
    return {
        "dispatch": row.dispatch,
        "tool": row.tool,
        "effect": row.effect,
        "status": row.status,
        "settled_by": row.settled_by,
        "tries": len(row.tries),
        "evidence": [dict(piece) for piece in row.evidence],
    }


def pending_inputs(view: SessionView) -> list[dict[str, Json]]:
    """The inputs that wait to be placed, in the order in which they were queued."""
    head = view.head
    rows = [view.reader.get(("inputs", view.session, id_)) for id_ in head.pending_inputs]
    return [
        {
            "input": row.input,
            "entry": row.entry,
            "delivery": row.delivery,
            "text": _queued_text(view, row.input, row.queued),
        }
        for row in sorted(rows, key=lambda row: row.queued)
    ]


def damage(view: SessionView) -> list[dict[str, Json]]:
    """What is missing or wrong in frames in force."""
    return [
        {"kind": kind, "position": position, "detail": detail}
        for kind, position, detail in view.damage()
    ]


def _queued_text(view: SessionView, input_: str, position: int) -> str:
    for event in view.frame(position).events:
        if event.type == "input_queued" and event.data.get("input") == input_:
            return parts_text(event.data.get("content"))
    return ""
