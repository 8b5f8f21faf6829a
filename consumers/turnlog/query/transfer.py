"""Whole frames from an archive or a log into another log: the way of `restore` and `copy`.

The source is read twice. The first time nothing is written: every line is checked, and where the
target has frames of a session already, they must be the first ones that the source has of it. Only
then the rest is appended, batch by batch, each whole or not at all; one that is broken off is taken
up again by doing the same once more. At last the target is read back and compared.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Set
from typing import NamedTuple

from turnlog.core.errors import AppendRefused, AppendUnknown, LogError, SchemaError, StateError
from turnlog.core.frames import Record
from turnlog.log import Log
from turnlog.query.archive import Line, identity

BATCH_BYTES = 4_000_000
BATCH_RECORDS = 1_000
LOOKAHEAD = 64
"""Frames of a session that the target has are read so many at once, to be compared."""

SETTLE_S = 1.0
"""What was under way to a target that did not answer has arrived, or never will, after so long."""
TRIES = 3
"""A batch of which nobody knows what became of it is looked at and written again so often."""

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
        self.reached = 0
        """The position of the last frame that the target is known to have."""
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


async def lines_of(log: Log, sessions: Set[str] = frozenset()) -> Lines:
    """A log as it is now, each time it is read: some of its sessions, or all."""
    ends = [await log.end(partition) for partition in range(log.partitions)]

    async def lines() -> AsyncIterator[Line]:
        for partition, end in enumerate(ends):
            async for position, _, record in log.read(partition=partition):
                if position > end:
                    break
                if not sessions or record.session in sessions:
                    yield Line(f"{log.url}: position {position}", record)

    return lines


async def examine(lines: Lines, target: Log | None, tick: Tick) -> Plan:
    """Read the source once and write nothing. `target` is None for a log that is not there yet.

    Raises SchemaError for a line that cannot be read or a frame that the target does not take, and
    AppendRefused where the target has other frames of a session, or more of them, than the source
    begins with.
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
        if target is not None:
            _check(target, line)
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
        plan.sessions[name].reached = log.after
    return plan


def _check(target: Log, line: Line) -> None:
    """What the target would not take is refused before anything is written."""
    try:
        target.check_record(line.record)
    except SchemaError as error:
        raise type(error)(f"{line.where}: {error}") from error


async def fill(lines: Lines, target: Log, plan: Plan, tick: Tick) -> None:
    """Append what the target does not have. Raises LogError, which says how far it came."""
    seen = dict.fromkeys(plan.sessions, 0)
    batch: list[Record] = []
    size = done = 0

    async def write() -> None:
        nonlocal size, done
        try:
            await _write(target, batch, plan)
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


async def _write(target: Log, batch: list[Record], plan: Plan) -> None:
    """Append a batch. Of one whose fate is unknown what got there is the first frames of each
    session; it is looked for, and the rest is written again."""
    left = batch
    for tries in range(1, TRIES + 1):
        try:
            positions = await target.load(left)
        except AppendUnknown:
            if tries == TRIES:
                raise
            await asyncio.sleep(SETTLE_S)
            left = await _missing(target, left, plan)
            continue
        for record, position in zip(left, positions, strict=True):
            plan.sessions[record.session].reached = position
        return


async def _missing(target: Log, batch: list[Record], plan: Plan) -> list[Record]:
    """The records of a batch that the target does not have."""
    there: dict[str, deque[bytes]] = {}
    for name in {record.session for record in batch}:
        session, there[name] = plan.sessions[name], deque()
        partition = target.partition_of(name)
        async for stored in target.read(session.reached, session=name, partition=partition):
            there[name].append(identity(stored.record))
            session.reached = stored.position
    left: list[Record] = []
    for record in batch:
        arrived = there[record.session]
        if arrived and arrived[0] == identity(record):
            arrived.popleft()
        else:
            left.append(record)
    if any(there.values()):
        raise StateError(
            f"{target.url}: frames arrived that are not those that were sent: somebody else writes"
            " to these sessions, too; run the same command once nobody does"
        )
    return left


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
        self.after = 0
        """The position of the last frame that was read."""
        self._digests: deque[bytes] = deque()
        self._ended = False

    async def next(self) -> bytes | None:
        """The next one, or None after the last."""
        if not self._digests and not self._ended:
            await self._read()
        return self._digests.popleft() if self._digests else None

    async def _read(self) -> None:
        partition = self._target.partition_of(self._session)
        records = self._target.read(self.after, session=self._session, partition=partition)
        self._ended = True
        async for stored in records:
            self._digests.append(identity(stored.record))
            self.after = stored.position
            if len(self._digests) >= LOOKAHEAD:
                self._ended = False
                break


def _url(target: Log | None) -> str:
    return target.url if target is not None else "the log"
