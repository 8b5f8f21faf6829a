"""Commands that bring sessions in, and the settings: demo, import, config."""

from __future__ import annotations

from pathlib import Path
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
    TablesOption,
    VerboseOption,
)


def import_(
    format_: Annotated[
        str, typer.Argument(metavar="FORMAT", help="Whose files they are: claude-code or pi.")
    ],
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Session files, or folders of them."),
    ],
    *,
    masks: Annotated[
        list[str] | None,
        typer.Option(
            "--mask", metavar="NAME=REGEX", help="Mask this, too, as NAME; may be repeated."
        ),
    ] = None,
    no_mask: Annotated[
        bool, typer.Option("--no-mask", help="Mask nothing: secrets stay in the log for ever.")
    ] = False,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Bring sessions of another agent into the log.

    Importing again, or a file that has grown, adds only what is new. Keys, tokens and passwords of
    known shapes are masked before anything is written. A line that cannot be read is named and left
    out, the rest is imported, and the command fails.

    \b
    Examples:
      turnlog import claude-code ~/.claude/projects
      turnlog import pi ~/.pi/agent/sessions --log sqlite:pi.db
      turnlog import claude-code session.jsonl --mask 'ticket=TICKET-[0-9]+'
    """
    from turnlog.cli.importing import import_sessions

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: import_sessions(
            terminal, format_, paths, masks=masks or [], mask=not no_mask
        ),
    )


def demo(
    *,
    mine: Annotated[
        bool, typer.Option("--mine", help="Import your own sessions, too; asks first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Work here, and not in a temporary folder."),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            metavar="URL",
            help="An empty log of any kind; a topic is made. By default a file in the folder.",
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """See the main job, on sessions of our own making.

    Writes a handful of session files as Claude Code and pi would, imports them into a log in a
    folder of its own, and shows what turnlog makes of them. Then agent hosts work on that log in
    processes of their own: one is killed in the middle of its calls, two freeze and wake, and
    others go on in their place. Fails where a figure is not what it must be.

    \b
    Examples:
      turnlog demo
      turnlog demo --mine --keep ./turnlog-demo
      turnlog demo --json
      turnlog demo --log kafka://localhost:9092/demo
    """
    from turnlog.cli.demo.run import run_demo

    perform(
        Common(log, json, quiet, verbose, no_color),
        lambda terminal: run_demo(terminal, keep=keep, mine=mine, yes=yes),
    )


def config_show(
    *,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show each setting in force, and where it comes from; secrets are masked.

    \b
    Examples:
      turnlog config show
      TURNLOG_CONFIG=team.toml turnlog config show --json
    """
    from turnlog.cli.config import print_settings

    perform(Common(log, json, quiet, verbose, no_color, tables, kafka), print_settings)


def config_check(
    *,
    connect: Annotated[
        bool, typer.Option("--connect", help="Reach the log as well, and check its topic.")
    ] = False,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Say what is wrong with the settings, and in which file or variable.

    The command fails where anything is. Nothing remote is asked without --connect.

    \b
    Examples:
      turnlog config check
      turnlog config check --connect --log kafka://localhost:9092/sessions
    """
    from turnlog.cli.config import check_settings

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: check_settings(terminal, connect=connect),
    )
