"""Reading golden logs: an archive, folded line by line, and what its tables then say.

Words for people (why, reason, detail, what a status tells the model) are left out: they may change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.story import Story
from turnlog.core.archive import from_line
from turnlog.core.frames import decode
from turnlog.core.rows import Dispatch, Operation

FOLDER = Path(__file__).parent


def read(log: Path) -> Story:
    """The session of an archive; every line goes through `archive.from_line` and the fold."""
    records = [from_line(line) for line in log.read_bytes().splitlines(keepends=True)]
    return Story(records[0].session, records)


def observe(story: Story) -> dict[str, Any]:
    """What a golden log guards, as plain JSON. Whoever adds a name adds it to the files by hand."""
    head, view = story.head, story.view
    return {
        "session": {
            "status": head.status,
            "listed": head.listed,
            "created": head.created,
            "newer": head.newer,
            "claim": head.claim,
            "epoch": head.epoch,
            "owner": head.owner,
            "reason": head.reason,
            "released": head.released,
            "seq": head.seq,
            "title": head.title,
            "cwd": head.cwd,
            "agent": head.agent,
            "parent_session": head.parent_session,
            "fork_at": head.fork_at,
            "spawned_by": head.spawned_by,
            "origin": head.origin,
        },
        "leaf": story.leaf,
        "path": story.path,
        "state": story.state,
        "surface": story.surface(),
        "context": [_message(story, item) for item in view.context()],
        "entries": {row.id: _entry(story, row.id) for row in view.rows("entries")},
        "branches": [
            {
                "first": story.id_of(row.first),
                "tip": story.id_of(row.tip),
                "fork_point": story.id_of(row.fork_point),
                "label": row.label,
                "active": row.active,
            }
            for row in story.branches()
        ],
        "operations": {row.operation: _operation(story, row) for row in view.rows("operations")},
        "attempts": {
            row.attempt: [row.operation, row.status, row.usage, row.usage_fenced]
            for row in view.rows("attempts")
        },
        "dispatches": {row.dispatch: _dispatch(row) for row in view.rows("dispatches")},
        "inputs": {row.input: row.status for row in view.rows("inputs")},
        "approvals": [[*row[1:4], row.decision, row.by] for row in view.rows("approvals")],
        "facts": {row.name: row.value for row in view.rows("facts")},
        "blobs": {row.digest: [row.of, row.size, row.positions] for row in view.rows("blobs")},
        "usage": head.usage,
        "fenced_usage": head.fenced_usage,
        "damage": [[kind, position] for kind, position, _ in view.damage()],
        "quarantine": [[*row[1:4], row.damage] for row in story.quarantine()],
        "counts": head.counts,
        "overflow": head.overflow,
        "digests": [decode(record).digest for record in story.records],
    }


def _entry(story: Story, id_: str) -> dict[str, Any]:
    row = story.entry(id_)
    return {
        "kind": row.kind,
        "role": row.role,
        "parent": story.id_of(row.parent),
        "declared": row.declared,
        "void": row.void,
        "answers": row.answers and [story.id_of(row.answers[0]), row.answers[1]],
        "state": story.view.state(row.number),
        "surface": story.surface(id_),
    }


def _operation(story: Story, row: Operation) -> dict[str, Any]:
    verdict = story.verdict(row.operation)
    return {
        "kind": row.kind,
        "claim": row.claim,
        "outcome": row.outcome,
        "superseded": row.superseded,
        "parked": row.parked,
        "corruption": row.corruption,
        "verdict": verdict.name,
        "inferred": verdict.outcome,
        "host": [_step(step) for step in story.plan("host", row.operation)],
        "consumer": [_step(step) for step in story.plan("consumer", row.operation)],
    }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in step.items() if name != "reason"}


def _message(story: Story, item: dict[str, Any]) -> dict[str, Any]:
    is_from_log = item["entry"] is not None and story.has(item["entry"])
    return item if is_from_log else {**item, "content": None}


def _dispatch(row: Dispatch) -> dict[str, Any]:
    return {
        "operation": row.operation,
        "effect": row.effect,
        "status": row.status,
        "settled_by": row.settled_by,
        "tries": [[item["try"], item["claim"], item["result_entry"]] for item in row.tries],
        "evidence": [[item["event"], item["status"], item["fenced"]] for item in row.evidence],
        "notes": [[item["event"], item["applied"]] for item in row.notes],
    }
