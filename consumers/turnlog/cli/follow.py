"""`turnlog follow`: the events of one session as they come."""

from __future__ import annotations

import asyncio
import logging
import re
import select
import sys
from collections.abc import Collection
from contextlib import aclosing
from typing import Any, NamedTuple

from turnlog.cli.events import print_event
from turnlog.cli.process.metrics import topic_of
from turnlog.cli.process.process import Followed, Process
from turnlog.cli.terminal import Terminal, silence_stdout
from turnlog.core.errors import UsageError
from turnlog.core.rows import Quarantine
from turnlog.query.events import NewEvents
from turnlog.query.sessions import find_session

Json = Any
GROUP = "follow"
LOOK_S = 1.0
"""How often it is looked whether anybody still reads what is written."""
_PLACE = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,6}))?")
_LOG = logging.getLogger(__name__)


class Place(NamedTuple):
    """An event's place in the log: the position of its frame, and which event of that it is."""

    position: int
    event: int = -1


FIRST = Place(0)


def parse_place(text: str) -> Place:
    """A place as POSITION or POSITION.INDEX. Raises UsageError."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--from {text!r} is no place in a log: write POSITION or POSITION.INDEX, as"
            " `turnlog events` shows them"
        )
    return Place(int(found[1]), int(found[2]) if found[2] else -1)


async def follow_session(
    process: Process, session: str, *, begin: Place | None, wait: bool, types: Collection[str]
) -> None:
    """Print the events of a session from a place on, or those to come, until a stop.

    With `wait` the session need not be there yet. Ends by itself where nobody reads any more.
    """
    async with process.open_log() as opened:
        watching = asyncio.create_task(_until_reader_is_gone(process))
        try:
            await _Follower(process, opened, session, types).run(begin, wait=wait)
        except BrokenPipeError:
            silence_stdout()
        finally:
            watching.cancel()


class _Follower:
    def __init__(
        self, process: Process, opened: Followed, session: str, types: Collection[str]
    ) -> None:
        self._process = process
        self._opened = opened
        self._log = opened.log
        self._session = session
        self._types = types

    async def run(self, begin: Place | None, *, wait: bool) -> None:
        log, tables = self._log, self._log.tables
        if not wait:
            self._session = find_session(tables, self._session)
        session, partition = self._session, self._log.partition_of(self._session)
        if begin is None:
            begin = Place(await log.end(partition) + 1)
        after = max(begin.position - 1, 0)
        events = NewEvents(tables, session)
        await asyncio.to_thread(self._skip, events, after)
        about = {"session": session, "partition": partition, "position": after}
        _LOG.info("following", extra=about)
        consumed = self._process.metrics.consumed.labels(GROUP, topic_of(log.url))
        records = self._opened.records(after, partition=partition, group=GROUP)
        async with aclosing(records):
            async for stored in records:
                if stored.record.session != session:
                    continue
                await tables.wait(stored.position, partition)
                rows = events.of(stored)
                self._count_quarantined(events, rows)
                wanted = [row for row in rows if self._is_wanted(row, begin)]
                if wanted:
                    await asyncio.to_thread(_write, self._process.terminal, wanted)
                consumed.inc(len(rows))

    def _skip(self, events: NewEvents, until: int) -> None:
        """What came before tells what the frames to come are."""
        for stored in self._log.tables.records(self._session):
            if stored.position > until or self._process.stop.is_asked:
                return
            events.skip(stored)

    def _is_wanted(self, row: Json, begin: Place) -> bool:
        is_before = row["position"] == begin.position and row["index"] < begin.event
        return not is_before and (not self._types or row["type"] in self._types)

    def _count_quarantined(self, events: NewEvents, rows: list[Json]) -> None:
        if not any(row["quarantine"] for row in rows):
            return
        position, standing = rows[0]["position"], rows[0]["frame"]
        for index in (-1, *(row["index"] for row in rows if row["index"] >= 0)):
            found = events.quarantine(position, index)
            if found is not None:
                reason = _reason(found, standing)
                self._process.metrics.quarantined.labels(found.stage, reason).inc()


def _reason(row: Quarantine, standing: str) -> str:
    """Why something was quarantined, as one of a few words."""
    is_whole = row.event_index < 0
    if row.stage == "decode":
        return "unreadable" if is_whole else "malformed"
    return standing if is_whole else "refused"


def _write(terminal: Terminal, rows: list[Json]) -> None:
    """Write a frame's events, whole and at once. In a thread: who reads may be slow."""
    if terminal.common.json:
        terminal.rows(rows)
    else:
        for row in rows:
            print_event(terminal, row)
    terminal.flush()


async def _until_reader_is_gone(process: Process) -> None:
    """Stop where nobody reads any more, which else would show only at the next event."""
    try:
        look = select.poll()
        look.register(sys.stdout.fileno(), 0)
    except (AttributeError, OSError, ValueError):  # no such call here, or no file
        return
    while not any(found & select.POLLERR for _, found in look.poll(0)):
        if await process.stop.wait(LOOK_S):
            return
    silence_stdout()
    process.stop.ask()
