"""What waits for somebody: work that is open, parked or waits for a decision, and calls whose
outcome nobody knows; each with the commands that end the waiting."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from turnlog.core.fold.operations import waiting_key
from turnlog.core.recovery import CORRUPTED, Evidence, Verdict, recover
from turnlog.core.rows import Approval, Dispatch, Head, Operation
from turnlog.owner.ambient import rfc3339
from turnlog.query.dispatches import arguments, evidence_of_effect
from turnlog.tables.evidence import evidence_of
from turnlog.tables.store import View
from turnlog.tables.view import Reader, SessionView

Json = Any
ANSWERED = "; that was said, and the host that resumes the session goes on"
IsHeld = Callable[[Head], bool]
"""Whether a living host holds a session."""


def pending(
    view: View, heads: Iterable[Head], *, now: int, is_held: IsHeld
) -> Iterator[dict[str, Json]]:
    """The rows on what waits in some sessions; `now`, ms since 1970, is for ages, which are labels.

    Each row has a `state`: `open` (begun and not ended), `parked`, `waiting` (for an approval) or
    `unknown`. A row with a `dispatch` is about a tool call, any other about its whole operation.
    """
    for head in heads:
        calls = [
            row
            for status in ("open", "unknown")
            for row in view.find("dispatches", head.session, "status", status)
        ]
        if calls or head.open_operations:
            yield from _Session(view, head, now, held=is_held(head)).rows(calls)


class _Session:
    def __init__(self, view: View, head: Head, now: int, *, held: bool) -> None:
        self._view = SessionView(view, head.session)
        self._head = head
        self._now = now
        self._held = held
        self._judged: dict[str, tuple[Verdict, Evidence]] = {}

    def rows(self, calls: list[Dispatch]) -> Iterator[dict[str, Json]]:
        """Operations first, then calls in the order of their T1s."""
        told = {row.operation for row in calls if row.status == "open"}
        opened = [self._operation(id_) for id_ in self._head.open_operations]
        for operation in sorted(opened, key=lambda row: row.accepted):
            state = self._state(operation)
            if state != "open" or operation.operation not in told:
                yield self._operation_row(operation, state)
        for row in sorted(calls, key=lambda row: row.tries[-1]["position"]):
            yield self._call_row(row)

    def _operation(self, id_: str) -> Operation:
        row = self._view.operation(id_)
        assert row is not None, "heads and dispatches name operations that are there"
        return row

    def _state(self, operation: Operation) -> str:
        if operation.parked is not None:
            return "parked"
        waits = operation.operation in self._head.waiting.values()
        return "waiting" if waits else "open"

    def _operation_row(self, operation: Operation, state: str) -> dict[str, Json]:
        verdict, evidence = self._judge(operation)
        parked = f"{operation.parked}{ANSWERED}" if evidence.answered else operation.parked
        calls = [
            row
            for row in waiting_calls(self._view.reader, self._head)
            if row.operation == operation.operation
        ]
        asked = [{"assistant_entry": row.assistant_entry, "call_id": row.call_id} for row in calls]
        return {
            **self._common(operation, state, operation.position),
            "why": parked or ("a call waits for approval" if asked else verdict.why),
            "approvals": asked if state == "waiting" else [],
            "next": _to_decide(calls) if state == "waiting" else self._recover(operation),
        }

    def _call_row(self, row: Dispatch) -> dict[str, Json]:
        operation = self._operation(row.operation)
        return {
            **self._common(operation, row.status, row.tries[-1]["position"]),
            "why": (
                "it was started, and no answer is in the log"
                if row.status == "open"
                else f"settled as unknown by {row.settled_by}"
            ),
            "dispatch": row.dispatch,
            "tool": row.tool,
            "args": arguments(self._view, row),
            "effect": row.effect,
            "idempotency_key": row.key,
            "tries": len(row.tries),
            "rerun_allowed": row.rerun,
            "evidence": [dict(piece) for piece in row.evidence],
            "next": self._recover(operation) if row.status == "open" else _decide(row),
        }

    def _common(self, operation: Operation, state: str, position: int) -> dict[str, Json]:
        stored = self._view.reader.record(self._head.session, position)
        time = stored.time if stored is not None else self._now
        return {
            "session": self._head.session,
            "operation": operation.operation,
            "kind": operation.kind,
            "state": state,
            "verdict": self._judge(operation)[0].name,
            "why": "",
            "is_held": self._held,
            "since": rfc3339(time),
            "age_s": max(self._now - time, 0) / 1000,
            "approvals": [],
            "dispatch": None,
            "tool": None,
            "args": None,
            "effect": None,
            "idempotency_key": None,
            "tries": 0,
            "rerun_allowed": False,
            "evidence": [],
            "next": [],
        }

    def _judge(self, operation: Operation) -> tuple[Verdict, Evidence]:
        id_ = operation.operation
        if id_ not in self._judged:
            evidence = evidence_of(self._view, operation)
            self._judged[id_] = recover(operation, evidence), evidence
        return self._judged[id_]

    def _recover(self, operation: Operation) -> list[str]:
        """A living host ends it by itself. What recovery would park or has, a person may close."""
        if self._held:
            return []
        ended = operation.outcome is not None or operation.superseded
        corrupted = self._judge(operation)[0].name == CORRUPTED
        insists = operation.parked is not None or (corrupted and ended)
        command = f"turnlog recover {shlex.quote(self._head.session)}"
        return [f"{command} --close" if insists else command]


def waiting_calls(reader: Reader, head: Head) -> list[Approval]:
    """The calls of a session that wait for a person's decision, in key order."""
    rows: list[Approval] = list(reader.scan("approvals", head.session))
    return [
        row
        for row in rows
        if row.decision is None
        and waiting_key(row.operation, row.assistant_entry, row.call_id) in head.waiting
    ]


def _to_decide(calls: list[Approval]) -> list[str]:
    """What a person may say of the first call that waits; the others come after it."""
    commands = [
        f"turnlog decide {shlex.quote(row.session)} {shlex.quote(row.call_id)}" for row in calls[:1]
    ]
    return [f"{command} {word}" for command in commands for word in ("--allow", "--deny")]


def _decide(row: Dispatch) -> list[str]:
    """What a person may say of an unknown outcome."""
    dispatch = shlex.quote(row.dispatch)
    happened = evidence_of_effect(row)
    if happened is not None:
        return [f"turnlog settle {dispatch} --as {happened['status']}"]
    settle = f"turnlog settle {dispatch} --as ok"
    if row.rerun:
        return [settle]
    rerun = f"turnlog rerun {dispatch}"
    never = any(piece["status"] == "not_started" for piece in row.evidence)
    return [rerun] if never else [settle, rerun]
