"""The fold: one frame and the rows before it give the rows after it.

`fold(frame, position, tables)` is pure. It gives whole new rows for one session, the head row last,
and does nothing for a frame at or below the head's position, so folding twice changes nothing. The
rules, with their numbers, are in the design and in docs/RULES.md; each file here holds some.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from turnlog.core.events import GUEST_TYPES, TYPES
from turnlog.core.fold import attempts, dispatches, entries, inputs, operations, records
from turnlog.core.fold.compactions import apply_compaction
from turnlog.core.fold.draft import Draft
from turnlog.core.fold.messages import apply_message
from turnlog.core.fold.surfaces import write_page
from turnlog.core.frames import Event, Frame, Header, Unreadable, is_entry
from turnlog.core.ownership import (
    Admission,
    admit,
    after_claim,
    after_frame,
    has_claim,
    is_beyond,
    sole_claim,
)
from turnlog.core.rows import Changes, Tables

__all__ = ["fold"]

Handler = Callable[[Draft, Event], None]

ENTRIES: Mapping[str, Handler] = {
    "message": apply_message,
    "app_state": entries.apply_app_state,
    "compaction": apply_compaction,
    "branch": entries.apply_branch,
    "custom": entries.apply_custom,
}
RECORDS: Mapping[str, Handler] = {
    "session_created": records.create_session,
    "session_released": records.release_session,
    "fact": records.set_fact,
    "operation_accepted": operations.accept_operation,
    "model_attempted": attempts.attempt_model,
    "usage_settled": attempts.settle_usage,
    "approval_asked": records.ask_approval,
    "approval_decided": records.decide_approval,
    "tool_dispatched": dispatches.dispatch_tool,
    "dispatch_settled": dispatches.settle_dispatch,
    "rerun_allowed": dispatches.allow_rerun,
    "input_queued": inputs.queue_input,
    "input_cancelled": inputs.cancel_input,
    "abort_requested": operations.request_abort,
    "operation_parked": operations.park_operation,
    "operation_finished": operations.finish_operation,
    "blob_part": records.add_blob_part,
}
"""What an owner's records do; `context_set` and `chunk` stand in no table."""
GUEST_RECORDS: Mapping[str, Handler] = {
    "input_queued": inputs.queue_input,
    "input_cancelled": inputs.cancel_input,
    "abort_requested": operations.request_abort,
    "approval_decided": records.note_decision,
    "fact": records.offer_fact,
    "rerun_allowed": dispatches.allow_rerun,
    "dispatch_settled": dispatches.settle_dispatch,
}


def fold(frame: Frame | Unreadable, position: int, tables: Tables) -> Changes:
    """Fold one frame.

    `position` is where it stands in its partition, from 1. `tables` gives the rows of its session
    as they are after the frame before it. Gives the rows that changed, by key, the head last; an
    empty mapping where the frame was folded before. Never raises for what a frame holds.
    """
    session = frame.session if isinstance(frame, Unreadable) else frame.header.session
    draft = Draft(session, position, tables)
    if position <= draft.before.position:
        return {}
    draft.counts["frames"] += 1
    if isinstance(frame, Unreadable):
        _fold_unreadable(draft, frame)
    elif frame.header.is_guest:
        _fold_guest(draft, frame)
    else:
        _fold_owner(draft, frame, frame.header)
    if draft.page is not None:
        write_page(draft)
    return draft.finish()


def _fold_unreadable(draft: Draft, frame: Unreadable) -> None:
    """Rule 10: an owner's takes part by its header; any other speaks for nobody."""
    header = frame.header
    if header is None:
        _quarantine_frame(draft, frame, frame.reason, "no_header")
    elif header.is_guest or header.session != frame.session:
        _quarantine_frame(draft, frame, frame.reason)
    else:
        _fold_owner(draft, frame, header)


def _fold_guest(draft: Draft, frame: Frame) -> None:
    claim = sole_claim(frame)
    if claim is not None:
        draft.counts["events"] += 1
        _claim(draft, claim)
        return
    refused = _refused_guest(frame)
    if refused is not None:
        draft.quarantine("fold", refused, frame.digest)
        return
    for draft.index, event in enumerate(frame.events):
        draft.counts["events"] += 1
        if event.fault is not None:
            draft.quarantine("decode", event.fault, event.digest)
        elif not event.newer and event.type in GUEST_RECORDS:
            GUEST_RECORDS[event.type](draft, event)


def _refused_guest(frame: Frame) -> str | None:
    """Why a guest frame is quarantined whole, or None."""
    if len(frame.events) > 1 and has_claim(frame):
        return "a session_claimed must be alone in its frame"
    for event in frame.events:
        if event.newer or event.type not in TYPES:
            continue
        if event.type not in GUEST_TYPES:
            return f"a guest may not write {event.type}"
        if event.fault is None and event.type == "dispatch_settled" and not _is_by_person(event):
            return "a guest may write dispatch_settled for a person only"
    return None


def _is_by_person(event: Event) -> bool:
    return bool(event.data.get("settled_by") == "person")


def _claim(draft: Draft, event: Event) -> None:
    before = draft.own
    won, draft.own = after_claim(before, event.data)
    if not won:
        draft.counts["lost_claims"] += 1
        if is_beyond(before, event.data):
            draft.add_overflow("lost_claims")
        return
    draft.fields.update(owner=event.data.get("host"), reason=event.data.get("reason"))


def _fold_owner(draft: Draft, frame: Frame | Unreadable, header: Header) -> None:
    admission = admit(draft.own, header, frame.digest)
    if admission is Admission.APPLIES:
        _apply(draft, frame, header)
    elif admission is Admission.FENCED:
        draft.counts["fenced"] += 1
        if isinstance(frame, Frame):
            _take_evidence(draft, frame, header)
        else:
            _quarantine_frame(draft, frame, frame.reason)
    elif admission is Admission.DUPLICATE:
        draft.counts["duplicates"] += 1
    elif admission is Admission.FOREIGN:
        _quarantine_frame(draft, frame, "written under a claim that is not in force")
    elif admission is Admission.SEQ_CONFLICT:
        reason = f"seq {header.seq} is in the log with other content"
        _quarantine_frame(draft, frame, reason, "seq_conflict")
    else:
        missing = (header.seq or 0) - draft.own.seq - 1
        draft.add_damage("gap", f"{missing} frame(s) missing before seq {header.seq}")
        _apply(draft, frame, header)


def _apply(draft: Draft, frame: Frame | Unreadable, header: Header) -> None:
    draft.own = after_frame(draft.own, header, frame.digest)
    draft.listed = True
    if isinstance(frame, Unreadable):
        _quarantine_frame(draft, frame, frame.reason, "unreadable")
        return
    if has_claim(frame):
        reason = "a session_claimed in an owner's frame"
        draft.quarantine("fold", reason, frame.digest, "misplaced_claim")
        return
    draft.counts["events"] += len(frame.events)
    for draft.index, event in enumerate(frame.events):
        is_node = is_entry(event)
        if is_node and event.time is not None:
            draft.add_time(event.time)
        if event.fault is not None:
            draft.quarantine("decode", event.fault, event.digest, "malformed")
            continue
        if event.newer:
            draft.newer = True
        if is_node:
            if not entries.is_repeated(draft, event):
                ENTRIES.get("" if event.newer else event.type, entries.apply_opaque)(draft, event)
        elif event.type in RECORDS and not event.newer:
            RECORDS[event.type](draft, event)


def _take_evidence(draft: Draft, frame: Frame, header: Header) -> None:
    """A fenced frame is not applied; what it says of effects that did happen is kept."""
    for draft.index, event in enumerate(frame.events):
        if event.fault is not None or event.newer:
            continue
        if event.type == "usage_settled":
            attempts.take_usage(draft, event, header.claim)
        elif event.type == "dispatch_settled" or (
            event.type == "message" and event.data["role"] == "tool"
        ):
            dispatches.take_evidence(draft, event, header.claim)


def _quarantine_frame(
    draft: Draft, frame: Frame | Unreadable, reason: str, damage: str | None = None
) -> None:
    stage = "decode" if isinstance(frame, Unreadable) else "fold"
    draft.index = -1
    draft.quarantine(stage, reason, frame.digest, damage)
