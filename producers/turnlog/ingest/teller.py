"""Telling a session along the plan: what the readers of all formats share.

A reader says what a row is; where the thread is, and when it has to move, is decided here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from turnlog.core.events import ENTRY_TYPES
from turnlog.core.frames import NewEvent
from turnlog.ingest.outline import Kind
from turnlog.ingest.plan import ROOT, Plan, Stage
from turnlog.ingest.thread import Call, Data, Lookup, Thread, derived
from turnlog.ingest.told import Sheet, Told
from turnlog.ingest.turns import Turns
from turnlog.ingest.values import marked, text_at

Json = Any


class Teller:
    """See the module's text."""

    def __init__(self, plan: Plan, sheet: Sheet) -> None:
        self.plan = plan
        self.sheet = sheet
        self.outline = sheet.outline
        self.thread = Thread(Lookup(self.id_of, self.calls_of))
        self.turns = Turns(self.thread)
        self.numbers = array("I", bytes(4 * (len(sheet.outline) + 1)))
        """The last entry of each row that was told; 0 for none."""
        self.end = 0
        """Where the present stage ends in the file: what lies behind it is not known yet."""
        self._tips: dict[int, int] = {}
        self._lane = 0
        self._time: str | None = None

    # ---- what a format says ------------------------------------------------------------------

    def id_at(self, row: int, line: Data) -> str:
        """The entry id of a row."""
        raise NotImplementedError

    def calls_of(self, row: int) -> Sequence[Call]:
        """The tool calls of an assistant row."""
        raise NotImplementedError

    def tell_record(self, row: int, line: Data, time: str | None) -> None:
        """Tell a row that has no place in the tree."""
        raise NotImplementedError

    def tell_entry(self, row: int, id_: str, line: Data) -> None:
        """Tell a row under the leaf."""
        raise NotImplementedError

    def moves_itself(self, row: int) -> bool:  # noqa: ARG002  # a hook
        """Whether a row is told as the move to its place."""
        return False

    # ---- what is the same for all ------------------------------------------------------------

    def tell(self, stages: Sequence[Stage]) -> Iterator[Told]:
        """The session's events, in units."""
        numbers, offsets = self.outline.numbers, self.outline.offsets
        for number, stage in enumerate(stages):
            self.end = stage.end
            row = 0
            for row in self.in_order(stage.rows):
                before = (self.thread.leaf_id, self.turns.operation)
                self._tell_row(row)
                for events in self.thread.take():
                    yield Told(number, events, numbers[row], offsets[row], *before)
                    before = _after(events, *before)
            before = (self.thread.leaf_id, self.turns.operation)
            self._settle_leaf(stage)
            for events in self.thread.take():
                yield Told(number, events, numbers[row], stage.end, *before)
                before = _after(events, *before)

    def in_order(self, rows: Sequence[int]) -> Iterator[int]:
        """Rows as planned."""
        yield from rows

    def id_of(self, row: int) -> str:
        """The entry id of a row, from the file."""
        return self.id_at(row, self.sheet.line(row))

    def marked(self, row: int, parts: list[Data]) -> list[Data]:
        """Parts of a row; they say so where characters were replaced in them."""
        replaced = any("replaced" in note for note in self.sheet.parsed(row).notes)
        return marked(parts) if replaced else parts

    def known_row(self, id_: str | None) -> int:
        """The row of an id, as far as the present stage knows it."""
        row = self.outline.row(id_) if id_ else 0
        return row if row and self.outline.offsets[row] < self.end else 0

    def target(self, row: int) -> int | None:
        """The entry to move to before a row is told, or None where the thread is there."""
        number = self.plan.lane_of[row]
        if number == self._lane:
            return None
        lane = self.plan.lanes[number]
        if self.plan.place_of[row]:
            target = self._tips[number]
        elif lane.start == ROOT:
            target = 0
        elif lane.start:
            target = self.numbers[lane.start]
        else:
            return None
        return None if self.thread.is_at(target) else target

    def _tell_row(self, row: int) -> None:
        line = self.sheet.line(row)
        time = text_at(line, "timestamp")
        if self.outline.kinds[row] & (Kind.RECORD | Kind.ALIAS):
            self.tell_record(row, line, time)
            return
        id_ = self.id_at(row, line)
        self._time = time or self._time
        target = self.target(row)
        if target is not None and not self.moves_itself(row):
            self.turns.end(passed=True)
            self.thread.branch(target, derived("branch", id_), time)
            self.thread.close()
        self.tell_entry(row, id_, line)
        if id_ in self.thread.lost:
            self.thread.lost.discard(id_)
            self.thread.branch(self.thread.leaf, derived("late", id_), time)
        self._lane = self.plan.lane_of[row]
        self.numbers[row] = self._tips[self._lane] = self.thread.leaf

    def _settle_leaf(self, stage: Stage) -> None:
        """At the end of a stage the leaf is where the file says."""
        leaf = stage.leaf
        if not leaf:
            self.turns.end(passed=False)
            return
        lane = 0 if leaf == ROOT else self.plan.lane_of[leaf]
        target = 0
        if lane:
            target = self.numbers[leaf] if stage.exact else self._tips[lane]
        if self.thread.is_at(target):
            self.turns.end(passed=False)
            return
        self.turns.end(passed=True)
        name = self.thread.id_of(target)
        self.thread.branch(target, derived("leaf", name, stage.end), self._time)
        self._lane = 0 if stage.exact else lane


def _after(
    events: Sequence[NewEvent], leaf: str | None, operation: str | None
) -> tuple[str | None, str | None]:
    """The leaf and the open operation after a unit, by those before it."""
    for event in events:
        if event.type in ENTRY_TYPES:
            leaf = event.id
        elif event.type == "operation_accepted":
            operation = event.data["operation"]
        elif event.type == "operation_finished":
            operation = None
    return leaf, operation
