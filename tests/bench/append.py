"""Appending to SQLite with its tables, next to a bare insert-and-commit of the same bytes.

Both go through the same kind of thread hop, with the same pragmas, and take turns in short rounds,
so that whatever else the machine does falls on both. Both begin with a write-ahead log that has its
full size: as long as it grows a commit costs about twice as much, and the bare one grows slower.
Figures are medians over the rounds.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median
from typing import Any

import turnlog.log
from tests.bench.figures import Figure, report
from turnlog.core.frames import Header, NewEvent, Record, SealedFrame, seal
from turnlog.log import EmbeddedLog
from turnlog.tables import database

TIME = "2026-01-01T00:00:00.000Z"
SESSIONS = 32
ROUNDS = 15
ONE_EACH = 200
MANY_EACH = 40
LONG, SHORT = 100_000, 100

_ids = count()


def _clock() -> int:
    return time.time_ns() // 1_000_000


def claim_of(session: str) -> SealedFrame:
    data = {"claim": "c" * 32, "expects": 0, "host": "host", "reason": "open"}
    header = Header(session, None, None, None, "host")
    return seal(header, [NewEvent("session_claimed", f"claim of {session}", TIME, data)])


class Talk:
    """A session of messages, one in a frame; ids look random, as they are in real sessions."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.seq = 0
        self.parent: str | None = None

    def frames(self, number: int) -> list[SealedFrame]:
        return [self.next() for _ in range(number)]

    def next(self) -> SealedFrame:
        events: list[NewEvent] = []
        if self.seq == 0:
            data: dict[str, Any] = {"title": "a session", "cwd": "/home/somebody/project"}
            events.append(NewEvent("session_created", f"created {self.session}", TIME, data))
        self.seq += 1
        id_ = f"{next(_ids) * 0x9E3779B97F4A7C15 % 2**64:016x}-{self.seq:015x}"
        content = [{"type": "text", "text": "lorem ipsum dolor " * 28}]
        data = {
            "parent": self.parent,
            "role": ("user", "assistant")[self.seq % 2],
            "content": content,
        }
        events.append(NewEvent("message", id_, TIME, data))
        self.parent = id_
        return seal(Header(self.session, "c" * 32, 1, self.seq, "host"), events)


class Bare:
    """One table and a thread that inserts and commits: what an append costs at least."""

    def __init__(self, path: Path) -> None:
        self._connection = database.connect(path, busy_ms=5_000)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(
            "CREATE TABLE records (position INTEGER PRIMARY KEY, session TEXT, body BLOB)"
        )
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    async def grow(self) -> None:
        """Bring the write-ahead log to its full size; it is used again from its beginning."""
        for part in _filling():
            await self.put("filling", part)

    async def append(self, frame: SealedFrame) -> int:
        return await self.put(frame.record.session, frame.record.body)

    async def put(self, session: str, body: bytes) -> int:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self._queue.put((loop, future, session, body))
        return await future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        sql = "INSERT INTO records (session, body) VALUES (?, ?)"
        while (job := self._queue.get()) is not None:
            jobs = [job]
            try:
                while (more := self._queue.get_nowait()) is not None:
                    jobs.append(more)
            except Empty:
                pass
            self._connection.execute("BEGIN IMMEDIATE")
            told: list[tuple[asyncio.Future[int], int]] = []
            for _, future, session, body in jobs:
                cursor = self._connection.execute(sql, (session, body))
                told.append((future, cursor.lastrowid or 0))
            self._connection.execute("COMMIT")
            job[0].call_soon_threadsafe(_tell, told)


def _filling() -> Iterator[bytes]:
    """Bytes that cannot be compressed, a quarter more than a write-ahead log holds."""
    for _ in range(database.CHECKPOINT_PAGES * 5 // 4 // 100):
        yield random.randbytes(100 * 4096)


async def grow(log: EmbeddedLog) -> None:
    for part in _filling():
        await log.load([Record("filling", None, part)])


def _tell(told: list[tuple[asyncio.Future[int], int]]) -> None:
    for future, position in told:
        future.set_result(position)


Append = Callable[[SealedFrame], Awaitable[int]]


async def seconds_each(append: Append, talks: Sequence[Talk], number: int) -> float:
    """Seconds for one append: each session appends its next frame when the last is there."""
    work = [talk.frames(number) for talk in talks]

    async def write(frames: list[SealedFrame]) -> None:
        for frame in frames:
            await append(frame)

    start = time.perf_counter()
    if len(work) == 1:
        await write(work[0])
    else:
        await asyncio.gather(*map(write, work))
    return (time.perf_counter() - start) / (number * len(work))


def open_log(path: Path) -> EmbeddedLog:
    return turnlog.log.open(f"sqlite:{path}", clock=_clock)


async def begin(log: EmbeddedLog, name: str, number: int) -> list[Talk]:
    talks = [Talk(f"{name}-{index:04d}-{'x' * 24}") for index in range(number)]
    for talk in talks:
        await log.append(claim_of(talk.session))
    return talks


async def measure_writers(folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """One writer, and 32 sessions at once, next to the bare ones."""
    bare, bare_many = Bare(folder / "bare.db"), Bare(folder / "bare-many.db")
    async with open_log(folder / "one.db") as log, open_log(folder / "many.db") as log_many:
        one, many = await begin(log, "one", 1), await begin(log_many, "many", SESSIONS)
        await asyncio.gather(bare.grow(), bare_many.grow(), grow(log), grow(log_many))
        other_many = [Talk(f"many-{n}") for n in range(SESSIONS)]
        cases: dict[str, tuple[Append, Sequence[Talk], int]] = {
            "bare one": (bare.append, [Talk("one")], ONE_EACH),
            "one": (log.append, one, ONE_EACH),
            "bare many": (bare_many.append, other_many, MANY_EACH),
            "many": (log_many.append, many, MANY_EACH),
        }
        found: dict[str, list[float]] = {name: [] for name in cases}
        for round_ in range(rounds + 2):
            for name, case in cases.items():
                seconds = await seconds_each(*case)
                if round_ >= 2:  # the first ones fill the caches
                    found[name].append(seconds)
    bare.close()
    bare_many.close()
    each = {name: median(seconds) * 1e6 for name, seconds in found.items()}
    return [
        Figure(
            "append, one writer, as a share of a bare insert's speed",
            each["bare one"] / each["one"],
            "",
            ">= 0.6",
            f"{each['one']:.0f} µs; bare {each['bare one']:.0f} µs",
        ),
        Figure(
            f"append, {SESSIONS} sessions at once, times the speed of one",
            each["one"] / each["many"],
            "",
            ">= 8",
            f"{each['many']:.0f} µs each; bare {each['bare many']:.0f} µs,"
            f" {each['bare one'] / each['bare many']:.0f} times one",
        ),
    ]


async def measure_growth(folder: Path, rounds: int = ROUNDS, long: int = LONG) -> list[Figure]:
    """An append to a session of 100,000 entries next to one of 100, in one file."""
    path = folder / "growth.db"
    async with open_log(path) as log:
        (old,), young = await begin(log, "long", 1), await begin(log, "short", rounds + 2)
        for talk, number in [(old, long), *((talk, SHORT) for talk in young)]:
            await load(log, talk, number)
    found: dict[str, list[float]] = {"short": [], "long": []}
    async with open_log(path) as log:
        await grow(log)
        for round_, talk in enumerate(young):
            short = await seconds_each(log.append, [talk], ONE_EACH // 2)
            late = await seconds_each(log.append, [old], ONE_EACH // 2)
            if round_ >= 2:
                found["short"].append(short)
                found["long"].append(late)
    short, late = (median(found[name]) * 1e6 for name in ("short", "long"))
    return [
        Figure(
            f"append, the {long:,}th entry of a session next to the {SHORT}th",
            late / short,
            "",
            "<= 1.2",
            f"{late:.0f} µs; {short:.0f} µs",
        )
    ]


async def load(log: EmbeddedLog, talk: Talk, number: int) -> None:
    while talk.seq < number:
        frames = talk.frames(min(2_000, number - talk.seq))
        await log.load([frame.record for frame in frames])


def open_session(path: Path, session: str) -> float:
    """Seconds to open a log and read a session's head, state and last surface page."""
    start = time.perf_counter()
    with open_log(path) as log, log.tables.snapshot() as view:
        head = view.get(("sessions", session))
        view.get(("app_states", session))
        page = view.get(("surfaces", session, head.pages - 1))
        assert page.nodes[-1] == head.leaf
        return time.perf_counter() - start


async def measure_opening(folder: Path, rounds: int = ROUNDS, long: int = LONG) -> list[Figure]:
    """Opening a session of 100,000 entries next to one of 1,000."""
    found: dict[int, list[float]] = {long // 100: [], long: []}
    sessions: dict[int, str] = {}
    for number in found:
        async with open_log(folder / f"{number}.db") as log:
            (talk,) = await begin(log, "opened", 1)
            await load(log, talk, number)
            sessions[number] = talk.session
    for _ in range(rounds):
        for number, seconds in found.items():
            seconds.append(open_session(folder / f"{number}.db", sessions[number]))
    short, late = (median(seconds) * 1e3 for seconds in found.values())
    return [
        Figure(
            f"open a session of {long:,} entries next to one of {long // 100:,}",
            late / short,
            "",
            "<= 2",
            f"{late:.1f} ms; {short:.1f} ms",
        ),
        Figure(f"open a session of {long:,} entries", late, "ms", "<= 20"),
    ]


def measure() -> list[Figure]:
    """All figures of appending and opening."""
    figures: list[Figure] = []
    for part in (measure_writers, measure_growth, measure_opening):
        with tempfile.TemporaryDirectory() as folder:
            figures += asyncio.run(part(Path(folder)))
    return figures


if __name__ == "__main__":
    print(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}")
    report(measure())
