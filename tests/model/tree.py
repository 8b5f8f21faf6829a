"""The session tree of the model: every entry, and answers that walk whole paths to be obvious.

Nothing is remembered that a walk can find: the surface at an entry is the replay of its path, its
state the last `app_state` on it, its branch a pass over all entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from turnlog.core.frames import Data, Event

MISSING_MAX = 256


@dataclass
class Node:
    """One entry; number 0 is no node but the root position."""

    number: int
    event: Event
    position: int
    index: int
    kind: str
    parent: int = 0
    declared: str | None = None
    bridged: bool = False
    late: bool = False
    void: str | None = None
    answers: tuple[int, int] | None = None
    trims: int = 0
    imported: bool = False

    @property
    def id(self) -> str:
        """The entry id."""
        return self.event.id

    @property
    def data(self) -> Data:
        """The data of its event."""
        return self.event.data

    def is_message(self, *roles: str) -> bool:
        """Whether it is a message of one of these roles."""
        return self.kind == "message" and self.data["role"] in roles

    def is_valid(self, kind: str) -> bool:
        """Whether it is a compaction of this kind that is not void."""
        return self.kind == "compaction" and self.void is None and self.data["kind"] == kind

    @property
    def role(self) -> str | None:
        """Whom the model hears: a summary speaks as user, a prune as the result it trims."""
        if self.kind == "message":
            return str(self.data["role"])
        if self.kind == "compaction" and self.void is None:
            return "user" if self.data["kind"] == "summary" else "tool"
        if self.kind in ("branch", "custom") and self.is_shown:
            return "user"
        return None

    @property
    def calls(self) -> list[str]:
        """The call ids of an assistant message, by call index."""
        content = self.data.get("content")
        if not self.is_message("assistant") or not isinstance(content, list):
            return []
        return [part["call_id"] for part in content if part["type"] == "tool_call"]

    @property
    def is_shown(self) -> bool:
        """Whether it is a node of the surface of the paths that it lies on."""
        if self.void is not None:
            return False
        if self.kind == "branch":
            return self.data.get("summary") is not None
        if self.kind == "custom":
            return self.data.get("in_context") is True
        return self.kind in ("message", "compaction")


@dataclass
class Tree:
    """All entries of a session in the order of the log."""

    nodes: list[Node] = field(default_factory=list)
    leaf: int = 0
    initial: Any = field(default_factory=dict)
    fork_entry: str | None = None
    missing: dict[str, int] = field(default_factory=dict)
    missing_beyond: int = 0
    jumps: int = 0

    def find(self, id_: str | None) -> Node | None:
        """The entry of this id."""
        return next((node for node in self.nodes if node.id == id_), None)

    def path(self, number: int) -> list[Node]:
        """The entries from the root to this one, itself included."""
        found: list[Node] = []
        while number:
            node = self.nodes[number - 1]
            assert node.parent < number, "parents come earlier"
            found.insert(0, node)
            number = node.parent
        return found

    def on_path(self, node: Node) -> bool:
        """Whether an entry lies on the leaf's path."""
        return any(other is node for other in self.path(self.leaf))

    def state(self, number: int) -> Any:
        """The app state in force at an entry."""
        found = self.nearest(number, "app_state")
        return self.initial if found is None else found.data["value"]

    def nearest(self, number: int, kind: str) -> Node | None:
        """The last entry of a kind at or above this one, void ones left out."""
        on_path = [n for n in self.path(number) if n.kind == kind and n.void is None]
        return on_path[-1] if on_path else None

    def assistant_above(self, node: Node) -> Node | None:
        """The nearest assistant message strictly above an entry."""
        above = [n for n in self.path(node.parent) if n.is_message("assistant")]
        return above[-1] if above else None

    def surface(self, number: int) -> list[int]:
        """What the model sees at an entry: the numbers of the nodes, 0 for a fork's parent."""
        shown = [] if self.fork_entry is None else [0]
        for node in self.path(number):
            if node.kind == "compaction" and node.void is None:
                first, last = self.span(shown, node.data["replaces"])
                shown[first : last + 1] = [node.number]
            elif node.is_shown:
                shown.append(node.number)
        return shown

    def span(self, shown: list[int], replaces: Data) -> tuple[int, int]:
        """Where on a surface two entries stand; raises ValueError where they do not."""
        places: list[int] = []
        for id_ in (replaces["first"], replaces["last"]):
            node = self.find(id_)
            if node is None and id_ != self.fork_entry:
                raise ValueError(id_)
            places.append(shown.index(0 if node is None else node.number))
        if places[0] > places[1]:
            raise ValueError(replaces)
        return places[0], places[1]

    def covered(self, number: int) -> set[int]:
        """What a surface node stands for, itself included, summaries of summaries included."""
        if not number:
            return {0}
        node = self.nodes[number - 1]
        if node.kind != "compaction":
            return {number}
        before = self.surface(node.parent)
        first, last = self.span(before, node.data["replaces"])
        return {number}.union(*(self.covered(other) for other in before[first : last + 1]))

    def branches(self) -> dict[int, list[int]]:
        """The numbers of every branch's entries, by its first."""
        runs: dict[int, list[int]] = {}
        for node in self.nodes:
            if node.void is not None:
                continue
            above = next((run for run in runs.values() if run[-1] == node.parent), None)
            if above is None or node.late:
                runs[node.number] = [node.number]
            else:
                above.append(node.number)
        return runs

    def branch_of(self, number: int) -> int:
        """The first entry of the branch that an entry is in; 0 for none."""
        return next((first for first, run in self.branches().items() if number in run), 0)

    def hang(self, node: Node) -> None:
        """Find the parent that a new entry's data names."""
        named = node.data.get("parent")
        known = self.find(named)
        if named is None:
            node.parent = 0
        elif known is None:
            node.parent, node.bridged = self.leaf, True
            self._miss(named, node.position)
        else:
            node.parent = known.parent if known.void is not None else known.number
        self.declare(node)

    def declare(self, node: Node) -> None:
        """Keep the parent that the data names where the entry hangs elsewhere."""
        named = node.data.get("parent")
        hangs_under = self.nodes[node.parent - 1].id if node.parent else None
        node.declared = None if named == hangs_under else named

    def _miss(self, id_: str, position: int) -> None:
        if id_ in self.missing:
            return
        if len(self.missing) < MISSING_MAX:
            self.missing[id_] = position
        else:
            self.missing_beyond += 1

    def closes_cycle(self, node: Node) -> bool:
        """Whether a late entry is among its own parents, as they declare each other."""
        above, seen = node.data.get("parent"), set[str]()
        while node.late and above is not None and above not in seen:
            if above == node.id:
                return True
            seen.add(above)
            found = self.find(above)
            if found is None:
                return False
            above = found.declared or (self.nodes[found.parent - 1].id if found.parent else None)
        return False

    def first_unanswered(self, node: Node) -> tuple[int, int] | None:
        """The call that a result without a dispatch answers."""
        asked = self.assistant_above(node)
        if asked is None:
            return None
        answered = [n.answers for n in self.path(node.parent)]
        for index, call_id in enumerate(asked.calls):
            if call_id == node.data.get("call_id") and (asked.number, index) not in answered:
                return asked.number, index
        return None

    def enter(self, node: Node) -> None:
        """Take in a finished entry; it becomes the leaf unless it is void or late."""
        self.nodes.append(node)
        if node.void is not None or node.late:
            return
        if node.parent != self.leaf and node.kind != "branch":
            self.jumps += 1
        self.leaf = node.number


def compaction_fault(tree: Tree, node: Node) -> str | None:
    """Why a compaction is void, or None; in the order of docs/RULES.md."""
    if node.late:
        return "late"
    if node.bridged or node.parent != tree.leaf:
        return "not_at_leaf"
    prepared_at = node.data.get("prepared_at")
    if prepared_at is not None:
        place = tree.find(prepared_at)
        if place is not None and place.void is not None and place.parent:
            place = tree.nodes[place.parent - 1]
        is_root = place is not None and place.void is not None
        if place is None or not (is_root or tree.on_path(place)):
            return "prepared_elsewhere"
    surface = tree.surface(tree.leaf)
    try:
        first, last = tree.span(surface, node.data["replaces"])
    except ValueError:
        return "not_on_surface"
    replaced = [tree.nodes[number - 1] for number in surface[first : last + 1] if number]
    if node.data["kind"] == "prune":
        whole = [*replaced, *([None] if 0 in surface[first : last + 1] else [])]
        if len(whole) == 1 and replaced and is_result(replaced[0]):
            return None
        return "not_one_result"
    return None if is_balanced(replaced) else "unbalanced"


def is_result(node: Node) -> bool:
    """Whether a node of the surface stands for a tool result."""
    return node.is_message("tool") or node.is_valid("prune")


def is_balanced(span: list[Node]) -> bool:
    """Whether every call in a span is answered in it, and every result in it has its call there."""
    asked = {(node.number, index) for node in span for index in range(len(node.calls))}
    answered = {node.answers for node in span if is_result(node) and node.answers is not None}
    return asked == answered
