from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from turnlog.core.errors import LogUnavailable
from turnlog.log.kafka.cluster import Ends


class Slow:
    """Answers each question only when it is told to; the end is how many were asked by then."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers: list[asyncio.Event] = []

    async def offsets(self, name: str, which: int, partitions: Sequence[int]) -> list[int]:
        self.asked += 1
        end, event = self.asked, asyncio.Event()
        self.answers.append(event)
        await event.wait()
        if end == 3:
            raise LogUnavailable("away")
        return [end]


async def test_who_asks_at_the_same_time_shares_and_who_comes_later_asks_anew() -> None:
    slow: Any = Slow()
    ends = Ends(slow, "t")
    first = [asyncio.ensure_future(ends.get(0)) for _ in range(3)]
    await asyncio.sleep(0.01)
    later = [asyncio.ensure_future(ends.get(0)) for _ in range(3)]
    await asyncio.sleep(0.01)
    assert slow.asked == 1
    later[0].cancel()
    slow.answers[0].set()
    assert await asyncio.gather(*first) == [1, 1, 1]
    await asyncio.sleep(0.01)
    slow.answers[1].set()
    assert await asyncio.gather(*later[1:]) == [2, 2]
    failing = [asyncio.ensure_future(ends.get(0)) for _ in range(2)]
    other = asyncio.ensure_future(ends.get(1))
    await asyncio.sleep(0.01)
    assert slow.asked == 4
    for answer in slow.answers:
        answer.set()
    for each in failing:
        with pytest.raises(LogUnavailable):
            await each
    assert await other == 4
