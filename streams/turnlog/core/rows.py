"""The rows of the tables, as the fold writes them: the logical contract of design, "The fold".

A row is a tuple and is never changed in place; the fold gives whole new rows. Numbers name entries
within their session from 1; 0 is the root position, and on a fork's surface the parent's surface.
Compound fields hold JSON values (dict, list or tuple, text, numbers), so a row is plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

Json: TypeAlias = Any
Key: TypeAlias = tuple[Any, ...]
"""(table, session) followed by the rest of the row's key."""
Row: TypeAlias = Any
"""One of the row classes below, or a number for the derived index `ids`."""
Changes: TypeAlias = Mapping[Key, Row | None]
"""Whole new rows by key; None takes a row away."""


class Tables(Protocol):
    """The rows before a frame. `get` answers None where there is no row."""

    def get(self, key: Key, /) -> Row | None: ...


EMPTY: dict[str, Json] = {}
NO_USAGE: dict[str, Json] = {
    "input": 0,
    "output": 0,
    "cache_read": 0,
    "cache_write": 0,
    "reasoning": 0,
    "cost_usd": "0",
    "attempts": 0,
}
NO_COUNTS: dict[str, int] = {
    "frames": 0,
    "events": 0,
    "entries": 0,
    "messages": 0,
    "duplicates": 0,
    "fenced": 0,
    "lost_claims": 0,
    "quarantined": 0,
    "voids": 0,
    "jumps": 0,
    "evidence": 0,
}


class Head(NamedTuple):
    """Table `sessions`: everything about a session that an append needs or changes."""

    session: str
    position: int = 0
    listed: bool = False
    created: bool = False
    created_digest: str | None = None
    claim: str | None = None
    epoch: int = 0
    owner: str | None = None
    reason: str | None = None
    released: bool = False
    seq: int = 0
    digest: str | None = None
    lost_claims: tuple[Json, ...] = ()
    leaf: int = 0
    depth: int = 0
    status: str = "idle"
    title: str | None = None
    cwd: str | None = None
    agent: str | None = None
    parent_session: str | None = None
    fork_at: Json = None
    spawned_by: Json = None
    origin: Json = None
    first_time: str | None = None
    last_time: str | None = None
    newer: bool = False
    counts: dict[str, int] = NO_COUNTS
    usage: dict[str, Json] = NO_USAGE
    fenced_usage: dict[str, Json] = NO_USAGE
    generation: int = 0
    nodes: int = 0
    pages: int = 0
    open_operations: dict[str, Json] = EMPTY
    open_dispatches: dict[str, str] = EMPTY
    pending_inputs: dict[str, str] = EMPTY
    waiting: dict[str, str] = EMPTY
    missing_parents: dict[str, Json] = EMPTY
    damage: tuple[Json, ...] = ()
    overflow: dict[str, int] = EMPTY


class Entry(NamedTuple):
    """Table `entries`: one node of the session tree, key (session, number)."""

    session: str
    number: int
    id: str
    parent: int
    declared: str | None
    kind: str
    role: str | None
    position: int
    event_index: int
    depth: int
    branch: int
    place: int
    state_ref: int
    compaction_ref: int
    assistant_ref: int
    answer_ref: int
    node: bool
    calls: tuple[str, ...]
    answers: tuple[int, int] | None
    replaces: tuple[int, int] | None
    stop_reason: str | None
    value: Json
    imported: bool
    void: str | None
    digest: str


class Branch(NamedTuple):
    """Table `branches`: a run of entries without a fork, key (session, its first entry)."""

    session: str
    first: int
    tip: int
    fork_point: int
    depth: int
    label: str | None
    active: bool
    position: int


class AppState(NamedTuple):
    """Table `app_states`: the state in force at the leaf; entry 0 is the initial state."""

    session: str
    entry: int
    value: Json
    initial: Json
    position: int


class Surface(NamedTuple):
    """Table `surfaces`: up to PAGE entry numbers in model order, key (session, page)."""

    session: str
    page: int
    nodes: tuple[int, ...]
    position: int


class Operation(NamedTuple):
    """Table `operations`: one unit of work, key (session, operation)."""

    session: str
    operation: str
    kind: str | None = None
    trigger: str | None = None
    input_entry: str | None = None
    start_leaf: str | None = None
    claim: str | None = None
    accepted: int = 0
    finished: int = 0
    outcome: str | None = None
    error: Json = None
    inferred: bool = False
    parked: str | None = None
    superseded: bool = False
    aborting: bool = False
    attempt: str | None = None
    open_dispatches: int = 0
    corruption: tuple[str, ...] = ()
    position: int = 0
    digest: str | None = None
    finish_digest: str | None = None


class Attempt(NamedTuple):
    """Table `attempts`: one model request, key (session, attempt)."""

    session: str
    attempt: str
    operation: str
    assistant_entry: str | None = None
    model: str | None = None
    context: str | None = None
    usage: Json = None
    usage_model: str | None = None
    usage_fenced: bool = False
    usage_conflict: bool = False
    status: str = "started"
    claim: str | None = None
    position: int = 0
    digest: str | None = None


class Dispatch(NamedTuple):
    """Table `dispatches`: one tool call that was dispatched, key (session, dispatch).

    `tries` holds one object for each T1 in force: try, claim, position, index, result_entry,
    digest. `evidence` holds answers that came after the one that stands, or from a fenced owner;
    `notes` what persons said, each with the try it was
    said of and whether it was applied.
    """

    session: str
    dispatch: str
    operation: str
    call_no: int | None
    call_id: str | None
    call_index: int
    tool: str | None
    effect: str
    key: str | None
    args_hash: str | None
    assistant_entry: str
    result_entry: str
    tries: tuple[Json, ...]
    answer: Json
    status: str
    settled_by: str | None
    evidence: tuple[Json, ...]
    notes: tuple[Json, ...]
    rerun: bool
    position: int


class Input(NamedTuple):
    """Table `inputs`: a queued input, kept for ever, key (session, input)."""

    session: str
    input: str
    status: str
    delivery: str | None
    entry: str
    queued: int
    placed: int
    digest: str
    position: int


class Blob(NamedTuple):
    """Table `blobs`: where the parts of a large value lie, key (session, digest)."""

    session: str
    digest: str
    size: int | None
    media_type: str | None
    of: int
    positions: dict[str, Json]
    position: int


class Quarantine(NamedTuple):
    """Table `quarantine`: what could not be folded, key (session, position, event index).

    `event_index` is the event's place in its frame, or -1 for the whole frame.
    """

    session: str
    position: int
    event_index: int
    stage: str
    reason: str
    damage: bool
    digest: str


class Fact(NamedTuple):
    """Table `facts`: the latest value of each name, key (session, name)."""

    session: str
    name: str
    event: str
    value: Json
    position: int


class Approval(NamedTuple):
    """Table `approvals`: key (session, operation, assistant entry, call id)."""

    session: str
    operation: str
    assistant_entry: str
    call_id: str
    asked: int
    decision: str | None
    by: str | None
    position: int


class Reservation(NamedTuple):
    """Table `reservations`: an entry id that an attempt or a dispatch is to write."""

    session: str
    entry: str
    holder: str


TABLES: Mapping[str, type[Any]] = {
    "sessions": Head,
    "entries": Entry,
    "branches": Branch,
    "app_states": AppState,
    "surfaces": Surface,
    "operations": Operation,
    "attempts": Attempt,
    "dispatches": Dispatch,
    "inputs": Input,
    "blobs": Blob,
    "quarantine": Quarantine,
    "facts": Fact,
    "approvals": Approval,
    "reservations": Reservation,
}
KEY_LENGTHS: Mapping[str, int] = {
    name: 1 if name in ("sessions", "app_states") else 2 for name in TABLES
} | {"quarantine": 3, "approvals": 4}
"""How many leading fields of a row are its key, the session included."""


def key_of(table: str, row: Any) -> Key:
    """The key under which a row is stored."""
    return (table, *row[: KEY_LENGTHS[table]])
