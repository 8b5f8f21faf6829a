"""Processes that kill or freeze themselves at a named place, because their environment says so.

A parent that tests a real process starts it with TURNLOG_FAILPOINT set. Nothing reads the variable
but `from_environment`, which the program under test calls itself: no host dies of it by accident.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from turnlog.core.errors import UsageError
from turnlog.owner.ambient import Reach, go_on
from turnlog.owner.places import PLACES

FAILPOINT = "TURNLOG_FAILPOINT"
"""Which failpoints are set: `place:nth:action`, several with commas between; `nth` from 1."""
MARKER = "TURNLOG_FAILPOINT_MARKER"
"""A file or named pipe that gets a line `place:nth:action pid` before the action, or nothing."""
EXIT_CODE = 86


class Failpoint(NamedTuple):
    """What is done when a place is reached for the nth time: kill, stop (freeze) or exit."""

    place: str
    nth: int
    action: str

    def __str__(self) -> str:
        return f"{self.place}:{self.nth}:{self.action}"


def from_environment(environ: Mapping[str, str] = os.environ) -> Reach:
    """The `reach` of an `Ambient` that does what TURNLOG_FAILPOINT says; nothing if it is not set.

    Raises UsageError where the variable is no list of failpoints: one that is never reached because
    of a wrong name would prove what it does not.
    """
    points = {(point.place, point.nth): point for point in parse(environ.get(FAILPOINT, ""))}
    if not points:
        return go_on
    marker = environ.get(MARKER)
    reached: dict[str, int] = {}

    def reach(place: str) -> None:
        reached[place] = reached.get(place, 0) + 1
        point = points.get((place, reached[place]))
        if point is not None:
            if marker:
                _mark(Path(marker), point)
            ACTIONS[point.action]()

    return reach


def parse(text: str) -> list[Failpoint]:
    """The failpoints of a variable's value. Raises UsageError."""
    return [_point(item.strip()) for item in text.split(",") if item.strip()]


def _point(item: str) -> Failpoint:
    place, _, rest = item.partition(":")
    nth, _, action = rest.partition(":")
    if place not in PLACES or not nth.isascii() or not nth.isdigit() or nth.strip("0") == "":
        raise UsageError(
            f"{FAILPOINT}: {item!r} is no failpoint; write place:nth:action, nth from 1, with a"
            f" place of {', '.join(PLACES)}"
        )
    if action not in ACTIONS:
        raise UsageError(
            f"{FAILPOINT}: {item!r} has the action {action!r}; there are {', '.join(ACTIONS)}"
        )
    return Failpoint(place, int(nth), action)


def _mark(marker: Path, point: Failpoint) -> None:
    """One write, so that a reader of a pipe gets the whole line."""
    with marker.open("ab", buffering=0) as file:
        file.write(f"{point} {os.getpid()}\n".encode())


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _exit() -> None:
    os._exit(EXIT_CODE)


ACTIONS: Mapping[str, Callable[[], None]] = {"kill": _kill, "stop": _stop, "exit": _exit}
