"""The outline of a file: for each line its place, its parent and what it is; no content.

The first pass over a file makes it, the second emits events by it. It is kept in flat arrays, about
30 bytes a line and one dictionary entry for each id, so that a file of a gigabyte fits in memory.
Rows count from 1; row 0 stands for no row.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import NamedTuple


class Kind:
    """What a line is, as far as its place in the tree depends on it: bits, kept as plain numbers,
    since there are tests of them for every line."""

    PROMPT = 1
    """A typed user prompt: a turn begins."""
    COMMAND = 2
    """A typed command of the agent's own: it ends a turn, and begins one if the model answers."""
    USER = 4
    """Another message with role user: meta text, the output of a command, an interruption."""
    RESULT = 8
    ASSISTANT = 16
    SUMMARY = 32
    """A compaction's summary."""
    OTHER = 64
    """A node of the tree that is no message."""
    RECORD = 128
    """A line without a place in the tree."""
    ALIAS = 256
    """A node that is no entry of ours: it stands for its parent."""
    WEAK = 512
    """Its parent is a hint: where there is none, it follows what came before it."""
    CARRIES = 1024
    """A message hangs under it (set by the outline)."""
    LOST = 2048
    """Its parent is not in the file (set by the outline)."""

    MESSAGE = PROMPT | COMMAND | USER | RESULT | ASSISTANT | SUMMARY


class Facts(NamedTuple):
    """What the outline needs to know of a line. `parent` None is the root."""

    kind: int
    id: str | None = None
    parent: str | None = None
    group: str | None = None
    track: int = 0


class Outline:
    """See the module's text. A track holds the lines of one session; track 0 is the file's own."""

    def __init__(self) -> None:
        self.offsets = array("Q", [0])
        self.numbers = array("I", [0])
        self.kinds = array("H", [0])
        self.parents = array("I", [0])
        self.groups = array("Q", [0])
        self.tracks = array("I", [0])
        self._rows: dict[bytes, int] = {}
        self._waiting: dict[bytes, list[int]] = {}

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, id_: str) -> int:
        """The row of a line by its id, 0 where there is none."""
        return self._rows.get(key_of(id_), 0)

    def add(self, number: int, offset: int, facts: Facts) -> int:
        """Add a line; gives its row, or 0 where a line of this id is there already."""
        row = len(self.offsets)
        if facts.id is not None:
            key = key_of(facts.id)
            if self._rows.setdefault(key, row) != row:
                return 0
        else:
            key = None
        self.offsets.append(offset)
        self.numbers.append(number)
        self.kinds.append(facts.kind)
        self.groups.append(hash_of(facts.group) if facts.group is not None else 0)
        self.tracks.append(facts.track)
        self.parents.append(0)
        if facts.parent is not None:
            self._link(row, key_of(facts.parent))
        if key is not None:
            for child in self._waiting.pop(key, ()):
                self._set_parent(child, row)
        return row

    def _link(self, row: int, parent: bytes) -> None:
        found = self._rows.get(parent, 0)
        if found:
            self._set_parent(row, found)
        else:
            self.kinds[row] |= Kind.LOST
            self._waiting.setdefault(parent, []).append(row)

    def _set_parent(self, row: int, parent: int) -> None:
        kinds = self.kinds
        kinds[row] &= ~Kind.LOST & 0xFFFF
        self.parents[row] = parent
        if not kinds[row] & (Kind.MESSAGE | Kind.CARRIES):
            return
        while parent and not kinds[parent] & (Kind.MESSAGE | Kind.CARRIES):
            kinds[parent] |= Kind.CARRIES
            parent = self.parents[parent]


def key_of(id_: str) -> bytes:
    """An id in 16 bytes: its own bits where it is a UUID, a digest otherwise."""
    if len(id_) == 36 and id_[8] + id_[13] + id_[18] + id_[23] == "----" and id_ == id_.lower():
        try:
            return bytes.fromhex(id_.replace("-", ""))
        except ValueError:
            pass
    return blake2b(id_.encode(), digest_size=15).digest()


def hash_of(text: str) -> int:
    """A text in 64 bits, never 0."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) or 1
