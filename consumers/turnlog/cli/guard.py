"""How a command ends: its work is run, and whatever it raises becomes one line and a status.

0 is done, 1 failed (or damage was found), 2 a wrong call, 130 an interrupt. With TURNLOG_DEBUG=1
errors are raised as they are.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from typing import NoReturn

import typer

from turnlog.cli.app import FAILED, INTERRUPTED, leave
from turnlog.cli.options import Common
from turnlog.cli.terminal import Terminal, silence_stdout

WRONG_CALL = 2
_ADVICE = {
    errno.ENOENT: "look at the path: the folder it is in must be there",
    errno.ENOTDIR: "look at the path: what it is in must be a folder",
    errno.EISDIR: "name a file in it",
    errno.EACCES: "look at its rights, or give another path",
    errno.EPERM: "look at its rights, or give another path",
    errno.EROFS: "give a path that can be written",
    errno.ENOSPC: "make room there, or give another place, then run it again",
    errno.EDQUOT: "make room there, or give another place, then run it again",
}
__all__ = ["FAILED", "INTERRUPTED", "WRONG_CALL", "explain", "is_debug", "perform"]

Work = Callable[[Terminal], None]


def perform(common: Common, work: Work) -> NoReturn:
    """Run a command's work and exit with what came of it."""
    if signal.getsignal(signal.SIGINT) is leave:
        # from here on there may be something to put in order first
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
        advice = _ADVICE.get(error.errno or 0)
        said = f"{what}; {advice}" if advice else what
        return f"{error.filename}: {said}" if error.filename else said, FAILED
    name = type(error).__name__
    return (
        f"unexpected {name}: {error}; this is a bug: run it again with TURNLOG_DEBUG=1 and report"
        " what it shows",
        FAILED,
    )
