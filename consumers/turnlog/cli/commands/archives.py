"""Commands that move whole frames: dump, restore, copy."""

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
    SessionsArgument,
    TablesOption,
    VerboseOption,
)


def dump(
    sessions: SessionsArgument = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A file; packed if it ends in .zst."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Write sessions as archive lines, frame by frame, in log order.

    A line is JSON; what cannot be decoded is kept as it is. `turnlog restore` reads them back.

    \b
    Examples:
      turnlog dump -o backup.ndjson.zst
      turnlog dump 0638 | jq .frame.events[].type
    """
    from turnlog.cli.dump import dump_sessions

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: dump_sessions(terminal, sessions or [], output=output, force=force),
    )


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An archive, packed or not; - reads from input.")
    ],
    *,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Restore an archive into a log, beside what it holds.

    All lines are checked before anything is written. A session that is in the log already is
    refused unless the archive continues it; then only the rest is added.

    \b
    Examples:
      turnlog restore backup.ndjson.zst --log sqlite:other.db
      turnlog dump 0638 | turnlog restore - --log sqlite:other.db
    """
    from turnlog.cli.restore import restore_archive

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: restore_archive(terminal, file),
    )


def copy(
    source: Annotated[str, typer.Argument(metavar="URL", help="The log to copy from.")],
    target: Annotated[str, typer.Argument(metavar="URL", help="The log to copy to.")],
    *,
    sessions: Annotated[
        list[str] | None,
        typer.Option("--session", "-s", metavar="SESSION", help="This one; may be repeated."),
    ] = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Copy sessions from one log to another, and verify the copy.

    Afterwards both logs hold equal frames of what was copied, and equal tables but for positions.
    What was broken off is taken up again by the same command.

    \b
    Examples:
      turnlog copy sqlite:old.db sqlite:new.db
      turnlog copy sqlite:old.db sqlite:new.db --session 0638
      turnlog copy sqlite:old.db file:sessions
      turnlog copy sqlite:old.db kafka://localhost:9092/sessions
    """
    from turnlog.cli.copying import copy_log

    perform(
        Common(None, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: copy_log(terminal, source, target, sessions or []),
    )
