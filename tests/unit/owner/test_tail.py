"""What is new in a log, told to all sessions of a process by one reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.story import event
from turnlog.core.errors import LogUnavailable
from turnlog.core.frames import Header, seal
from turnlog.log.memory import MemoryLog
from turnlog.log.port import Stored
from turnlog.owner import tail
from turnlog.owner.tail import watch


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PAUSE_S", 0.0)
    monkeypatch.setattr(tail, "RETRY_S", 0.0)


class Flaky(MemoryLog):
    """A log whose follower breaks off as often as it is told to, after each record."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0)
        self.breaks = 0
        self.followers = 0

    async def follow(self, after: int = 0, **given: Any) -> AsyncIterator[Stored]:
        self.followers += 1
        if self.breaks:
            self.breaks -= 1
            raise LogUnavailable("not now")
        async for stored in super().follow(after, **given):
            yield stored
            if self.breaks:
                self.breaks -= 1
                raise LogUnavailable("broken off")


async def say(log: MemoryLog, session: str, count: int = 1) -> None:
    for _ in range(count):
        said = event("input_queued", input="i", entry="e", content=[])
        await log.append(seal(Header(session, None, None, None, "g"), [said]))


async def heard(seen: list[int], wanted: list[int]) -> None:
    for _ in range(2_000):
        if seen == wanted:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{seen} is not {wanted}")


async def test_each_session_hears_of_its_own_records_in_order() -> None:
    log = MemoryLog(clock=lambda: 0)
    await say(log, "a")
    seen: dict[str, list[int]] = {"a": [], "b": []}
    leave = [
        watch(log, name, lambda stored, name=name: seen[name].append(stored.position), after=1)
        for name in ("a", "b")
    ]
    for name in "aabab":
        await say(log, name)
    await heard(seen["a"], [2, 3, 5])
    await heard(seen["b"], [4, 6])
    for one in leave:
        one()


async def test_one_reader_serves_all_and_ends_with_the_last() -> None:
    log = Flaky()
    before = asyncio.all_tasks()
    seen: list[int] = []
    leave = [
        watch(log, f"s{n}", lambda stored: seen.append(stored.position), after=0) for n in range(50)
    ]
    await say(log, "s7")
    await heard(seen, [1])
    assert log.followers == 1
    assert len(asyncio.all_tasks() - before) == 1
    for one in leave:
        one()
        one()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    again = watch(log, "s1", lambda stored: seen.append(stored.position), after=1)
    await say(log, "s1")
    await heard(seen, [1, 2])
    again()


async def test_several_may_watch_one_session_and_leave_one_by_one() -> None:
    log = MemoryLog(clock=lambda: 0)
    first: list[int] = []
    second: list[int] = []
    leave_first = watch(log, "s", lambda stored: first.append(stored.position), after=0)
    leave_second = watch(log, "s", lambda stored: second.append(stored.position), after=0)
    await say(log, "s")
    await heard(second, [1])
    leave_first()
    await say(log, "s")
    await heard(second, [1, 2])
    assert first == [1]
    leave_second()


async def test_a_log_that_breaks_off_is_followed_on_without_holes_or_repeats() -> None:
    log = Flaky()
    seen: list[int] = []
    log.breaks = 3
    leave = watch(log, "s", lambda stored: seen.append(stored.position), after=0)
    await say(log, "s", 2)
    await heard(seen, [1, 2])
    log.breaks = 2
    await say(log, "s", 3)
    await heard(seen, [1, 2, 3, 4, 5])
    leave()


async def test_who_leaves_while_being_told_is_told_no_more_and_harms_nobody() -> None:
    log = MemoryLog(clock=lambda: 0)
    seen: list[str] = []
    leaves: dict[str, Any] = {}

    def go(stored: Stored) -> None:
        seen.append("one")
        leaves["one"]()

    leaves["one"] = watch(log, "s", go, after=0)
    leaves["two"] = watch(log, "s", lambda stored: seen.append("two"), after=0)
    await say(log, "s", 2)
    for _ in range(50):
        await asyncio.sleep(0)
    assert seen == ["one", "two", "two"]
    leaves["two"]()


async def test_logs_do_not_hear_of_each_other() -> None:
    logs = [MemoryLog(clock=lambda: 0) for _ in range(2)]
    seen: list[tuple[int, int]] = []
    leave = [
        watch(log, "s", lambda stored, n=n: seen.append((n, stored.position)), after=0)
        for n, log in enumerate(logs)
    ]
    await say(logs[1], "s")
    for _ in range(20):
        await asyncio.sleep(0)
    assert seen == [(1, 1)]
    for one in leave:
        one()


def test_a_loop_that_was_left_does_not_deafen_the_next() -> None:
    log = MemoryLog(clock=lambda: 0)
    seen: list[int] = []

    async def left() -> None:
        watch(log, "s", lambda stored: seen.append(stored.position), after=0)

    async def next_() -> None:
        leave = watch(log, "s", lambda stored: seen.append(stored.position), after=0)
        await say(log, "s")
        await heard(seen, [1])
        leave()

    asyncio.run(left())
    asyncio.run(next_())
