"""A log in memory, a clock that only the test moves, and ids that can be read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import turnlog.log
from turnlog.log.port import EmbeddedLog
from turnlog.owner.ambient import Ambient, Ids, Reach, go_on

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: where a clock of a test begins."""


class ManualClock:
    """A clock that stands still until it is moved; call it for milliseconds since 1970."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._start_ms = start_ms
        self._now_ms = start_ms

    def __call__(self) -> int:
        return self._now_ms

    def uptime(self) -> float:
        """Seconds since the clock was made."""
        return (self._now_ms - self._start_ms) / 1000

    def advance(self, seconds: float) -> None:
        """Move on. Raises ValueError for a step back: no clock of turnlog takes one."""
        if seconds < 0:
            raise ValueError(f"a clock goes on, and not by {seconds:g} s")
        self._now_ms += round(seconds * 1000)


def memory_log(clock: Callable[[], int] | None = None) -> EmbeddedLog:
    """A log that is gone with the test; `clock` gives milliseconds since 1970."""
    return turnlog.log.open("memory:", clock=clock or ManualClock())


def counted_ids(prefix: str = "id") -> Ids:
    """Ids that are the same in each run: id-1, id-2, … All hosts of one log must share them."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def fixed_ambient(
    clock: ManualClock | None = None, ids: Ids | None = None, reach: Reach = go_on
) -> Ambient:
    """An ambient in which nothing is left to chance. Hosts of one log must share their `ids`: two
    that count for themselves give the same ones."""
    clock = clock or ManualClock()
    return Ambient(clock, ids or counted_ids(), clock.uptime, reach)
