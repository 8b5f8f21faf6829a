"""Opening logs for a command: which one, whether it may be made, what is said meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import turnlog.log
from turnlog.cli.options import Common
from turnlog.cli.settings import choose_log, choose_tables, kafka_values, without_password
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import UsageError
from turnlog.log import EmbeddedLog, Progress
from turnlog.owner.ambient import system_clock
from turnlog.tables.store import View


def open_log(
    terminal: Terminal,
    url: str | None = None,
    *,
    create: bool = False,
    catch_up: bool = True,
    progress: Progress | None = None,
) -> EmbeddedLog:
    """The log of a URL, else the one that the options and settings choose. Close it by `with`.

    Progress is shown, or told to who asks for it.
    """
    common = terminal.common
    if url is None:
        url, origin = choose_log(common.log)
        terminal.note(("log: ", "dim"), f"{without_password(url)} ({origin})")
        check_options(common, [url])
    with terminal.steps("bringing the tables up to date") as shown:
        return open_url(
            url,
            common,
            clock=system_clock,
            create=create,
            catch_up=catch_up,
            progress=progress or shown,
        )


def open_url(url: str, common: Common | None = None, **options: Any) -> EmbeddedLog:
    """The log of a URL, with what settings say of its tables and of Kafka's clients."""
    if url.startswith("kafka:"):
        common = common or Common()
        options |= {"tables": choose_tables(common.tables), "kafka": kafka_values(common.kafka)}
    return turnlog.log.open(url, **options)


def check_options(common: Common, urls: list[str]) -> None:
    """Refuse options that no log, or more than one, could be meant by. Settings are for the logs
    that they fit."""
    count = sum(url.startswith("kafka:") for url in urls)
    shown = " and ".join(map(without_password, urls))
    if common.tables is not None and not count:
        raise UsageError(f"--tables: {shown} holds its own tables; leave the option out")
    if common.kafka and not count:
        raise UsageError(f"--kafka: {shown} is not on Kafka; leave the option out")
    if count > 1 and choose_tables(common.tables) is not None:
        raise UsageError(
            f"{shown} are both on Kafka, and each needs tables of its own: give no --tables, and"
            " set neither TURNLOG_TABLES nor `tables`"
        )


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
