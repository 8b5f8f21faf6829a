"""The log of a test, its clock and its ids: nothing of them is left to chance."""

from __future__ import annotations

import pytest

import turnlog.testing
from turnlog.host import open_session
from turnlog.testing import ManualClock, counted_ids, fixed_ambient, memory_log


def test_the_clock_goes_on_when_it_is_told_to() -> None:
    clock = ManualClock(start_ms=1_000)
    assert (clock(), clock(), clock.uptime()) == (1_000, 1_000, 0.0)
    clock.advance(1.5)
    assert (clock(), clock.uptime()) == (2_500, 1.5)
    with pytest.raises(ValueError, match="-1 s"):
        clock.advance(-1)


def test_ids_can_be_read() -> None:
    ids = counted_ids("e")
    assert [ids(), ids()] == ["e-1", "e-2"]


async def test_two_logs_of_the_same_story_are_the_same() -> None:
    bodies = []
    for _ in range(2):
        log = memory_log()
        async with open_session(log, "s", host="h", ambient=fixed_ambient()) as session:
            await session.set_state({"a": 1})
        bodies.append([stored async for stored in log.read()])
    assert bodies[0] == bodies[1]
    assert len(bodies[0]) > 2


def test_what_is_named_is_there() -> None:
    assert sorted(turnlog.testing.__all__) == list(turnlog.testing.__all__)
    for name in turnlog.testing.__all__:
        assert getattr(turnlog.testing, name).__doc__
