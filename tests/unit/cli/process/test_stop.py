"""A stop is seen from any thread, and leaves nothing half done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

from turnlog.cli.process.stop import Stop


class Numbers:
    """Counts for ever, waits before a number where it should, and tells whether it was closed."""

    def __init__(self, *, waits_at: int | None = None) -> None:
        self.waits_at = waits_at
        self.is_closed = False

    async def items(self) -> AsyncGenerator[int]:
        number = 0
        try:
            while True:
                number += 1
                if number == self.waits_at:
                    await asyncio.Event().wait()
                yield number
        finally:
            self.is_closed = True


async def test_items_come_until_it_is_asked() -> None:
    stop, numbers, seen = Stop(), Numbers(), []
    async for number in stop.until(numbers.items()):
        seen.append(number)
        if number == 3:
            stop.ask()
    assert seen == [1, 2, 3]
    assert numbers.is_closed


async def test_waiting_for_an_item_ends_when_another_thread_asks() -> None:
    stop, numbers, seen = Stop(), Numbers(waits_at=3), []
    async for number in stop.until(numbers.items()):
        seen.append(number)
        if number == 2:
            threading.Timer(0.05, stop.ask).start()
    assert seen == [1, 2]
    assert numbers.is_closed


async def test_what_is_asked_before_the_first_item_gives_none() -> None:
    stop, numbers = Stop(), Numbers()
    stop.ask()
    assert [each async for each in stop.until(numbers.items())] == []
    assert await stop.wait()
    assert stop.is_asked


async def test_items_that_end_or_fail_do_so_here_too() -> None:
    async def two() -> AsyncGenerator[int]:
        yield 1
        yield 2

    async def failing() -> AsyncGenerator[int]:
        yield 1
        raise ValueError("so")

    stop = Stop()
    assert [each async for each in stop.until(two())] == [1, 2]
    seen = []
    try:
        async for each in stop.until(failing()):
            seen.append(each)
    except ValueError as error:
        seen.append(str(error))
    assert seen == [1, "so"]


async def test_waiting_has_its_time() -> None:
    stop = Stop()
    assert not await stop.wait(0.01)
    stop.ask()
    stop.ask()
    assert await stop.wait(None)
