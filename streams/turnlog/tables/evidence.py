"""What the tables say about operations: the evidence that recovery judges, and its judgement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from turnlog.core.fold.operations import waiting_key
from turnlog.core.recovery import (
    Call,
    Evidence,
    Executor,
    Instruction,
    Verdict,
    plan,
    recover,
)
from turnlog.core.rows import Attempt, Dispatch, Entry, Operation
from turnlog.tables.view import SessionView


class Report(NamedTuple):
    """The verdict on one operation, and what the executor would do about it."""

    operation: Operation
    verdict: Verdict
    evidence: Evidence
    instructions: list[Instruction]

    @property
    def is_open(self) -> bool:
        """Whether the operation has neither finished nor been superseded."""
        return self.operation.outcome is None and not self.operation.superseded


def reports_of(view: SessionView, executor: Executor) -> list[Report]:
    """A report on each operation that has something open, in the order they were accepted.

    Open is what the head row says: operations neither finished nor superseded, and those that are
    but have a dispatch without an answer; for a host, also those with a rerun that was allowed.
    """
    more = {row.operation for row in view.reruns()} if executor == "host" else ()
    return [report_on(view, operation, executor) for operation in open_operations(view, more)]


def report_on(view: SessionView, operation: Operation, executor: Executor) -> Report:
    """The report on one operation."""
    evidence = evidence_of(view, operation)
    verdict = recover(operation, evidence)
    return Report(operation, verdict, evidence, plan(operation, verdict, evidence, executor))


def open_operations(view: SessionView, more: Iterable[str] = ()) -> list[Operation]:
    """The operations to judge, each once, in the order in which they were accepted."""
    head = view.head
    found = dict.fromkeys([*head.open_operations, *head.open_dispatches.values(), *more])
    if "open_dispatches" in head.overflow:  # the head lists a part of them only
        rows = view.reader.find("dispatches", view.session, "status", "open")
        found.update(dict.fromkeys(row.operation for row in rows))
    known = (view.operation(id_) for id_ in found)
    return sorted((row for row in known if row is not None), key=lambda row: row.accepted)


def evidence_of(view: SessionView, operation: Operation) -> Evidence:
    """Gather the evidence on one operation, at the session's present leaf."""
    damage, overflow = view.damage(), "damage" in view.head.overflow
    ended = operation.outcome is not None or operation.superseded
    reruns = tuple(row for row in view.reruns() if row.operation == operation.operation)
    if ended and not operation.open_dispatches and not reruns:
        return Evidence(damage=damage, overflow=overflow)  # a long session has many of these
    dispatches = view.dispatches_of(operation.operation)
    path = _path_since(view, operation)
    on_path = {entry.id for entry in path}
    attempt: Attempt | None = None
    if operation.attempt is not None:
        attempt = view.reader.get(("attempts", view.session, operation.attempt))
    return Evidence(
        damage=damage,
        overflow=overflow,
        dispatches=[row for row in dispatches if row.status == "open"],
        on_path=frozenset(row.dispatch for row in dispatches if row.assistant_entry in on_path),
        calls=_open_calls(view, operation, path, dispatches),
        attempt=attempt,
        attempt_entry=_entry(view, attempt.assistant_entry if attempt is not None else None),
        last_message=next((row for row in reversed(path) if row.kind == "message"), None),
        own_entry=_own_entry(view, operation),
        reruns=reruns,
        answered=operation.parked is not None and _is_answered(operation, dispatches),
    )


def _is_answered(operation: Operation, dispatches: Sequence[Dispatch]) -> bool:
    """Whether a person has said what a parked operation waits for: that it is to be aborted, or,
    since it was parked, something of a call of it, and no call is left that nobody has spoken of.
    """
    if operation.aborting:
        return True
    since = [
        note
        for row in dispatches
        for note in row.notes
        if note["applied"] and note["position"] > operation.position
    ]
    return bool(since) and all(
        row.rerun or row.status not in ("open", "unknown") for row in dispatches
    )


def _path_since(view: SessionView, operation: Operation) -> list[Entry]:
    """The part of the leaf's path that was written since the operation was accepted."""
    path: list[Entry] = []
    entry = view.entry(view.head.leaf)
    while entry.number and entry.position >= operation.accepted:
        path.append(entry)
        entry = view.entry(entry.parent)
    path.reverse()
    return path


def _open_calls(
    view: SessionView, operation: Operation, path: list[Entry], dispatches: list[Dispatch]
) -> list[Call]:
    """The calls on the path that have neither an answer there nor a T1.

    Only a prompt's model calls tools: what is on the path of a compaction or navigation that lies
    inside a prompt is the prompt's, and may wait for a person there.
    """
    if operation.kind in ("compaction", "navigation"):
        return []
    waiting = view.head.waiting
    answered: set[Any] = {row.answers for row in path}
    dispatched = {(row.assistant_entry, row.call_index) for row in dispatches}
    calls: list[Call] = []
    for entry in path:
        open_ = [
            (index, call_id)
            for index, call_id in enumerate(entry.calls)
            if (entry.number, index) not in answered and (entry.id, index) not in dispatched
        ]
        if not open_ or not _is_of(view, operation, entry):
            continue
        for index, call_id in open_:
            calls.append(
                Call(
                    assistant_entry=entry.id,
                    call_index=index,
                    call_id=call_id,
                    tool=_tool(view, entry, index),
                    waiting=waiting_key(operation.operation, entry.id, call_id) in waiting,
                    proven=view.proves_absence(entry),
                )
            )
    return calls


def _is_of(view: SessionView, operation: Operation, entry: Entry) -> bool:
    """Whether an assistant message is not known to be another operation's: a rerun opens an
    operation again, and by then the leaf may be below calls of a later one."""
    attempt: Attempt | None = None
    if (id_ := view.data(entry).get("attempt")) is not None:
        attempt = view.reader.get(("attempts", view.session, id_))
    return attempt is None or attempt.operation == operation.operation


def _tool(view: SessionView, entry: Entry, index: int) -> str | None:
    parts = [part for part in view.data(entry)["content"] if part["type"] == "tool_call"]
    name: str | None = parts[index].get("name")
    return name


def _entry(view: SessionView, id_: str | None) -> Entry | None:
    number: int | None = None
    if id_ is not None:
        number = view.reader.get(("ids", view.session, id_))
    return None if number is None else view.entry(number)


def _own_entry(view: SessionView, operation: Operation) -> Entry | None:
    """The entry of a compaction or navigation: the newest that names it and is not void."""
    kind = {"compaction": "compaction", "navigation": "branch"}.get(operation.kind or "")
    if kind is None:
        return None
    for number in range(view.head.counts["entries"], 0, -1):
        entry = view.entry(number)
        if entry.position < operation.accepted:
            return None
        if (
            entry.kind == kind
            and entry.void is None
            and view.data(entry).get("operation") == operation.operation
        ):
            return entry
    return None
