"""Short histories for tests: frames are sealed, read back and folded into a dict of rows.

After every record a story checks what must hold of any history (`Story.check`), so each test of a
rule is a test of these invariants, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import orjson

from turnlog.core.fold import fold
from turnlog.core.fold.surfaces import surface_at
from turnlog.core.frames import Header, NewEvent, Record, decode, seal
from turnlog.core.ownership import Ownership, follow
from turnlog.core.recovery import Executor, Verdict, plan, recover
from turnlog.core.rows import Attempt, Branch, Dispatch, Entry, Head, Input, Operation, Quarantine
from turnlog.tables.evidence import evidence_of
from turnlog.tables.store import Stored
from turnlog.tables.view import SessionView

TIME = "2026-01-01T00:00:00Z"
_serial = count()


def event(type_: str, id_: str | None = None, /, **data: Any) -> NewEvent:
    """An event of any type; names with a trailing underscore lose it (`try_`, `from_`)."""
    data = {name.rstrip("_"): value for name, value in data.items()}
    return NewEvent(type_, id_ or f"event-{next(_serial)}", TIME, data)


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": value}]


def call(call_id: str, name: str = "bash", **args: Any) -> dict[str, Any]:
    return {"type": "tool_call", "call_id": call_id, "name": name, "args": args}


def user(id_: str, parent: str | None, say: str = "hello", **data: Any) -> NewEvent:
    data = {"role": "user", "content": text(say), **data}
    return event("message", id_, parent=parent, **data)


def assistant(id_: str, parent: str | None, *calls: str, **data: Any) -> NewEvent:
    data = {
        "content": [*text("well"), *(call(call_id) for call_id in calls)],
        "stop_reason": "tool_use" if calls else "stop",
        **data,
    }
    return event("message", id_, parent=parent, role="assistant", **data)


def result(id_: str, parent: str | None, call_id: str, **data: Any) -> NewEvent:
    content = data.pop("content", text(f"result {id_}"))
    data.setdefault("status", "ok")
    return event(
        "message", id_, parent=parent, role="tool", call_id=call_id, content=content, **data
    )


def state(id_: str, parent: str | None, **value: Any) -> NewEvent:
    return event("app_state", id_, parent=parent, value=value)


def summary(id_: str, parent: str | None, first: str, last: str, **data: Any) -> NewEvent:
    data = {"prepared_at": parent, "kind": "summary", **data}
    return event(
        "compaction",
        id_,
        parent=parent,
        replaces={"first": first, "last": last},
        content=text(f"summary {id_}"),
        **data,
    )


def prune(id_: str, parent: str | None, entry: str, **data: Any) -> NewEvent:
    return summary(id_, parent, entry, entry, kind="prune", **data)


def branch(id_: str, target: str | None, left: str | None = None, **data: Any) -> NewEvent:
    return event("branch", id_, parent=target, from_=left, **data)


def accepted(operation: str, input_entry: str | None = None, **data: Any) -> NewEvent:
    data = {"kind": "prompt", "trigger": "user", **data}
    return event("operation_accepted", operation=operation, input_entry=input_entry, **data)


def finished(operation: str, outcome: str = "completed", **data: Any) -> NewEvent:
    return event("operation_finished", operation=operation, outcome=outcome, **data)


def attempted(attempt: str, operation: str, entry: str, **data: Any) -> NewEvent:
    return event(
        "model_attempted", operation=operation, attempt=attempt, assistant_entry=entry, **data
    )


def used(attempt: str, operation: str, **usage: Any) -> NewEvent:
    return event("usage_settled", operation=operation, attempt=attempt, usage=usage)


def t1(dispatch: str, operation: str, entry: str, result_entry: str, **data: Any) -> NewEvent:
    data = {
        "call_index": 0,
        "call_id": "c1",
        "tool": "bash",
        "effect": "opaque",
        "try": 1,
        "idempotency_key": "key",
        "args_hash": "hash",
        **{name.rstrip("_"): value for name, value in data.items()},
    }
    return event(
        "tool_dispatched",
        operation=operation,
        dispatch=dispatch,
        assistant_entry=entry,
        result_entry=result_entry,
        **data,
    )


def settled(dispatch: str, status: str = "unknown", **data: Any) -> NewEvent:
    data.setdefault("settled_by", "recovery")
    return event("dispatch_settled", dispatch=dispatch, status=status, **data)


def claimed(claim: str, expects: int = 0, **data: Any) -> NewEvent:
    return event("session_claimed", claim=claim, expects=expects, **data)


def created(**data: Any) -> NewEvent:
    return event("session_created", **data)


def released(claim: str) -> NewEvent:
    return event("session_released", claim=claim)


def fact(name: str, value: Any, id_: str | None = None, **data: Any) -> NewEvent:
    return event("fact", id_, name=name, value=value, **data)


def custom(id_: str, parent: str | None, value: Any = None, **data: Any) -> NewEvent:
    return event("custom", id_, parent=parent, value=value, **{"kind": "todo", **data})


def rerun_allowed(dispatch: str, **data: Any) -> NewEvent:
    return event("rerun_allowed", dispatch=dispatch, **data)


def queued(input_: str, entry: str, say: str = "go on", **data: Any) -> NewEvent:
    return event("input_queued", input=input_, entry=entry, content=text(say), **data)


def cancelled(input_: str) -> NewEvent:
    return event("input_cancelled", input=input_)


def abort(operation: str) -> NewEvent:
    return event("abort_requested", operation=operation)


def parked(operation: str, reason: str | None = "asks") -> NewEvent:
    return event("operation_parked", operation=operation, reason=reason)


def asked(operation: str, entry: str, call_id: str = "c1") -> NewEvent:
    return event("approval_asked", operation=operation, assistant_entry=entry, call_id=call_id)


def decided(
    operation: str, entry: str, call_id: str = "c1", decision: str = "allow", **data: Any
) -> NewEvent:
    return event(
        "approval_decided",
        operation=operation,
        assistant_entry=entry,
        call_id=call_id,
        decision=decision,
        **data,
    )


def blob_part(digest: str, index: int, of: int, bytes_: str) -> NewEvent:
    return event("blob_part", digest=digest, index=index, of=of, bytes=bytes_)


def person(dispatch: str, status: str, **data: Any) -> NewEvent:
    """A person's verdict on a dispatch."""
    return settled(dispatch, status, settled_by="person", by="ann", **data)


def forge(header: Header, *events: Any) -> Record:
    """A record that nobody checked: events may be anything that JSON can hold."""
    items = [item._asdict() if isinstance(item, NewEvent) else item for item in events]
    body = orjson.dumps({**header._asdict(), "events": items})
    return Record(header.session, header, body)


def assert_balanced(messages: list[dict[str, Any]]) -> None:
    """Every call is followed at once by one answer for each, and no answer stands elsewhere."""
    awaited: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert awaited, "a result stands right after its call"
            assert message["call_id"] == awaited.pop(0)
            assert message["content"], "the model is told something"
            continue
        assert not awaited, "every call is answered"
        if message["role"] == "assistant" and isinstance(message["content"], list):
            parts = [part for part in message["content"] if part["type"] == "tool_call"]
            awaited = [part["call_id"] for part in parts]
    assert not awaited


class Story:
    """One session's log and its rows. Owner frames are numbered by themselves.

    `beside` puts the session into the log of another.
    """

    def __init__(
        self,
        session: str = "s",
        records: list[Record] | None = None,
        *,
        beside: Story | None = None,
    ) -> None:
        self.session = session
        self.rows: dict[Any, Any] = {} if beside is None else beside.rows
        self.records: list[Record] = [] if beside is None else beside.records
        self.epoch = 0
        self.claim_id = ""
        self.seq = 0
        self.followed = Ownership()
        for record in records or ():
            self.put(record)

    def put(self, record: Record, position: int | None = None) -> int:
        """Fold any record at the next position, or again at a former one."""
        if position is None:
            self.records.append(record)
            position = len(self.records)
        changes = fold(decode(record), position, self.rows)
        for key, row in changes.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        if changes:
            assert list(changes)[-1] == ("sessions", self.session), "the head row is last"
            self.followed = follow(self.followed, decode(record))[1]
            self.check(record, position)
        return position

    def check(self, record: Record, position: int) -> None:
        """What holds after every record of any history."""
        head, view = self.head, self.view
        assert fold(decode(record), position, self.rows) == {}, "folding twice changes nothing"
        for name, value in self.followed._asdict().items():
            assert getattr(head, name) == value, "who only follows claims sees the same owner"
        path = view.path()
        assert [row.depth for row in path] == list(range(1, len(path) + 1))
        assert head.depth == len(path)
        assert all(row.parent < row.number and row.void is None for row in path)
        nodes = surface_at(view.entry, head.leaf, fork=head.fork_at is not None)
        assert view.surface() == nodes, "the pages are the surface that the path gives"
        assert head.nodes == len(nodes)
        assert len(view.rows("surfaces")) == head.pages
        assert view.state() == self._state_by_path(path)
        leaf_branch = path[-1].branch if path else None
        active = [row.first for row in view.rows("branches") if row.active]
        assert active == ([leaf_branch] if path else [])
        if position == len(self.records):
            assert_balanced(view.context())
        assert head.counts["entries"] == len(view.rows("entries"))
        assert head.counts["quarantined"] == len(view.rows("quarantine"))

    def _state_by_path(self, path: list[Entry]) -> Any:
        values = [row.value for row in path if row.kind == "app_state"]
        row = self.row("app_states")
        return values[-1] if values else row.initial if row is not None else {}

    def claim(self, id_: str = "", reason: str = "open", **data: Any) -> Story:
        """Claim the session, expecting the epoch in force."""
        self.claim_id = id_ or f"claim-{next(_serial)}"
        data = {"expects": self.head.epoch, "host": "h", "reason": reason, **data}
        self.guest(event("session_claimed", claim=self.claim_id, **data))
        self.epoch, self.seq = self.head.epoch, 0
        return self

    def own(self, *events: NewEvent, **header: Any) -> int:
        """An owner's frame under the claim last made; header fields may be given."""
        if "seq" not in header:
            self.seq += 1
        return self.put(self.sealed(*events, **header))

    def sealed(self, *events: NewEvent, **header: Any) -> Record:
        fields = {"claim": self.claim_id, "epoch": self.epoch, "seq": self.seq, "writer": "h"}
        return seal(Header(self.session, **{**fields, **header}), events).record

    def guest(self, *events: NewEvent) -> int:
        header = Header(self.session, None, None, None, "guest")
        return self.put(seal(header, events).record)

    def forge(self, *events: Any, **header: Any) -> int:
        """An owner's frame that nobody checked, for what `seal` refuses."""
        if "seq" not in header:
            self.seq += 1
        return self.put(self.forged(*events, **header))

    def forged(self, *events: Any, **header: Any) -> Record:
        fields = {"claim": self.claim_id, "epoch": self.epoch, "seq": self.seq, "writer": "h"}
        return forge(Header(self.session, **{**fields, **header}), *events)

    def forge_guest(self, *events: Any) -> int:
        return self.put(forge(Header(self.session, None, None, None, "guest"), *events))

    def begin(self, claim: str = "", **created: Any) -> Story:
        """A claim, and the owner's first frame with `session_created`."""
        self.claim(claim)
        self.own(event("session_created", **created))
        return self

    def prompt(self, operation: str = "op", entry: str = "u1") -> Story:
        """A begun session with an accepted prompt under its user's message."""
        self.begin()
        self.own(user(entry, None), accepted(operation, entry))
        return self

    def called(self, *calls: str, **t1_data: Any) -> Story:
        """A prompt whose model, as entry `a1`, made calls; T1 of the first as `d1` → `r1`."""
        self.prompt()
        self.own(attempted("at1", "op", "a1"))
        self.own(assistant("a1", "u1", *(calls or ("c1",)), attempt="at1"))
        self.own(t1("d1", "op", "a1", "r1", **t1_data))
        return self

    @property
    def pen(self) -> dict[str, Any]:
        """The present claim and epoch, to write under them when they are fenced."""
        return {"claim": self.claim_id, "epoch": self.epoch}

    # ---- reading -----------------------------------------------------------------------------

    @property
    def head(self) -> Head:
        return self.rows.get(("sessions", self.session)) or Head(self.session)

    @property
    def view(self) -> SessionView:
        return SessionView(self, self.session)

    def get(self, key: Any) -> Any:
        return self.rows.get(key)

    def scan(self, table: str, session: str) -> Iterator[Any]:
        keys = sorted(key for key in self.rows if key[:2] == (table, session))
        return (self.rows[key] for key in keys)

    def find(self, table: str, session: str, field: str, value: str) -> Iterator[Any]:
        return (row for row in self.scan(table, session) if getattr(row, field) == value)

    def record(self, session: str, position: int) -> Stored | None:
        return Stored(position, 0, self.records[position - 1])

    def entry(self, id_: str) -> Entry:
        return self.rows[("entries", self.session, self.rows[("ids", self.session, id_)])]

    def has(self, id_: str) -> bool:
        return ("ids", self.session, id_) in self.rows

    def operation(self, id_: str) -> Operation:
        return self.rows[("operations", self.session, id_)]

    def dispatch(self, id_: str) -> Dispatch:
        return self.rows[("dispatches", self.session, id_)]

    def row(self, table: str, *key: Any) -> Any:
        return self.rows.get((table, self.session, *key))

    def attempt(self, id_: str) -> Attempt:
        return self.rows[("attempts", self.session, id_)]

    def input(self, id_: str) -> Input:
        return self.rows[("inputs", self.session, id_)]

    def branches(self) -> list[Branch]:
        return list(self.scan("branches", self.session))

    def quarantine(self) -> list[Quarantine]:
        return list(self.scan("quarantine", self.session))

    def verdict(self, operation: str = "op") -> Verdict:
        row = self.operation(operation)
        return recover(row, evidence_of(self.view, row))

    def plan(self, executor: Executor, operation: str = "op") -> list[dict[str, Any]]:
        row = self.operation(operation)
        evidence = evidence_of(self.view, row)
        return plan(row, recover(row, evidence), evidence, executor)

    @property
    def counts(self) -> dict[str, int]:
        return self.head.counts

    @property
    def overflow(self) -> dict[str, int]:
        return self.head.overflow

    def corruption(self, operation: str = "op") -> list[str]:
        return list(self.operation(operation).corruption)

    @property
    def leaf(self) -> str | None:
        return self.id_of(self.head.leaf)

    def id_of(self, number: int) -> str | None:
        return self.rows[("entries", self.session, number)].id if number else None

    @property
    def path(self) -> list[str]:
        return [row.id for row in self.view.path()]

    def surface(self, at: str | None = None) -> list[str | None]:
        number = None if at is None else self.entry(at).number
        return [self.id_of(node) for node in self.view.surface(number)]

    @property
    def state(self) -> dict[str, Any]:
        return self.view.state()

    def damage(self) -> list[str]:
        return [kind for kind, _, _ in self.view.damage()]

    def quarantined(self) -> list[tuple[int, int, str]]:
        rows = self.scan("quarantine", self.session)
        return [(row.position, row.event_index, row.stage) for row in rows]

    def voids(self) -> dict[str, str]:
        rows = self.scan("entries", self.session)
        return {row.id: row.void for row in rows if row.void is not None}
