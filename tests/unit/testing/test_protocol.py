"""The whole protocol at every crash: what may run again does, and what may not does not."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

import turnlog.log
from tests.unit.testing import agent
from turnlog.host import Tool, open_session, run_turn
from turnlog.host.policy import MAX_TRIES
from turnlog.owner import places
from turnlog.owner.heartbeat import DEAD_AFTER_S
from turnlog.recovery.executor import recover_all
from turnlog.tables.view import SessionView
from turnlog.testing import World, for_each_crash

# Places of what this agent has not: compaction, the recovery consumer.
OF_OTHERS = {
    places.COMPACTION_STARTED,
    places.RECOVERY_READY,
}


def check(world: World) -> None:
    view = SessionView(world.log.tables, "s")
    context = view.context()
    effects = world.effects
    effects.assert_as_declared()
    effects.assert_once_per_key("opaque")
    effects.assert_once_per_key("reconcilable")
    if not context:  # it died before the turn was accepted
        assert not effects.starts
        return
    assert [message["role"] for message in context] == [
        "user",
        "assistant",
        *["tool"] * 4,
        "assistant",
    ]
    rows = list(world.log.tables.scan("operations"))
    assert [row.outcome for row in rows] == ["completed"]
    for row in world.log.tables.scan("dispatches"):
        starts = [start.call for start in effects.starts if start.call.dispatch == row.dispatch]
        assert {call.idempotency_key for call in starts} <= {row.key}
        assert len(starts) <= len(row.tries)
        happened = effects.by_key(row.tool).get(row.key, 0)
        if row.status == "ok":
            assert happened
        else:  # it may not run again: by its class, or because it did too often
            assert row.effect == "opaque" or len(row.tries) == MAX_TRIES
            assert row.status == "unknown" or (row.effect == "reconcilable" and not happened)


async def test_each_effect_class_keeps_its_promise_at_every_crash() -> None:
    tried = await for_each_crash(agent.work, agent.go_on, check)
    reached = {path[0].partition(":")[0] for path in tried if path}
    unreached = set(places.PLACES) - reached
    assert unreached <= OF_OTHERS
    assert (f"{places.T1_CHECKED}:4",) in tried


@pytest.mark.parametrize("first", ["t1.sent:4", "t1.checked:4", "effect.done:2", "t2.saved:1"])
async def test_a_second_crash_in_the_recovery_changes_nothing_of_it(first: str) -> None:
    tried = await for_each_crash(agent.work, agent.go_on, check, only=first, depth=2)
    assert len(tried) > 8


@pytest.mark.proof
async def test_nor_does_a_third_one() -> None:
    await for_each_crash(agent.work, agent.go_on, check, depth=2)
    for first in ("t1.checked:4", "effect.done:2"):
        await for_each_crash(agent.work, agent.go_on, check, only=first, depth=3)


async def test_a_probe_that_cannot_tell_allows_no_second_start() -> None:
    async def go_on(world: World) -> None:
        world.effects.forget("reconcilable")
        await agent.go_on(world)

    def check(world: World) -> None:
        rows = [row for row in world.log.tables.scan("dispatches") if row.tool == "reconcilable"]
        assert world.effects.started("reconcilable") <= len(rows) <= 1
        assert {row.status for row in rows} <= {"ok", "unknown"}

    await for_each_crash(agent.work, go_on, check)


async def test_the_same_on_a_log_on_disk(tmp_path: Path) -> None:
    numbers = itertools.count()

    def make(clock):
        return turnlog.log.open(f"sqlite:{tmp_path}/{next(numbers)}.db", clock=clock)

    for point in ("t1.sent:2", "t1.checked:3", "effect.done:1", "t2.saved:4", "frame.sent:5"):
        await for_each_crash(agent.work, agent.go_on, check, make_log=make, only=point)


async def test_the_recovery_consumer_closes_every_crash_and_runs_nothing() -> None:
    async def close(world: World) -> None:
        world.clock.advance(2 * DEAD_AFTER_S)
        world.kept.setdefault("starts", len(world.effects.starts))
        for done in await recover_all(world.log, ambient=world.ambient, host=world.host):
            assert done.did == "closed", done

    def check(world: World) -> None:
        assert len(world.effects.starts) == world.kept["starts"]
        rows = list(world.log.tables.scan("operations"))
        assert {row.outcome for row in rows} <= {"completed", "interrupted"}
        assert not list(world.log.verify())

    tried = await for_each_crash(agent.work, close, check)
    tried += await for_each_crash(agent.work, close, check, only="t1.checked:1", depth=2)
    assert ("t1.checked:1", "recovery.ready:1") in tried


# ---- and it bites: agents that are wrong are found


@pytest.mark.parametrize("declared", ["read_only", "idempotent"])
async def test_a_tool_that_says_it_may_run_twice_and_may_not_is_found(declared) -> None:
    def pay(world: World) -> list[Tool]:
        return [replace(world.effects.tool("opaque"), effect=declared)]

    async def work(world: World) -> None:
        async with open_session(
            world.log, "s", host=world.host, tools=pay(world), ambient=world.ambient
        ) as session:
            await run_turn(session, agent.model(["opaque"]), "Pay.")

    async def go_on(world: World) -> None:
        async with open_session(
            world.log, "s", host=world.host, tools=pay(world), ambient=world.ambient
        ) as session:
            if session.recovery:
                await run_turn(session, agent.model(["opaque"]))

    def check(world: World) -> None:
        world.effects.assert_as_declared()

    with pytest.raises(AssertionError, match="opaque, was started 2 times") as caught:
        await for_each_crash(work, go_on, check)
    assert 'only="effect.done:1"' in str(caught.value)
    assert 'only="t1.checked:1"' not in str(caught.value), "it had not started yet"


async def test_an_agent_that_begins_anew_instead_of_going_on_is_found() -> None:
    async def begin_anew(world: World) -> None:
        async with open_session(
            world.log, "s", host=world.host, tools=agent.tools(world), ambient=world.ambient
        ) as session:
            if session.recovery:
                await session.close_open()
            if len(session.context()) < 7:
                await run_turn(session, agent.model(), "Do everything.")

    def check(world: World) -> None:
        world.effects.assert_count("opaque", 1)

    with pytest.raises(AssertionError, match=r"'opaque' took effect \d times and not 1"):
        await for_each_crash(agent.work, begin_anew, check)
