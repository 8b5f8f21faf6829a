"""Opening logs for a command: which one, whether it may be made, what is said meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import turnlog.log
from turnlog.cli.settings import choose_log, choose_tables, without_password
from turnlog.cli.terminal import Terminal
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import system_clock
from turnlog.tables.store import View


def open_log(
    terminal: Terminal,
    url: str | None = None,
    *,
    create: bool = False,
    catch_up: bool = True,
    is_one_of_two: bool = False,
) -> EmbeddedLog:
    """The log of a URL, else the one that the options and settings choose. Close it by `with`.

    The setting for tables names those of one Kafka log; one of two has its tables elsewhere."""
    if url is None:
        url, origin = choose_log(terminal.common.log)
        terminal.note(("log: ", "dim"), f"{without_password(url)} ({origin})")
    with terminal.steps("bringing the tables up to date") as progress:
        return turnlog.log.open(
            url,
            clock=system_clock,
            create=create,
            catch_up=catch_up,
            progress=progress,
            tables=None if is_one_of_two else tables_of(url),
        )


def tables_of(url: str) -> str | None:
    """Where a person wants the tables of a log that does not hold its own; None: nowhere else."""
    return choose_tables() if url.startswith("kafka:") else None


def catch_up(log: EmbeddedLog) -> None:
    """Bring the tables of an open log to its end: those that read it back lag. Synchronous."""

    async def wait() -> None:
        for partition in range(log.partitions):
            await log.tables.wait(await log.end(partition), partition)

    asyncio.run(wait())


@contextmanager
def reading(terminal: Terminal) -> Generator[View]:
    """The tables of the chosen log as they are now; it must exist."""
    with open_log(terminal) as log, log.tables.snapshot() as view:
        yield view
