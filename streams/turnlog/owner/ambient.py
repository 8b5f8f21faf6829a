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
Uptime = Callable[[], float]
"""Seconds since some moment, never set back, and counting the time the machine was suspended."""
Reach = Callable[[str], None]
"""Called with the name of a place in the protocol that is reached. A test may raise or kill there;
the names are in `turnlog.owner.places`."""


def system_clock() -> int:
    """The machine's own clock."""
    return time.time_ns() // 1_000_000


def random_ids() -> str:
    """128 random bits, in hex."""
    return secrets.token_hex(16)


def system_uptime() -> float:
    """The machine's own; without a clock that counts suspend, the monotonic one."""
    return time.clock_gettime(_UPTIME)


_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def go_on(place: str) -> None:
    """Reach a place and go on."""
    del place


def rfc3339(ms: int) -> str:
    """A time as events carry it: a label that no rule reads."""
    moment = datetime.fromtimestamp(ms / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Ambient(NamedTuple):
    """What a session's code needs of the world, together."""

    clock: Clock = system_clock
    ids: Ids = random_ids
    uptime: Uptime = system_uptime
    reach: Reach = go_on

    def now(self) -> str:
        """The present time as a label."""
        return rfc3339(self.clock())
