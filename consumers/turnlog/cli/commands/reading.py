"""Commands that read: sessions, show, events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

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


def sessions(
    *,
    cwd: Annotated[
        Path | None, typer.Option("--cwd", metavar="DIR", help="Those in this folder or below it.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Those of this agent.")
    ] = None,
    status: Annotated[
        Literal["idle", "open", "requires_action"] | None,
        typer.Option("--status", help="Those with this status."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="N at most.")
    ] = None,
    latest: Annotated[bool, typer.Option("--latest", help="The newest one alone.")] = False,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """List sessions, the newest first.

    \b
    Examples:
      turnlog sessions
      turnlog sessions --cwd . --latest
      turnlog sessions --status open --json
    """
    from turnlog.cli.sessions import print_sessions

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: print_sessions(
            terminal, cwd=cwd, agent=agent, status=status, limit=1 if latest else limit
        ),
    )


def show(
    session: SessionArgument,
    *,
    surface: Annotated[
        bool, typer.Option("--surface", help="What the model sees, message by message.")
    ] = False,
    state: Annotated[bool, typer.Option("--state", help="The state of the application.")] = False,
    operations: Annotated[
        bool, typer.Option("--operations", help="Turns and tool calls, with verdicts.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="ENTRY", help="Surface and state at this entry."),
    ] = None,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show one session: its tree, or a part of it.

    The path to the leaf goes down; what was left behind by a rewind hangs at its side.

    \b
    Examples:
      turnlog show 0638
      turnlog show 0638 --surface
      turnlog show 0638 --at 7c1e --state
      turnlog show 0638 --json
    """
    from turnlog.cli.show import print_session

    chosen = {"surface": surface, "state": state, "operations": operations}
    parts = frozenset(name for name, wanted in chosen.items() if wanted)
    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: print_session(terminal, session, at=at, parts=parts),
    )


def events(
    session: SessionArgument,
    *,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", "-t", metavar="TYPE", help="Events of this type; may be repeated."),
    ] = None,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """List everything that a session's log holds, in order.

    With --json each event is a line of its own, with all of its data.

    \b
    Examples:
      turnlog events 0638
      turnlog events 0638 --type usage_settled --json
    """
    from turnlog.cli.events import print_events

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: print_events(terminal, session, types=types or []),
    )
