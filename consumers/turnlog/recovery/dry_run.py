"""What recovery would do, without doing it: one report for each operation that is open.

Open is what the head rows say: operations neither finished nor superseded, and those that are but
have a dispatch without an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from turnlog.core.recovery import Evidence, Executor, Instruction, Verdict, plan, recover
from turnlog.core.rows import Dispatch, Head, Operation
from turnlog.tables.evidence import evidence_of
from turnlog.tables.view import Reader, SessionView


class Report(NamedTuple):
    """The verdict on one operation, and what the executor would do about it."""

    operation: Operation
    verdict: Verdict
    evidence: Evidence
    instructions: list[Instruction]

    def as_data(self) -> dict[str, Any]:
        """As `turnlog recover --json` gives it."""
        return {
            "session": self.operation.session,
            "operation": self.operation.operation,
            "kind": self.operation.kind,
            "verdict": self.verdict.name,
            "why": self.verdict.why,
            "dispatches": [_open_dispatch(row) for row in self.evidence.dispatches],
            "instructions": self.instructions,
        }


def dry_run(
    reader: Reader, heads: Iterable[Head], *, executor: Executor = "consumer"
) -> Iterator[Report]:
    """The reports on everything that the sessions of some head rows have open."""
    for head in heads:
        for id_ in _open_in(reader, head):
            view = SessionView(reader, head.session)
            operation = view.operation(id_)
            if operation is None:  # pragma: no cover - the head names those that are there
                continue
            evidence = evidence_of(view, operation)
            verdict = recover(operation, evidence)
            yield Report(operation, verdict, evidence, plan(operation, verdict, evidence, executor))


def _open_in(reader: Reader, head: Head) -> list[str]:
    """The operations to judge, each once, in the order in which they were accepted."""
    found = dict.fromkeys([*head.open_operations, *head.open_dispatches.values()])
    if "open_dispatches" in head.overflow:  # the head lists a part of them only
        rows = reader.scan("dispatches", head.session)
        found.update(dict.fromkeys(row.operation for row in rows if row.status == "open"))
    if not found:
        return []
    rows = (reader.get(("operations", head.session, id_)) for id_ in found)
    return [row.operation for row in sorted(rows, key=lambda row: row.accepted)]


def _open_dispatch(row: Dispatch) -> dict[str, Any]:
    last = row.tries[-1]
    return {
        "dispatch": row.dispatch,
        "tool": row.tool,
        "effect": row.effect,
        "call_id": row.call_id,
        "call_index": row.call_index,
        "assistant_entry": row.assistant_entry,
        "result_entry": row.result_entry,
        "try": last["try"],
        "claim": last["claim"],
        "position": last["position"],
        "idempotency_key": row.key,
    }
