"""`turnlog dump`: frames out of a log, as archive lines."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from turnlog.cli.opening import open_log
from turnlog.cli.plain import counted, size
from turnlog.cli.terminal import Terminal
from turnlog.core.archive import to_line
from turnlog.core.errors import SessionNotFound
from turnlog.log import EmbeddedLog, Stored
from turnlog.query.archive import write_archive
from turnlog.query.sessions import find_session


def dump_sessions(
    terminal: Terminal, sessions: list[str], *, output: Path | None, force: bool
) -> None:
    """Write the frames of some sessions or of all, in log order."""
    # the log is whole also where its tables cannot be brought up to date
    with open_log(terminal, catch_up=False) as log:
        names = [_find(log, session) for session in sessions]
        if output is None or str(output) == "-":
            said = asyncio.run(_dump(terminal, log, names, terminal.write))
            terminal.note(said)
            return
        with write_archive(output, force=force) as write:
            said = asyncio.run(_dump(terminal, log, names, write))
    terminal.say(f"{output}: {said}")


async def _dump(
    terminal: Terminal, log: EmbeddedLog, sessions: list[str], write: Callable[[bytes], object]
) -> str:
    """Write the lines; gives what was written, in words."""
    seen: set[str] = set()
    frames = written = 0
    with terminal.meter("dumping") as tick:
        async for stored in _records(log, sessions):
            line = to_line(stored.position, stored.record)
            write(line)
            seen.add(stored.record.session)
            frames += 1
            written += len(line)
            tick(1, len(line))
    return f"{counted(len(seen), 'session')}, {counted(frames, 'frame')}, {size(written)}"


async def _records(log: EmbeddedLog, sessions: list[str]) -> AsyncIterator[Stored]:
    if sessions:
        runs = [log.tables.records(session) for session in dict.fromkeys(sessions)]
        for stored in heapq.merge(*runs, key=lambda stored: stored.position):
            yield stored
        return
    for partition in range(log.partitions):
        async for stored in log.read(partition=partition):
            yield stored


def _find(log: EmbeddedLog, session: str) -> str:
    try:
        return find_session(log.tables, session)
    except SessionNotFound:
        # tables may lag, or hold nothing of a session that the log does hold
        if next(log.tables.records(session), None) is None:
            raise
        return session
