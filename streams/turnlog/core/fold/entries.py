"""Rules 1 to 3: identity, parents, branches and the leaf."""

from __future__ import annotations

from typing import NamedTuple

from turnlog.core.events import ENTRY_TYPES
from turnlog.core.fold import inputs
from turnlog.core.fold.draft import Draft
from turnlog.core.fold.surfaces import append_node, set_surface, surface_at
from turnlog.core.frames import Data, Event
from turnlog.core.rows import EMPTY, AppState, Branch, Entry, Json
from turnlog.core.shapes import is_list

ROOT = Entry(
    session="",
    number=0,
    id="",
    parent=0,
    declared=None,
    kind="root",
    role=None,
    position=0,
    event_index=0,
    depth=0,
    branch=0,
    place=0,
    state_ref=0,
    compaction_ref=0,
    assistant_ref=0,
    answer_ref=0,
    node=False,
    calls=(),
    answers=None,
    replaces=None,
    stop_reason=None,
    value=None,
    imported=False,
    void=None,
    digest="",
)
"""The root position as an entry, so that the first entry is no special case."""


class Place(NamedTuple):
    """Where an entry goes: under which entry, whether that was a guess, whether it is late."""

    parent: Entry
    declared: str | None
    bridged: bool
    late: bool


class Shape(NamedTuple):
    """What an entry's type says of it, before it is a row."""

    role: str | None = None
    node: bool = False
    calls: tuple[str, ...] = ()
    answers: tuple[int, int] | None = None
    replaces: tuple[int, int] | None = None
    place: int | None = None
    stop_reason: str | None = None
    value: Json = None
    void: str | None = None


def is_repeated(draft: Draft, event: Event) -> bool:
    """Rule 1: an id seen before is a duplicate or a conflict, and the first one stands."""
    number = draft.number(event.id)
    if not number:
        return False
    if draft.entry(number).digest == event.digest:
        draft.counts["duplicates"] += 1
    else:
        draft.reject(event, f"entry {event.id!r} is in the log with other content", "conflict")
    return True


def resolve(draft: Draft, id_: str | None) -> Entry | None:
    """The entry that an id stands for: a void one stands for its parent. None: not in the log."""
    if id_ is None:
        return ROOT
    number = draft.number(id_)
    if not number:
        return None
    entry = draft.entry(number)
    return entry if entry.void is None else at(draft, entry.parent)


def at(draft: Draft, number: int) -> Entry:
    """The entry of a number, the root position included."""
    return draft.entry(number) if number else ROOT


def find_place(draft: Draft, event: Event) -> Place:
    """Rule 2: the parent as declared, or the leaf where that is not in the log."""
    late = event.id in draft.missing_parents
    if late:
        draft.missing_parents = {
            id_: position for id_, position in draft.missing_parents.items() if id_ != event.id
        }
    declared: str | None = event.data.get("parent")
    parent = resolve(draft, declared)
    bridged = parent is None
    if parent is None:
        draft.miss_parent(declared or "")
        parent = at(draft, draft.leaf)
    if late and _is_cycle(draft, declared, event.id):
        draft.add_damage("cycle", f"entry {event.id!r} is among its own declared parents")
    elsewhere = bridged or parent.id != (declared or "")
    return Place(parent, declared if elsewhere else None, bridged, late)


def add_entry(draft: Draft, event: Event, place: Place, shape: Shape) -> Entry:
    """Rule 3: make the row, give it a branch, and move the leaf unless it is void or late."""
    counts = draft.counts
    counts["entries"] += 1
    number = counts["entries"]
    parent = place.parent
    kind = event.type if event.type in ENTRY_TYPES and not event.newer else "opaque"
    applied = shape.void is None
    if not applied:
        counts["voids"] += 1
    elif kind == "message":
        counts["messages"] += 1
    above_is_assistant = parent.role == "assistant" and parent.kind == "message"
    entry = Entry(
        draft.session,
        number,
        event.id,
        parent.number,
        place.declared,
        kind,
        shape.role,
        draft.position,
        draft.index,
        parent.depth + 1,
        _branch(draft, event, place, number) if applied else 0,
        parent.depth + 1 if shape.place is None else shape.place,
        number if kind == "app_state" else parent.state_ref,
        number if shape.replaces is not None else parent.compaction_ref,
        parent.number if above_is_assistant else parent.assistant_ref,
        _answer_ref(parent, above_is_assistant=above_is_assistant),
        shape.node,
        shape.calls,
        shape.answers,
        shape.replaces,
        shape.stop_reason,
        shape.value,
        draft.imported,
        shape.void,
        event.digest,
    )
    draft.put("entries", entry, number)
    draft.changes[("ids", draft.session, event.id)] = number
    if applied and not place.late:
        _move_leaf(draft, event, entry, parent)
    if draft.pending_inputs:
        inputs.place_input(draft, event.id)
    return entry


def apply_plain(draft: Draft, event: Event, shape: Shape) -> None:
    """An entry whose type adds no rule of its own."""
    add_entry(draft, event, find_place(draft, event), shape)


def apply_app_state(draft: Draft, event: Event) -> None:
    """The whole state of the application."""
    apply_plain(draft, event, Shape(value=event.data["value"]))


def apply_branch(draft: Draft, event: Event) -> None:
    """A navigation; a surface node where it carries a summary."""
    has_summary = event.data.get("summary") is not None
    apply_plain(draft, event, Shape("user" if has_summary else None, has_summary))


def apply_custom(draft: Draft, event: Event) -> None:
    """State of an extension; a surface node where it is in context."""
    in_context = event.data.get("in_context") is True
    apply_plain(draft, event, Shape("user" if in_context else None, in_context))


def apply_opaque(draft: Draft, event: Event) -> None:
    """An entry of a type or version that this release does not know."""
    apply_plain(draft, event, Shape())


def calls_of(data: Data) -> tuple[str, ...]:
    """The call ids of a message's tool calls, in order."""
    content = data["content"]
    if not is_list(content):
        return ()
    return tuple(part["call_id"] for part in content if part["type"] == "tool_call")


def _answer_ref(parent: Entry, *, above_is_assistant: bool) -> int:
    if above_is_assistant:
        return 0
    return parent.number if parent.answers is not None else parent.answer_ref


def _is_cycle(draft: Draft, declared: str | None, id_: str) -> bool:
    """Whether an entry that arrives late is among its own parents, as they declare each other."""
    seen: set[str] = set()
    while declared is not None and declared not in seen:
        if declared == id_:
            return True
        seen.add(declared)
        number = draft.number(declared)
        entry = at(draft, number)
        declared = entry.declared or at(draft, entry.parent).id or None
    return False


def _branch(draft: Draft, event: Event, place: Place, number: int) -> int:
    """Continue the parent's branch where it is the tip, else begin one; gives its first entry."""
    parent = place.parent
    if parent.number and not place.late:
        branch = draft.branch(parent.branch)
        if branch.tip == parent.number:
            row = Branch(
                branch.session,
                branch.first,
                number,
                branch.fork_point,
                parent.depth + 1,
                branch.label,
                branch.active,
                draft.position,
            )
            draft.put("branches", row, branch.first)
            return branch.first
    label = event.data.get("label") if event.type == "branch" and not event.newer else None
    row = Branch(
        draft.session,
        number,
        number,
        parent.number,
        parent.depth + 1,
        label,
        active=False,
        position=draft.position,
    )
    draft.put("branches", row, number)
    return number


def _move_leaf(draft: Draft, event: Event, entry: Entry, parent: Entry) -> None:
    """The applied entry becomes the leaf; a jump takes state and surface from its parent."""
    if parent.number != draft.leaf:
        if event.type != "branch" or event.newer:
            draft.counts["jumps"] += 1
        fork = draft.fields.get("fork_at", draft.before.fork_at) is not None
        set_surface(draft, surface_at(draft.entry, parent.number, fork=fork))
        _set_state(draft, parent.state_ref)
    if parent.number != draft.leaf or parent.branch != entry.branch:
        _activate(draft, entry.branch)
    if entry.kind == "app_state":
        _set_state(draft, entry.number)
    if entry.node and entry.replaces is None:
        append_node(draft, entry.number)
    draft.leaf, draft.depth = entry.number, entry.depth


def _activate(draft: Draft, first: int) -> None:
    """Another branch than that of the leaf becomes the active one."""
    if draft.leaf:
        old = draft.branch(draft.entry(draft.leaf).branch)
        draft.put("branches", old._replace(active=False, position=draft.position), old.first)
    new = draft.branch(first)
    draft.put("branches", new._replace(active=True, position=draft.position), first)


def _set_state(draft: Draft, number: int) -> None:
    """Put the state of an app_state entry in force; 0 is the initial state."""
    row: AppState | None = draft.get(("app_states", draft.session))
    initial: Json = row.initial if row is not None else EMPTY
    if row is not None and row.entry == number:
        return
    if row is None and number == 0:
        return
    value: Json = draft.entry(number).value if number else initial
    draft.put("app_states", AppState(draft.session, number, value, initial, draft.position))
