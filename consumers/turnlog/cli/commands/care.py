"""Commands that look after a log: fsck, verify, rebuild."""

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
    SessionsArgument,
    TablesOption,
    VerboseOption,
)


def fsck(
    sessions: SessionsArgument = None,
    *,
    damage: Annotated[bool, typer.Option("--damage", help="Damage alone, no notes.")] = False,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Find what is missing or wrong in a log.

    Damage (missing parents and frames, conflicts, what cannot be read) makes the command fail. What
    was kept without being applied (fenced frames, second answers, void compactions) is noted. With
    -v each kind is explained.

    \b
    Examples:
      turnlog fsck
      turnlog fsck 0638 -v
      turnlog fsck --damage --json
    """
    from turnlog.cli.fsck import print_findings

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: print_findings(terminal, sessions or [], only_damage=damage),
    )


def verify(
    *,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Compare the tables with a fresh fold of the log, row for row.

    The command fails where any row differs.

    \b
    Examples:
      turnlog verify
      turnlog verify --log sqlite:backup.db --json
    """
    from turnlog.cli.upkeep import verify_tables

    perform(Common(log, json, quiet, verbose, no_color, tables, kafka), verify_tables)


def rebuild(
    *,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Build the tables anew from the log.

    Others may read and append meanwhile. The log itself is never changed.

    \b
    Examples:
      turnlog rebuild
      turnlog rebuild --log sqlite:backup.db
    """
    from turnlog.cli.upkeep import rebuild_tables

    perform(Common(log, json, quiet, verbose, no_color, tables, kafka), rebuild_tables)
