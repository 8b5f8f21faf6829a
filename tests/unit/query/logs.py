"""Logs for tests of what reads them: the records of stories and histories, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import turnlog.log
from tests.model.histories import seeded_history
from tests.story import Story
from turnlog.core.frames import Record
from turnlog.log import EmbeddedLog
from turnlog.log.memory import MemoryLog


def stored(*sources: Story | Iterable[Record], stride: int = 1) -> EmbeddedLog:
    """A log that holds the records of each source, one source after another."""
    log = MemoryLog(clock=lambda: 0, stride=stride)
    for source in sources:
        load(log, source.records if isinstance(source, Story) else source)
    return log


def load(log: EmbeddedLog, records: Iterable[Record]) -> None:
    asyncio.run(log.load(list(records)))


def renamed(record: Record, session: str) -> Record:
    """The same record in another session."""
    header, body = record.header, record.body
    if header is not None:
        header = header._replace(session=session)
        body = body.replace(
            f'"session":"{record.session}"'.encode(), f'"session":"{session}"'.encode()
        )
    return Record(session, header, body)


def random_session(seed: int, session: str, frames: int = 60) -> list[Record]:
    """The records of a random history: fenced, lost, damaged, unknown and raw ones among them."""
    return [renamed(item.record, session) for item in seeded_history(seed, frames)]


def woven(*sessions: list[Record]) -> list[Record]:
    """The records of several sessions, taken in turn."""
    rest = [list(records) for records in sessions]
    return [records.pop(0) for _ in range(max(map(len, rest))) for records in rest if records]


def empty() -> EmbeddedLog:
    return turnlog.log.open("memory:", clock=lambda: 0)


def records_of(log: EmbeddedLog, session: str) -> list[Record]:
    return [stored.record for stored in log.tables.records(session)]
