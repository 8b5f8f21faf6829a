"""Runs a command that runs on, from its signals to its exit status.

The work has an event loop in a thread of its own, and the main thread only waits: for the work's
end, for signals, and for the end of their budget. So an end that was asked for comes in time even
where the work is blocked.

SIGTERM, or ^C, asks the work to stop. It has `stop_within` seconds to finish what it is at; then
the process is ended hard. ^C while it is stopping ends it at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import NoReturn

from turnlog.cli.guard import INTERRUPTED, explain, is_debug
from turnlog.cli.process.admin import Admin
from turnlog.cli.process.inbox import Inbox
from turnlog.cli.process.logs import logging_to_stderr
from turnlog.cli.process.options import ProcessOptions
from turnlog.cli.process.process import Process
from turnlog.cli.process.stop import Stopped
from turnlog.cli.terminal import Terminal

ENDED_HARD = 3
"""The exit status where the budget for stopping was not enough."""
Work = Callable[[Process], Awaitable[None]]
"""Runs until it is asked to stop, or is done. What it raises is the process's failure."""
_LOG = logging.getLogger(__name__)


def run(terminal: Terminal, options: ProcessOptions, work: Work) -> None:
    """Run some work as a process; `terminal.status` is then what came of it.

    Whatever goes wrong is logged, so nothing is raised but UsageError for settings. Called in the
    main thread.
    """
    options = options.in_force()
    common = terminal.common
    with logging_to_stderr(options.log_format, quiet=common.quiet, verbose=common.verbose):
        process = Process(terminal)
        try:
            admin = options.admin
            with Admin(admin, process.health, process.metrics) if admin else nullcontext():
                terminal.status = _Supervisor(process, work, options.stop_within or 0).run()
        except Exception as error:
            terminal.status = _failed(error)


class _Supervisor:
    """The main thread's part."""

    def __init__(self, process: Process, work: Work, within_s: float) -> None:
        self._process = process
        self._work = work
        self._within_s = within_s
        self._inbox = Inbox()
        self._failure: BaseException | None = None

    def run(self) -> int:
        """Run the work to its end; gives the exit status."""
        thread = threading.Thread(target=self._run, name="turnlog work", daemon=True)
        with self._inbox.taking((signal.SIGTERM, signal.SIGINT)):
            thread.start()
            asked = self._wait()
        thread.join()
        self._inbox.close()
        failure = self._failure
        if failure is not None and not isinstance(failure, Stopped):
            return _failed(failure)
        if asked is not None:
            _LOG.info("stopped")
        return INTERRUPTED if asked == signal.SIGINT else self._process.terminal.status

    def _wait(self) -> int | None:
        """Return when the work has ended; gives the signal that asked for it."""
        asked: int | None = None
        until_s = 0.0
        while True:
            left_s = None if asked is None else max(0.0, until_s - time.monotonic())
            try:
                said = self._inbox.get(left_s)
            except TimeoutError:
                self._end_hard(ENDED_HARD, f"not ended within {self._within_s:g} s: ended hard")
            if said is None:
                return asked
            if asked is None:
                asked, until_s = said, time.monotonic() + self._within_s
                self._process.stop.ask()
                _LOG.info("%s: stopping, within %g s", _name(said), self._within_s)
            elif said == signal.SIGINT:
                self._end_hard(INTERRUPTED, "interrupted again: ended at once")

    def _end_hard(self, status: int, why: str) -> NoReturn:
        _LOG.error("%s", why)
        for call in self._process.last_calls:
            with suppress(Exception):
                call()
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)

    # ---- the work's thread ---------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._failure = error
        finally:
            self._inbox.put(None)

    async def _main(self) -> None:
        turning = asyncio.create_task(self._process.health.turn())
        try:
            await self._work(self._process)
        finally:
            turning.cancel()


def _name(number: int) -> str:
    return "interrupted" if number == signal.SIGINT else signal.Signals(number).name


def _failed(error: BaseException) -> int:
    """Log what went wrong; gives the exit status."""
    if not isinstance(error, Exception):  # the work ended Python itself
        error = RuntimeError(f"{type(error).__name__}: {error}")
    message, status = explain(error)
    _LOG.error("%s", message, exc_info=error if is_debug() else None)
    return status
