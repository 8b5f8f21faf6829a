"""The working copy of one session while a frame is folded: rows read, rows written, the head.

Rows are read through `get`, first from what this frame has written, then from the tables; they are
never changed in place. The head's fields are plain attributes here and become a row at the end.
"""

from __future__ import annotations

from typing import Any

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
        self._read = tables.get
        self.changes: dict[Key, Row | None] = {}
        head: Head = tables.get(("sessions", session)) or Head(session)
        self.before = head
        self.own = Ownership(
            head.claim, head.epoch, head.seq, head.digest, head.released, head.lost_claims
        )
        self.counts = dict(head.counts)
        self.imported = head.reason == "import"
        self.listed, self.newer = head.listed, head.newer
        self.first_time, self.last_time = head.first_time, head.last_time
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
        """Head fields that few frames change, where this one does."""

    def get(self, key: Key) -> Row:
        """A row as this frame sees it, None where there is none."""
        changes = self.changes
        if key in changes:
            return changes[key]
        return self._read(key)

    def entry(self, number: int) -> Entry:
        """The entry of a number that exists."""
        row: Entry = self.get(("entries", self.session, number))
        return row

    def number(self, id_: str | None) -> int:
        """The number of an entry id, 0 where there is no such entry."""
        if id_ is None:
            return 0
        number: int | None = self.get(("ids", self.session, id_))
        return number or 0

    def branch(self, first: int) -> Branch:
        """The branch whose first entry is given."""
        row: Branch = self.get(("branches", self.session, first))
        return row

    def operation(self, id_: str) -> Operation | None:
        """The operation of an id, if it was ever named."""
        row: Operation | None = self.get(("operations", self.session, id_))
        return row

    def dispatch(self, id_: str | None) -> Dispatch | None:
        """The dispatch of an id, if it was ever named."""
        if id_ is None:
            return None
        row: Dispatch | None = self.get(("dispatches", self.session, id_))
        return row

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

    def add_time(self, time: str) -> None:
        """Copy the first and last time of entries, for people to read; no rule does."""
        if self.first_time is None:
            self.first_time = time
        self.last_time = time

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
        before, own = self.before, self.own
        # by place, since naming 39 fields costs more than all else here
        head = Head(
            before.session,
            self.position,
            self.listed,
            before.created,
            before.created_digest,
            own.claim,
            own.epoch,
            before.owner,
            before.reason,
            own.released,
            own.seq,
            own.digest,
            own.lost_claims,
            self.leaf,
            self.depth,
            self.status(),
            before.title,
            before.cwd,
            before.agent,
            before.parent_session,
            before.fork_at,
            before.spawned_by,
            before.origin,
            self.first_time,
            self.last_time,
            self.newer,
            self.counts,
            self.usage,
            self.fenced_usage,
            self.generation,
            self.nodes,
            self.pages,
            self.open_operations,
            self.open_dispatches,
            self.pending_inputs,
            self.waiting,
            self.missing_parents,
            self.damage,
            self.overflow,
        )
        if self.fields:
            head = head._replace(**self.fields)
        self.changes[("sessions", self.session)] = head
        return self.changes

    def status(self) -> str:
        """requires_action, open or idle (design, "The fold")."""
        if self.waiting or any(item["parked"] for item in self.open_operations.values()):
            return "requires_action"
        return "open" if self.open_operations else "idle"
