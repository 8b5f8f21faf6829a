"""What a history's writer knows while it writes: the log so far, the model of it, and dice.

The dice are either hypothesis' (which shrinks what fails) or a seeded generator's (which makes many
histories quickly). Every choice is small where the history is plain.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from tests.model.dispatches import Dispatch
from tests.model.model import Model
from tests.model.tree import Node
from tests.model.work import Attempt, Operation
from tests.model.writing import Script
from turnlog.core.frames import Data, Header, Record

T = TypeVar("T")


class Dice(Protocol):
    """Where choices come from."""

    def below(self, count: int) -> int:
        """A number from 0 to count - 1."""
        ...


class Drawn:
    """Dice that hypothesis throws."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        """See Dice."""
        return self._draw(_integers(count))


class Seeded:
    """Dice of a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, count: int) -> int:
        """See Dice."""
        return self._random.randrange(count)


@lru_cache(maxsize=1024)
def _integers(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class World:
    """The log so far and what to write next; nothing unlikely happens where it is calm."""

    def __init__(self, dice: Dice, *, calm: bool = False) -> None:
        self.dice = dice
        self.calm = calm
        self.script = Script(position=1 + dice.below(2), step=1 + dice.below(3))
        self.model = Model()
        self.records: list[Record] = []
        self.written: list[Data] = []
        self.claims: list[tuple[str, int]] = []
        self.claim_events: list[Data] = []
        self.number = 0
        self.leaf: str | None = None

    # ---- dice

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases; faults are what happens in 20 or fewer."""
        if self.calm and percent <= 20:
            return False
        return self.dice.below(100) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        """One of several; the first is the plainest."""
        return options[self.dice.below(len(options))]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One of several by weight."""
        rest = self.dice.below(sum(weight for weight, _ in options))
        for weight, option in options:
            rest -= weight
            if rest < 0:
                return option
        raise AssertionError("weights add up")

    # ---- names

    def fresh(self, prefix: str) -> str:
        """An id that was not used before, unless somebody foresaw it."""
        self.number += 1
        return f"{prefix}{self.number}"

    def entry_to_be(self) -> str:
        """An entry id that may be used later."""
        return f"e{self.number + 1 + self.dice.below(8)}"

    # ---- knowledge

    @property
    def entries(self) -> list[str]:
        """All entry ids."""
        return [node.id for node in self.model.tree.nodes]

    @property
    def surface(self) -> list[Node]:
        """The nodes of the surface at the leaf, without a fork's parent."""
        tree = self.model.tree
        return [tree.nodes[number - 1] for number in tree.surface(tree.leaf) if number]

    @property
    def operations(self) -> list[Operation]:
        """The open operations, the newest first."""
        return self.model.work.open()[::-1]

    @property
    def dispatches(self) -> list[Dispatch]:
        """All dispatches, the newest first."""
        return list(self.model.work.dispatches.all.values())[::-1]

    @property
    def unanswered(self) -> list[tuple[str, Attempt]]:
        """The attempts whose assistant entry is not there, the newest first."""
        found = self.model.work.attempts.items()
        return [(id_, a) for id_, a in found if a.asked and not self.has(a.asked)][::-1]

    def has(self, asked: Any) -> bool:
        """Whether the entry of an attempt is there."""
        return self.model.tree.find(asked.data["assistant_entry"]) is not None

    def calls(self) -> list[tuple[str, int, str]]:
        """The calls on the path, the newest first: assistant entry, index, call id."""
        path = self.model.tree.path(self.model.tree.leaf)
        return [(n.id, i, c) for n in path[::-1] for i, c in enumerate(n.calls)]

    # ---- choices that are sometimes wrong

    def parent(self) -> str | None:
        """The parent of a new entry: nearly always the leaf."""
        if not self.chance(16) or not self.entries:
            return self.leaf
        voids = [node.id for node in self.model.tree.nodes if node.void is not None]
        return self.weighted(
            [
                (5, self.pick(self.entries)),
                (5, self.entry_to_be()),
                (2, None),
                (4 if voids else 0, voids[-1] if voids else None),
                (2, self.pick([*self.model.tree.missing, "ghost"])),
                (1, f"e{self.number + 1}"),
            ]
        )

    def entry(self) -> str:
        """An entry that is there, nearly always."""
        if self.entries and not self.chance(6):
            return self.pick(self.entries[::-1])
        return self.pick(["nowhere", self.entry_to_be()])

    def operation(self) -> str:
        """An operation, nearly always an open one."""
        opened = [operation.id for operation in self.operations]
        if opened and not self.chance(8):
            return self.pick(opened)
        return self.pick([*self.model.work.operations, "no-operation"][::-1])

    def dispatch(self, status: str | None = None) -> Dispatch | None:
        """A dispatch, of this status nearly always."""
        wanted = [d for d in self.dispatches if status in (None, d.status)]
        on_path = {node.id for node in self.model.tree.path(self.model.tree.leaf)}
        near = [d for d in wanted if d.call[0] in on_path]
        if wanted and not self.chance(8):
            return self.pick(near if near and not self.chance(30) else wanted)
        return self.pick(self.dispatches) if self.dispatches else None

    # ---- writing

    def file(self, record: Record) -> None:
        """Append a record and learn from it."""
        item = self.script.append(record)
        self.records.append(record)
        self.model.fold(item.position, item.frame)
        leaf = self.model.tree.leaf
        self.leaf = self.model.tree.nodes[leaf - 1].id if leaf else None

    def header(self, *, ahead: int = 1) -> Header:
        """The header of the next frame in force."""
        own = self.model.ownership
        return Header(self.script.session, own.claim, own.epoch, own.seq + ahead, "host")
