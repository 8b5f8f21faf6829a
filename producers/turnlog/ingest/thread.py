"""One session as it is told: where the leaf is, what the model sees there, and which turn is open.

A light tracker of entry ordinals, kept beside the conversion, so that rewinds, compactions and the
ends of turns are named right. It is not the fold: it follows only what it writes itself. What it
holds of an entry is about 30 bytes; ids are looked up in the file again where they are needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from turnlog.core.frames import NewEvent

Json = Any
Data = dict[str, Json]

PLAIN, USER, ASSISTANT, TOOL, STANDS = range(5)
"""What an entry is on the surface: not there, a message, or what stands there for others."""


class Call(NamedTuple):
    """A tool call of an assistant entry."""

    call_id: str
    tool: str


class Lookup(NamedTuple):
    """What can be read again from the file, by the row that an entry came from."""

    id_of: Callable[[int], str]
    calls_of: Callable[[int], Sequence[Call]]


class Thread:
    """See the module's text. Entries are counted from 1; 0 is the root position.

    Events pile up in a unit, which is written as a whole; `take` closes it.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.leaf = 0
        self.leaf_id: str | None = None
        self.surface: list[int] = []
        self.last_message = 0
        self.assistant = 0
        self.open: dict[str, list[int]] = {}
        """The unanswered calls of the nearest assistant message: by call id, their indexes."""
        self._tools: dict[int, str] = {}
        self._assistant_id = ""
        self._unit: list[NewEvent] = []
        self._units: list[list[NewEvent]] = []
        self._up = array("I", [0])
        self._rows = array("I", [0])
        self._roles = array("B", [0])
        self._depths = array("I", [0])
        self._calls = array("I", [0])
        self._answers = array("I", [0])
        self._answer_index = array("I", [0])
        self._ids: dict[int, str] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._places: dict[int, int] = {}
        self._states: dict[int, Data] = {}
        self._branches: set[int] = set()
        self.lost: set[str] = set()
        """Ids that entries declare as their parent and that are not there. An entry that comes with
        one of them is late: it does not become the leaf by itself."""

    # ---- what is told ----------------------------------------------------------------------

    def record(self, type_: str, id_: str, time: str | None, data: Data) -> None:
        """An event that is no node of the tree."""
        self._unit.append(NewEvent(type_, id_, time, data))

    def close(self) -> None:
        """End the unit: what follows may stand in another frame."""
        if self._unit:
            self._units.append(self._unit)
            self._unit = []

    def take(self) -> Iterator[list[NewEvent]]:
        """The units that were closed since the last time."""
        self.close()
        units, self._units = self._units, []
        yield from units

    def add(
        self,
        type_: str,
        id_: str,
        time: str | None,
        data: Data,
        *,
        row: int = 0,
        role: int = PLAIN,
        lost_parent: str | None = None,
    ) -> int:
        """An entry under the leaf, which becomes the leaf. `row` 0: its id is not in the file.
        `lost_parent` is what it declares where that is nowhere; a reader shows the gap."""
        parent = self.leaf_id
        if lost_parent is not None:
            parent = lost_parent
            self.lost.add(lost_parent)
        self._unit.append(NewEvent(type_, id_, time, {"parent": parent, **data}))
        number = len(self._up)
        self._up.append(self.leaf)
        self._rows.append(row)
        self._roles.append(role)
        self._depths.append(self._depths[self.leaf] + 1)
        self._calls.append(0)
        self._answers.append(0)
        self._answer_index.append(0)
        if not row:
            self._ids[number] = id_
        self.leaf, self.leaf_id = number, id_
        if role:
            self.surface.append(number)
        if role in (USER, ASSISTANT, TOOL):
            self.last_message = number
        return number

    def add_assistant(
        self,
        id_: str,
        time: str | None,
        data: Data,
        calls: Sequence[Call],
        *,
        row: int,
        lost_parent: str | None = None,
    ) -> int:
        """An assistant message with its calls."""
        number = self.add(
            "message", id_, time, data, row=row, role=ASSISTANT, lost_parent=lost_parent
        )
        self._calls[number] = len(calls)
        self._set_open(number, id_, calls, ())
        return number

    def add_result(
        self,
        id_: str,
        time: str | None,
        data: Data,
        *,
        row: int = 0,
        lost_parent: str | None = None,
    ) -> int:
        """A tool's result; it answers the first open call with its call id."""
        call_id: Json = data.get("call_id")
        index = self._answered(call_id if isinstance(call_id, str) else "")
        tool = None if index is None else self._tools.get(index)
        number = self.add(
            "message",
            id_,
            time,
            {**data, "tool": data.get("tool") or tool},
            row=row,
            role=TOOL,
            lost_parent=lost_parent,
        )
        if index is not None:
            self._answers[number] = self.assistant
            self._answer_index[number] = index
        return number

    def answer_open(self, mover: str, time: str | None) -> None:
        """The outcome of the open calls is unknown: the entry `mover` is about to move past."""
        calls = sorted((index, id_) for id_, indexes in self.open.items() for index in indexes)
        for index, call_id in calls:
            self.close()
            data: Data = {
                "role": "tool",
                "content": [],
                "call_id": call_id,
                "dispatch": None,
                "status": "unknown",
                "settled_by": "import",
            }
            self.add_result(derived("unknown", self._assistant_id, index, mover), time, data)
        self.close()

    def add_state(self, id_: str, time: str | None, value: Data, *, row: int) -> int:
        """The whole state of the application."""
        number = self.add("app_state", id_, time, {"value": value}, row=row)
        self._states[number] = value
        return number

    def add_summary(
        self, id_: str, time: str | None, data: Data, span: tuple[int, int], *, row: int
    ) -> int:
        """A compaction in the place of surface[span[0]] to surface[span[1]], both included."""
        first, last = self.surface[span[0]], self.surface[span[1]]
        replaces = {"first": self.id_of(first), "last": self.id_of(last)}
        kept = self.surface
        number = self.add(
            "compaction", id_, time, {"kind": "summary", "replaces": replaces, **data}, row=row
        )
        self.surface = [*kept[: span[0]], number, *kept[span[1] + 1 :]]
        self._roles[number] = STANDS
        self._spans[number] = (first, last)
        self._places[number] = self._place(last)
        return number

    # ---- where the leaf is -----------------------------------------------------------------

    def is_at(self, target: int) -> bool:
        """Whether the next entry would hang under an entry, branch events aside."""
        number = self.leaf
        while number != target and number in self._branches:
            number = self._up[number]
        return number == target

    def is_on_path(self, number: int) -> bool:
        """Whether an entry is the leaf or above it."""
        above = self.leaf
        while self._depths[above] > self._depths[number]:
            above = self._up[above]
        return above == number

    def branch(
        self, target: int, id_: str, time: str | None, data: Data | None = None, *, row: int = 0
    ) -> int:
        """Move the leaf to an entry; 0 is the root position."""
        left = self.leaf_id
        self._go(target)
        stands = data is not None and data.get("summary") is not None
        role = STANDS if stands else PLAIN
        number = self.add("branch", id_, time, {"from": left, **(data or {})}, row=row, role=role)
        if not stands:
            self._branches.add(number)
        return number

    def state(self) -> Data:
        """The state in force at the leaf."""
        number = self.leaf
        while number and number not in self._states:
            number = self._up[number]
        return self._states.get(number, {})

    def start_state(self, value: Data) -> None:
        """The state at the root position."""
        self._states[0] = value

    def nearest_input(self) -> str | None:
        """The id of the nearest message above the leaf that is not from the model or a tool."""
        number = self.leaf
        while number and self._roles[number] not in (USER, STANDS):
            number = self._up[number]
        return self.id_of(number) if number else None

    def id_of(self, number: int) -> str | None:
        """The id of an entry; None for the root position."""
        if not number or number == self.leaf:
            return self.leaf_id if number else None
        id_ = self._ids.get(number)
        return self._lookup.id_of(self._rows[number]) if id_ is None else id_

    # ---- what a compaction may replace ------------------------------------------------------

    def span_before(self, kept: int | None) -> tuple[int, int] | None:
        """The part of the surface that a summary stands for, as indexes: all before the first kept
        entry, or all of it. Shortened until every call in it is answered in it; None: nothing."""
        end = len(self.surface)
        if kept is not None:
            place = self._depths[kept]
            end = next(
                (i for i, node in enumerate(self.surface) if self._place(node) >= place), end
            )
            if end < len(self.surface) and self._covers(self.surface[end], kept):
                end += 1
        while (shorter := self._balanced_end(end)) != end:
            end = shorter
        return (0, end - 1) if end else None

    def _balanced_end(self, end: int) -> int:
        """Where the first call stands that has no result before `end`."""
        answered: dict[int, int] = {}
        for node in self.surface[:end]:
            assistant = self._answers[node]
            if assistant:
                answered[assistant] = answered.get(assistant, 0) + 1
        for index, node in enumerate(self.surface[:end]):
            if self._calls[node] != answered.get(node, 0):
                return index
        return end

    def _covers(self, node: int, number: int) -> bool:
        return node in self._spans and node != number

    def _place(self, number: int) -> int:
        return self._places.get(number) or self._depths[number]

    # ---- moving ----------------------------------------------------------------------------

    def _go(self, target: int) -> None:
        path: list[int] = []
        number = target
        while number:
            path.append(number)
            number = self._up[number]
        self.leaf_id = self.id_of(target)
        self.leaf = target
        self.surface = []
        for number in reversed(path):
            if number in self._spans:
                first, last = self._spans[number]
                start, end = self.surface.index(first), self.surface.index(last)
                self.surface[start : end + 1] = [number]
            elif self._roles[number]:
                self.surface.append(number)
        messages = (n for n in path if self._roles[n] in (USER, ASSISTANT, TOOL))
        self.last_message = next(messages, 0)
        self._reopen(path)

    def _reopen(self, path: list[int]) -> None:
        """Which calls are open, after a move: those of the nearest assistant message."""
        answered: list[int] = []
        for number in path:
            if self._roles[number] == ASSISTANT:
                calls: Sequence[Call] = ()
                if self._calls[number]:
                    calls = self._lookup.calls_of(self._rows[number])
                indexes = {self._answer_index[n] for n in answered if self._answers[n] == number}
                self._set_open(number, self.id_of(number) or "", calls, indexes)
                return
            answered.append(number)
        self._set_open(0, "", (), ())

    def _set_open(
        self, number: int, id_: str, calls: Sequence[Call], answered: Sequence[int] | set[int]
    ) -> None:
        self.assistant, self._assistant_id = number, id_
        self.open, self._tools = {}, {}
        for index, call in enumerate(calls):
            if index not in answered:
                self.open.setdefault(call.call_id, []).append(index)
                self._tools[index] = call.tool

    def _answered(self, call_id: str) -> int | None:
        indexes = self.open.get(call_id)
        if not indexes:
            return None
        index = indexes.pop(0)
        if not indexes:
            del self.open[call_id]
        return index


def derived(kind: str, *parts: object) -> str:
    """An id for what has none in the file: the same for the same parts."""
    text = "\0".join(map(str, parts))
    return f"{kind}-{sha256(text.encode()).hexdigest()[:32]}"
