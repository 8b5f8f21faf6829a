"""Appending to a log in files, with its tables, next to a bare write-and-fsync of the same bytes.

Both go through the same kind of thread hop, and sync files that wait together from as many threads;
they take turns in short rounds, so that whatever else the machine does falls on both. The tables'
write-ahead log begins with its full size, as in `tests.bench.append`. What the disk takes by itself
is said too: ours adds about as much of the processor's time whatever the disk, so where a sync
takes a tenth of a millisecond that is what is measured, and where it takes some, the disk.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median
from typing import Any

import turnlog.log
from tests.bench import append
from tests.bench.append import Append, Talk, begin, claim_of
from tests.bench.figures import Figure, report
from turnlog.core.frames import SealedFrame
from turnlog.log import EmbeddedLog

ROUNDS = 60
SYNCS = 32


class Bare:
    """A file for each session, and a thread that writes and syncs: what it costs at least."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._files: dict[str, tuple[int, int]] = {}
        self._threads = ThreadPoolExecutor(SYNCS)
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    async def append(self, frame: SealedFrame) -> int:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self._queue.put((loop, future, frame.record.session, frame.record.body))
        return await future

    async def append_alone(self, frame: SealedFrame) -> int:
        """A write and a sync without a thread: what the disk takes by itself."""
        file, size = self._write(frame.record.session, frame.record.body)
        os.fsync(file)
        return size

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._threads.shutdown()
        for file, _ in self._files.values():
            os.close(file)

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            jobs = [job]
            try:
                while (more := self._queue.get_nowait()) is not None:
                    jobs.append(more)
            except Empty:
                pass
            told: list[tuple[asyncio.Future[int], int]] = []
            files: list[int] = []
            for _, future, session, body in jobs:
                file, size = self._write(session, body)
                files.append(file)
                told.append((future, size))
            if len(files) == 1:
                os.fsync(files[0])
            else:
                list(self._threads.map(os.fsync, files))
            job[0].call_soon_threadsafe(_tell, told)

    def _write(self, session: str, body: bytes) -> tuple[int, int]:
        file, size = self._files.get(session) or (self._open(session), 0)
        os.pwrite(file, body, size)
        self._files[session] = file, size + len(body)
        return file, size

    def _open(self, session: str) -> int:
        return os.open(self._folder / session, os.O_RDWR | os.O_CREAT)


def _tell(told: list[tuple[asyncio.Future[int], int]]) -> None:
    for future, size in told:
        future.set_result(size)


def open_log(path: Path, format_: str) -> EmbeddedLog:
    return turnlog.log.open(f"file:{path}?format={format_}")


async def measure_writers(folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """One writer in both formats, and 32 sessions at once, next to the bare ones."""
    bare = Bare(folder / "bare")
    async with (
        open_log(folder / "zstd", "zstd") as log,
        open_log(folder / "jsonl", "jsonl") as lines,
        open_log(folder / "many", "zstd") as log_many,
    ):
        for each_log in (log, lines, log_many):
            await append.grow(each_log)
        names = [f"many-{number}" for number in range(append.SESSIONS)]
        for name in ("one", *names):
            await bare.append(claim_of(name))
        one, many = append.ONE_EACH // 8 or 1, append.MANY_EACH // 8 or 1
        cases: dict[str, tuple[Append, Sequence[Talk], int]] = {
            "disk": (bare.append_alone, [Talk("alone")], one),
            "bare": (bare.append, [Talk("one")], one),
            "zstd": (log.append, await begin(log, "one", 1), one),
            "jsonl": (lines.append, await begin(lines, "one", 1), one),
            "bare many": (bare.append, [Talk(name) for name in names], many),
            "many": (log_many.append, await begin(log_many, "many", append.SESSIONS), many),
        }
        found: dict[str, list[float]] = {name: [] for name in cases}
        for round_ in range(rounds + 1):
            for name, case in cases.items():
                seconds = await append.seconds_each(*case)
                if round_:  # the first one fills the caches
                    found[name].append(seconds)
    bare.close()
    each = {name: median(seconds) * 1e6 for name, seconds in found.items()}

    def share(what: str, name: str, reference: str) -> Figure:
        value = each[reference] / each[name]
        said = f"{each[name]:.0f} µs; bare {each[reference]:.0f} µs; disk {each['disk']:.0f} µs"
        return Figure(f"{what} as a share of bare write-and-fsync", value, "", ">= 0.8", said)

    at_once = Figure(
        f"files, {append.SESSIONS} sessions at once, times the speed of one",
        each["zstd"] / each["many"],
        "",
        "",
        f"{each['many']:.0f} µs each; bare {each['bare many']:.0f} µs,"
        f" {each['bare'] / each['bare many']:.0f} times one",
    )
    return [
        share("append to files, one writer,", "zstd", "bare"),
        share("append to files as JSONL,", "jsonl", "bare"),
        at_once,
    ]


def measure() -> list[Figure]:
    """All figures of the log in files."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure_writers(Path(folder)))


if __name__ == "__main__":
    report(measure())
