"""The command `turnlog`: all commands under one name, and how wrong calls end.

Only what is needed to show `--help` is imported here; each command imports its work when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Annotated

import typer

from turnlog.cli.commands import archives, care, inputs, kafka, reading, recovery, running
from turnlog.cli.guard import FAILED, INTERRUPTED, WRONG_CALL, explain, is_debug
from turnlog.cli.terminal import named, silence_stdout

app = typer.Typer(
    name="turnlog",
    no_args_is_help=True,
    rich_markup_mode=None,  # drawing boxes around the help would double the time it takes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
config = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show and check settings.")
topics = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make and check the topics of Kafka logs."
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"turnlog {version('turnlog')}")
        except PackageNotFoundError:
            typer.echo("turnlog, not installed")
        raise typer.Exit


@app.callback()
def turnlog(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Keep the sessions of AI agents as events in a log: see them, check them, move them.

    \b
    Start with:
      turnlog demo                                  see it work, in a folder of its own
      turnlog import claude-code ~/.claude/projects bring your own sessions in
      turnlog sessions                              list them
      turnlog show SESSION                          see one, with every rewind

    Options go after the command's name; `turnlog COMMAND --help` lists them.
    """


COMMANDS: dict[str, Callable[..., None]] = {
    "demo": inputs.demo,
    "import": inputs.import_,
    "sessions": reading.sessions,
    "show": reading.show,
    "events": reading.events,
    "follow": running.follow,
    "fsck": care.fsck,
    "recover": recovery.recover,
    "pending": recovery.pending,
    "settle": recovery.settle,
    "rerun": recovery.rerun,
    "decide": recovery.decide,
    "input": recovery.input_,
    "abort": recovery.abort,
    "dump": archives.dump,
    "restore": archives.restore,
    "copy": archives.copy,
    "verify": care.verify,
    "rebuild": care.rebuild,
    "broker": kafka.broker,
    "health": running.health,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
config.command("show")(inputs.config_show)
config.command("check")(inputs.config_check)
app.add_typer(config, name="config")
for name, command in (
    ("create", kafka.create),
    ("check", kafka.check),
    ("describe", kafka.describe),
):
    topics.command(name)(command)
app.add_typer(topics, name="topics")


def run(arguments: Sequence[str]) -> int:
    """Run one command line; gives the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # what a terminal's encoding does not have is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    command = typer.main.get_command(app)
    for argument in arguments:
        if not _is_text(argument):
            shown = argument.encode("utf-8", "backslashreplace").decode()
            sys.stderr.write(f"turnlog: the argument {shown!r} is not UTF-8\n")
            return WRONG_CALL
    try:
        status = command.main(list(arguments), prog_name="turnlog", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except Exception as error:
        if is_debug():
            raise
        message = getattr(error, "format_message", None)
        if message is not None:
            return _complain(error, message())
        if isinstance(error, OSError):
            silence_stdout()
            error = named(error)
        said, status = explain(error)
        sys.stderr.write(f"turnlog: {' '.join(said.split())}\n")
    return _flushed(status if isinstance(status, int) else 0)


def _flushed(status: int) -> int:
    """Help and such are written by now, or it is said that they could not be."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        said, status = explain(named(error))
        sys.stderr.write(f"turnlog: {said}\n")
    return status


def _is_text(argument: str) -> bool:
    """Whether an argument can be written: Python takes in what is not, and stumbles later."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _complain(error: Exception, message: str) -> int:
    """A wrong call, in one line; a command without any is shown its help."""
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "turnlog")
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{message}\n")
    else:
        said = " ".join(message.split())
        sys.stderr.write(f"{path}: {said} (see `{path} --help`)\n")
    status = getattr(error, "exit_code", FAILED)
    return status if isinstance(status, int) else FAILED
