"""The shape of a session's tree: the path to the leaf, and what was left behind beside it.

A *run* is a row of entries with no fork in between. The trunk is the path to the leaf as runs; a
fork hangs under the run that it begins at the end of. Nothing here recurses, so that a session of
ten thousand rewinds is drawn like any other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from turnlog.core.rows import Branch, Entry
from turnlog.tables.view import SessionView

ID_MIN = 8
"""Ids are shown by at least so many of their first characters."""


class Run(NamedTuple):
    """Entries that follow one another, at a depth of forks (0: the trunk), in drawing order.

    `label` is that of the branch which the run begins. `is_tip` says that it ends a branch, and
    `holds_leaf` that it ends at the leaf.
    """

    level: int
    entries: Sequence[Entry]
    label: str | None
    is_tip: bool
    holds_leaf: bool


class Outline(NamedTuple):
    """The runs in drawing order, what is void, and how much of an id tells it from all others."""

    runs: list[Run]
    voids: int
    id_length: int


def outline(view: SessionView) -> Outline:
    """The whole tree of a session."""
    chains: dict[int, list[Entry]] = defaultdict(list)
    ids: list[str] = []
    voids = 0
    for row in view.reader.scan("entries", view.session):
        ids.append(row.id)
        if row.void is None:
            chains[row.branch].append(row)
        else:
            voids += 1
    tree = _Tree(view, chains)
    return Outline(list(tree.walk()), voids, telling_length(ids))


class _Tree:
    """The branches, each with its entries and with the branches that fork from them."""

    def __init__(self, view: SessionView, chains: dict[int, list[Entry]]) -> None:
        self.leaf = view.head.leaf
        self.chains = chains
        self.trunk = _path(self.leaf, chains)
        self.branches: dict[int, Branch] = {row.first: row for row in view.rows("branches")}
        self.forks: dict[int, list[Branch]] = defaultdict(list)
        for row in self.branches.values():
            self.forks[row.fork_point].append(row)

    def walk(self) -> Iterator[Run]:
        """Depth first, in the order in which branches began, but the trunk always last."""
        stack = self._after(0, None, 0)
        while stack:
            level, first, start = stack.pop()
            chain = self.chains[first]
            end = start
            while end + 1 < len(chain) and not self.forks.get(chain[end].number):
                end += 1
            last = chain[end]
            rest = (first, end + 1) if end + 1 < len(chain) else None
            label = self.branches[first].label if start == 0 else None
            entries = chain[start : end + 1]
            yield Run(level, entries, label, rest is None, last.number == self.leaf)
            stack.extend(self._after(last.number, rest, level))

    def _after(
        self, number: int, rest: tuple[int, int] | None, level: int
    ) -> list[tuple[int, int, int]]:
        """What goes on from an entry, to be popped from the end: its forks, then the main line."""
        on = [(row.first, 0) for row in self.forks.get(number, ())]
        if rest is not None:
            on.insert(0, rest)
        if not on:
            return []
        main = self._main(on, level)
        stack = [] if main is None else [(level, *main)]
        stack.extend((level + 1, *side) for side in reversed(on) if side != main)
        return stack

    def _main(self, on: list[tuple[int, int]], level: int) -> tuple[int, int] | None:
        """The line that is drawn on without a step to the right: the trunk, elsewhere the newest.

        Behind the leaf itself there is none.
        """
        if level:
            return on[-1]
        towards = (line for line in on if self.chains[line[0]][line[1]].number in self.trunk)
        return next(towards, None)


def _path(leaf: int, chains: dict[int, list[Entry]]) -> set[int]:
    """The numbers on the path to the leaf."""
    parents = {row.number: row.parent for chain in chains.values() for row in chain}
    path: set[int] = set()
    while leaf:
        path.add(leaf)
        leaf = parents[leaf]
    return path


def telling_length(ids: list[str]) -> int:
    """How many first characters tell each id from the others."""
    ids.sort()
    common = 0
    for one, two in pairwise(ids):
        length = 0
        for a, b in zip(one, two, strict=False):
            if a != b:
                break
            length += 1
        common = max(common, length)
    return max(ID_MIN, common + 1)
