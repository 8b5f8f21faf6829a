"""Whether a process lives, and whether it is ready: asked from the admin port's threads.

*Live* is of the process alone: its event loop turns. It asks nothing of a broker or a disk, since
starting a process anew does not mend those. *Ready* is the command's own checks, each a function
that any thread may call and that gives at once why it is not so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from turnlog.cli.process.stop import Stop

Check = Callable[[], str | None]
"""Gives None where all is well, else the reason why not. It must not wait for anything."""

TURN_S = 1.0
"""How often the event loop shows that it turns."""
BLOCKED_S = 30.0
"""An event loop that has not turned for so long does not live. Nothing that a command does there by
intention takes a tenth of it."""
_LOG = logging.getLogger(__name__)


class Report(NamedTuple):
    """The answer of one question: each check's name, and what is wrong with it."""

    checks: dict[str, str | None]

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.checks.values())


class Health:
    """See the module's text. A command that has no check yet is not ready: it is starting."""

    def __init__(self, stop: Stop, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stop = stop
        self._clock = clock
        self._turned = clock()
        self._checks: dict[str, Check] = {}
        self._was_ready: bool | None = None

    def add(self, name: str, check: Check) -> None:
        """Let readiness depend on a check, in place of an earlier one of that name."""
        self._checks = {**self._checks, name: check}  # a new dict, as others may be reading

    def live(self) -> Report:
        """Whether the process lives."""
        still_s = self._clock() - self._turned
        blocked = still_s > BLOCKED_S
        said = f"the event loop has not turned for {still_s:.0f} s" if blocked else None
        return Report({"loop": said})

    def ready(self) -> Report:
        """Whether the process does its work and keeps up."""
        found = dict(self.live().checks)
        if self._stop.is_asked:
            found["running"] = "stopping"
        elif not self._checks:
            found["running"] = "starting"
        found.update({name: _asked(check) for name, check in self._checks.items()})
        return Report(found)

    async def turn(self) -> None:
        """Run in the event loop for as long as the process does; tells of changes as well."""
        while True:
            self._turned = self._clock()
            self._tell()
            await asyncio.sleep(TURN_S)

    def _tell(self) -> None:
        if not self._checks or self._stop.is_asked:
            return
        report = self.ready()
        if report.is_good == self._was_ready:
            return
        was_ready, self._was_ready = self._was_ready, report.is_good
        if report.is_good:
            _LOG.info("ready")
        else:
            wrong = "; ".join(f"{name}: {said}" for name, said in report.checks.items() if said)
            level = logging.WARNING if was_ready else logging.INFO  # it only starts
            _LOG.log(level, "not ready: %s", wrong)


def _asked(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        return f"the check failed: {type(error).__name__}: {error}"
