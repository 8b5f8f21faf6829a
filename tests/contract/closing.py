"""The contract of closing, of logs that lie in files: when `close` returns, nothing of the log is
open in this process any more, whatever was under way.

SQLite's last connection to a file takes the -wal and -shm of its *name* away. One that is closed
late takes them from a log that was made anew in the same place, whose readers then fail, or read
what is not there.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
from asyncio import CancelledError
from collections.abc import Callable, Set
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest

from tests.contract.adapter import Adapter, append_all, guest, talking
from tests.contract.contract import read_all
from tests.contract.heartbeats import beat
from tests.story import fact
from turnlog.core.errors import LogUnavailable
from turnlog.core.rows import Head
from turnlog.log import EmbeddedLog

TIMES = (5, 50)
"""In `make test`, and in `make proof`."""


def files_open_in(folder: Path) -> set[str]:
    """What this process has open in a folder, or in one that was there; Linux tells."""
    found: set[str] = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue  # it was closed meanwhile
        if target.startswith(f"{folder}/"):
            found.add(target)
    return found


def take_away(folder: Path) -> None:
    """Delete a folder, and make it anew with nothing in it."""
    shutil.rmtree(folder)
    folder.mkdir()


class Work:
    """Everything that a log can be asked for, under way until it is closed."""

    def __init__(self, log: EmbeddedLog) -> None:
        self.log = log
        self.failures: list[BaseException] = []
        self.tasks: list[asyncio.Future[None]] = []
        self.threads = [
            threading.Thread(target=self._go_on, args=(function,), daemon=True)
            for function in (self._look, self._verify, self._rebuild, self._ask)
        ]
        self._given_up = False

    def begin_threads(self) -> None:
        for thread in self.threads:
            thread.start()

    def begin_tasks(self) -> None:
        ways = (self._follow, self._read, self._append, self._beat, self._wait)
        self.tasks = [asyncio.ensure_future(way()) for way in ways]

    def end(self) -> None:
        """Wait for the threads, which end by themselves when the log is closed."""
        for thread in self.threads:
            thread.join(30)
        self._given_up = True
        assert self.failures == []
        assert not any(thread.is_alive() for thread in self.threads)

    async def end_tasks(self, allowed: Set[type[BaseException]]) -> None:
        ends = await asyncio.gather(*self.tasks, return_exceptions=True)
        assert {type(end) for end in ends} <= allowed, ends

    def _go_on(self, function: Callable[[], None]) -> None:
        try:
            while not self._given_up:
                function()
        except LogUnavailable:
            return
        except BaseException as error:
            self.failures.append(error)

    def _look(self) -> None:
        with self.log.tables.snapshot() as view:
            while not self._given_up:
                list(view.scan("sessions"))

    def _verify(self) -> None:
        list(self.log.verify())

    def _rebuild(self) -> None:
        self.log.rebuild()

    def _ask(self) -> None:
        self.log.tables.position()

    async def _follow(self) -> None:
        async for _ in self.log.follow():
            pass

    async def _read(self) -> None:
        while True:
            await read_all(self.log)

    async def _append(self) -> None:
        for number in count():
            await self.log.append(guest("g", fact(f"f{number}", number)))

    async def _beat(self) -> None:
        while True:
            await self.log.beat(beat())

    async def _wait(self) -> None:
        await self.log.tables.wait(10**6)


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what is open")


class ClosingContract:
    @pytest.fixture
    def folder(self) -> Path:
        """What is taken away to make the log anew; it holds nothing else."""
        raise NotImplementedError

    ends: ClassVar[frozenset[type[BaseException]]] = frozenset({LogUnavailable, CancelledError})
    """How what was under way may end."""

    @linux
    async def test_nothing_is_open_when_close_returns(
        self, adapter: Adapter, folder: Path, proof: bool
    ) -> None:
        for _ in range(TIMES[proof]):
            log = adapter.open()
            await append_all(log, talking("s", 20))
            work = Work(log)
            work.begin_tasks()
            work.begin_threads()
            with log.tables.snapshot() as view:
                await asyncio.sleep(0.02)
                await log.close()
                assert not files_open_in(folder), files_open_in(folder)
                with pytest.raises(LogUnavailable, match="this log is closed"):
                    view.position()
            await work.end_tasks(self.ends)
            work.end()
            assert files_open_in(folder) == set()

    async def test_a_comparison_that_nobody_looks_at_is_closed_too(
        self, adapter: Adapter, folder: Path
    ) -> None:
        log = adapter.open()
        await append_all(log, talking("s", 3))
        for session in ("one", "other"):
            adapter.tamper(log, "sessions", Head(session))
        found = log.verify()
        next(found)
        await log.close()
        if sys.platform == "linux":
            assert files_open_in(folder) == set()
        with pytest.raises(LogUnavailable, match="this log is closed"):
            next(found)

    @linux
    async def test_what_was_cancelled_is_not_closed_late(
        self, adapter: Adapter, folder: Path, proof: bool
    ) -> None:
        for _ in range(TIMES[proof]):
            log = adapter.open()
            await log.beat(beat())
            work = [asyncio.ensure_future(log.beat(beat(f"{n}"))) for n in range(8)]
            await asyncio.sleep(0.001)
            for each in work:
                each.cancel()
            closing = asyncio.ensure_future(log.close())
            await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, *work, return_exceptions=True)
            assert files_open_in(folder) == set()


class RemakingContract(ClosingContract):
    """Of logs that are gone with their folder."""

    async def test_it_is_made_anew_in_its_place_many_times(
        self, adapter: Adapter, folder: Path, proof: bool
    ) -> None:
        frames = talking("t", 5)
        for number in range(TIMES[proof]):
            log = adapter.open()
            work = Work(log)
            work.begin_tasks()
            work.begin_threads()
            await asyncio.sleep(0.001 * number)
            for task in work.tasks:
                task.cancel()
            await log.close()
            for _ in range(2):
                take_away(folder)
                async with adapter.open() as one, adapter.open() as other:
                    await append_all(one, frames[:3])
                    assert len(await read_all(other)) == 3, number
                    await append_all(other, frames[3:])
                    assert await read_all(one) == await read_all(other)
                    assert list(one.verify()) == []
            await work.end_tasks(self.ends)
            work.end()
