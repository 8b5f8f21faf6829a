"""A log that is used in a child of the process that opened it."""

from __future__ import annotations

import asyncio
import os
import warnings
from asyncio import events

from tests.contract.adapter import claiming
from turnlog.core.errors import LogUnavailable
from turnlog.log import EmbeddedLog

WAIT_S = 10.0
REFUSED, ANSWERED, HANGS, FAILED = range(4)


def fork_and_append(log: EmbeddedLog) -> int:
    """Fork, append in the child; what came of it there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        outcome = FAILED
        try:
            events._set_running_loop(None)
            outcome = asyncio.run(_append(log))
        finally:
            os._exit(outcome)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


async def _append(log: EmbeddedLog) -> int:
    try:
        async with asyncio.timeout(WAIT_S):
            await log.append(claiming("of the child"))
    except LogUnavailable as error:
        return REFUSED if "forked" in str(error) else FAILED
    except TimeoutError:
        return HANGS
    return ANSWERED
