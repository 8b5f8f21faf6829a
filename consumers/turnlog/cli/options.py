"""The options that every command takes after its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import typer

LogOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="URL",
        help="The log: sqlite:FILE, file:FOLDER or kafka://HOST:PORT/TOPIC. Else TURNLOG_LOG, else"
        " the config file, else a file in your data folder.",
    ),
]
TablesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="URL",
        help="Where the tables of a Kafka log lie, as sqlite:FILE; else a file in your data folder"
        " for each topic.",
    ),
]
KafkaOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka",
        metavar="NAME=VALUE",
        help="A setting of Kafka's clients under Kafka's own name; may be repeated. No secrets:"
        " these come from TURNLOG_KAFKA_… or the config file.",
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print data as JSON.")]
QuietOption: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")
]
VerboseOption: TypeAlias = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say more, and cut less.")
]
NoColorOption: TypeAlias = Annotated[
    bool, typer.Option("--no-color", help="No colours, as with NO_COLOR set.")
]
SessionArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, or as much of it as is unique.")
]
SessionsArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SESSION]...", help="Sessions, by id or its beginning; all by default."
    ),
]
FileArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE")]


class Common(NamedTuple):
    """What the options above were given as."""

    log: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    tables: str | None = None
    kafka: list[str] | None = None
