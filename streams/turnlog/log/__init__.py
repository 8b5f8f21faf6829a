"""The log: one port, and adapters that are chosen here and nowhere else, by URL.

    async with turnlog.log.open("sqlite:sessions.db") as log:
        position = await log.append(seal(header, events))

A log in files is `file:FOLDER`, or `file:FOLDER?format=jsonl` to make one of lines.
An adapter is imported when a URL names it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from turnlog.core.errors import LogUnavailable, UsageError
from turnlog.log.port import EmbeddedLog, Heartbeat, Log, Progress, Stored

__all__ = ["EmbeddedLog", "Heartbeat", "Log", "Progress", "Stored", "open"]

SCHEMES = (
    "memory: (gone with the process), sqlite:PATH (one file), file:FOLDER (a file for each"
    " session) and kafka://HOST:PORT/TOPIC (shared)"
)
BUSY_MS = 5_000
"""How long an append waits for the lock of another process before it is refused."""


def _now() -> int:
    return time.time_ns() // 1_000_000


def open(
    url: str,
    *,
    clock: Callable[[], int] = _now,
    create: bool = True,
    catch_up: bool = True,
    progress: Progress | None = None,
    busy_ms: int = BUSY_MS,
    tables: str | None = None,
    kafka: Mapping[str, object] | None = None,
) -> EmbeddedLog:
    """Open the log of a URL, and bring its tables up to date where they lag.

    `clock` gives ms since 1970, for the time beside each record. Without `create` a log that does
    not exist is an error. `progress` is called while tables are caught up, which may take long:
    this function is synchronous, so call it in a thread where that matters. Without `catch_up`
    lagging tables are left alone; the log itself can then be read whatever state they are in.
    `tables` says where those of a Kafka log lie, as sqlite:PATH; others hold their own.
    `kafka` holds settings of Kafka's clients, under Kafka's own names (docs/settings.md).

    Raises UsageError for a URL of no known kind, LogUnavailable for what cannot be opened, and
    StateError for a log of a newer turnlog or one whose tables cannot be brought up to date.
    """
    scheme, rest = _scheme_of(url, tables, kafka)
    if scheme == "memory":
        if rest:
            raise UsageError(f"the log {url!r}: memory: takes nothing behind the colon")
        from turnlog.log.memory import MemoryLog

        return MemoryLog(clock=clock)
    if scheme == "sqlite":
        from turnlog.log.sqlite.log import SqliteLog

        return SqliteLog(
            _path(url, rest, create=create),
            clock=clock,
            catch_up=catch_up,
            progress=progress,
            busy_ms=busy_ms,
        )
    if scheme == "kafka":
        from turnlog.log.kafka.address import parse
        from turnlog.log.kafka.log import KafkaLog

        return KafkaLog(
            parse(url),
            tables=_tables(tables),
            kafka=kafka,
            catch_up=catch_up,
            progress=progress,
            busy_ms=busy_ms,
        )
    if scheme == "file":
        try:
            from turnlog.log.file.log import FileLog
        except ModuleNotFoundError as error:  # fcntl is of POSIX
            raise LogUnavailable(
                f"the log {url!r}: this system has no {error.name}; use sqlite:PATH"
            ) from error
        path, format_ = _folder(url, rest, create=create)
        return FileLog(
            path,
            clock=clock,
            format_=format_,
            catch_up=catch_up,
            progress=progress,
            busy_ms=busy_ms,
        )
    raise UsageError(f"the log {url!r}: there is no {scheme}: log; there are {SCHEMES}")


def _scheme_of(url: str, tables: str | None, kafka: Mapping[str, object] | None) -> tuple[str, str]:
    """The kind of log that a URL names, and the rest of it. The other two are for Kafka alone."""
    scheme, colon, rest = url.partition(":")
    if not colon or "/" in scheme or "\\" in scheme:
        raise UsageError(
            f"the log {url!r} is no URL: write sqlite:{url or 'PATH'}"
            f" for a file; there are {SCHEMES}"
        )
    if tables is not None and scheme != "kafka":
        raise UsageError(f"the log {url!r} holds its own tables: give no other place for them")
    if kafka and scheme != "kafka":
        raise UsageError(f"the log {url!r} is not on Kafka: give no settings of Kafka's clients")
    return scheme, rest


def _tables(url: str | None) -> Path | None:
    """The file of the tables beside a log."""
    if url is None:
        return None
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite":
        raise UsageError(f"the tables {url!r}: write sqlite:PATH")
    return _path(url, rest, create=True)


def _path(url: str, rest: str, *, create: bool) -> Path:
    """The file of a `sqlite:` URL, in a folder that exists."""
    if not rest or "\0" in rest:
        raise UsageError(f"the log {url!r} names no file: write sqlite:PATH")
    if rest == ":memory:":
        raise UsageError(f"the log {url!r}: a log in memory is called memory:")
    try:
        path = Path(rest).expanduser().absolute()
        if path.is_dir():
            raise LogUnavailable(f"{path}: a folder; name a file in it, as in {url}/sessions.db")
        if not create and not path.exists():
            raise LogUnavailable(f"{path}: there is no log; look at the path, or import into it")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)  # sessions hold what people told nobody else
    except (OSError, RuntimeError) as error:  # RuntimeError: `~somebody` without a home
        raise _cannot_open(rest, error) from error
    return path


_FORMAT = re.compile(r"(.*?)(?:\?format=(.*))?", re.DOTALL)


def _folder(url: str, rest: str, *, create: bool) -> tuple[Path, str | None]:
    """The folder of a `file:` URL, which is there, and the format that the URL wants."""
    named, format_ = _FORMAT.fullmatch(rest).groups()  # type: ignore[union-attr]  # fits anything
    if not named or "\0" in named:
        raise UsageError(f"the log {url!r} names no folder: write file:FOLDER")
    try:
        path = Path(named).expanduser().absolute()
        if path.exists() and not path.is_dir():
            raise LogUnavailable(f"{path}: no folder; a log in one file is called sqlite:{named}")
        if not create and not (path / "log.json").exists():
            raise LogUnavailable(f"{path}: there is no log; look at the path, or import into it")
        path.mkdir(mode=0o700, parents=True, exist_ok=True)  # as private as its files
    except (OSError, RuntimeError) as error:
        raise _cannot_open(named, error) from error
    return path, format_


def _cannot_open(named: str, error: Exception) -> LogUnavailable:
    reason = getattr(error, "strerror", None) or error
    return LogUnavailable(
        f"{named}: cannot be opened ({reason}); look at the path and the rights of its folder"
    )
