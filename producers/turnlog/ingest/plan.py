"""The order in which the lines of a file become events, and where the tree is left and taken up.

An append-only log has one leaf, so a file's tree is told as chains with jumps between them. A
*lane* is such a chain. Siblings that are no rewind (parallel results, attachments, progress) follow
one another in their lane; a rewind begins a new one. A *run* is a prompt and what follows it in its
lane; runs are told whole, in the order of their first lines, so that two turns are never mixed. A
parent is told before its children.

A *stage* is what one import sees: a plan is made of a stage's lines and those before it alone, so
an import of a file that has grown since plans its old part as it was planned then.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from turnlog.ingest.outline import Kind, Outline

ROOT = 2**32 - 1
"""Stands for the root position where a row is expected."""
_ALIAS_CHAIN_MAX = 2**20
_BEGINS = Kind.PROMPT | Kind.COMMAND


class Stage(NamedTuple):
    """What one import tells of one track: rows in order, then the row that is to be the leaf.

    `end` is where the stage ends in the file. `leaf` is 0 where the stage has no tree line and
    ROOT for the root position; `exact` says that what follows the leaf in its lane is left behind.
    """

    end: int
    rows: Sequence[int]
    leaf: int
    exact: bool


class Lane:
    """A chain. `start` is the row it hangs under, ROOT, or 0 for the first of its track."""

    __slots__ = ("answer", "length", "prompt", "run", "stage", "start", "tip")

    def __init__(self, start: int, run: int, stage: int) -> None:
        self.start = start
        self.run = run
        self.stage = stage
        self.length = 0
        self.prompt = -1
        self.answer = -1
        self.tip = 0


class Track:
    """The lines of one session while they are placed."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.placed = array("I")
        self.lane = 0
        self.run = 0
        self.mixed = False
        self.messages = 0
        self.last = 0
        self.hint: tuple[int, int] = (0, 0)
        self.heads: dict[int, int] = {}
        self.tails: dict[int, int] = {}


class Plan:
    """See the module's text. With `exact` every line hangs where it says (pi); without, by the
    rules for siblings that are no rewind (Claude Code)."""

    def __init__(self, outline: Outline, *, exact: bool) -> None:
        self._outline = outline
        self._exact = exact
        self.lanes: list[Lane] = [Lane(0, 0, -1)]
        self.lane_of = array("I", [0])
        self.place_of = array("I", [0])
        self.alias = array("I", [0])
        self.next_part = array("I", [0])
        self._run_of = array("I", [0])
        self.dangling: set[int] = set()
        self.broken: list[int] = []
        """Rows whose parents form a cycle; each was taken out of it."""
        self.continues: dict[int, int] = {}
        """Rows that go on with a message whose earlier part was told before, by that part's row."""
        self.tracks: dict[int, Track] = {}
        self._stage = 0
        self._runs = 0
        self._next = 1

    def point(self, track: int, row: int, leaf: int) -> None:
        """Line `row` says that the leaf of a track is the line `leaf`."""
        self._track(track).hint = (row, leaf)

    def close_stage(self, end: int) -> None:
        """Plan the rows that were added to the outline since the stage before."""
        outline = self._outline
        rows = range(self._next, len(outline) + 1)
        for table in (self.lane_of, self.place_of, self.alias, self.next_part, self._run_of):
            table.extend([0] * len(rows))
        waiting: dict[int, list[int]] = {}
        for row in rows:
            self._arrive(row, waiting)
        for left in sorted(row for children in waiting.values() for row in children):
            while not self._is_placed(left):
                row = self._in_cycle(left)
                self.broken.append(row)
                self._place_all(row, waiting, follows=True)
        for track in self.tracks.values():
            self._close_track(track, end)
        self._next = len(outline) + 1
        self._stage += 1

    def resolve(self, row: int) -> int:
        """The row that stands for a row: the first of a split message, an alias's parent."""
        for _ in range(_ALIAS_CHAIN_MAX):
            if row == ROOT or not self.alias[row]:
                break
            row = self.alias[row]
        return row

    def parts(self, row: int) -> list[int]:
        """The rows of a split message, in order."""
        rows = [row]
        while self.next_part[rows[-1]]:
            rows.append(self.next_part[rows[-1]])
        return rows

    def _track(self, number: int) -> Track:
        return self.tracks.setdefault(number, Track())

    def _is_placed(self, row: int) -> bool:
        return bool(self.lane_of[row] or self.alias[row])

    def _arrive(self, row: int, waiting: dict[int, list[int]]) -> None:
        outline = self._outline
        kind, parent = outline.kinds[row], outline.parents[row]
        if kind & Kind.RECORD:
            self._join_run(self._track(outline.tracks[row]), row)
            return
        known = parent < self._next or self._is_placed(parent) or kind & Kind.WEAK
        if known or outline.tracks[parent] != outline.tracks[row]:
            self._place_all(row, waiting)
        else:
            waiting.setdefault(parent, []).append(row)

    def _in_cycle(self, row: int) -> int:
        """The first row of the cycle that keeps a row from being placed."""
        parents = self._outline.parents
        seen: dict[int, None] = {}
        while row not in seen:
            seen[row] = None
            row = parents[row]
        members = list(seen)
        return min(members[members.index(row) :])

    def _place_all(self, row: int, waiting: dict[int, list[int]], *, follows: bool = False) -> None:
        """Place a row, then those that waited for it, in the order of the file."""
        self._place(row, follows=follows)
        rest = waiting.pop(row, [])[::-1]
        while rest:
            child = rest.pop()
            if not self._is_placed(child):
                self._place(child, follows=False)
                rest.extend(waiting.pop(child, [])[::-1])

    def _place(self, row: int, *, follows: bool) -> None:
        outline = self._outline
        kind = outline.kinds[row]
        track = self._track(outline.tracks[row])
        parent = self._parent(row, kind, track, follows=follows)
        if self._exact or not kind & Kind.ALIAS:
            track.last = max(track.last, row)
        if kind & Kind.ALIAS:
            self.alias[row] = parent or (self.lanes[track.lane].tip if track.lane else ROOT)
            self._join_run(track, row)
            return
        number = self._lane(row, kind, parent, track)
        lane = self.lanes[number]
        if kind & Kind.ASSISTANT and self._join_message(row, number, lane, track):
            return
        apart = self._exact and number != track.lane
        track.lane = number
        self.lane_of[row], self.place_of[row] = number, lane.length
        if kind & _BEGINS or lane.stage != self._stage or apart:
            self._runs += 1
            lane.run, lane.stage = self._runs, self._stage
        if kind & _BEGINS:
            lane.prompt = lane.length
        elif kind & Kind.ASSISTANT:
            lane.answer = lane.length
        lane.length += 1
        lane.tip = row
        track.messages += bool(kind & Kind.MESSAGE)
        self._run_of[row] = lane.run
        track.mixed |= lane.run < track.run
        track.run = max(track.run, lane.run)
        track.placed.append(row)

    def _join_run(self, track: Track, row: int) -> None:
        self._run_of[row] = track.run
        track.placed.append(row)

    def _parent(self, row: int, kind: int, track: Track, *, follows: bool) -> int:
        """The row of the parent, ROOT, or 0 where a line follows what came before it."""
        outline = self._outline
        parent = outline.parents[row]
        if follows or (parent and outline.tracks[parent] != outline.tracks[row]):
            return 0
        if kind & Kind.LOST:
            if not kind & Kind.WEAK:
                self.dangling.add(row)
            return 0
        if parent:
            return self.resolve(parent) if self._is_placed(parent) else 0
        if kind & Kind.WEAK:
            return 0
        if not self._exact and (not kind & (Kind.MESSAGE | Kind.CARRIES) or not track.messages):
            return 0
        return ROOT

    def _lane(self, row: int, kind: int, parent: int, track: Track) -> int:
        """The lane that a line continues, or a new one."""
        if not parent or (parent == ROOT and not track.lane):
            return track.lane or self._new_lane(0)
        if parent == ROOT:
            return self._new_lane(ROOT)
        number = self.lane_of[parent]
        if self._is_fork(row, kind, parent, self.lanes[number]):
            return self._new_lane(parent)
        return number

    def _new_lane(self, start: int) -> int:
        self.lanes.append(Lane(start, 0, -1))
        return len(self.lanes) - 1

    def _is_fork(self, row: int, kind: int, parent: int, lane: Lane) -> bool:
        """Whether a line leaves what came after its parent behind. A typed prompt does where a
        prompt or an answer came after it, other conversation where a prompt did; what is no
        conversation, and results, never do."""
        place = self.place_of[parent]
        if kind & Kind.WEAK:
            return False
        if self._exact:
            return place != lane.length - 1
        if kind & _BEGINS:
            return lane.prompt > place or lane.answer > place
        if kind & (Kind.ASSISTANT | Kind.USER) or (
            kind & Kind.OTHER and self._outline.kinds[row] & Kind.CARRIES
        ):
            return lane.prompt > place
        return False

    def _join_message(self, row: int, number: int, lane: Lane, track: Track) -> bool:
        """Whether a line is a part of a message that began in this stage and is still the last
        one of its lane; then it has no place of its own."""
        group = self._outline.groups[row]
        if not group:
            return False
        head = track.heads.get(group, 0)
        track.heads[group] = head or row
        if not head:
            return False
        here = self.lane_of[head] == number and lane.answer == self.place_of[head]
        if here and lane.prompt < lane.answer and lane.stage == self._stage and head >= self._next:
            self.alias[row] = head
            self.next_part[track.tails.get(head, head)] = row
            track.tails[head] = row
            return True
        self.continues[row] = head
        track.heads[group] = row
        return False

    def _close_track(self, track: Track, end: int) -> None:
        if not track.placed and not track.hint[0] >= self._next:
            return
        rows = track.placed
        if track.mixed:
            rows = array("I", sorted(rows, key=self._run_of.__getitem__))
        leaf, exact = self.resolve(track.last) if track.last else 0, False
        said, pointed = track.hint
        if said > track.last and pointed:
            leaf = self.resolve(pointed)
        if leaf and leaf != ROOT:
            lane, place = self.lanes[self.lane_of[leaf]], self.place_of[leaf]
            exact = lane.prompt > place or lane.answer > place
            if self._exact:
                exact = place != lane.length - 1
        track.stages.append(Stage(end, rows, leaf, exact))
        track.placed, track.mixed = array("I"), False
        track.tails.clear()
