"""Operations: what is open, whose it is, and what corrupts it (rules 6 and 8)."""

from __future__ import annotations

from typing import cast

from turnlog.core.fold.draft import Draft
from turnlog.core.frames import Event, content_of
from turnlog.core.rows import Operation


def accept_operation(draft: Draft, event: Event) -> None:
    """One unit of work begins."""
    data = event.data
    id_, kind = data["operation"], data["kind"]
    content = content_of(event)
    old = draft.operation(id_)
    if old is not None and old.digest is not None:
        if old.digest != content:
            corrupt(draft, id_, "accepted_twice")
        return
    filled = (old or _new(draft, id_))._replace(
        kind=kind,
        trigger=data.get("trigger"),
        input_entry=data.get("input_entry"),
        start_leaf=data.get("start_leaf"),
        claim=draft.own.claim,
        accepted=draft.position,
        digest=content,
    )
    if old is None:
        for reason in _start(draft, id_, kind):
            filled = _with(filled, reason)
    if kind == "prompt" and not draft.number(data.get("input_entry")):
        filled = _with(filled, "input_missing")
    put(draft, filled)
    if old is None or is_open(draft, id_):
        _list(draft, filled)


def park_operation(draft: Draft, event: Event) -> None:
    """An operation needs a person."""
    operation = named(draft, event.data["operation"])
    if is_open(draft, operation.operation):
        row = operation._replace(parked=event.data.get("reason") or "parked")
        put(draft, row)
        _list(draft, row)


def finish_operation(draft: Draft, event: Event) -> None:
    """An operation ends, once."""
    data = event.data
    id_ = data["operation"]
    content = content_of(event)
    old = draft.operation(id_)
    if old is not None and old.finish_digest == content:
        return
    operation = named(draft, id_)
    if operation.open_dispatches and not operation.superseded:
        corrupt(draft, id_, "open_dispatch")
    if operation.outcome is not None:
        return
    operation = cast("Operation", draft.operation(id_))
    put(
        draft,
        operation._replace(
            outcome=data["outcome"],
            error=data.get("error"),
            inferred=data.get("inferred") is True,
            finished=draft.position,
            finish_digest=content,
        ),
    )
    _close(draft, id_)


def request_abort(draft: Draft, event: Event) -> None:
    """Somebody asks an open operation to stop."""
    id_ = event.data["operation"]
    operation = draft.operation(id_)
    if operation is not None and is_open(draft, id_):
        put(draft, operation._replace(aborting=True))


def named(draft: Draft, id_: str, *, after_finished: bool = False) -> Operation:
    """The operation that an owner's record names.

    A newer claim adopts it; a first record that is not its acceptance corrupts it, and so does one
    after its finish unless that is allowed here.
    """
    operation = draft.operation(id_)
    if operation is None:
        operation = _with(_new(draft, id_), "not_accepted")
        put(draft, operation)
        _list(draft, operation)
    elif operation.outcome is not None:
        if not after_finished:
            corrupt(draft, id_, "after_finished")
    elif operation.claim != draft.own.claim and not operation.superseded:
        put(draft, operation._replace(claim=draft.own.claim))
    return cast("Operation", draft.operation(id_))


def unpark(draft: Draft, id_: str) -> None:
    """Work goes on, so whatever the operation was parked for is over."""
    operation = cast("Operation", draft.operation(id_))
    if operation.parked is not None and is_open(draft, id_):
        row = operation._replace(parked=None)
        put(draft, row)
        _list(draft, row)


def set_attempt(draft: Draft, id_: str, attempt: str) -> None:
    """Note the operation's last attempt."""
    operation = cast("Operation", draft.operation(id_))
    row = operation._replace(attempt=attempt)
    put(draft, row)
    if is_open(draft, id_):
        _list(draft, row)


def reopen(draft: Draft, operation: Operation) -> None:
    """A rerun that a person allowed: a finished operation is open again."""
    current = cast("Operation", draft.operation(operation.operation))
    if current.outcome is not None:
        row = current._replace(
            outcome=None, error=None, inferred=False, finished=0, finish_digest=None
        )
        if not row.superseded:
            row = row._replace(claim=draft.own.claim)
            _list(draft, row)
        put(draft, row)


def corrupt(draft: Draft, id_: str, reason: str) -> None:
    """Name a reason why an operation cannot be trusted; each is kept once."""
    put(draft, _with(cast("Operation", draft.operation(id_)), reason))


def is_open(draft: Draft, id_: str) -> bool:
    """Whether an operation is neither finished nor superseded."""
    return id_ in draft.open_operations


def is_free(draft: Draft, entry: str) -> bool:
    """Whether an entry id is neither in the log nor promised to an attempt or a dispatch."""
    return not draft.number(entry) and draft.get(("reservations", draft.session, entry)) is None


def put(draft: Draft, row: Operation) -> None:
    """Write an operation's row."""
    draft.put("operations", row._replace(position=draft.position), row.operation)


def stop_waiting(draft: Draft, call: tuple[str, str, str | None]) -> None:
    """A call that waited for a person goes on."""
    key = waiting_key(*call)
    if key in draft.waiting:
        draft.waiting = {other: op for other, op in draft.waiting.items() if other != key}


def waiting_key(operation: str, assistant_entry: str, call_id: str | None) -> str:
    """The head's key of a call that waits: no two calls share one."""
    lengths = f"{len(operation)}:{len(assistant_entry)}"
    return f"{lengths}:{operation}:{assistant_entry}:{call_id or ''}"


def _new(draft: Draft, id_: str) -> Operation:
    return Operation(draft.session, id_, claim=draft.own.claim, accepted=draft.position)


def _with(row: Operation, reason: str) -> Operation:
    if reason in row.corruption:
        return row
    return row._replace(corruption=(*row.corruption, reason))


def _start(draft: Draft, id_: str, kind: str) -> list[str]:
    """Supersede what older claims left open; the reasons that speak against the new one."""
    reasons: list[str] = []
    for other, item in draft.open_operations.items():
        if item["kind"] != kind or other == id_:
            continue
        operation = cast("Operation", draft.operation(other))
        if operation.claim == draft.own.claim:
            reasons.append("second_of_kind")
            continue
        put(draft, operation._replace(superseded=True))
        _close(draft, other)
    if kind == "navigation" and any(
        item["kind"] == "compaction" for item in draft.open_operations.values()
    ):
        reasons.append("inside_compaction")
    return reasons


def _list(draft: Draft, row: Operation) -> None:
    item = {"kind": row.kind, "attempt": row.attempt, "parked": row.parked is not None}
    draft.open_operations = {**draft.open_operations, row.operation: item}


def _close(draft: Draft, id_: str) -> None:
    draft.open_operations = {
        other: item for other, item in draft.open_operations.items() if other != id_
    }
    if draft.waiting:
        draft.waiting = {key: op for key, op in draft.waiting.items() if op != id_}
