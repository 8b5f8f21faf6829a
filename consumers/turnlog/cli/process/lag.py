"""When somebody who follows a log is unwell: he lags *and* does not move (Marten's rule).

Lag alone is no fault, since it is how a catch-up looks; standing still alone is none either, since
it is how a quiet log looks. The log's end is judged as well: it must be told, and never go back.
"""

from __future__ import annotations

LAG_MAX = 1_000
"""Positions that one may be behind without having to move."""
STILL_S = 60.0
"""How long one may lag more than that without moving."""


class Lag:
    """Judges one follower of one partition from looks at it. `began_s` is on the clock of all
    looks."""

    def __init__(self, began_s: float) -> None:
        self._position = -1
        self._end = 0
        self._moved_s = began_s

    def look(self, position: int, end: int, now_s: float) -> str | None:
        """Where it is, where the log ends, and when; why that is unwell, or None."""
        if end < self._end:
            return f"the log's end went back from {self._end} to {end}: it has lost records"
        self._end = end
        behind = end - position
        if position != self._position or behind <= LAG_MAX:
            self._position, self._moved_s = position, now_s
        still_s = now_s - self._moved_s
        if still_s < STILL_S:
            return None
        return f"{behind:,} behind, and at position {position} for {still_s:.0f} s"
