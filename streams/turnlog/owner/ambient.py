"""What the world gives, passed in everywhere: a clock and random ids."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

Clock = Callable[[], int]
"""Milliseconds since 1970."""
Ids = Callable[[], str]
"""A new random id at each call; ids that were given out are never given again."""


def system_clock() -> int:
    """The machine's own clock."""
    return time.time_ns() // 1_000_000


def random_ids() -> str:
    """128 random bits, in hex."""
    return secrets.token_hex(16)


def rfc3339(ms: int) -> str:
    """A time as events carry it: a label that no rule reads."""
    moment = datetime.fromtimestamp(ms / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Ambient(NamedTuple):
    """Clock and ids together, as most callers need both."""

    clock: Clock = system_clock
    ids: Ids = random_ids

    def now(self) -> str:
        """The present time as a label."""
        return rfc3339(self.clock())
