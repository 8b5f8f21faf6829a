"""The world outside: what tools really did, counted where no crash of a host can lose it."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple


class Start(NamedTuple):
    """One start of an effect. `call` names the logical call, whatever dispatch it is made under."""

    actor: str
    session: str
    operation: str
    dispatch: str
    try_number: int
    call: str
    effect: str
    key: str
    end: int
    """The log's end when it started."""


class Outside:
    """Receives effects. A probe that found none makes it refuse the start that was asked about."""

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self.happened: dict[str, list[Start]] = defaultdict(list)
        """The starts of each call that took effect."""
        self._refused: dict[str, int] = {}

    def start(self, start: Start) -> bool:
        """An effect starts; False where the receiver refuses it."""
        self.starts.append(start)
        if start.try_number <= self._refused.get(start.dispatch, 0):
            return False
        self.happened[start.call].append(start)
        return True

    def of(self, dispatch: str) -> list[Start]:
        """The starts of a dispatch that took effect."""
        return [
            start
            for starts in self.happened.values()
            for start in starts
            if start.dispatch == dispatch
        ]

    def probe(self, dispatch: str, call: str, try_number: int) -> bool:
        """Whether the effect of a call happened; if not, no try up to this one can any more."""
        if any(start.dispatch == dispatch for start in self.happened[call]):
            return True
        self._refused[dispatch] = max(try_number, self._refused.get(dispatch, 0))
        return False
