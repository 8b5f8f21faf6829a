"""The options of every command that runs on, and what else says the same."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, TypeAlias

import typer

LogFormat: TypeAlias = Literal["json", "text"]
AdminOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--admin",
        metavar="HOST:PORT",
        help="Answer /livez, /readyz and /metrics here. Else TURNLOG_ADMIN; off by default.",
    ),
]
LogFormatOption: TypeAlias = Annotated[
    LogFormat | None,
    typer.Option("--log-format", help="How it is told what happens; text on a terminal."),
]
StopWithinOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--stop-within",
        metavar="SECONDS",
        min=0.1,
        help="How long an orderly end may take; 25 by default.",
    ),
]


class ProcessOptions(NamedTuple):
    """What the options above were given as, and then what is in force."""

    admin: str | None = None
    log_format: LogFormat | None = None
    stop_within: float | None = None

    def in_force(self) -> ProcessOptions:
        """These, and the settings where nothing was given."""
        from turnlog.cli.settings import settings

        found = settings()
        chosen = {
            name: found[name].value if given is None else given
            for name, given in self._asdict().items()
        }
        return ProcessOptions(
            admin=chosen["admin"] or None,
            log_format=chosen["log_format"] or None,
            stop_within=float(chosen["stop_within"]),
        )
