"""The event loop of the simulation: virtual time, actors, death and sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any

import pytest

from turnlog.testing.simulation.loop import Actor, Killed, SimulatedLoop

Play = Callable[..., None]


@pytest.fixture
def loop() -> Iterator[SimulatedLoop]:
    errors: list[str] = []
    loop = SimulatedLoop(Random(1), 10_000, errors.append)
    yield loop
    loop.bury()
    assert errors == []


def play(loop: SimulatedLoop, *coros: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run each as an actor of its own until nothing is left to do; their results."""
    tasks = [loop.spawn(loop.add(f"a{n}"), coro) for n, coro in enumerate(coros)]
    loop.run_forever()
    return [task.result() for task in tasks if task.done()]


def test_time_is_virtual_and_asyncio_works_on_it(loop: SimulatedLoop) -> None:
    async def work() -> list[Any]:
        found: list[Any] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3_600):
                await asyncio.Event().wait()
        found.append(loop.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.sleep(10)), 1)
        async with asyncio.TaskGroup() as group:
            lock = asyncio.Lock()
            for delay in (3, 2, 1):
                group.create_task(locked(lock, delay, found))
        found.append(loop.time())
        return found

    async def locked(lock: asyncio.Lock, delay: int, found: list[Any]) -> None:
        await asyncio.sleep(delay)
        async with lock:
            found.append(delay)

    assert play(loop, work()) == [[3_600.0, 1, 2, 3, 3_604.0]]


def test_within_an_actor_callbacks_run_in_order_and_between_actors_in_any(
    loop: SimulatedLoop,
) -> None:
    ran: list[tuple[str, int]] = []

    async def work(name: str) -> None:
        for number in range(20):
            ran.append((name, number))
            await asyncio.sleep(0)

    play(loop, work("a"), work("b"))
    for name in ("a", "b"):
        assert [number for who, number in ran if who == name] == list(range(20))
    turns = "".join(who for who, _ in ran)
    assert "aa" in turns
    assert "bb" in turns


def test_nothing_of_a_killed_actor_runs_again(loop: SimulatedLoop) -> None:
    ran: list[str] = []

    async def victim() -> None:
        try:
            ran.append("begun")
            await asyncio.sleep(10)
            ran.append("never")
        finally:
            ran.append("cleaned up")
            await asyncio.sleep(1)
            ran.append("never")

    async def killer(actor: Actor) -> None:
        await asyncio.sleep(1)
        loop.kill(actor)

    actor = loop.add("victim")
    loop.spawn(actor, victim())
    play(loop, killer(actor))
    assert ran == ["begun"]
    assert not loop.is_anybody_busy()


def test_an_actor_may_die_in_the_middle_of_a_callback(loop: SimulatedLoop) -> None:
    ran: list[str] = []
    actor = loop.add("victim")

    async def victim() -> None:
        try:
            loop.kill(actor)
            raise Killed(actor.name)
        finally:
            ran.append("unwound")
            await asyncio.sleep(1)
            ran.append("never")

    loop.spawn(actor, victim())
    loop.run_forever()
    assert ran == ["unwound"]


@pytest.mark.parametrize("stands", [True, False])
def test_others_run_while_an_actor_is_frozen_in_a_call(loop: SimulatedLoop, stands: bool) -> None:
    ran: list[tuple[str, float]] = []
    actor = loop.add("sleeper")

    async def sleeper() -> None:
        ran.append(("before", loop.time()))
        timer = loop.create_task(asyncio.sleep(3))
        await asyncio.sleep(0)
        loop.freeze(actor, 5, stands=stands)
        ran.append(("after", loop.time()))
        await timer
        ran.append(("timer", loop.time()))

    async def other() -> None:
        await asyncio.sleep(1)
        ran.append(("meanwhile", loop.now))

    loop.spawn(actor, sleeper())
    play(loop, other())
    woken = 0.0 if stands else 5.0
    timed = 3.0 if stands else 5.0
    assert ran == [("before", 0.0), ("meanwhile", 1.0), ("after", woken), ("timer", timed)]
    assert loop.now == (8.0 if stands else 5.0)


def test_an_actor_frozen_by_another_is_held_back(loop: SimulatedLoop) -> None:
    ran: list[float] = []

    async def ticking() -> None:
        for _ in range(4):
            await asyncio.sleep(1)
            ran.append(loop.now)

    actor = loop.add("ticking")

    async def freezer() -> None:
        await asyncio.sleep(1.5)
        loop.freeze(actor, 10, stands=False)

    loop.spawn(actor, ticking())
    play(loop, freezer())
    assert ran == [1.0, 11.5, 12.5, 13.5]


def test_who_is_killed_while_frozen_never_wakes(loop: SimulatedLoop) -> None:
    ran: list[str] = []
    actor = loop.add("sleeper")

    async def sleeper() -> None:
        loop.freeze(actor, 5, stands=False)
        ran.append("never")

    async def killer() -> None:
        await asyncio.sleep(1)
        loop.kill(actor)

    loop.spawn(actor, sleeper())
    play(loop, killer())
    assert ran == []


def test_there_are_no_threads(loop: SimulatedLoop) -> None:
    async def work() -> None:
        with pytest.raises(RuntimeError, match="no threads"):
            await asyncio.to_thread(print)

    play(loop, work())


def test_a_history_that_never_ends_is_stopped() -> None:
    loop = SimulatedLoop(Random(1), 100, [].append)

    async def spin() -> None:
        while True:  # noqa: ASYNC110  # it is to spin
            await asyncio.sleep(0)

    loop.spawn(loop.add("spinning"), spin())
    loop.run_forever()
    assert loop.is_exhausted
    loop.bury()


def test_an_error_that_nobody_looks_after_is_told() -> None:
    told: list[str] = []
    loop = SimulatedLoop(Random(1), 100, told.append)

    def broken() -> None:
        raise ValueError("oh")

    async def work() -> None:
        asyncio.get_running_loop().call_soon(broken)

    loop.spawn(loop.add("a"), work())
    loop.run_forever()
    loop.bury()
    assert len(told) == 1
    assert "oh" in told[0]
