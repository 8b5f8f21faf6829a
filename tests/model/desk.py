"""The model of what lies beside the work: inputs, facts, blobs, and what `session_created` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.model.dispatches import same_content
from tests.model.tree import Tree
from turnlog.core.frames import Data, Event

PENDING_MAX = 64


@dataclass
class Input:
    """A queued input, kept for ever."""

    event: Event
    status: str

    @property
    def entry(self) -> str:
        """The entry id that it is to have."""
        return str(self.event.data["entry"])


@dataclass
class Blob:
    """A large value in parts: position and event index of each."""

    of: int
    positions: dict[int, tuple[int, int]] = field(default_factory=dict)


class Desk:
    """Inputs, facts, blobs and the session's own facts."""

    def __init__(self, tree: Tree, overflow: Callable[[str], None]) -> None:
        self.tree = tree
        self.overflow = overflow
        self.inputs: dict[str, Input] = {}
        self.facts: dict[str, Event] = {}
        self.titles: list[str] = []
        self.labels: dict[int, str | None] = {}
        self.blobs: dict[str, Blob] = {}
        self.created: Event | None = None

    @property
    def session(self) -> Data:
        """The data of `session_created`; empty without one."""
        return {} if self.created is None else self.created.data

    @property
    def title(self) -> str | None:
        """The last title."""
        return self.titles[-1] if self.titles else None

    def session_created(self, event: Event) -> None:
        """The session's own facts."""
        self.created = event
        data = event.data
        if data.get("title") is not None:
            self.titles.append(data["title"])
        self.tree.initial = data.get("initial_app_state") or {}
        if data.get("parent_session") is not None and data.get("fork_at") is not None:
            self.tree.fork_entry = data["fork_at"]["entry"]

    def is_refused(self, event: Event) -> bool:
        """Take in a queued input; True where another content has its id."""
        known = self.inputs.get(event.data["input"])
        if known is not None:
            return not same_content(known.event, event)
        status = "queued"
        if self.tree.find(event.data["entry"]) is not None:
            status = "placed"
        elif len(self.pending()) >= PENDING_MAX:
            status = "refused"
            self.overflow("pending_inputs")
        self.inputs[event.data["input"]] = Input(event, status)
        return False

    def pending(self) -> list[str]:
        """The inputs that nobody has read yet."""
        return [name for name, queued in self.inputs.items() if queued.status == "queued"]

    def input_cancelled(self, event: Event) -> None:
        """Somebody thought better of it."""
        known = self.inputs.get(event.data["input"])
        if known is not None and known.status == "queued":
            known.status = "cancelled"

    def place(self, entry: str) -> None:
        """An entry arrived that may be an input's."""
        for queued in self.inputs.values():
            if queued.status == "queued" and queued.entry == entry:
                queued.status = "placed"

    def fact(self, event: Event, *, is_guest: bool) -> None:
        """A named value; the latest wins, a guest's only over the value it saw."""
        name, value = event.data["name"], event.data["value"]
        before = self.facts.get(name)
        if is_guest and event.data.get("replaces") != (None if before is None else before.id):
            return
        self.facts[name] = event
        if name == "title" and isinstance(value, str):
            self.titles.append(value)
        if name.startswith("label:") and (value is None or isinstance(value, str)):
            node = self.tree.find(name.removeprefix("label:"))
            branch = 0 if node is None else self.tree.branch_of(node.number)
            if branch:
                self.labels[branch] = value

    def blob_part(self, event: Event, place: tuple[int, int]) -> None:
        """The first part of each index counts."""
        data = event.data
        blob = self.blobs.setdefault(data["digest"], Blob(data["of"]))
        blob.positions.setdefault(data["index"], place)
