"""What must hold after every step of every history (the list is docs/simulation.md's).

The watch sees each record as it lands, each start of an effect, and each frame that its writer was
told is saved. The first thing that does not hold ends the history.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple, cast

from turnlog.core.frames import Frame, SealedFrame
from turnlog.core.rows import Dispatch, Head, Operation
from turnlog.testing.simulation.judge import Call, Judge, Kind
from turnlog.testing.simulation.loop import Actor
from turnlog.testing.simulation.outside import Outside, Start
from turnlog.testing.simulation.surfaces import check_surface
from turnlog.testing.simulation.world import Landed, World


class Violation(NamedTuple):
    """What did not hold, and where."""

    rule: str
    detail: str


class Watch:
    """See the module's text. Two copies of one host damage the log by what they write under one
    claim; nothing else that is honest does."""

    def __init__(self, world: World, outside: Outside, *, has_clone: bool) -> None:
        self.violations: list[Violation] = []
        self.judges: dict[str, Judge] = defaultdict(Judge)
        self.saved: list[tuple[str, str | None, int | None, str]] = []
        self._world = world
        self._outside = outside
        self._has_clone = has_clone
        self._sent: dict[tuple[Actor, str], SealedFrame] = {}
        self._claims: dict[tuple[str, str, int, Actor], str] = {}
        self._kinds: dict[str, Counter[Kind]] = defaultdict(Counter)
        self._keys: dict[str, str] = {}
        world.watchers.append(self.landed)

    def fail(self, rule: str, detail: str) -> None:
        """Something does not hold. What happens while coroutines are closed is no history."""
        if self._world.loop.is_over:
            return
        self.violations.append(Violation(rule, f"{detail} (t={self._world.loop.now:.3f})"))
        self._world.loop.end()

    # ---- what actors do

    def sent(self, actor: Actor, frame: SealedFrame) -> None:
        """An actor hands a frame to the log."""
        header = frame.frame.header
        if header.claim is None:
            return
        self._sent[actor, header.session] = frame
        for event in frame.frame.events:
            if event.type == "tool_dispatched":
                key = (header.session, event.data["dispatch"], event.data.get("try") or 1, actor)
                self._claims[key] = header.claim

    def told_saved(self, actor: Actor, session: str) -> None:
        """An actor was told that the last frame it sent is saved."""
        frame = self._sent[actor, session].frame
        header = frame.header
        if self.judges[session].applied.get((header.claim, header.seq)) != frame.digest:
            self.fail(
                "saved",
                f"{actor.name} was told that seq {header.seq} under claim {header.claim} is saved,"
                " but it never applied",
            )
        self.saved.append((session, header.claim, header.seq, frame.digest))

    def told_owner(self, actor: Actor, session: str, claim: str) -> None:
        """An actor was told that its claim won."""
        if not self.judges[session].claims.get(claim):
            self.fail("claims", f"{actor.name} was told that claim {claim} won, but it did not")

    def started(self, actor: Actor, start: Start) -> None:
        """An effect starts: everything that may be asked of a start."""
        claim = self._claims.get((start.session, start.dispatch, start.try_number, actor))
        call = self.judges[start.session].calls.get(start.dispatch)
        where = f"{start.actor} starts {start.effect} {start.dispatch} try {start.try_number}"
        tries = [] if call is None else [t for t in call.tries if t.number == start.try_number]
        if call is None or not tries:
            self.fail("T1 rule", f"{where} without a T1 in force")
            return
        if tries[0].claim != claim:
            self.fail("T1 rule", f"{where} under claim {claim}, but its T1 is {tries[0].claim}'s")
        same = [
            old
            for old in self._outside.starts
            if (old.session, old.dispatch, old.try_number) == start[1:2] + start[3:5]
        ]
        if same:
            self.fail("one start per T1", f"{where}, which {same[0].actor} has started")
        self._check_class(start, call, where)

    def _check_class(self, start: Start, call: Call, where: str) -> None:
        starts = [old for old in self._outside.starts if old.call == start.call]
        if start.effect == "opaque" and len(starts) > call.allowed:
            self.fail("opaque", f"{where}: start {len(starts) + 1} of {start.call}")
        if self._keys.setdefault(start.call, start.key) != start.key:
            self.fail("one key", f"{where} with another key than before")

    def happened(self, start: Start) -> None:
        """The receiver did not refuse; what can be probed takes place only once, whoever asks."""
        count = len(self._outside.happened[start.call])
        call = self.judges[start.session].calls[start.dispatch]
        if call.status == "not_started" and not call.by_person:
            self.fail("not started", f"{start}, which is shown as not started")
        if start.effect == "reconcilable" and count > call.allowed + 1:
            self.fail("reconcilable", f"{start.actor}: {start.call} happened {count} times")

    # ---- what lands

    def landed(self, item: Landed) -> None:
        """A record landed and was folded."""
        frame = item.frame
        if not isinstance(frame, Frame):
            self.fail("frames", f"the record at {item.stored.position} cannot be read")
            return
        session, position = frame.header.session, item.stored.position
        judge = self.judges[session]
        kind = judge.take(frame, position)
        self._kinds[session][kind] += 1
        if kind in (Kind.WRONG, Kind.GAP) and not self._has_clone:
            self.fail("sealed frames", f"an honest frame at {position} is wrong: {frame.header}")
        head = cast("Head", self._world.tables.get(("sessions", session)))
        self._check_owner(head, judge, position)
        self._check_head(head, self._kinds[session])
        for key, row in item.changes.items():
            if key[0] == "dispatches":
                self._check_dispatch(cast("Dispatch", row), judge.calls.get(key[2]), position)
            elif key[0] == "operations":
                self._check_operation(cast("Operation", row))
        if kind is Kind.APPLIES and any("parent" in event.data for event in frame.events):
            told = check_surface(self._world.tables, session)
            if told is not None:
                self.fail("surface", f"{session} at {position}: {told}")

    def _check_owner(self, head: Head, judge: Judge, position: int) -> None:
        there = (head.claim, head.epoch, head.seq, head.released)
        here = (judge.claim, judge.epoch, judge.seq, judge.is_released)
        if there != here:
            self.fail("owner", f"{head.session} at {position}: tables {there}, the design {here}")
        if head.position != position:
            self.fail("applied once", f"{head.session}: {position} landed, {head.position} folded")

    def _check_head(self, head: Head, kinds: Counter[Kind]) -> None:
        if not self._has_clone and (head.damage or head.missing_parents):
            self.fail("no damage", f"{head.session}: {head.damage} {head.missing_parents}")
        if head.counts["jumps"]:
            self.fail("placement", f"{head.session}: the leaf jumped")
        if head.counts["frames"] != sum(kinds.values()):
            self.fail("applied once", f"{head.session}: {head.counts['frames']} frames counted")
        if head.counts["fenced"] != kinds[Kind.FENCED]:
            self.fail("fencing", f"{head.session}: {head.counts['fenced']} fenced")
        if head.counts["quarantined"] != kinds[Kind.WRONG] and not self._has_clone:
            self.fail("quarantine", f"{head.session}: {head.counts['quarantined']} quarantined")

    def _check_dispatch(self, row: Dispatch, call: Call | None, position: int) -> None:
        if call is None:
            self.fail("dispatches", f"{row.dispatch} at {position} has no T1 in force")
            return
        answer = None if row.answer is None else (row.answer["event"], row.answer["digest"])
        there = (row.status, answer, [item["try"] for item in row.tries])
        here = (call.status, call.answer, [item.number for item in call.tries])
        if there != here:
            self.fail("answers", f"{row.dispatch} at {position}: tables {there}, design {here}")
        evidence = {(item["event"], item["digest"]): item["status"] for item in row.evidence}
        if evidence != call.evidence:
            self.fail("evidence", f"{row.dispatch} at {position}: {evidence}, not {call.evidence}")
        if row.status == "not_started" and row.settled_by != "person":
            for start in self._outside.of(row.dispatch):
                self.fail("not started", f"{row.dispatch} at {position}, but {start} started")

    def _check_operation(self, row: Operation) -> None:
        corruption = [why for why in row.corruption if why != "t1_repeated"]
        if corruption:
            self.fail("no corruption", f"{row.operation}: {', '.join(corruption)}")

    def claims_of(self, session: str) -> dict[str, Any]:
        """Every claim on a session, and whether it won."""
        return dict(self.judges[session].claims)
