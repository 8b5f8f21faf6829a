"""The observable state of a model: a plain value, by section, in ids and not in numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

from tests.model.dispatches import Dispatch
from tests.model.model import Model
from tests.model.tree import Node
from turnlog.core.frames import Event

Observable: TypeAlias = dict[str, Any]
COUNTED = ("frames", "events", "duplicates", "fenced", "lost_claims")
FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning")


def observable(model: Model) -> Observable:
    """Everything that a reader of the tables may rely on."""
    return {
        "ownership": _ownership(model),
        "session": _session(model),
        "tree": _tree(model),
        "entries": {node.id: _entry(model, node) for node in model.tree.nodes},
        "states": {node.id: model.tree.state(node.number) for node in model.tree.nodes},
        "surfaces": {node.id: _surface(model, node.number) for node in model.tree.nodes},
        "branches": _branches(model),
        "operations": _operations(model),
        "attempts": _attempts(model),
        "dispatches": {d.id: _dispatch(d) for d in model.work.dispatches.all.values()},
        "open_dispatches": sorted(d.id for d in model.work.dispatches.all.values() if d.listed),
        "inputs": {
            name: (i.status, i.entry, i.event.data.get("delivery"))
            for name, i in model.desk.inputs.items()
        },
        "pending_inputs": sorted(model.desk.pending()),
        "approvals": {
            key: (approval.asked, approval.decided and approval.decided.data["decision"])
            for key, approval in model.work.approvals.items()
        },
        "waiting": sorted(k for k, approval in model.work.approvals.items() if approval.waiting),
        "facts": {name: (e.id, e.data["value"]) for name, e in model.desk.facts.items()},
        "blobs": {d: (b.of, dict(b.positions)) for d, b in model.desk.blobs.items()},
        "usage": _totals(model, fenced=False),
        "fenced_usage": _totals(model, fenced=True),
        "missing_parents": dict(model.tree.missing),
        "damage": sorted(
            model.damage + [("dangling_parent", p) for p in model.tree.missing.values()]
        ),
        "quarantine": sorted(tuple(row) for row in model.quarantine),
        "overflow": dict(model.overflow),
        "counts": _counts(model),
    }


def _ownership(model: Model) -> Observable:
    own = model.ownership
    names = ("claim", "epoch", "owner", "reason", "seq", "released")
    return {name: getattr(own, name) for name in names}


def _session(model: Model) -> Observable:
    created = model.desk.session
    names = ("cwd", "agent", "parent_session", "fork_at", "spawned_by", "origin")
    return {
        "listed": model.ownership.frames_applied > 0,
        "created": model.desk.created is not None,
        "title": model.desk.title,
        "newer": model.newer,
        "status": _status(model),
        **{name: created.get(name) for name in names},
    }


def _status(model: Model) -> str:
    opened = model.work.open()
    waits = any(approval.waiting for approval in model.work.approvals.values())
    if waits or any(operation.parked for operation in opened):
        return "requires_action"
    return "open" if opened else "idle"


def _id(model: Model, number: int) -> str | None:
    return model.tree.nodes[number - 1].id if number else None


def _tree(model: Model) -> Observable:
    tree = model.tree
    state = tree.nearest(tree.leaf, "app_state")
    return {
        "leaf": _id(model, tree.leaf),
        "path": [node.id for node in tree.path(tree.leaf)],
        "state": tree.state(tree.leaf),
        "state_of": state and state.id,
        "surface": _surface(model, tree.leaf),
        "depth": len(tree.path(tree.leaf)),
        "nodes": len(tree.surface(tree.leaf)),
    }


def _surface(model: Model, number: int) -> list[tuple[str | None, str, str | None]]:
    return [
        (node.id, node.kind, node.role)
        if (node := model.tree.nodes[n - 1] if n else None) is not None
        else (model.tree.fork_entry, "fork", None)
        for n in model.tree.surface(number)
    ]


def _entry(model: Model, node: Node) -> Observable:
    tree = model.tree
    state, compaction = (tree.nearest(node.number, k) for k in ("app_state", "compaction"))
    assistant = tree.assistant_above(node)
    replaces = node.data["replaces"] if node.kind == "compaction" and not node.void else None
    return {
        "number": node.number,
        "place": (node.position, node.index),
        "parent": _id(model, node.parent),
        "declared": node.declared,
        "kind": node.kind,
        "role": node.role,
        "depth": len(tree.path(node.number)),
        "void": node.void,
        "node": node.is_shown,
        "calls": node.calls,
        "answers": node.answers and (_id(model, node.answers[0]), node.answers[1]),
        "replaces": replaces and (replaces["first"], replaces["last"]),
        "state_ref": state and state.id,
        "compaction_ref": compaction and compaction.id,
        "assistant_ref": assistant and assistant.id,
        "branch": _id(model, tree.branch_of(node.number)),
        "imported": node.imported,
    }


def _branches(model: Model) -> list[tuple[Any, ...]]:
    tree = model.tree
    return [
        (
            _id(model, first),
            _id(model, run[-1]),
            _id(model, tree.nodes[first - 1].parent),
            model.desk.labels.get(first),
            tree.leaf in run,
        )
        for first, run in sorted(tree.branches().items())
    ]


def _operations(model: Model) -> Observable:
    return {
        operation.id: {
            "kind": operation.kind,
            "claim": operation.claim,
            "outcome": operation.finish and operation.finish.data["outcome"],
            "superseded": operation.superseded,
            "open": operation.is_open,
            "parked": operation.is_open and operation.parked,
            "aborting": operation.is_open and operation.aborting,
            "attempt": operation.attempt,
            "accepted_as": _fields(operation.accepted, "trigger", "input_entry", "start_leaf"),
            "finished_as": (
                operation.finish and operation.finish.data.get("error"),
                bool(operation.finish and operation.finish.data.get("inferred")),
            ),
            "corruption": sorted(operation.corruption),
            "open_dispatches": len(model.work.dispatches.open_of(operation.id)),
        }
        for operation in model.work.operations.values()
    }


def _fields(event: Event | None, *names: str) -> tuple[Any, ...]:
    return tuple(None if event is None else event.data.get(name) for name in names)


def _attempts(model: Model) -> Observable:
    return {
        id_: {
            "operation": attempt.operation,
            "assistant_entry": attempt.asked and attempt.asked.data["assistant_entry"],
            "status": attempt.status,
            "usage": attempt.usage,
            "conflict": attempt.conflict,
            "fenced": attempt.fenced,
            "claim": attempt.claim,
            "context": _fields(attempt.asked, "context")[0],
        }
        for id_, attempt in model.work.attempts.items()
    }


def _dispatch(dispatch: Dispatch) -> Observable:
    return {
        "operation": dispatch.operation,
        "status": dispatch.status,
        "settled_by": dispatch.settled_by,
        "effect": dispatch.effect,
        "tries": [(t.number, t.claim, t.position, t.data["result_entry"]) for t in dispatch.tries],
        "call": (*dispatch.call, dispatch.tries[0].data.get("call_id")),
        "answer": dispatch.answer and dispatch.answer.id,
        "evidence": [event.id for event in dispatch.evidence],
        "notes": len(dispatch.notes),
        "rerun": dispatch.rerun and dispatch.status == "unknown",
    }


def _totals(model: Model, *, fenced: bool) -> Observable:
    attempts = model.work.attempts.values()
    counted = [a.usage for a in attempts if a.settled is not None and a.fenced is fenced]
    totals: Observable = {name: sum(u.get(name) or 0 for u in counted) for name in FIGURES}
    totals["cost_usd"] = sum((Decimal(u.get("cost_usd") or 0) for u in counted), Decimal(0))
    totals["attempts"] = len(counted)
    return totals


def _counts(model: Model) -> Observable:
    nodes = model.tree.nodes
    return {
        "entries": len(nodes),
        "messages": sum(node.kind == "message" and not node.void for node in nodes),
        "voids": sum(node.void is not None for node in nodes),
        "jumps": model.tree.jumps,
        **{name: model.counts[name] for name in COUNTED},
        "quarantined": len(model.quarantine),
        "evidence": sum(len(d.evidence) for d in model.work.dispatches.all.values()),
    }


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two observable states differ, a line each."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        return [
            line
            for name in names
            for line in differences(
                one.get(name, "(absent)"), other.get(name, "(absent)"), f"{path}/{name}"
            )
        ]
    return [] if one == other else [f"{path}: {one!r} != {other!r}"]
