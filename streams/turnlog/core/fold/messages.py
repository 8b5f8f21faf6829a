"""Messages and rule 5: where tool results go, and which call they answer."""

from __future__ import annotations

from turnlog.core.fold.dispatches import OPEN, add_answer, settle
from turnlog.core.fold.draft import Draft
from turnlog.core.fold.entries import Place, Shape, add_entry, at, calls_of, find_place
from turnlog.core.frames import Event
from turnlog.core.rows import Attempt, Dispatch, Entry

TERMINAL_STOPS = {
    "stop": "completed",
    "length": "completed",
    "content_filter": "completed",
    "error": "failed",
    "aborted": "aborted",
}
"""The stop reasons that end a turn, with the outcome each means; any other goes on."""


def apply_message(draft: Draft, event: Event) -> None:
    """A message of any role."""
    data = event.data
    role = data["role"]
    if role == "tool":
        _apply_result(draft, event)
        return
    if role != "assistant":
        add_entry(draft, event, find_place(draft, event), Shape(role, node=True))
        return
    stop = data.get("stop_reason")
    shape = Shape(role, node=True, calls=calls_of(data), stop_reason=stop)
    add_entry(draft, event, find_place(draft, event), shape)
    attempt: Attempt | None = None
    if data.get("attempt") is not None:
        attempt = draft.get(("attempts", draft.session, data["attempt"]))
    if attempt is not None and attempt.assistant_entry == event.id:
        status = TERMINAL_STOPS.get(stop or "", "continues")
        row = attempt._replace(status=status, position=draft.position)
        draft.put("attempts", row, attempt.attempt)


def _apply_result(draft: Draft, event: Event) -> None:
    if event.data.get("dispatch") is None:
        place = find_place(draft, event)
        answers = _call_answered(draft, place.parent, event.data.get("call_id"))
        add_entry(draft, event, place, Shape("tool", node=True, answers=answers))
        return
    dispatch = draft.dispatch(event.data["dispatch"])
    if dispatch is None:
        _keep(draft, event, "unknown_dispatch")
        return
    if dispatch.status != OPEN or dispatch.result_entry != event.id:
        # before the entry exists, since a copy of the standing answer never gets here (rule 1)
        add_answer(draft, dispatch, event)
        _keep(draft, event, "late_result")
        return
    late = event.id in draft.missing_parents
    settle(draft, dispatch, event, event.data.get("settled_by") or "host")
    assistant = _holder(draft, dispatch)
    if late or assistant is None:
        _keep(draft, event, "not_placed")
        return
    leaf = at(draft, draft.leaf)
    declared = event.data.get("parent")
    place = Place(leaf, None if declared == leaf.id else declared, bridged=False, late=False)
    answers = (assistant.number, dispatch.call_index)
    add_entry(draft, event, place, Shape("tool", node=True, answers=answers))


def _keep(draft: Draft, event: Event, reason: str) -> None:
    """Keep a result that moves nothing."""
    add_entry(draft, event, find_place(draft, event), Shape("tool", void=reason))


def _holder(draft: Draft, dispatch: Dispatch) -> Entry | None:
    """The assistant entry that holds a dispatch's call, where that is on the leaf's path."""
    number = draft.number(dispatch.assistant_entry)
    if not number:
        return None
    entry = draft.entry(number)
    if entry.void is not None or dispatch.call_index >= len(entry.calls):
        return None
    return entry if draft.on_path(number) else None


def _call_answered(draft: Draft, parent: Entry, call_id: str | None) -> tuple[int, int] | None:
    """Which call of the nearest assistant entry a result without a dispatch answers."""
    above = parent.kind == "message" and parent.role == "assistant"
    assistant = parent if above else at(draft, parent.assistant_ref)
    if call_id not in assistant.calls:
        return None
    answered: set[int] = set()
    answer = 0 if above else parent.number if parent.answers is not None else parent.answer_ref
    while answer:
        row = draft.entry(answer)
        if row.answers is not None and row.answers[0] == assistant.number:
            answered.add(row.answers[1])
        answer = row.answer_ref
    for index, name in enumerate(assistant.calls):
        if name == call_id and index not in answered:
            return assistant.number, index
    return None
