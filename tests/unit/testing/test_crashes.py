"""A host that dies: from that moment on nothing of it happens, and nothing of others ends."""

from __future__ import annotations

import asyncio

import pytest

from tests.story import event
from tests.unit.testing import agent
from turnlog.core.frames import Header, seal
from turnlog.host import open_session, run_turn
from turnlog.owner import places
from turnlog.owner.ambient import Ambient
from turnlog.testing import (
    Crash,
    EffectCounter,
    NotReached,
    ScriptedModel,
    World,
    call,
    crash_at,
    dying,
    for_each_crash,
    memory_log,
)


def a_frame():
    claim = event("session_claimed", claim="c", host="h", expects=0, reason="open")
    return seal(Header("s", None, None, None, "h"), [claim])


def test_a_reach_crashes_the_nth_time() -> None:
    reach = crash_at("t1.sent", nth=2)
    reach("t1.sent")
    reach("t2.saved")
    with pytest.raises(Crash, match=r"t1\.sent:2"):
        reach("t1.sent")
    reach("t1.sent")


def test_a_crash_is_not_caught_by_code_that_catches_exceptions() -> None:
    assert not issubclass(Crash, Exception)


async def test_the_block_ends_where_the_host_dies() -> None:
    async with dying(memory_log(), at="here") as host:
        host.ambient.reach("here")
        pytest.fail("it is dead")
    assert host.crashed
    assert host.reached == {"here": 1}


async def test_a_place_can_be_named_with_its_count() -> None:
    async with dying(memory_log(), at="here:3") as host:
        while True:
            host.ambient.reach("here")
    assert host.reached == {"here": 3}


@pytest.mark.parametrize("at", ["here:", "here:0", "here:x", "here:1:2", "here:²"])
async def test_a_place_that_is_none_is_refused(at: str) -> None:
    with pytest.raises(ValueError, match="place:nth"):
        dying(memory_log(), at=at)


async def test_a_host_that_does_not_die_is_an_error_that_says_what_it_reached() -> None:
    async def live() -> None:
        async with dying(memory_log(), at="here:2") as host:
            host.ambient.reach("there")
            host.ambient.reach("here")

    with pytest.raises(NotReached, match=r"here:2 .* it reached there \(1\), here \(1\)"):
        await live()
    with pytest.raises(NotReached, match=r"host\.log and host\.ambient"):
        async with dying(memory_log(), at="here"):
            pass


async def test_without_a_place_it_only_counts() -> None:
    async with dying(memory_log()) as host:
        host.ambient.reach("here")
    assert not host.crashed
    assert host.reached == {"here": 1}


async def test_an_error_of_a_living_host_is_passed_on() -> None:
    with pytest.raises(ValueError, match="wrong"):
        async with dying(memory_log(), at="here"):
            raise ValueError("wrong")


async def test_the_reach_that_was_given_is_told_too() -> None:
    seen: list[str] = []
    async with dying(memory_log(), ambient=Ambient(reach=seen.append)) as host:
        host.ambient.reach("here")
    assert seen == ["here"]


async def test_nothing_of_a_dead_host_reaches_the_log() -> None:
    log = memory_log()
    async with dying(log, at="here") as host:
        with pytest.raises(Crash):
            host.ambient.reach("here")
        for work in (
            host.log.append(a_frame()),
            host.log.load([a_frame().record]),
            host.log.end(),
            host.log.heartbeats(),
            host.log.end_beating("instance"),
            anext(host.log.read()),
            anext(host.log.follow()),
            host.log.close(),
        ):
            with pytest.raises(Crash):
                await work
        for ask in (host.log.verify, host.log.rebuild, lambda: host.ambient.reach("there")):
            with pytest.raises(Crash):
                ask()
    assert await log.end() == 0


async def test_the_handle_of_a_living_host_is_the_log() -> None:
    log = memory_log()
    async with dying(log) as host:
        position = await host.log.append(a_frame())
        assert await host.log.load([a_frame().record]) == [position + 1]
        assert host.log.partition_of("s") == 0
        assert [stored.position async for stored in host.log.read()] == [position, position + 1]
        assert (await anext(host.log.follow())).position == position
        assert host.log.rebuild() == position + 1
        assert list(host.log.verify()) == []
        assert await host.log.heartbeats() == []
        with host.log:
            pass
        async with host.log:
            pass
    assert await log.end() == 2, "closing a handle does not close the log"


async def test_an_append_under_way_is_not_answered_but_may_arrive() -> None:
    log = memory_log()
    async with dying(log, at="here") as host:
        append = log.append

        async def slow(frame):
            host.log  # noqa: B018 - it is asked while it lives
            position = await append(frame)
            with pytest.raises(Crash):
                host.ambient.reach("here")
            return position

        log.append = slow
        await host.log.append(a_frame())
        pytest.fail("it is dead")
    assert await log.end() == 1


async def test_the_tasks_of_a_dead_host_end_and_those_of_others_go_on() -> None:
    said: list[str] = []

    async def say(text: str) -> None:
        try:
            await asyncio.sleep(0.02)
            said.append(text)
        except asyncio.CancelledError:
            said.append(f"no {text}")
            raise

    other = asyncio.create_task(say("other"))
    async with dying(memory_log(), at="here") as host:
        mine = asyncio.create_task(say("mine"))
        await asyncio.sleep(0)
        host.ambient.reach("here")
    assert mine.cancelled()
    await other
    assert said == ["no mine", "other"]


async def test_a_task_that_has_not_begun_never_does() -> None:
    begun: list[int] = []

    async def begin() -> None:
        begun.append(1)

    async with dying(memory_log(), at="here") as host:
        asyncio.create_task(begin())  # noqa: RUF006 - it dies with the host
        try:
            host.ambient.reach("here")
        finally:
            asyncio.create_task(begin())  # noqa: RUF006
    assert not begun


async def test_a_crash_in_a_task_ends_the_body_too() -> None:
    async def reach(host: dying) -> None:
        await asyncio.sleep(0)
        host.ambient.reach("here")

    async with dying(memory_log(), at="here") as host:
        task = asyncio.create_task(reach(host))
        await asyncio.Event().wait()
    assert isinstance(task.exception(), Crash)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_body_that_waits_for_what_never_comes_is_stopped_again() -> None:
    never = asyncio.Event()
    async with dying(memory_log(), at="here") as host:
        try:
            host.ambient.reach("here")
        finally:
            await never.wait()


async def test_whoever_cancels_the_test_is_heard() -> None:
    async def test() -> None:
        async with dying(memory_log(), at="here") as host:
            asyncio.current_task().cancel()
            host.ambient.reach("here")

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(test())


async def test_and_also_when_the_dead_host_heard_it_first() -> None:
    async def test() -> None:
        async with dying(memory_log(), at="here") as host:
            try:
                host.ambient.reach("here")
            finally:
                asyncio.current_task().cancel()
                await asyncio.sleep(1)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(test())


async def test_a_task_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.testing.crashes.BURY_S", 0.05)
    tasks: list[asyncio.Task[None]] = []
    is_over = False

    async def undead() -> None:
        while not is_over:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    async def die() -> None:
        async with dying(memory_log(), at="here") as host:
            tasks.append(asyncio.create_task(undead()))
            await asyncio.sleep(0)
            host.ambient.reach("here")

    with pytest.raises(RuntimeError, match=r"died at here:1.*undead"):
        await die()
    is_over = True
    await asyncio.wait(tasks)


async def test_the_loop_is_left_as_it_was() -> None:
    loop = asyncio.get_running_loop()
    made: list[object] = []

    def factory(loop, work, **given):
        task = asyncio.Task(work, loop=loop, **given)
        made.append(task)
        return task

    loop.set_task_factory(factory)
    try:
        async with dying(memory_log()):
            await asyncio.create_task(asyncio.sleep(0))
        assert len(made) == 1
        assert loop.get_task_factory() is factory
        async with dying(memory_log()):
            loop.set_task_factory(None)
        assert loop.get_task_factory() is None, "who has set another one keeps it"
    finally:
        loop.set_task_factory(None)


async def test_a_second_host_goes_on_where_the_first_one_died() -> None:
    log, effects = memory_log(), EffectCounter()
    tools = [effects.tool("pay")]
    async with (
        dying(log, at=places.EFFECT_DONE) as host,
        open_session(host.log, "s", host="h1", tools=tools, ambient=host.ambient) as session,
    ):
        await run_turn(session, ScriptedModel([[call("pay")]]), "Pay.")
    model = ScriptedModel(["Is it paid?"])
    async with open_session(log, "s", host="h2", tools=tools) as session:
        assert [report.verdict.name for report in session.recovery] == ["indeterminate_tool"]
        assert await run_turn(session, model) == "completed"
    assert model.contexts[0][-1]["status"] == "unknown"
    effects.assert_count("pay", 1)


async def test_after_a_crash_nothing_is_written_and_nothing_starts() -> None:
    ends: dict[str, tuple[int, int]] = {}

    async def work(world: World) -> None:
        tables = world.log.tables
        try:
            await agent.work(world)
        except BaseException:
            now = (tables.position(), len(world.effects.starts))
            ends[world.path[0]] = now
            raise

    async def look(world: World) -> None:
        if world.host == "host-2" and world.path:
            now = (world.log.tables.position(), len(world.effects.starts))
            assert ends[world.path[0]] == now
        await agent.go_on(world)

    await for_each_crash(work, look)
    assert len(ends) > 30
