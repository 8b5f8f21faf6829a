"""Opening logs for a command: which one, whether it may be made, what is said meanwhile."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import turnlog.log
from turnlog.cli.options import Common
from turnlog.cli.settings import choose_kafka, choose_log, choose_tables, without_password
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
    is_kafka = url.startswith("kafka:")
    kafka = choose_kafka(common.kafka) if is_kafka else {}
    with terminal.steps("bringing the tables up to date") as shown:
        return turnlog.log.open(
            url,
            clock=system_clock,
            create=create,
            catch_up=catch_up,
            progress=progress or shown,
            tables=choose_tables(common.tables) if is_kafka else None,
            kafka={name: chosen.value for name, chosen in kafka.items()},
        )


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


@contextmanager
def reading(terminal: Terminal) -> Generator[View]:
    """The tables of the chosen log as they are now; it must exist."""
    with open_log(terminal) as log, log.tables.snapshot() as view:
        yield view
