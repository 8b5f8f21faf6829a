"""What a process says of itself, by the standard library's logging: JSON lines or text.

JSON lines have `time`, `level`, `logger` and `message`, then what was given as `extra`, such as
`session`, `position` and `event`. Warnings and errors that nobody catches come in the same form.
Passwords in URLs are masked in every line, wherever the text came from.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import orjson

from turnlog.cli.plain import lines, one_line
from turnlog.cli.process.options import LogFormat
from turnlog.cli.settings import without_password
from turnlog.owner.ambient import rfc3339

_LOG = logging.getLogger(__name__)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


REPEAT_S = 60.0
"""How often the same words of a library are let through."""
REMEMBERED_MAX = 1_000


class Seldom(logging.Filter):
    """Lets the same words of a library through once in a while, and says how often they came.

    While no broker answers, aiokafka alone says the same fifty times a second, as errors. What
    turnlog itself says is never held back.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "turnlog" or record.name.startswith("turnlog."):
            return True
        if len(self._said) > REMEMBERED_MAX:
            self._said.clear()
        key = (record.name, record.getMessage())
        said_s, held = self._said.get(key, (-REPEAT_S, 0))
        if record.created - said_s < REPEAT_S:
            self._said[key] = said_s, held + 1
            return False
        if held:
            record.repeated = held
        self._said[key] = record.created, 0
        return True


@contextmanager
def logging_to_stderr(
    format_: LogFormat | None, *, quiet: bool = False, verbose: bool = False
) -> Generator[None]:
    """Everything that is logged goes to standard error; by default as text on a terminal, else as
    JSON. It is as it was afterwards."""
    handler = logging.StreamHandler()
    is_json = format_ == "json" or (format_ is None and not sys.stderr.isatty())
    handler.setFormatter(JsonLines() if is_json else TextLines())
    handler.addFilter(Seldom())
    root, ours = logging.getLogger(), logging.getLogger("turnlog")
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = [handler]
    root.setLevel(_level(quiet, verbose, logging.WARNING, logging.INFO))
    ours.setLevel(_level(quiet, verbose, logging.INFO, logging.DEBUG))
    logging.captureWarnings(True)
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(False)
        root.handlers[:], level, ours_level = before
        root.setLevel(level)
        ours.setLevel(ours_level)


def _level(quiet: bool, verbose: bool, usual: int, more: int) -> int:
    if quiet:
        return logging.ERROR
    return more if verbose else usual


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": rfc3339(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if trace := _trace(self, record):
            said["trace"] = trace
        masked = {name: _masked(value) for name, value in said.items()}
        options = orjson.OPT_NON_STR_KEYS
        try:
            return orjson.dumps(masked, default=repr, option=options).decode()
        except TypeError:  # half characters, cycles: what is said must be said somehow
            shown = {str(name): ascii(value) for name, value in masked.items()}
            return orjson.dumps(shown).decode()


class TextLines(logging.Formatter):
    """A line for a person: the time of day, how bad it is, what, and what it is about."""

    def format(self, record: logging.LogRecord) -> str:
        time = self.formatTime(record, "%H:%M:%S")
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        about = " ".join(f"{name}={value}" for name, value in _extra(record).items())
        said = one_line(f"{level}{record.getMessage()}" + (f"  ({about})" if about else ""))
        if trace := _trace(self, record):
            said = f"{said}\n{lines(trace)}"
        return without_password(f"{time} {said}")


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts: list[str] = []
    if record.exc_info:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)


def _masked(value: Any) -> Any:
    return without_password(value) if isinstance(value, str) else value


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _LOG.critical("uncaught %s: %s", kind.__name__, error, exc_info=(kind, error, trace))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread is not None else "a thread"
    if args.exc_value is not None:
        exc_info = (args.exc_type, args.exc_value, args.exc_traceback)
        _LOG.critical("uncaught in %s: %s", name, args.exc_value, exc_info=exc_info)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    error = args.exc_value
    if error is not None:
        exc_info = (type(error), error, args.exc_traceback)
        _LOG.error("%s: %s", args.err_msg or "ignored", error, exc_info=exc_info)
