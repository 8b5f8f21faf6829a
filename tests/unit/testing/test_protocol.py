"""The whole protocol at every crash: what may run again does, and what may not does not."""

from __future__ import annotations

import itertools
from pathlib import Path

import turnlog.log
from tests.unit.testing import agent
from turnlog.owner import places
from turnlog.tables.view import SessionView
from turnlog.testing import World, for_each_crash

# What each call may come to. An opaque or reconcilable one that was never started may be told so;
# one whose effect nobody can vouch for is unknown.
MAY_BE = {
    "read_only": {"ok"},
    "idempotent": {"ok"},
    "reconcilable": {"ok"},
    "opaque": {"ok", "unknown"},
}


# Places of what this agent has not: compaction, a turn ended by hand, the recovery consumer. Nobody
# reaches t2.sent: a result shares the frames that `frame.sent` is reached with.
OF_OTHERS = {
    places.COMPACTION_STARTED,
    places.FINISH_READY,
    places.RECOVERY_READY,
    places.T2_SENT,
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
    told = {message["tool"]: message["status"] for message in context if message["role"] == "tool"}
    for tool, status in told.items():
        assert status in MAY_BE[tool]
        if status == "ok":
            assert effects.count(tool) >= 1
    rows = list(world.log.tables.scan("operations"))
    assert [row.outcome for row in rows] == ["completed"]
    for row in world.log.tables.scan("dispatches"):
        starts = [start.call for start in effects.starts if start.call.dispatch == row.dispatch]
        assert {call.idempotency_key for call in starts} <= {row.key}
        assert len(starts) <= len(row.tries)


async def test_each_effect_class_keeps_its_promise_at_every_crash() -> None:
    tried = await for_each_crash(agent.work, agent.go_on, check)
    reached = {path[0].partition(":")[0] for path in tried if path}
    unreached = set(places.PLACES) - reached
    assert unreached <= OF_OTHERS
    assert (f"{places.T1_CHECKED}:4",) in tried


async def test_a_second_crash_in_the_recovery_changes_nothing_of_it() -> None:
    tried = await for_each_crash(agent.work, agent.go_on, check, depth=2)
    assert len({path for path in tried if len(path) == 2}) > 200


async def test_the_same_on_a_log_on_disk(tmp_path: Path) -> None:
    numbers = itertools.count()

    def make(clock):
        return turnlog.log.open(f"sqlite:{tmp_path}/{next(numbers)}.db", clock=clock)

    for point in ("t1.sent:2", "t1.checked:3", "effect.done:1", "t2.saved:4", "frame.sent:5"):
        await for_each_crash(agent.work, agent.go_on, check, make_log=make, only=point)
