"""A session's tree, drawn: the path to the leaf goes down, what was left behind hangs at its side.

A run of entries without a fork is folded to its first and last ones. The drawing is as deep as
there are forks within forks, and no deeper than `LEVELS_SHOWN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turnlog.cli.briefs import heading, style, words
from turnlog.cli.plain import counted, cut, one_line
from turnlog.cli.terminal import Terminal
from turnlog.core.rows import Entry
from turnlog.query.outline import Outline, Run, outline
from turnlog.tables.view import SessionView

LEVELS_SHOWN = 6
ID_SHOWN_MAX = 16
HEADING_WIDTH = 9
UNFOLDED = 6
"""A run of so many entries on the trunk is shown whole."""
MILESTONES = 8
"""Of a run on the trunk so many messages of users are shown."""

Parts = list[str | tuple[str, str]]


def draw(terminal: Terminal, view: SessionView, *, unfold: bool = False, indent: str = "") -> None:
    """Print the tree of a session."""
    drawing = Drawing(view, outline(view), terminal.width, unfold=unfold)
    for line in drawing.lines():
        terminal.fit(indent, *line)


class Drawing:
    """The lines of one tree."""

    def __init__(
        self, view: SessionView, tree: Outline, width: int, *, unfold: bool = False
    ) -> None:
        self.view = view
        self.tree = tree
        self.width = width
        self.unfold = unfold
        self.id_width = min(tree.id_length, ID_SHOWN_MAX)

    def lines(self) -> Iterator[Parts]:
        """All of them, from the root down."""
        if not self.tree.runs:
            yield [("(no entries)", "dim")]
        for run in self.tree.runs:
            yield from self._run(run) if run.level == 0 else self._side(run)
        if self.tree.voids:
            void = counted(self.tree.voids, "void entry", "void entries")
            yield [(f"({void}: kept, and on no branch; see turnlog fsck)", "dim")]

    def _run(self, run: Run) -> Iterator[Parts]:
        """A run on the trunk: its milestones, and how many entries there are in between."""
        before = -1
        for index in self._shown(run.entries):
            if hidden := index - before - 1:
                yield [("│ ", "green"), (f"⋮ {hidden:,} more", "dim")]
            yield self._entry(run.entries[index], run)
            before = index

    def _shown(self, entries: Sequence[Entry]) -> list[int]:
        """Which entries of a run are shown: its ends and what people said, not too many of it."""
        count = len(entries)
        if self.unfold or count <= UNFOLDED:
            return list(range(count))
        said = [index for index, row in enumerate(entries) if row.role == "user"]
        if len(said) > MILESTONES:
            said = said[: MILESTONES // 2] + said[-MILESTONES // 2 :]
        shown = {0, count - 1, *said}
        # one entry takes as much room as saying that it is left out
        shown |= {index for index in range(count) if {index - 1, index + 1} <= shown}
        return sorted(shown)

    def _entry(self, row: Entry, run: Run) -> Parts:
        is_leaf = run.holds_leaf and row is run.entries[-1]
        parts: Parts = [("◉ " if is_leaf else "│ ", "bold green" if is_leaf else "green")]
        parts += self._id(row)
        parts.append((f"{heading(row):<{HEADING_WIDTH}} ", style(row)))
        if row is run.entries[0]:
            parts += _label(run)
        parts.append(words(row, self.view.data(row), self.width))
        return parts

    def _side(self, run: Run) -> Iterator[Parts]:
        """A run that was left behind: one line."""
        level, first = min(run.level, LEVELS_SHOWN), run.entries[0]
        parts: Parts = [("│ ", "green"), ("  " * (level - 1) + "└╴", "red")]
        parts += self._id(run.entries[-1])
        count = counted(len(run.entries), "entry", "entries")
        deeper = f", {run.level} forks deep" if run.level > LEVELS_SHOWN else ""
        left = " left behind" if run.is_tip else ""
        parts.append((f"{count}{left}{deeper}: ", "red" if run.is_tip else "dim"))
        parts += _label(run)
        parts.append((words(first, self.view.data(first), self.width), "dim"))
        yield parts

    def _id(self, row: Entry) -> Parts:
        return [(f"{cut(one_line(row.id[: self.id_width]), self.id_width):<8}  ", "dim")]


def _label(run: Run) -> Parts:
    """The label of the branch that a run begins."""
    return [] if run.label is None else [(f"[{cut(one_line(run.label), 24)}] ", "bold")]
