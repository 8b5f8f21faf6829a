"""Opening logs for a command: which one, whether it may be made, what is said meanwhile."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import turnlog.log
from turnlog.cli.settings import choose_log, choose_tables, without_password
from turnlog.cli.terminal import Terminal
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
    if url is None:
        url, origin = choose_log(terminal.common.log)
        terminal.note(("log: ", "dim"), f"{without_password(url)} ({origin})")
    tables = choose_tables() if url.startswith("kafka:") else None
    with terminal.steps("bringing the tables up to date") as shown:
        return turnlog.log.open(
            url,
            clock=system_clock,
            create=create,
            catch_up=catch_up,
            progress=progress or shown,
            tables=tables,
        )


@contextmanager
def reading(terminal: Terminal) -> Generator[View]:
    """The tables of the chosen log as they are now; it must exist."""
    with open_log(terminal) as log, log.tables.snapshot() as view:
        yield view
