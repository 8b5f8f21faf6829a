"""Commands that run on, and the one that asks them how they are: follow, health."""

from __future__ import annotations

from typing import Annotated

import typer

from turnlog.cli.guard import perform
from turnlog.cli.options import (
    Common,
    JsonOption,
    KafkaOption,
    LogOption,
    NoColorOption,
    QuietOption,
    SessionArgument,
    TablesOption,
    VerboseOption,
)
from turnlog.cli.process.options import (
    AdminOption,
    LogFormatOption,
    ProcessOptions,
    StopWithinOption,
)


def follow(
    session: SessionArgument,
    *,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="POSITION[.INDEX]", help="Begin with this event; else with the next."
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Begin with the session's first.")] = False,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", "-t", metavar="TYPE", help="Events of this type; may be repeated."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="The session, its whole id, need not be there yet.")
    ] = False,
    admin: AdminOption = None,
    log_format: LogFormatOption = None,
    stop_within: StopWithinOption = None,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show the events of a session as they come, until ^C or SIGTERM.

    With --json each is a line of its own, as of `turnlog events`. One who was at 17.2 goes on with
    --from 17.3, and misses and repeats nothing. A broker that is away is waited for.

    \b
    Examples:
      turnlog follow 0638
      turnlog follow 0638 --all --json
      turnlog follow 0638 --from 17.3 --admin 127.0.0.1:9100
    """
    from turnlog.cli.follow import FIRST, follow_session, parse_place
    from turnlog.cli.process.runner import run
    from turnlog.cli.terminal import Terminal

    if all_ and begin is not None:
        raise typer.BadParameter("say either --all or --from")

    def work(terminal: Terminal) -> None:
        place = FIRST if all_ else parse_place(begin) if begin is not None else None
        run(
            terminal,
            ProcessOptions(admin, log_format, stop_within),
            lambda process: follow_session(
                process, session, begin=place, wait=wait, types=frozenset(types or ())
            ),
        )

    perform(Common(log, json, quiet, verbose, no_color, tables, kafka), work)


def health(
    url: Annotated[
        str | None,
        typer.Argument(metavar="[HOST:PORT]", help="Its --admin; else that of the settings."),
    ] = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Whether it lives, and not whether it is ready.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Ask a process that runs on whether it is ready; fails where it is not.

    \b
    Examples:
      turnlog health 127.0.0.1:9100
      TURNLOG_ADMIN=0.0.0.0:9100 turnlog health --live
    """
    from turnlog.cli.health import print_health

    perform(
        Common(None, json, quiet, verbose, no_color),
        lambda terminal: print_health(terminal, url, live=live),
    )
