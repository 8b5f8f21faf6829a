"""T1, its answers and the evidence: rules 5, 7 and 9."""

from __future__ import annotations

from typing import Any, cast

from turnlog.core.fold import operations
from turnlog.core.fold.draft import Draft
from turnlog.core.frames import Event, content_of
from turnlog.core.rows import Dispatch, Json, Operation, Reservation

OPEN = "open"
MAX_OPEN_DISPATCHES = 256
MAX_EVIDENCE = 64
HAPPENED = ("ok", "error")
"""The statuses which say that the effect took place."""


def dispatch_tool(draft: Draft, event: Event) -> None:
    """T1: a new dispatch, or another try of one."""
    data = event.data
    old = draft.dispatch(data["dispatch"])
    content = content_of(event)
    if old is not None and any(
        item["try"] == _try(data) and item["digest"] == content for item in old.tries
    ):
        return
    is_rerun = old is not None and _is_rerun(draft, old, event)
    if old is not None and not is_rerun and _was_taken_back(draft, old, event):
        return
    operation = operations.named(draft, data["operation"], after_finished=is_rerun)
    if old is None:
        _first_try(draft, event, operation)
    elif is_rerun or _is_retry(draft, old, event):
        _next_try(draft, old, event, operation, is_rerun=is_rerun)
    else:
        operations.corrupt(draft, data["operation"], "t1_repeated")
        return  # nothing may start, so whatever waits for a person still does
    operations.unpark(draft, data["operation"])
    call = (data["operation"], data["assistant_entry"], data.get("call_id"))
    operations.stop_waiting(draft, call)


def settle_dispatch(draft: Draft, event: Event) -> None:
    """`dispatch_settled`, by its host, a recovery or a person."""
    data = event.data
    dispatch = draft.dispatch(data["dispatch"])
    if dispatch is None:
        return
    if data.get("settled_by") == "person":
        _settle_by_person(draft, dispatch, event)
    elif dispatch.status == OPEN and data.get("try") in (None, dispatch.tries[-1]["try"]):
        settle(draft, dispatch, event, data.get("settled_by") or "host")
    elif not answer_stands(dispatch, event):
        add_answer(draft, dispatch, event)


def allow_rerun(draft: Draft, event: Event) -> None:
    """A person allows one T1 more of a dispatch whose outcome is unknown."""
    dispatch = draft.dispatch(event.data["dispatch"])
    if dispatch is None or not _is_news(draft, dispatch, event):
        return
    allowed = (
        dispatch.status == "unknown"
        and event.data.get("try") in (None, dispatch.tries[-1]["try"])
        and not _happened(dispatch)
    )
    row = _noted(draft, dispatch, event, applied=allowed)
    _put(draft, row._replace(rerun=dispatch.rerun or allowed))


def take_evidence(draft: Draft, event: Event, claim: str | None) -> None:
    """What a fenced frame says of a dispatch counts iff its T1 was applied under that claim."""
    dispatch = draft.dispatch(event.data.get("dispatch"))
    if dispatch is None or all(item["claim"] != claim for item in dispatch.tries):
        return
    if not answer_stands(dispatch, event):
        add_answer(draft, dispatch, event, claim)


def settle(draft: Draft, dispatch: Dispatch, event: Event, by: str) -> None:
    """The first terminal answer of a dispatch stands."""
    status = event.data.get("status") or "ok"
    _put(
        draft,
        dispatch._replace(status=status, settled_by=by, answer=_answer(draft, event, status)),
    )
    if dispatch.dispatch in draft.open_dispatches:
        draft.open_dispatches = {
            id_: operation
            for id_, operation in draft.open_dispatches.items()
            if id_ != dispatch.dispatch
        }
    _count_open(draft, dispatch.operation, -1)


def answer_stands(dispatch: Dispatch, event: Event) -> bool:
    """Whether an event is a copy of the answer that stands."""
    answer = dispatch.answer
    return answer is not None and answer["event"] == event.id and answer["digest"] == event.digest


def add_answer(draft: Draft, dispatch: Dispatch, event: Event, claim: str | None = None) -> None:
    """An answer that does not settle is evidence: the effect did happen, or somebody says so."""
    if any(
        item["event"] == event.id and item["digest"] == event.digest for item in dispatch.evidence
    ):
        return
    status = event.data.get("status") or "ok"
    tells = status in HAPPENED and not _happened(dispatch)
    if len(dispatch.evidence) >= MAX_EVIDENCE and not tells:
        draft.add_overflow("evidence")
        return
    piece = {
        **_answer(draft, event, status),
        "claim": claim if claim is not None else draft.own.claim,
        "fenced": claim is not None,
    }
    row = dispatch._replace(evidence=(*dispatch.evidence, piece))
    draft.counts["evidence"] += 1
    if status in HAPPENED:
        row = row._replace(rerun=False)
        if row.status == "not_started" and row.settled_by == "person":
            row = row._replace(status="unknown", settled_by="recovery")
    _put(draft, row)


def _first_try(draft: Draft, event: Event, operation: Operation) -> None:
    data = event.data
    if not draft.number(data["assistant_entry"]):
        operations.corrupt(draft, operation.operation, "assistant_missing")
    _reserve(draft, event)
    _open(
        draft,
        Dispatch(
            session=draft.session,
            dispatch=data["dispatch"],
            operation=data["operation"],
            call_no=data.get("call_no"),
            call_id=data.get("call_id"),
            call_index=data["call_index"],
            tool=data.get("tool"),
            effect=data.get("effect") or "opaque",
            key=data.get("idempotency_key"),
            args_hash=data.get("args_hash"),
            assistant_entry=data["assistant_entry"],
            result_entry=data["result_entry"],
            tries=(_t1(draft, event),),
            answer=None,
            status=OPEN,
            settled_by=None,
            evidence=(),
            notes=(),
            rerun=False,
            position=draft.position,
        ),
    )


def _next_try(
    draft: Draft, old: Dispatch, event: Event, operation: Operation, *, is_rerun: bool
) -> None:
    was_open = old.status == OPEN
    row = old._replace(
        result_entry=event.data["result_entry"],
        tries=(*old.tries, _t1(draft, event)),
        answer=None,
        status=OPEN,
        settled_by=None,
        rerun=False,
    )
    if is_rerun:
        _reserve(draft, event)
        operations.reopen(draft, operation)
    if was_open:
        _put(draft, row)
    else:
        _open(draft, row)


def _is_retry(draft: Draft, old: Dispatch, event: Event) -> bool:
    """Rule 9: the same start again, by a newer owner, of what may be started twice."""
    return (
        old.status == OPEN
        and old.effect != "opaque"
        and old.tries[-1]["claim"] != draft.own.claim
        and event.data["result_entry"] == old.result_entry
        and _is_next(old, event.data)
    )


def _is_rerun(draft: Draft, old: Dispatch, event: Event) -> bool:
    """Rule 9: what a person allowed, with a new result entry."""
    return (
        old.rerun
        and old.status == "unknown"
        and operations.is_free(draft, event.data["result_entry"])
        and _is_next(old, event.data)
    )


def _was_taken_back(draft: Draft, old: Dispatch, event: Event) -> bool:
    """Whether a rerun was allowed when its host planned it and no longer is, by a person's verdict
    or by evidence. Nothing may start, but the host is not to blame: guests corrupt nothing."""
    return (
        not old.rerun
        and any(
            note["type"] == "rerun_allowed" and note["applied"] and note["try"] == _last_try(old)
            for note in old.notes
        )
        and operations.is_free(draft, event.data["result_entry"])
        and _is_next(old, event.data)
    )


def _last_try(row: Dispatch) -> int:
    number: int = row.tries[-1]["try"]
    return number


def _is_next(old: Dispatch, data: dict[str, Any]) -> bool:
    """Whether a T1 is the next try of the same call of the same operation."""
    return (
        _try(data) == old.tries[-1]["try"] + 1
        and data["operation"] == old.operation
        and data["assistant_entry"] == old.assistant_entry
        and data["call_index"] == old.call_index
        and data.get("args_hash") == old.args_hash
        and data.get("idempotency_key") == old.key
    )


def _try(data: dict[str, Any]) -> int:
    number: int | None = data.get("try")
    return 1 if number is None else number


def _t1(draft: Draft, event: Event) -> Json:
    return {
        "try": _try(event.data),
        "claim": draft.own.claim,
        "position": draft.position,
        "index": draft.index,
        "result_entry": event.data["result_entry"],
        "digest": content_of(event),
    }


def _answer(draft: Draft, event: Event, status: str) -> Json:
    return {
        "event": event.id,
        "type": event.type,
        "status": status,
        "position": draft.position,
        "index": draft.index,
        "digest": event.digest,
    }


def _reserve(draft: Draft, event: Event) -> None:
    data = event.data
    entry: str = data["result_entry"]
    if not operations.is_free(draft, entry):
        operations.corrupt(draft, data["operation"], "entry_reused")
        return
    draft.put("reservations", Reservation(draft.session, entry, data["dispatch"]), entry)


def _open(draft: Draft, row: Dispatch) -> None:
    _put(draft, row)
    if len(draft.open_dispatches) < MAX_OPEN_DISPATCHES:
        draft.open_dispatches = {**draft.open_dispatches, row.dispatch: row.operation}
    else:
        draft.add_overflow("open_dispatches")
    _count_open(draft, row.operation, 1)


def _count_open(draft: Draft, id_: str, step: int) -> None:
    operation = cast("Operation", draft.operation(id_))  # every dispatch has named it
    operations.put(draft, operation._replace(open_dispatches=operation.open_dispatches + step))


def _settle_by_person(draft: Draft, dispatch: Dispatch, event: Event) -> None:
    """Rule 7: a person replaces an unknown outcome only; anything else is a note."""
    if not _is_news(draft, dispatch, event):
        return
    data = event.data
    status = data["status"]
    applied = (
        dispatch.status == "unknown"
        and status != "unknown"
        and data.get("try") in (None, dispatch.tries[-1]["try"])
        and not (status == "not_started" and _happened(dispatch))
    )
    row = _noted(draft, dispatch, event, applied=applied)
    if applied:
        answer = _answer(draft, event, status)
        row = row._replace(status=status, settled_by="person", rerun=False, answer=answer)
    _put(draft, row)


def _happened(dispatch: Dispatch) -> bool:
    return any(item["status"] in HAPPENED for item in dispatch.evidence)


def _is_news(draft: Draft, dispatch: Dispatch, event: Event) -> bool:
    """Whether a person's word is new: each event id counts once, however often it is delivered.

    Beyond the bound nothing is taken, since it could no longer be told from what was said before.
    """
    if any(item["event"] == event.id for item in dispatch.notes):
        return False
    if len(dispatch.notes) < MAX_EVIDENCE:
        return True
    draft.add_overflow("notes")
    return False


def _noted(draft: Draft, dispatch: Dispatch, event: Event, *, applied: bool) -> Dispatch:
    note = {
        "event": event.id,
        "type": event.type,
        "status": event.data.get("status"),
        "by": event.data.get("by"),
        "note": event.data.get("note"),
        "try": _last_try(dispatch),
        "applied": applied,
        "position": draft.position,
    }
    return dispatch._replace(notes=(*dispatch.notes, note))


def _put(draft: Draft, row: Dispatch) -> None:
    draft.put("dispatches", row._replace(position=draft.position), row.dispatch)
