"""How a command ends: its work is run, and whatever it raises becomes one line and a status.

0 is done, 1 failed (or damage was found), 2 a wrong call, 130 an interrupt. With TURNLOG_DEBUG=1
errors are raised as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

import typer

from turnlog.cli.options import Common
from turnlog.cli.terminal import Terminal, silence_stdout

FAILED, WRONG_CALL, INTERRUPTED = 1, 2, 130
Work = Callable[[Terminal], None]


def perform(common: Common, work: Work) -> NoReturn:
    """Run a command's work and exit with what came of it."""
    raise typer.Exit(_status(Terminal(common), work))


def is_debug() -> bool:
    """Whether errors are to be shown whole."""
    return os.environ.get("TURNLOG_DEBUG", "") not in ("", "0")


def _status(terminal: Terminal, work: Work) -> int:
    try:
        work(terminal)
        terminal.flush()
        return terminal.status
    except BrokenPipeError:  # `turnlog … | head`: whoever read has enough
        silence_stdout()
        return terminal.status
    except KeyboardInterrupt:
        silence_stdout()
        terminal.complain("interrupted")
        return INTERRUPTED
    except Exception as error:
        if is_debug():
            raise
        message, status = explain(error)
        if isinstance(error, OSError):
            silence_stdout()  # it may be the stream that failed
        terminal.complain(message)
        return status


def explain(error: Exception) -> tuple[str, int]:
    """The one line for an error, and the exit status."""
    from turnlog.core.errors import TurnlogError, UsageError

    if isinstance(error, TurnlogError):
        return str(error), WRONG_CALL if isinstance(error, UsageError) else FAILED
    if isinstance(error, OSError):
        what = error.strerror or str(error) or type(error).__name__
        return f"{error.filename}: {what}" if error.filename else what, FAILED
    name = type(error).__name__
    return (
        f"unexpected {name}: {error}; this is a bug: run it again with TURNLOG_DEBUG=1 and report"
        " what it shows",
        FAILED,
    )
