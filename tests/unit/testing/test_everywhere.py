"""Trying every crash: what is tried, what is asserted unasked, and how a fault is told."""

from __future__ import annotations

import pytest

from tests.unit.testing import agent
from turnlog.host import open_session, run_turn
from turnlog.host.policy import Policy
from turnlog.testing import NotReached, ScriptedModel, World, for_each_crash


async def nothing(world: World) -> None:
    pass


async def knock(world: World) -> None:
    world.kept.setdefault("hosts", []).append(world.host)
    world.ambient.reach("door")
    world.ambient.reach("door")


async def test_it_dies_at_each_place_each_time() -> None:
    seen: dict[tuple[str, ...], list[str]] = {}

    def check(world: World) -> None:
        seen[world.path] = world.kept["hosts"]

    tried = await for_each_crash(knock, nothing, check)
    assert tried == [(), ("door:1",), ("door:2",)]
    assert seen == {path: ["host-1"] for path in tried}


async def test_deeper_the_one_that_recovers_dies_as_well() -> None:
    tried = await for_each_crash(knock, knock, depth=2)
    assert tried == [
        (),
        ("door:1",),
        ("door:2",),
        ("door:1", "door:1"),
        ("door:1", "door:2"),
        ("door:2", "door:1"),
        ("door:2", "door:2"),
    ]


async def test_one_alone() -> None:
    assert await for_each_crash(knock, nothing, only="door:2") == [("door:2",)]
    assert await for_each_crash(knock, knock, only="door:2 > door:1") == [("door:2", "door:1")]


async def test_one_and_those_after_it() -> None:
    tried = await for_each_crash(knock, knock, only="door:2", depth=2)
    assert tried == [("door:2",), ("door:2", "door:1"), ("door:2", "door:2")]


async def test_each_run_has_a_world_of_its_own_and_all_its_hosts_share_it() -> None:
    worlds: list[World] = []

    async def check(world: World) -> None:
        worlds.append(world)

    async def recover(world: World) -> None:
        assert world.kept["hosts"] == ["host-1"]
        assert world.host != "host-1"

    await for_each_crash(knock, recover, check)
    assert len({id(world) for world in worlds}) == 3


async def test_a_fault_without_a_crash_is_raised_as_it_is() -> None:
    def check(world: World) -> None:
        raise ValueError("it never works")

    with pytest.raises(ValueError, match="never works"):
        await for_each_crash(knock, nothing, check)


async def test_faults_are_told_by_their_crashes() -> None:
    def check(world: World) -> None:
        assert world.path != ("door:2",), "wet\nfeet"

    with pytest.raises(AssertionError) as caught:
        await for_each_crash(knock, nothing, check)
    assert str(caught.value).splitlines() == [
        "1 of 3 runs went wrong; run one of them alone with only=…:",
        '  only="door:2": AssertionError: wet',
    ]
    assert isinstance(caught.value.__cause__, AssertionError)


async def test_many_faults_are_told_in_part() -> None:
    async def knock_long(world: World) -> None:
        for _ in range(30):
            world.ambient.reach("door")

    def check(world: World) -> None:
        assert not world.path

    with pytest.raises(AssertionError, match="30 of 31 runs") as caught:
        await for_each_crash(knock_long, nothing, check)
    assert str(caught.value).endswith("  and 10 more")


async def test_a_scenario_that_is_not_the_same_each_time_is_told() -> None:
    runs: list[int] = []

    async def moody(world: World) -> None:
        runs.append(1)
        if len(runs) == 1:
            world.ambient.reach("door")

    with pytest.raises(AssertionError, match="was to die at door:1") as caught:
        await for_each_crash(moody, nothing)
    assert isinstance(caught.value.__cause__, NotReached)


async def test_what_is_left_open_is_a_fault() -> None:
    with pytest.raises(AssertionError, match="after recovering, this is open: operation"):
        await for_each_crash(agent.work, nothing)
    await for_each_crash(agent.work, nothing, settled=False)


async def test_a_dispatch_left_open_is_named() -> None:
    with pytest.raises(AssertionError) as caught:
        await for_each_crash(agent.work, nothing, only="t1.checked:1")
    assert "dispatch 'id-" in str(caught.value.__cause__)


async def test_what_is_parked_may_stay_open() -> None:
    async def park(world: World) -> None:
        async with open_session(
            world.log,
            "s",
            host=world.host,
            tools=agent.tools(world),
            ambient=world.ambient,
            policy=Policy({"opaque": "park"}),
        ) as session:
            for report in session.recovery:
                if report.operation.parked is None:
                    assert await run_turn(session, agent.model()) == "parked"

    await for_each_crash(agent.work, park, only="effect.done:1")


async def test_a_recovery_that_adds_something_each_time_is_a_fault() -> None:
    async def chatty(world: World) -> None:
        async with open_session(world.log, "s", host=world.host, ambient=world.ambient) as session:
            await run_turn(session, ScriptedModel(["Hello again."] * 9), "Anybody there?")

    with pytest.raises(AssertionError, match="recovering a second time added to entries"):
        await for_each_crash(nothing, chatty)
