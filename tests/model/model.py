"""The slow reference model of a session: what docs/RULES.md says, obvious before fast.

It takes all frames of ONE session and answers with the observable state, a plain value that
`tests.model.observe` reads out of the real rows in the same form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tests.model.desk import Desk
from tests.model.ownership import Ownership, Record, Ruling
from tests.model.tree import Node, Tree, compaction_fault
from tests.model.work import Work
from turnlog.core.events import ENTRY_TYPES, TYPES
from turnlog.core.frames import Event, Frame, canonical, is_entry

DAMAGE_MAX = 256


class Quarantined(NamedTuple):
    """What could not be folded; index -1 is the whole frame."""

    position: int
    event_index: int
    stage: str
    damage: bool


class Place(NamedTuple):
    """Where an event stands, and the claim it is written under; a guest has none."""

    position: int
    event_index: int
    claim: str | None

    @property
    def owner(self) -> str:
        """The claim of an owner's event."""
        assert self.claim is not None
        return self.claim


class Model:
    """One session, folded slowly."""

    def __init__(self, frames: Iterable[tuple[int, Record]] = ()) -> None:
        self.tree = Tree()
        self.work = Work(self.tree, self.overflowed)
        self.desk = Desk(self.tree, self.overflowed)
        self.ownership = Ownership(self.overflowed)
        self.damage: list[tuple[str, int]] = []
        self.quarantine: list[Quarantined] = []
        self.overflow: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.newer = False
        for position, frame in frames:
            self.fold(position, frame)

    def overflowed(self, name: str) -> None:
        """Count what one of the bounds left out."""
        self.overflow[name] += 1

    def harm(self, kind: str, position: int) -> None:
        """Note a damage."""
        if len(self.damage) < DAMAGE_MAX:
            self.damage.append((kind, position))
        else:
            self.overflowed("damage")

    def fold(self, position: int, frame: Record) -> None:
        """Take in the next frame."""
        ruling = self.ownership.judge(position, frame)
        if ruling.how == "old":
            return
        self._count(ruling, frame)
        for kind in ruling.damage:
            self.harm(kind, position)
        if ruling.stage is not None:
            harmed = set(ruling.damage) - {"gap"}
            self.quarantine.append(Quarantined(position, -1, ruling.stage, bool(harmed)))
        if not isinstance(frame, Frame):
            return
        for index, event in enumerate(frame.events):
            place = Place(position, index, frame.header.claim)
            if ruling.how == "applied":
                self._owner_event(event, place)
            elif ruling.how == "guest":
                self._guest_event(event, place)
            elif ruling.how == "fenced":
                self._fenced_event(event, place)

    def _count(self, ruling: Ruling, frame: Record) -> None:
        name = {"lost": "lost_claims", "fenced": "fenced", "duplicate": "duplicates"}
        self.counts["frames"] += 1
        if ruling.how in name:
            self.counts[name[ruling.how]] += 1
        if ruling.how in ("applied", "guest", "claimed", "lost") and isinstance(frame, Frame):
            self.counts["events"] += len(frame.events)

    def _set_aside(self, place: Place, stage: str, damage: str | None) -> None:
        self.quarantine.append(
            Quarantined(place.position, place.event_index, stage, damage is not None)
        )
        if damage is not None:
            self.harm(damage, place.position)

    def _owner_event(self, event: Event, place: Place) -> None:
        if event.fault is not None:
            self._set_aside(place, "decode", "malformed")
        else:
            self.newer = self.newer or event.newer
            if is_entry(event):
                self._entry(event, place)
            elif event.type in TYPES and not event.newer:
                self._record(event, place)

    def _guest_event(self, event: Event, place: Place) -> None:
        if event.fault is not None:
            self._set_aside(place, "decode", None)
        elif event.type in TYPES and not event.newer:
            self._common_record(event, place)

    def _fenced_event(self, event: Event, place: Place) -> None:
        if event.fault is not None or event.newer:
            return
        is_result = event.type == "message" and event.data["role"] == "tool"
        if event.type == "dispatch_settled" or (is_result and event.data.get("dispatch")):
            self.work.dispatches.fenced(event, place.claim)
        if event.type == "usage_settled":
            self.work.usage_fenced(event, place.claim)

    # ---- entries

    def _entry(self, event: Event, place: Place) -> None:
        known = self.tree.find(event.id)
        if known is not None:
            if known.event.digest != event.digest:
                self._set_aside(place, "fold", "conflict")
            else:
                self.counts["duplicates"] += 1
            return
        kind = event.type if event.type in ENTRY_TYPES and not event.newer else "opaque"
        node = Node(len(self.tree.nodes) + 1, event, place.position, place.event_index, kind)
        node.late = self.tree.missing.pop(event.id, None) is not None
        node.imported = self.ownership.reason == "import"
        if kind == "message" and event.data["role"] == "tool" and event.data.get("dispatch"):
            self._result(node)
        else:
            self._hang(node)
            if node.is_message("tool"):
                node.answers = self.tree.first_unanswered(node)
        if kind == "compaction":
            node.void = compaction_fault(self.tree, node)
            if node.is_valid("prune"):
                trimmed = self.tree.find(event.data["replaces"]["first"])
                assert trimmed is not None
                node.answers = trimmed.answers
        self.tree.enter(node)
        if self.tree.closes_cycle(node):
            self.harm("cycle", place.position)
        self.work.answered(node)
        self.desk.place(node.id)
        starts_branch = self.tree.branch_of(node.number) == node.number
        if kind == "branch" and starts_branch and event.data.get("label") is not None:
            self.desk.labels[node.number] = event.data["label"]

    def _hang(self, node: Node) -> None:
        beyond = self.tree.missing_beyond
        self.tree.hang(node)
        if self.tree.missing_beyond > beyond:
            self.overflowed("missing_parents")
            if not beyond:
                self.harm("overflow", node.position)

    def _result(self, node: Node) -> None:
        """A tool result that names its dispatch: rule 5."""
        dispatch = self.work.dispatches.all.get(node.data["dispatch"])
        if dispatch is None:
            node.void = "unknown_dispatch"
        elif not dispatch.is_settled_by(node.id):
            node.void = "late_result"
            self.work.dispatches.add_evidence(dispatch, node.event)
        else:
            settled_by = node.data.get("settled_by") or "host"
            self.work.dispatches.settle(dispatch, node.event, settled_by)
            entry, index = dispatch.call
            asked = self.tree.find(entry)
            if (
                node.late
                or asked is None
                or not self.tree.on_path(asked)
                or len(asked.calls) <= index
            ):
                node.void = "not_placed"
            else:
                node.answers = (asked.number, index)
        if node.void is None:
            node.parent = self.tree.leaf
            self.tree.declare(node)
        else:
            self._hang(node)

    # ---- records

    def _record(self, event: Event, place: Place) -> None:
        work, claim = self.work, place.owner
        if event.type == "session_created":
            self._session_created(event, place)
        elif event.type == "session_released":
            if not self.ownership.releases(event):
                self._set_aside(place, "fold", "malformed")
        elif event.type == "operation_accepted":
            work.operation_accepted(event, claim)
        elif event.type == "model_attempted":
            work.model_attempted(event, claim)
        elif event.type == "usage_settled":
            work.usage_settled(event, claim)
        elif event.type == "approval_asked":
            work.approval_asked(event, claim)
        elif event.type == "tool_dispatched":
            work.tool_dispatched(event, claim, place.position)
        elif event.type == "operation_parked":
            work.operation_parked(event, claim)
        elif event.type == "operation_finished":
            work.operation_finished(event, claim)
        elif event.type == "blob_part":
            self.desk.blob_part(event, (place.position, place.event_index))
        else:
            self._common_record(event, place)

    def _common_record(self, event: Event, place: Place) -> None:
        """What a guest may write, too."""
        if event.type == "approval_decided":
            self.work.approval_decided(event, place.claim)
        elif event.type == "dispatch_settled":
            self.work.dispatches.dispatch_settled(event)
        elif event.type == "rerun_allowed":
            self.work.dispatches.rerun_allowed(event)
        elif event.type == "abort_requested":
            self.work.abort_requested(event)
        elif event.type == "input_queued":
            if self.desk.is_refused(event):
                self._set_aside(place, "fold", None)
        elif event.type == "input_cancelled":
            self.desk.input_cancelled(event)
        elif event.type == "fact":
            self.desk.fact(event, is_guest=place.claim is None)

    def _session_created(self, event: Event, place: Place) -> None:
        before = self.desk.created
        if before is None and self.ownership.frames_applied == 1:
            self.desk.session_created(event)
        elif before is None or canonical(before.data) != canonical(event.data):
            self._set_aside(place, "fold", "late_created")
