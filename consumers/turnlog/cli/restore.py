"""`turnlog restore`: an archive back into a log."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from turnlog.cli.opening import open_log
from turnlog.cli.plain import counted
from turnlog.cli.settings import choose_log
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import LogUnavailable, UsageError
from turnlog.log import EmbeddedLog
from turnlog.query.archive import Line, read_archive
from turnlog.query.transfer import Lines, Moved, Plan, confirm, examine, fill


def restore_archive(terminal: Terminal, file: Path) -> None:
    """Restore an archive into the chosen log, which is made where it is not there."""
    name = "standard input" if str(file) == "-" else str(file)
    with _opened(file) as stream:
        asyncio.run(_restore(terminal, _lines(stream, name), name))


async def _restore(terminal: Terminal, lines: Lines, name: str) -> None:
    async with AsyncExitStack() as stack:
        there = present(terminal)
        if there is not None:
            await stack.enter_async_context(there)
        with terminal.meter("checking the archive") as tick:
            plan = await examine(lines, there, tick)
        log = there
        if log is None:
            log = await stack.enter_async_context(open_log(terminal, create=True))
        await move(terminal, lines, log, plan)
    if terminal.common.json:
        terminal.document({"log": log.url, "sessions": [row._asdict() for row in plan.moved()]})
        return
    terminal.say(summary(plan.moved(), f"{name}: restored into {log.url}"))


def present(terminal: Terminal, url: str | None = None) -> EmbeddedLog | None:
    """The log, or None where it is not there, or cannot be opened, which `create` will then say. A
    topic is not made by opening it."""
    try:
        return open_log(terminal, url)
    except LogUnavailable:
        if (url or choose_log(terminal.common.log)[0]).startswith("kafka:"):
            raise
        return None


async def move(terminal: Terminal, lines: Lines, log: EmbeddedLog, plan: Plan) -> None:
    """Append what is new and read it back."""
    with terminal.meter("writing", plan.bytes) as tick:
        await fill(lines, log, plan, tick)
    with terminal.meter("reading back", plan.bytes) as tick:
        await confirm(log, plan, tick)


def summary(moved: list[Moved], what: str) -> str:
    """What was moved, in a line."""
    if not moved:
        return f"{what}: there is nothing in it"
    new = [row for row in moved if row.added == row.frames]
    grown = [row for row in moved if 0 < row.added < row.frames]
    same = len(moved) - len(new) - len(grown)
    added = counted(sum(row.added for row in moved), "frame")
    parts = [f"{counted(len(new), 'session')}, {added}" if new else added]
    if grown:
        parts.append(f"{counted(len(grown), 'session')} continued")
    if same:
        parts.append(f"{counted(same, 'session')} there already")
    return f"{what}: {'; '.join(parts)}"


def _opened(file: Path) -> BinaryIO:
    """The archive as a file that can be read twice; what is a stream is kept aside on disk."""
    if str(file) == "-":
        return _spooled(sys.stdin.buffer)
    if file.is_dir():
        raise UsageError(f"{file}: a folder; name an archive, as `turnlog dump -o FILE` writes it")
    stream = file.open("rb")
    if stream.seekable():
        return stream
    with stream:
        return _spooled(stream)


def _spooled(stream: BinaryIO) -> BinaryIO:
    spool = TemporaryFile()  # noqa: SIM115  # whoever asked for it closes it
    # one read of the system at a time: within a longer one an interrupt could be missed
    read = getattr(stream, "read1", stream.read)
    while chunk := read(1024 * 1024):
        spool.write(chunk)
    return spool


def _lines(stream: BinaryIO, name: str) -> Lines:
    async def lines() -> AsyncIterator[Line]:
        stream.seek(0)
        for line in read_archive(stream, name):
            yield line

    return lines
