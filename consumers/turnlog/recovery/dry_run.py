"""What recovery would do, without doing it: one report for each operation that is open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from turnlog.core.recovery import Executor
from turnlog.core.rows import Dispatch, Head
from turnlog.tables.evidence import Report, reports_of
from turnlog.tables.view import Reader, SessionView


def dry_run(
    reader: Reader, heads: Iterable[Head], *, executor: Executor = "consumer"
) -> Iterator[Report]:
    """The reports on everything that the sessions of some head rows have open."""
    for head in heads:
        yield from reports_of(SessionView(reader, head.session), executor)


def as_data(report: Report) -> dict[str, Any]:
    """A report as `turnlog recover --dry-run --json` gives it."""
    return {
        "session": report.operation.session,
        "operation": report.operation.operation,
        "kind": report.operation.kind,
        "verdict": report.verdict.name,
        "why": report.verdict.why,
        "dispatches": [_open_dispatch(row) for row in report.evidence.dispatches],
        "instructions": report.instructions,
    }


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
