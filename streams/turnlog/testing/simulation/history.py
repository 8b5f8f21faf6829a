"""One history: the actors of a scene play it, then the world heals, and everything is looked at."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Collection, Coroutine
from typing import Any, cast

from turnlog.core.archive import to_line
from turnlog.testing.simulation import ends
from turnlog.testing.simulation.cast import Cast, decider, hasty, person, recovery
from turnlog.testing.simulation.chance import Chance
from turnlog.testing.simulation.copies import Copy
from turnlog.testing.simulation.hosts import host, host_by_hand
from turnlog.testing.simulation.loop import Actor, SimulatedLoop
from turnlog.testing.simulation.scene import Scene
from turnlog.testing.simulation.stores import Worker
from turnlog.testing.simulation.world import World

LAST_S = 40.0
"""How long the actors have, in the world's seconds, before it heals."""
HEALERS = ("healer", "again")
"""Who takes over at the end, in a world without faults."""
SETTLED_S = 60.0
"""After this long without faults every copy of a frame has arrived and everybody has woken."""


class History:
    """See the module's text. `without` names faults and actors to leave out."""

    def __init__(
        self, chance: Chance, scene: Scene, *, steps_max: int, absent: Collection[str] = ()
    ) -> None:
        self.loop = SimulatedLoop(chance.stream("order"), steps_max, self._lost_error)
        self.world = World(self.loop, chance, scene.weather)
        self.chance = chance
        self.scene = scene
        self.actors: list[str] = []
        self._absent = frozenset(absent)
        has_clone = scene.clone_after is not None
        self.cast = Cast(self.world, chance, scene, has_clone=has_clone)
        self.watch = self.cast.watch
        worker = Worker(self.world, chance.stream("worker"))
        self._worker = worker if scene.has_worker else None
        self._draw = chance.stream("director")

    def play(self) -> None:
        """Play it to its end. What did not hold is in `watch.violations`."""
        was_collecting = gc.isenabled()
        gc.disable()  # when it runs depends on more than the seed
        try:
            self.loop.spawn(self.loop.world, self._direct())
            self.loop.run_forever()
            if self.loop.is_exhausted:
                self.watch.fail("ends", f"more than {self.loop.steps} steps")
            elif not self.loop.is_over:
                self.watch.fail("ends", "nothing is left that could go on")
        finally:
            self.loop.bury()
            if was_collecting:
                gc.enable()

    @property
    def log(self) -> bytes:
        """The log as an archive."""
        lines = (to_line(item.position, item.record) for item in self.world.records)
        return b"".join(lines)

    def _lost_error(self, told: str) -> None:
        """An error that nobody looked after."""
        self.watch.fail("no error", told)

    async def _direct(self) -> None:
        """The world's own course: everybody begins, then no more faults, then what is left."""
        draw = self._draw
        for number in range(self.scene.hosts):
            self._launch_host(f"h{number}", number * draw.expovariate(0.3))
        for number in range(self.scene.recoveries):
            self._launch(f"r{number}", draw.expovariate(0.2), recovery)
        for number in range(self.scene.hasty):
            self._launch(f"q{number}", draw.expovariate(0.3), hasty)
        for number in range(self.scene.people):
            self._launch(f"p{number}", draw.expovariate(0.3), person)
        deciding = self.loop.add("decider")
        self.loop.spawn(deciding, decider(self.cast, deciding))
        await self._wait_for_all(LAST_S)
        self.chance.is_calm = True
        await asyncio.sleep(SETTLED_S)
        await self._wait_for_all(LAST_S)
        ends.check_verdicts(self.world, self.watch)
        began = self.world.end
        await self._heal(HEALERS[0])
        ends.check_ended(self.world, self.watch)
        ended = self.world.end
        await self._heal(HEALERS[1])
        ends.check_added_nothing(self.world, self.watch, began, ended)
        ends.check_tables(self.world, self.watch)
        if self._worker is not None:
            ends.check_worker(self.world, self.watch, self._worker)
        self.loop.end()

    def _launch_host(self, name: str, delay_s: float) -> None:
        scene, original = self.scene, None
        play = host_by_hand if self._draw.random() < scene.by_hand else host
        is_copied = name == "h0" and scene.clone_after is not None

        async def run(cast: Cast, actor: Actor) -> None:
            nonlocal original
            client = cast.client(actor)
            original = client
            await play(cast, actor, client, name, scene.turns)

        async def run_copy(cast: Cast, actor: Actor) -> None:
            if original is not None:
                copy = Copy(original, actor, scene.clone_after or 0)
                await play(cast, actor, copy, name, scene.turns)

        self._launch(name, delay_s, run)
        if is_copied:
            self._launch(f"{name}-copy", delay_s + 0.001, run_copy)

    def _launch(
        self, name: str, delay_s: float, run: Callable[[Cast, Actor], Coroutine[Any, Any, None]]
    ) -> None:
        if name in self._absent:
            return
        self.actors.append(name)
        actor = self.loop.add(name)

        async def live() -> None:
            await asyncio.sleep(delay_s)
            try:
                await run(self.cast, actor)
            except Exception as error:
                self.watch.fail("no error", f"{name} raised {_told(error)}")

        actor.main = self.loop.spawn(actor, live())

    async def _wait_for_all(self, seconds: float) -> None:
        until = self.loop.now + seconds
        while self.loop.now < until and self.loop.is_anybody_busy():  # noqa: ASYNC110  # virtual
            await asyncio.sleep(0.25)

    async def _heal(self, name: str) -> None:
        """Somebody takes over and ends what is open, in a world without faults."""

        async def run(cast: Cast, actor: Actor) -> None:
            client = cast.client(actor)
            await client.tables.wait(self.world.end)
            await host(cast, actor, client, name, 0)

        self._launch(name, 0.0, run)
        await self._wait_for_all(1_000.0)


def _told(error: BaseException) -> str:
    parts = [type(error).__name__, str(error)]
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        parts += [_told(item) for item in group.exceptions]
    return ": ".join(parts)
