"""Cases of public bug reports, played with a host of ours in a world where one thing goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from turnlog.core.errors import Fenced
from turnlog.core.rows import Dispatch, Head, Operation
from turnlog.host import Session, open_session, run_turn
from turnlog.host.loop import Reply
from turnlog.owner import places
from turnlog.owner.ambient import Ambient
from turnlog.recovery.executor import recover_session
from turnlog.tables.view import SessionView
from turnlog.testing.simulation.cast import Cast
from turnlog.testing.simulation.chance import Chance
from turnlog.testing.simulation.loop import Actor, Killed, SimulatedLoop
from turnlog.testing.simulation.scene import Scene, Trouble
from turnlog.testing.simulation.tools import SESSION
from turnlog.testing.simulation.world import Weather, World

Act = Callable[[Session], Awaitable[object]]
EFFECTS = ("read_only", "idempotent", "reconcilable", "opaque")
CALM = Scene(0, 0.0, 0, 0, 0, 0, False, None, Weather(lags=False), Trouble(0, 0, "", 0, 1))


class Stage:
    """A calm world, and hosts that do one turn with one call of an effect class."""

    def __init__(self, effect: str) -> None:
        self.effect = effect
        chance = Chance(7)
        errors: list[str] = []
        self.loop = SimulatedLoop(Random(7), 100_000, errors.append)
        self.world = World(self.loop, chance, CALM.weather)
        self.cast = Cast(self.world, chance, CALM, has_clone=False)
        self.ended: dict[str, BaseException | None] = {}

    def host(self, name: str, at: Callable[[Actor], Any] | None = None, place: str = "") -> None:
        """Run a host to the end of what is open, or of a turn; at a place, something happens."""
        actor = self.loop.add(name)
        ambient = self.cast.ambient(actor, name)

        def reach(reached: str) -> None:
            if reached == place and at is not None:
                at(actor)
            ambient.reach(reached)

        actor.main = self.loop.spawn(actor, self._live(actor, ambient._replace(reach=reach)))

    async def _live(self, actor: Actor, ambient: Ambient) -> None:
        workshop = self.cast.workshop(actor, Random(1))
        opened = open_session(
            self.cast.client(actor),
            SESSION,
            host=actor.name,
            tools=list(workshop.tools.values()),
            ambient=ambient,
            on_error=lambda error: None,
        )
        self.ended[actor.name] = None
        try:
            async with opened as session:
                await run_turn(session, self._model, None if session.reports() else "please")
        except Fenced as error:
            self.ended[actor.name] = error

    async def _model(self, context: list[dict[str, Any]]) -> Reply:
        await asyncio.sleep(1)
        if context[-1]["role"] == "tool":
            return Reply("done")
        call = {"type": "tool_call", "call_id": "c1", "name": self.effect, "args": {"call": "-ff"}}
        return Reply({"content": [call], "stop_reason": "tool_use"})

    def recover(self) -> None:
        """Run the recovery consumer once."""
        actor = self.loop.add("recovery")
        ambient = self.cast.ambient(actor, f"recovery-{self.world.end}")
        client = self.cast.client(actor)
        self.loop.spawn(actor, recover_session(client, SESSION, ambient=ambient))
        self.play()

    def play(self) -> None:
        """Until nothing is left that could go on."""
        self.loop.run_forever()
        assert self.cast.watch.violations == []

    @property
    def view(self) -> SessionView:
        return SessionView(self.world.tables, SESSION)

    @property
    def dispatches(self) -> list[Dispatch]:
        return self.view.rows("dispatches")

    @property
    def operation(self) -> Operation:
        (row,) = (row for row in self.view.rows("operations") if row.kind == "prompt")
        return row

    @property
    def starts(self) -> int:
        return len(self.cast.outside.starts)

    def dies(self, actor: Actor) -> None:
        self.loop.kill(actor)
        raise Killed(actor.name)


@pytest.fixture(params=EFFECTS)
def stage(request: pytest.FixtureRequest) -> Any:
    stage = Stage(request.param)
    yield stage
    stage.loop.bury()


@pytest.mark.parametrize(
    "place",
    [places.T1_READY, places.T1_SENT, places.T1_CHECKED, places.EFFECT_DONE, places.T2_SAVED],
)
def test_25_the_gap_between_effect_and_t2(stage: Stage, place: str) -> None:
    stage.host("h1", stage.dies, place)
    stage.play()
    before = stage.starts
    assert before == (0 if place in (places.T1_READY, places.T1_SENT, places.T1_CHECKED) else 1)
    stage.host("h2")
    stage.play()
    assert stage.operation.outcome == "completed"
    (row,) = stage.dispatches
    is_open = place not in (places.T1_READY, places.T2_SAVED)
    if stage.effect == "opaque" and is_open:
        assert (stage.starts, row.status) == (before, "unknown")
    else:
        again = is_open and stage.effect in ("read_only", "idempotent")
        assert stage.starts == (before + 1 if again else 1)
        assert row.status in ("ok", "error"), "a tool may go wrong, but it is known what became"
    assert len({start.key for start in stage.cast.outside.starts}) <= 1


def test_7_answered_by_recovery_and_not_run_again(stage: Stage) -> None:
    stage.host("h1", stage.dies, places.T1_CHECKED)
    stage.play()
    stage.recover()
    (row,) = stage.dispatches
    assert (row.status, row.settled_by) == ("unknown", "recovery")
    assert stage.operation.outcome == "interrupted"
    end = stage.world.end
    stage.recover()
    assert stage.world.end == end, "recovering twice adds nothing"
    stage.host("h2")
    stage.play()
    assert row in stage.dispatches, "nothing was run again, and no second answer came"
    assert [call.evidence for call in stage.dispatches if call.dispatch == row.dispatch] == [()]


def test_26_a_zombie_with_a_result(stage: Stage) -> None:
    def sleeps(actor: Actor) -> None:
        stage.loop.freeze(actor, 100, stands=False)

    stage.host("h1", sleeps, places.EFFECT_DONE)
    stage.loop.later(50, stage.host, "h2")
    stage.play()
    head: Head = stage.view.head
    assert head.epoch == 2
    assert head.owner == "h2"
    assert isinstance(stage.ended["h1"], Fenced)
    assert stage.ended["h2"] is None
    assert stage.operation.outcome == "completed"
    (row,) = stage.dispatches
    (piece,) = row.evidence
    assert (piece["status"], piece["fenced"]) == ("ok", True), "the effect did happen"
    assert row.answer["event"] != piece["event"] or row.answer["digest"] != piece["digest"]
    assert head.counts["fenced"] >= 1
    assert stage.view.damage() == []


def test_10_two_hosts_and_one_session(stage: Stage) -> None:
    def sleeps(actor: Actor) -> None:
        stage.loop.freeze(actor, 30, stands=True)

    stage.host("h1", sleeps, places.ATTEMPT_STARTED)
    stage.loop.later(10, stage.host, "h2")
    stage.play()
    assert isinstance(stage.ended["h1"], Fenced)
    assert stage.operation.outcome == "completed"
    assert stage.starts == 1
    assert stage.view.damage() == []
    assert stage.view.head.counts["quarantined"] == 0
