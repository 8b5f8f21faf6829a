"""The observable state of real rows, in the form of `tests.model.observable`.

It reads plain rows and walks them; it uses nothing of the code that wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tests.model.observable import FIGURES, Observable
from turnlog.core.rows import Dispatch, Entry, Head, Key

Rows = Mapping[Key, Any]


class Reader:
    """The rows of one session."""

    def __init__(self, rows: Rows, session: str) -> None:
        self.session = session
        self.head: Head = rows.get(("sessions", session)) or Head(session)
        self.state = rows.get(("app_states", session))
        self.tables: dict[str, list[Any]] = {}
        for key in sorted((k for k in rows if k[1] == session), key=repr):
            self.tables.setdefault(key[0], []).append(rows[key])
        self.by_number: dict[int, Entry] = {e.number: e for e in self.table("entries")}
        for entry in self.by_number.values():
            assert rows[("ids", session, entry.id)] == entry.number

    def table(self, name: str) -> list[Any]:
        """The rows of a table."""
        return self.tables.get(name, [])

    def id(self, number: int) -> str | None:
        """The id of an entry; None for the root."""
        return self.by_number[number].id if number else None

    def path(self, number: int) -> list[Entry]:
        """The entries from the root to this one."""
        found: list[Entry] = []
        while number:
            found.append(self.by_number[number])
            assert self.by_number[number].parent < number
            number = self.by_number[number].parent
        return found[::-1]

    def state_at(self, entry: Entry) -> Any:
        """The app state at an entry."""
        if entry.state_ref:
            return self.by_number[entry.state_ref].value
        return {} if self.state is None else self.state.initial

    def surface_at(self, number: int) -> list[int]:
        """The surface at an entry, replayed from its path."""
        shown = [0] if self.is_fork else []
        for entry in self.path(number):
            if entry.node and entry.replaces is not None:
                first, last = (shown.index(n) for n in entry.replaces)
                shown[first : last + 1] = [entry.number]
            elif entry.node:
                shown.append(entry.number)
        return shown

    @property
    def is_fork(self) -> bool:
        """Whether the session starts from another's surface."""
        return self.head.parent_session is not None and self.head.fork_at is not None

    def nodes(self, numbers: list[int]) -> list[tuple[str | None, str, str | None]]:
        """Surface nodes as id, kind and role."""
        found: list[tuple[str | None, str, str | None]] = []
        for number in numbers:
            if number:
                entry = self.by_number[number]
                found.append((entry.id, entry.kind, entry.role))
            else:
                found.append((self.head.fork_at["entry"], "fork", None))
        return found

    def leaf_surface(self) -> list[int]:
        """The pages of the surface at the leaf, one after the other."""
        pages = sorted(self.table("surfaces"), key=lambda row: row.page)[: self.head.pages]
        return [number for page in pages for number in page.nodes]


def observe(rows: Rows, session: str) -> Observable:
    """Everything that a reader of the tables may rely on."""
    reader = Reader(rows, session)
    head, entries = reader.head, sorted(reader.by_number.values())
    return {
        "ownership": {
            name: getattr(head, name)
            for name in ("claim", "epoch", "owner", "reason", "seq", "released")
        },
        "session": _session(head),
        "tree": {
            "leaf": reader.id(head.leaf),
            "path": [entry.id for entry in reader.path(head.leaf)],
            "state": {} if reader.state is None else reader.state.value,
            "state_of": None if reader.state is None else reader.id(reader.state.entry),
            "surface": reader.nodes(reader.leaf_surface()),
            "depth": head.depth,
            "nodes": head.nodes,
        },
        "entries": {e.id: _entry(reader, e) for e in entries},
        "states": {e.id: reader.state_at(e) for e in entries},
        "surfaces": {e.id: reader.nodes(reader.surface_at(e.number)) for e in entries},
        "branches": [
            (reader.id(b.first), reader.id(b.tip), reader.id(b.fork_point), b.label, b.active)
            for b in sorted(reader.table("branches"))
        ],
        "operations": _operations(reader),
        "attempts": _attempts(reader),
        "dispatches": {d.dispatch: _dispatch(d) for d in reader.table("dispatches")},
        "open_dispatches": sorted(head.open_dispatches),
        "inputs": {i.input: (i.status, i.entry, i.delivery) for i in reader.table("inputs")},
        "pending_inputs": sorted(head.pending_inputs),
        "approvals": {
            (a.operation, a.assistant_entry, a.call_id): (a.asked > 0, a.decision)
            for a in reader.table("approvals")
        },
        "waiting": sorted(_waiting(head)),
        "facts": {f.name: (f.event, f.value) for f in reader.table("facts")},
        "blobs": {
            b.digest: (b.of, {int(i): tuple(p) for i, p in b.positions.items()})
            for b in reader.table("blobs")
        },
        "usage": _totals(head.usage),
        "fenced_usage": _totals(head.fenced_usage),
        "missing_parents": head.missing_parents,
        "damage": sorted(
            [(kind, position) for kind, position, _ in head.damage]
            + [("dangling_parent", position) for position in head.missing_parents.values()]
        ),
        "quarantine": sorted(
            (q.position, q.event_index, q.stage, q.damage) for q in reader.table("quarantine")
        ),
        "overflow": head.overflow,
        "counts": head.counts,
    }


def _session(head: Head) -> Observable:
    flags = ("listed", "created", "newer", "status", "title", "cwd", "agent", "origin")
    relations = ("parent_session", "fork_at", "spawned_by")
    return {name: getattr(head, name) for name in (*flags, *relations)}


def _waiting(head: Head) -> Iterator[tuple[str, str, str]]:
    for call, operation in head.waiting.items():
        first, second, rest = call.split(":", 2)
        entry = rest[int(first) + 1 : int(first) + 1 + int(second)]
        yield operation, entry, rest[int(first) + int(second) + 2 :]


def _entry(reader: Reader, entry: Entry) -> Observable:
    is_compaction = entry.kind == "compaction" and entry.void is None
    replaces = entry.replaces if is_compaction else None
    fork = reader.head.fork_at["entry"] if reader.is_fork else None
    return {
        "number": entry.number,
        "place": (entry.position, entry.event_index),
        "parent": reader.id(entry.parent),
        "declared": entry.declared,
        "kind": entry.kind,
        "role": entry.role,
        "depth": entry.depth,
        "void": entry.void,
        "node": entry.node,
        "calls": list(entry.calls),
        "answers": entry.answers and (reader.id(entry.answers[0]), entry.answers[1]),
        "replaces": replaces and tuple(reader.id(n) if n else fork for n in replaces),
        "state_ref": reader.id(entry.state_ref),
        "compaction_ref": reader.id(entry.compaction_ref),
        "assistant_ref": reader.id(entry.assistant_ref),
        "branch": reader.id(entry.branch),
        "imported": entry.imported,
    }


def _operations(reader: Reader) -> Observable:
    found: Observable = {}
    for row in reader.table("operations"):
        is_open = row.outcome is None and not row.superseded
        found[row.operation] = {
            "kind": row.kind,
            "claim": row.claim,
            "outcome": row.outcome,
            "superseded": row.superseded,
            "open": row.operation in reader.head.open_operations,
            "parked": is_open and row.parked is not None,
            "aborting": is_open and row.aborting,
            "attempt": row.attempt,
            "accepted_as": (row.trigger, row.input_entry, row.start_leaf),
            "finished_as": (row.error, row.inferred),
            "corruption": sorted(row.corruption),
            "open_dispatches": row.open_dispatches,
        }
    return found


def _attempts(reader: Reader) -> Observable:
    return {
        row.attempt: {
            "operation": row.operation,
            "assistant_entry": row.assistant_entry,
            "status": row.status,
            "usage": row.usage,
            "conflict": row.usage_conflict,
            "fenced": row.usage_fenced,
            "claim": row.claim,
            "context": row.context,
        }
        for row in reader.table("attempts")
    }


def _dispatch(row: Dispatch) -> Observable:
    return {
        "operation": row.operation,
        "status": row.status,
        "settled_by": row.settled_by,
        "effect": row.effect,
        "tries": [(t["try"], t["claim"], t["position"], t["result_entry"]) for t in row.tries],
        "call": (row.assistant_entry, row.call_index, row.call_id),
        "answer": row.answer and row.answer["event"],
        "evidence": [piece["event"] for piece in row.evidence],
        "notes": len(row.notes),
        "rerun": row.rerun and row.status == "unknown",
    }


def _totals(totals: Mapping[str, Any]) -> Observable:
    figures: Observable = {name: totals[name] for name in FIGURES}
    return {
        **figures,
        "cost_usd": Decimal(totals["cost_usd"]),
        "attempts": totals["attempts"],
    }
