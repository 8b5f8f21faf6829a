"""The working copy of one session while a frame is folded: rows read, rows written, the head.

Rows are read through `get`, first from what this frame has written, then from the tables; they are
never changed in place. The head's fields are plain attributes here and become a row at the end.
"""

from __future__ import annotations

from typing import Any, cast

from turnlog.core.frames import Event
from turnlog.core.ownership import Ownership
from turnlog.core.rows import (
    Branch,
    Changes,
    Dispatch,
    Entry,
    Head,
    Key,
    Operation,
    Quarantine,
    Row,
    Tables,
)

MAX_DAMAGE = 256
MAX_MISSING_PARENTS = 256


class Draft:
    """One session at one position; see the module's text."""

    def __init__(self, session: str, position: int, tables: Tables) -> None:
        self.session = session
        self.position = position
        self.index = -1
        self.tables = tables
        self.changes: dict[Key, Row | None] = {}
        head = cast("Head | None", tables.get(("sessions", session)))
        self.before = head if head is not None else Head(session)
        head = self.before
        self.own = Ownership(
            head.claim, head.epoch, head.seq, head.digest, head.released, head.lost_claims
        )
        self.counts = dict(head.counts)
        self.imported = head.reason == "import"
        self.leaf, self.depth = head.leaf, head.depth
        self.generation, self.nodes, self.pages = head.generation, head.nodes, head.pages
        self.page: list[int] | None = None
        self.open_operations = head.open_operations
        self.open_dispatches = head.open_dispatches
        self.pending_inputs = head.pending_inputs
        self.waiting = head.waiting
        self.missing_parents = head.missing_parents
        self.damage = head.damage
        self.overflow = head.overflow
        self.usage, self.fenced_usage = head.usage, head.fenced_usage
        self.fields: dict[str, Any] = {}
        """Head fields that change seldom and are only set, never read, within a frame."""

    def get(self, key: Key) -> Row | None:
        """A row as this frame sees it."""
        changes = self.changes
        if key in changes:
            return changes[key]
        return self.tables.get(key)

    def entry(self, number: int) -> Entry:
        """The entry of a number that exists."""
        return cast("Entry", self.get(("entries", self.session, number)))

    def number(self, id_: str | None) -> int:
        """The number of an entry id, 0 where there is no such entry."""
        if id_ is None:
            return 0
        return cast("int | None", self.get(("ids", self.session, id_))) or 0

    def branch(self, first: int) -> Branch:
        """The branch whose first entry is given."""
        return cast("Branch", self.get(("branches", self.session, first)))

    def operation(self, id_: str) -> Operation | None:
        """The operation of an id, if it was ever named."""
        return cast("Operation | None", self.get(("operations", self.session, id_)))

    def dispatch(self, id_: str | None) -> Dispatch | None:
        """The dispatch of an id, if it was ever named."""
        if id_ is None:
            return None
        return cast("Dispatch | None", self.get(("dispatches", self.session, id_)))

    def put(self, table: str, row: Any, *rest: Any) -> None:
        """Write a row; `rest` is its key after the session."""
        self.changes[(table, self.session, *rest)] = row

    def on_path(self, number: int) -> bool:
        """Whether an entry is the leaf or above it. Costs a step for each fork in between."""
        if number == 0:
            return True
        entry, at = self.entry(number), self.leaf
        while at:
            row = self.entry(at)
            if row.branch == entry.branch:
                return entry.depth <= row.depth
            if row.depth < entry.depth:
                return False
            at = self.branch(row.branch).fork_point
        return False

    def quarantine(self, stage: str, reason: str, digest: str, damage: str | None = None) -> None:
        """Keep what cannot be folded; `damage` names the kind where it is one."""
        row = Quarantine(
            self.session, self.position, self.index, stage, reason, damage is not None, digest
        )
        self.put("quarantine", row, self.position, self.index)
        self.counts["quarantined"] += 1
        if damage is not None:
            self.add_damage(damage, reason)

    def reject(self, event: Event, reason: str, damage: str | None) -> None:
        """Quarantine one event at the fold stage."""
        self.quarantine("fold", reason, event.digest, damage)

    def add_damage(self, kind: str, detail: str) -> None:
        """Note something missing or wrong in a frame in force."""
        if len(self.damage) >= MAX_DAMAGE:
            self.add_overflow("damage")
        else:
            self.damage = (*self.damage, (kind, self.position, detail))

    def add_overflow(self, what: str) -> None:
        """Count what exceeds a bound."""
        self.overflow = {**self.overflow, what: self.overflow.get(what, 0) + 1}

    def miss_parent(self, id_: str) -> None:
        """Remember an id that was declared as a parent and is not in the log."""
        if id_ in self.missing_parents:
            return
        if len(self.missing_parents) < MAX_MISSING_PARENTS:
            self.missing_parents = {**self.missing_parents, id_: self.position}
            return
        if "missing_parents" not in self.overflow:
            self.add_damage("overflow", f"over {MAX_MISSING_PARENTS} missing parents")
        self.add_overflow("missing_parents")

    def finish(self) -> Changes:
        """The changes, the head row last."""
        own = self.own
        self.changes[("sessions", self.session)] = self.before._replace(
            position=self.position,
            claim=own.claim,
            epoch=own.epoch,
            seq=own.seq,
            digest=own.digest,
            released=own.released,
            lost_claims=own.lost_claims,
            leaf=self.leaf,
            depth=self.depth,
            status=self.status(),
            counts=self.counts,
            usage=self.usage,
            fenced_usage=self.fenced_usage,
            generation=self.generation,
            nodes=self.nodes,
            pages=self.pages,
            open_operations=self.open_operations,
            open_dispatches=self.open_dispatches,
            pending_inputs=self.pending_inputs,
            waiting=self.waiting,
            missing_parents=self.missing_parents,
            damage=self.damage,
            overflow=self.overflow,
            **self.fields,
        )
        return self.changes

    def status(self) -> str:
        """requires_action, open or idle (design, "The fold")."""
        if self.waiting or any(item["parked"] for item in self.open_operations.values()):
            return "requires_action"
        return "open" if self.open_operations else "idle"
