"""Tables that are behind the log, and tables whose frames are torn by crashes."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnlog.core import fold as folding
from turnlog.core.rows import Changes, Key, Row
from turnlog.tables.memory import DictStore
from turnlog.testing.simulation.world import World


class LaggingStore(DictStore):
    """A client's own tables. They reach a position when somebody waits for it, and move on by
    themselves now and then. `pause` is the client's: it may take long, or fail."""

    def __init__(self, world: World, chance: Random) -> None:
        super().__init__(world.records, world.signal)
        self._world = world
        self._chance = chance
        self._next = 0

    def advance(self, position: int) -> None:
        """Take in what has landed up to a position; the fold is pure, so it need not run again."""
        landed = self._world.landed
        while self._next < len(landed) and landed[self._next].stored.position <= position:
            item = landed[self._next]
            self.apply(item.changes, item.stored.position)
            self._next += 1

    def drift(self) -> None:
        """Move on a little, or not."""
        draw = self._chance.random()
        if draw < 0.5 and self._next < len(self._world.landed):
            ahead = len(self._world.landed) - self._next
            index = self._next + int(draw * 2 * ahead)
            self.advance(self._world.landed[index].stored.position)

    async def wait(self, position: int, partition: int = 0) -> None:
        while self.position(partition) < position:
            seen = self._signal.count
            if self._world.end < position:
                await self._signal.wait(seen)
                continue
            await self._signal.wait(seen, timeout_s=self._chance.expovariate(20))
            self.drift()
            if self._chance.random() < 0.5:
                self.advance(position)


class _Kept(NamedTuple):
    """A row as a changelog keeps it: of which position it is, and what was there before."""

    position: int
    row: Row | None
    before: Row | None


class TornStore:
    """Tables as a stream worker keeps them in a changelog: row by row, a frame's head row last.

    A crash in the middle of a frame leaves some of its rows. Where a row is newer than its
    session's head, what was before is read in its place, so folding the frame again changes nothing
    (design, "The fold").
    """

    def __init__(self) -> None:
        self._rows: dict[Key, _Kept] = {}

    def get(self, key: Key, /) -> Row | None:
        kept = self._rows.get(key)
        if kept is None:
            return None
        head = self._rows.get(("sessions", key[1]))
        position = head.position if head is not None else 0
        return self.choose(kept, position)

    @staticmethod
    def choose(kept: _Kept, head_position: int) -> Row | None:
        """The row to read: not that of a frame whose head row was never written."""
        return kept.before if kept.position > head_position else kept.row

    def write(self, changes: Changes, position: int, *, rows_max: int | None = None) -> None:
        """Write rows in their order; at most `rows_max` of them before the worker dies."""
        for count, (key, row) in enumerate(changes.items()):
            if count == rows_max:
                return
            kept = self._rows.get(key)
            if kept is None:
                before = None
            elif kept.position == position:
                before = kept.before  # the frame was torn, and is folded again
            else:
                before = kept.row
            self._rows[key] = _Kept(position, row, before)

    def rows(self) -> dict[Key, Row]:
        """Everything that can be read."""
        found = ((key, self.get(key)) for key in self._rows)
        return {key: row for key, row in found if row is not None}


class Worker:
    """A stream worker: folds what it is given, dies in the middle of frames, and is given things
    again from an earlier place."""

    def __init__(self, world: World, chance: Random) -> None:
        self.store = TornStore()
        self._world = world
        self._chance = chance
        self._next = 0

    def work(self) -> str | None:
        """Fold what has landed, with crashes on the way; at the end everything is folded.

        Gives what a frame changed otherwise than where no frame was torn, or None.
        """
        landed = self._world.landed
        while self._next < len(landed):
            item = landed[self._next]
            position = item.stored.position
            changes = folding.fold(item.frame, position, self.store)
            if changes and changes != item.changes:
                keys = (key for key in changes if changes[key] != item.changes.get(key))
                return f"position {position} changes {next(keys, 'less')} otherwise"
            if len(changes) > 1 and self._chance.random() < 0.2:
                torn = self._chance.randrange(1, len(changes))
                self.store.write(changes, position, rows_max=torn)
                self._next = max(0, self._next - self._chance.randrange(4))
                continue
            self.store.write(changes, position)
            self._next += 1
        return None
