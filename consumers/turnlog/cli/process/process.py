"""What a command that runs on works with: when to stop, the log, its records, checks, counters."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from turnlog.cli.opening import open_log
from turnlog.cli.process.appends import measured
from turnlog.cli.process.health import Check, Health
from turnlog.cli.process.metrics import Metrics
from turnlog.cli.process.stop import Stop, Stopped
from turnlog.cli.process.watch import Reading, Watch
from turnlog.cli.settings import choose_log
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import LogError
from turnlog.log import EmbeddedLog, Stored

AGAIN_S = 1.0
"""How long it is waited before a log that does not answer is asked again."""
SAY_S = 60.0
"""How often it is said that it does not."""
_LOG = logging.getLogger(__name__)


class Process:
    """See the module's text; `turnlog.cli.process.runner.run` makes it.

    `terminal` is for data, and what happens goes to `logging`. Work looks at `stop` and returns
    when it is asked to: it finishes what it is at, and begins nothing. `metrics` may be counted up
    at any time.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.stop = Stop()
        self.metrics = Metrics()
        self.health = Health(self.stop)
        self.last_calls: list[Callable[[], None]] = []
        """What is called, in whatever state the work is, before the process is ended hard: only
        for what would outlive it. It must be quick."""

    def check(self, name: str, check: Check) -> None:
        """Let readiness depend on something; see `turnlog.cli.process.health`."""
        self.health.add(name, check)

    @asynccontextmanager
    async def open_log(self, *, create: bool = False) -> AsyncGenerator[Followed]:
        """The log that the options and settings choose, for as long as the context lasts.

        Opening may take long where the tables have to catch up: the process is not ready meanwhile,
        and is broken off by a stop (as `Stopped`, which is no failure).
        """
        url, origin = choose_log(self.terminal.common.log)
        at: list[str | None] = ["being opened"]

        def progress(reached: int, end: int) -> None:
            if self.stop.is_asked:
                raise Stopped
            at[0] = f"being opened: the tables are at {reached} of {end}"

        _LOG.info("opening %s (%s)", url, origin)
        self.check("log", lambda: at[0])
        log = await asyncio.to_thread(
            open_log, self.terminal, url, create=create, progress=progress
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(log)
            watch = Watch(log, self.health, self.metrics)
            looking = asyncio.create_task(watch.run())
            stack.push_async_callback(_end, looking)
            yield Followed(measured(log, self.metrics), self.stop, watch)


class Followed:
    """An open log, and how to follow it."""

    def __init__(self, log: EmbeddedLog, stop: Stop, watch: Watch) -> None:
        self.log = log
        self._stop = stop
        self._watch = watch

    async def records(
        self, after: int = 0, *, partition: int = 0, group: str
    ) -> AsyncGenerator[Stored]:
        """The records of a partition behind a position and those to come, until a stop.

        A log that is away for a while is waited for. A record counts as dealt with when the next
        one is asked for. `group` names who follows, in metrics and in readiness.
        """
        reading = Reading(group, partition, after)
        self._watch.add(reading)
        async with aclosing(self._stop.until(_patient(self.log, reading))) as records:
            async for stored in records:
                yield stored
                reading.position = stored.position


async def _patient(log: EmbeddedLog, reading: Reading) -> AsyncGenerator[Stored]:
    """What the log gives, however often it has to be asked."""
    after, partition = reading.position, reading.partition
    said_s = -SAY_S
    while True:
        try:
            async for stored in log.follow(after, partition=partition):
                after = stored.position
                yield stored
        except LogError as error:
            if not error.retriable:
                raise
            if time.monotonic() - said_s >= SAY_S:
                said_s = time.monotonic()
                about = {"partition": partition, "position": after}
                _LOG.warning("%s; it is waited for", error, extra=about)
        await asyncio.sleep(AGAIN_S)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
