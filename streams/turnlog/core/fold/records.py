"""Records that concern the session itself: creation, release, facts, approvals and blobs."""

from __future__ import annotations

from typing import Any, cast

from turnlog.core.fold import operations
from turnlog.core.fold.draft import Draft
from turnlog.core.fold.surfaces import set_surface, surface_at
from turnlog.core.frames import Data, Event, content_of
from turnlog.core.rows import EMPTY, Approval, AppState, Blob, Fact, Json


def create_session(draft: Draft, event: Event) -> None:
    """What the session starts from; only in the owner's first frame, and once."""
    data = event.data
    created = draft.fields.get("created", draft.before.created)
    if draft.before.listed or created:
        if not _is_same_creation(draft, event):
            draft.reject(event, "session_created after the first frame", "late_created")
        return
    forked = data.get("parent_session") is not None and data.get("fork_at") is not None
    draft.fields.update(
        created=True,
        cwd=data.get("cwd"),
        agent=data.get("agent"),
        parent_session=data.get("parent_session"),
        fork_at=data["fork_at"] if forked else None,
        spawned_by=data.get("spawned_by"),
        origin=data.get("origin"),
        created_digest=content_of(event),
    )
    if data.get("title") is not None:
        draft.fields["title"] = data["title"]
    initial: Json = data.get("initial_app_state") or EMPTY
    state: AppState | None = draft.get(("app_states", draft.session))
    row = AppState(draft.session, 0, initial, initial, draft.position)
    if state is not None and state.entry:
        row = state._replace(initial=initial)
    draft.put("app_states", row)
    if forked:
        set_surface(draft, surface_at(draft.entry, draft.leaf, fork=True))


def release_session(draft: Draft, event: Event) -> None:
    """The owner gives the session up; its epoch stays in force for evidence only."""
    if event.data["claim"] == draft.own.claim:
        draft.own = draft.own._replace(released=True)
    else:
        draft.reject(event, "session_released names another claim", "malformed")


def set_fact(draft: Draft, event: Event) -> None:
    """An owner's fact: the latest wins."""
    data = event.data
    name, value = data["name"], data["value"]
    draft.put("facts", Fact(draft.session, name, event.id, value, draft.position), name)
    if name == "title" and isinstance(value, str):
        draft.fields["title"] = value
    if name.startswith("label:") and (value is None or isinstance(value, str)):
        number = draft.number(name.removeprefix("label:"))
        first = draft.entry(number).branch if number else 0
        if first:
            row = draft.branch(first)
            draft.put("branches", row._replace(label=value, position=draft.position), first)


def offer_fact(draft: Draft, event: Event) -> None:
    """A guest's fact applies iff what it saw is still in force."""
    current = cast("Fact | None", draft.get(("facts", draft.session, event.data["name"])))
    if event.data.get("replaces") == (current.event if current is not None else None):
        set_fact(draft, event)


def ask_approval(draft: Draft, event: Event) -> None:
    """A call waits for a person, unless that person was faster."""
    data = event.data
    old = _approval(draft, data)
    if old is not None and old.asked:
        return
    operation = operations.named(draft, data["operation"])
    row = old or Approval(draft.session, *_call(data), 0, None, None, 0)
    draft.put(
        "approvals", row._replace(asked=draft.position, position=draft.position), *_call(data)
    )
    if row.decision is None and operations.is_open(draft, operation.operation):
        key = operations.waiting_key(*_call(data))
        draft.waiting = {**draft.waiting, key: data["operation"]}


def decide_approval(draft: Draft, event: Event) -> None:
    """An owner's record of a decision."""
    data = event.data
    old = _approval(draft, data)
    if old is None or (old.decision, old.by) != (data["decision"], data.get("by")):
        operations.named(draft, data["operation"])
    note_decision(draft, event)


def note_decision(draft: Draft, event: Event) -> None:
    """The first decision of a call stands, whoever brings it."""
    data = event.data
    old = _approval(draft, data)
    if old is not None and old.decision is not None:
        return
    row = old or Approval(draft.session, *_call(data), 0, None, None, 0)
    row = row._replace(decision=data["decision"], by=data.get("by"), position=draft.position)
    draft.put("approvals", row, *_call(data))
    operations.stop_waiting(draft, _call(data))


def add_blob_part(draft: Draft, event: Event) -> None:
    """A slice of a large value; the first of each index counts."""
    data = event.data
    digest, index = data["digest"], str(data["index"])
    old = cast("Blob | None", draft.get(("blobs", draft.session, digest)))
    row = old or Blob(draft.session, digest, 0, None, data["of"], {}, 0)
    if index in row.positions:
        return
    size = len(data["bytes"]) * 3 // 4 - data["bytes"][-2:].count("=")
    row = row._replace(
        size=(row.size or 0) + size,
        positions={**row.positions, index: (draft.position, draft.index)},
        position=draft.position,
    )
    draft.put("blobs", row, digest)


def _call(data: Data) -> tuple[str, str, str]:
    return data["operation"], data["assistant_entry"], data["call_id"]


def _approval(draft: Draft, data: Data) -> Approval | None:
    return cast("Approval | None", draft.get(("approvals", draft.session, *_call(data))))


def _is_same_creation(draft: Draft, event: Event) -> bool:
    known: Any = draft.fields.get("created_digest", draft.before.created_digest)
    return bool(known == content_of(event))
