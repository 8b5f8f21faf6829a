"""Everything that is drawn, from one seed: streams of numbers, and faults that can be left out.

Each stream has its own generator, so what one actor draws does not change what another one gets.
A fault is drawn from a stream of its own whether it is wanted or not; shrinking leaves faults out
by their name and ordinal, and all others stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

Fault = tuple[str, int]
"""The name of a stream of faults, and which of its draws."""


class Chance:
    """The seed, and which faults of its history are left out."""

    def __init__(self, seed: int, without: Collection[Fault] = ()) -> None:
        self.seed = seed
        self.faults: list[Fault] = []
        """The faults that happened, in order."""
        self.is_calm = False
        """Set at the end of a history: no more faults."""
        self._without = frozenset(without)
        self._streams: dict[str, Random] = {}
        self._drawn: dict[str, int] = {}

    def stream(self, name: str) -> Random:
        """The generator of a name, always the same one."""
        found = self._streams.get(name)
        if found is None:
            found = self._streams[name] = self.again(name)
        return found

    def again(self, name: str) -> Random:
        """A generator of its own that gives what the stream of a name gives from its beginning."""
        return Random(f"{self.seed}:{name}")  # noqa: S311  # no secret

    def strikes(self, name: str, probability: float) -> bool:
        """Whether a fault happens here."""
        if self.is_calm:
            return False
        number = self._drawn[name] = self._drawn.get(name, 0) + 1
        if self.stream(f"fault:{name}").random() >= probability:
            return False
        fault = (name, number)
        if fault in self._without:
            return False
        self.faults.append(fault)
        return True
