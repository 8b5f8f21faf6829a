"""What sessions cost a host: memory while they are idle, resuming a long one, and forking it.

Long sessions take turns with short ones in the same file; figures are medians over the rounds.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import tracemalloc
from contextlib import AsyncExitStack, closing
from pathlib import Path
from statistics import median

from tests.bench.append import Talk, load, open_log
from tests.bench.figures import Figure, report
from tests.bench.host import call_in_turn
from tests.story import accepted, assistant, attempted, t1, user
from turnlog.core.frames import Header, NewEvent, Record, seal
from turnlog.host import Session, Tool, ToolCall, open_session
from turnlog.log import EmbeddedLog
from turnlog.tables import database

IDLE = 1_000
ENTRIES = 10
AT_ONCE = 100
LONG = 100_000
ROUNDS = 15
CLAIM = "c" * 32


async def _look(call: ToolCall) -> str:
    return call.call_id


LOOK = Tool("look", _look, effect="read_only")


# ---- idle sessions


async def _open_some(log: EmbeddedLog, stack: AsyncExitStack, name: str, number: int) -> None:
    """Open sessions, let each have a turn that makes 10 entries, and leave them open."""

    async def open_one(index: int) -> None:
        opened = open_session(log, f"{name}-{index:06d}-{'x' * 24}", host="h", tools=[LOOK])
        session = await stack.enter_async_context(opened)
        await call_in_turn(session, 4, 1, last="That is all there is.")
        assert session.view().head.counts["entries"] == ENTRIES

    for first in range(0, number, AT_ONCE):
        await asyncio.gather(*map(open_one, range(first, min(first + AT_ONCE, number))))
    await asyncio.sleep(0.1)  # until what they have written has been shown to them


async def _traced(log: EmbeddedLog, path: Path) -> int:
    """The memory in use, without the log's cache of rows, which has a limit of its own: the log
    forgets it once somebody else has written."""
    filling = [Record("filling", None, b"filling")]
    async with open_log(path) as other:
        await other.load(filling)
    await log.load(filling)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def measure_idle(folder: Path, number: int = IDLE) -> list[Figure]:
    """Memory and tasks of sessions that are open and do nothing."""
    path = folder / "idle.db"
    async with open_log(path) as log, AsyncExitStack() as stack:
        await _open_some(log, stack, "first", 5)  # what all sessions share is there then
        tracemalloc.start()
        try:
            memory, tasks = await _traced(log, path), len(asyncio.all_tasks())
            await _open_some(log, stack, "idle", number)
            memory, tasks = await _traced(log, path) - memory, len(asyncio.all_tasks()) - tasks
        finally:
            tracemalloc.stop()
    return [
        Figure(
            f"memory of an idle open session of {ENTRIES} entries",
            memory / number / 1000,
            "KB",
            "<= 20",
            f"{number:,} of them: {memory / 1e6:.1f} MB",
        ),
        Figure(f"tasks of {number:,} idle sessions", tasks, "", "<= 0"),
    ]


# ---- a long session


def _crash(session: str, seq: int, leaf: str | None) -> list[Record]:
    """A turn whose one call has a T1 and no answer, as a host leaves it that is killed."""
    frames: list[list[NewEvent]] = [
        [user("u", leaf, "Look at it."), accepted("op", "u")],
        [attempted("at", "op", "a"), assistant("a", "u", "c0", attempt="at")],
        [t1("d", "op", "a", "r", call_index=0, call_id="c0", tool="look", effect="read_only")],
    ]
    headers = (Header(session, CLAIM, 1, seq + index, "host") for index in range(1, 4))
    return [seal(header, frame).record for header, frame in zip(headers, frames, strict=True)]


async def _fill(log: EmbeddedLog, session: str, entries: int, *, crash: bool) -> None:
    """A session of messages that a host has left, perhaps in the middle of a turn."""
    data = {"claim": CLAIM, "expects": 0, "host": "host", "reason": "open"}
    claim = NewEvent("session_claimed", f"claim of {session}", None, data)
    await log.append(seal(Header(session, None, None, None, "host"), [claim]))
    talk = Talk(session)
    await load(log, talk, entries)
    if crash:
        await log.load(_crash(session, talk.seq, talk.parent))


async def resume(path: Path, session: str) -> float:
    """Seconds from opening a log to knowing what a session's turn left to do. It stays open."""
    start = time.perf_counter()
    async with open_log(path) as log, open_session(log, session, host="h", tools=[LOOK]) as opened:
        assert opened.recovery
        try:
            async with opened.resume() as turn:
                plan = turn.plan()
                seconds = time.perf_counter() - start
                raise asyncio.CancelledError  # as if the host were stopped here
        except asyncio.CancelledError:
            assert plan[0]["do"] == "run_again"
        return seconds


async def measure_resuming(folder: Path, rounds: int = ROUNDS, long: int = LONG) -> list[Figure]:
    """Resuming a session of 100,000 entries next to one of 1,000."""
    path, found = folder / "resumed.db", dict[int, list[float]]()
    for entries in (max(long // 100, 1), long):
        found[entries] = []
        async with open_log(path) as log:
            await _fill(log, f"of-{entries}", entries, crash=True)
    for _ in range(rounds):
        for entries, seconds in found.items():
            seconds.append(await resume(path, f"of-{entries}"))
    short, late = (median(seconds) * 1e3 for seconds in found.values())
    name = f"resume a session of {long:,} entries with an open call"
    short_name = f"one of {max(long // 100, 1):,} {short:.1f} ms"
    return [Figure(name, late, "ms", "<= 50", short_name)]


def file_size(path: Path) -> int:
    """Bytes of a log's file with all that its write-ahead log holds."""
    with closing(database.connect(path, busy_ms=5_000)) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    return pages * page


async def measure_forking(folder: Path, rounds: int = ROUNDS, long: int = LONG) -> list[Figure]:
    """Forking a session of 100,000 entries at its leaf and halfway, next to one of 1,000."""
    path, short = folder / "forked.db", max(long // 100, 1)
    found: dict[str, list[float]] = {"short": [], "long": [], "halfway": []}
    written: list[int] = []
    async with open_log(path) as log, AsyncExitStack() as stack:
        sessions: list[Session] = []
        for entries in (short, long):
            await _fill(log, f"of-{entries}", entries, crash=False)
            opened = open_session(log, f"of-{entries}", host="h")
            sessions.append(await stack.enter_async_context(opened))
        middle = sessions[1].view().entry(long // 2).id
        size = file_size(path)
        for _ in range(rounds):
            for name, session, at in (
                ("short", sessions[0], None),
                ("long", sessions[1], None),
                ("halfway", sessions[1], middle),
            ):
                start = time.perf_counter()
                child = await session.fork(at)
                found[name].append(time.perf_counter() - start)
                frames = log.tables.records(child)
                written.append(sum(len(stored.record.body) for stored in frames))
        growth = (file_size(path) - size) / len(written)
    each = {name: median(seconds) * 1e3 for name, seconds in found.items()}
    others = f"halfway {each['halfway']:.1f} ms; one of {short:,} {each['short']:.1f} ms"
    return [
        Figure(f"fork a session of {long:,} entries", each["long"], "ms", "<= 5", others),
        Figure("a fork's frames", max(written), "bytes", "<= 2000", f"the file {growth:,.0f}"),
    ]


def measure() -> list[Figure]:
    """All figures of sessions that are idle, resumed and forked."""
    figures: list[Figure] = []
    for part in (measure_idle, measure_resuming, measure_forking):
        with tempfile.TemporaryDirectory() as folder:
            figures += asyncio.run(part(Path(folder)))
    return figures


if __name__ == "__main__":
    report(measure())
