"""Whole frames from an archive or a log into another log: the way of `restore` and `copy`.

The source is read twice. The first time nothing is written: every line is checked, and where the
target has frames of a session already, they must be the first ones that the source has of it. Only
then the rest is appended, batch by batch, each whole or not at all; one that is broken off is taken
up again by doing the same once more. At last the target is read back and compared.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from turnlog.core.errors import AppendRefused, LogError, StateError
from turnlog.core.frames import Record
from turnlog.log import Log
from turnlog.query.archive import Line, identity

BATCH_BYTES = 4_000_000
BATCH_RECORDS = 1_000
LOOKAHEAD = 64
"""Frames of a session that the target has are read so many at once, to be compared."""

Lines = Callable[[], AsyncIterator[Line]]
"""Reads the source from its beginning, each time it is called."""
Tick = Callable[[int, int], None]
"""Called with the records and the bytes that were done since the last call."""


class Moved(NamedTuple):
    """What became of one session: of its `frames` in the source, `added` are new in the target."""

    session: str
    frames: int
    added: int


class _Session:
    """What the source holds of one session, and how many frames of it the target has."""

    def __init__(self) -> None:
        self.frames = 0
        self.had = 0
        self.chain = hashlib.sha256()


class Plan:
    """What `examine` found, and `fill` and `confirm` go by."""

    def __init__(self) -> None:
        self.sessions: dict[str, _Session] = {}
        self.bytes = 0

    @property
    def frames(self) -> int:
        """All frames of the source."""
        return sum(session.frames for session in self.sessions.values())

    @property
    def added(self) -> int:
        """Those that the target does not have yet."""
        return sum(session.frames - session.had for session in self.sessions.values())

    def moved(self) -> list[Moved]:
        """The sessions in the order in which the source has them."""
        return [
            Moved(name, session.frames, session.frames - session.had)
            for name, session in self.sessions.items()
        ]


async def examine(lines: Lines, target: Log | None, tick: Tick) -> Plan:
    """Read the source once and write nothing. `target` is None for a log that is not there yet.

    Raises SchemaError for a line that cannot be read, and AppendRefused where the target has other
    frames of a session, or more of them, than the source begins with.
    """
    plan = Plan()
    known: dict[str, _Known] = {}
    async for line in lines():
        record = line.record
        name = record.session
        session = plan.sessions.get(name)
        if session is None:
            session = plan.sessions[name] = _Session()
            if target is not None:
                known[name] = _Known(target, name)
        digest = identity(record)
        session.frames += 1
        session.chain.update(digest)
        plan.bytes += len(record.body)
        if name in known and (there := await known[name].next()) is not None:
            if there != digest:
                raise AppendRefused(
                    f"{line.where}: session {name!r} is in {_url(target)} already, and its frame"
                    f" {session.frames} is another one there; nothing was written: take another log"
                )
            session.had += 1
        tick(1, len(record.body))
    for name, log in known.items():
        if await log.next() is not None:
            raise AppendRefused(
                f"session {name!r} goes on in {_url(target)} after the"
                f" {plan.sessions[name].frames} frame(s) that are to be restored; nothing was"
                " written: there is nothing to add"
            )
    return plan


async def fill(lines: Lines, target: Log, plan: Plan, tick: Tick) -> None:
    """Append what the target does not have. Raises LogError, which says how far it came."""
    seen = dict.fromkeys(plan.sessions, 0)
    batch: list[Record] = []
    size = done = 0

    async def write() -> None:
        nonlocal size, done
        try:
            await target.load(batch)
        except LogError as error:
            raise LogError(
                f"{error}; {done} of {plan.added} frames were written: the same command goes on"
                " from there",
                retriable=error.retriable,
            ) from error
        done += len(batch)
        tick(len(batch), size)
        batch.clear()
        size = 0

    async for line in lines():
        name = line.record.session
        session = plan.sessions.get(name)
        if session is None or seen[name] >= session.frames:
            continue  # the source has grown since it was examined
        seen[name] += 1
        if seen[name] <= session.had:
            continue
        batch.append(line.record)
        size += len(line.record.body)
        if size >= BATCH_BYTES or len(batch) >= BATCH_RECORDS:
            await write()
    if batch:
        await write()


async def confirm(target: Log, plan: Plan, tick: Tick) -> None:
    """Read back what was moved. Raises StateError where it is not what the source had."""
    for name, session in plan.sessions.items():
        chain = hashlib.sha256()
        partition = target.partition_of(name)
        async for stored in target.read(session=name, partition=partition):
            chain.update(identity(stored.record))
            tick(1, len(stored.record.body))
        if chain.digest() != session.chain.digest():
            raise StateError(
                f"session {name!r}: {target.url} does not hold what the source had of it: somebody"
                " else wrote to it meanwhile, or the source has changed; run `turnlog fsck` there"
            )


class _Known:
    """The frames of a session that the target has, as digests, one after another."""

    def __init__(self, target: Log, session: str) -> None:
        self._target = target
        self._session = session
        self._after = 0
        self._digests: deque[bytes] = deque()
        self._ended = False

    async def next(self) -> bytes | None:
        """The next one, or None after the last."""
        if not self._digests and not self._ended:
            await self._read()
        return self._digests.popleft() if self._digests else None

    async def _read(self) -> None:
        partition = self._target.partition_of(self._session)
        records = self._target.read(self._after, session=self._session, partition=partition)
        self._ended = True
        async for stored in records:
            self._digests.append(identity(stored.record))
            self._after = stored.position
            if len(self._digests) >= LOOKAHEAD:
                self._ended = False
                break


def _url(target: Log | None) -> str:
    return target.url if target is not None else "the log"
