"""The tools and the model of a simulated host: what they do outside is counted there."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from turnlog.core.rows import Dispatch
from turnlog.host.errors import Failed
from turnlog.host.tools import (
    STRICTNESS,
    Ask,
    Denied,
    Effect,
    Happened,
    Never,
    Tool,
    ToolCall,
    Unsure,
)
from turnlog.testing.simulation.loop import Actor
from turnlog.testing.simulation.outside import Outside, Start
from turnlog.testing.simulation.watch import Watch
from turnlog.testing.simulation.world import World

Json = Any
SESSION = "s"
"""The session that a history is about."""


class Workshop:
    """One tool for each effect class, and a model that calls them. One for each session opened."""

    def __init__(
        self, actor: Actor, world: World, outside: Outside, watch: Watch, draw: Random
    ) -> None:
        self._actor = actor
        self._world = world
        self._outside = outside
        self._watch = watch
        self._draw = draw
        self.tools = {effect: self._tool(effect) for effect in STRICTNESS}

    async def think(self) -> None:
        """A model takes its time."""
        await asyncio.sleep(self._draw.expovariate(2))

    def calls(self, count: int) -> list[dict[str, Json]]:
        """The parts of a message that calls some tools. `call` tells the calls of a history apart;
        the model's own ids do not."""
        parts: list[dict[str, Json]] = []
        for index in range(count):
            args = {"call": f"call-{self._draw.getrandbits(32):08x}"}
            tool = self._draw.choice(STRICTNESS)
            part = {"type": "tool_call", "call_id": f"call_{index}", "name": tool, "args": args}
            parts.append(part)
        return parts

    async def run(self, tool: Tool, call: ToolCall) -> tuple[str, str]:
        """Run a tool as a host by hand does: the status, and what to tell."""
        try:
            return "ok", str(await tool.run(call))
        except Failed as error:
            return "error", str(error)

    async def probe(self, row: Dispatch, args: dict[str, Json]) -> bool:
        """Ask the receiver whether a dispatch happened; if not, it never will."""
        await asyncio.sleep(self._draw.expovariate(10))
        return self._outside.probe(row.dispatch, args["call"], row.tries[-1]["try"])

    def _tool(self, effect: Effect) -> Tool:
        async def run(call: ToolCall) -> Json:
            return await self._start(effect, call)

        async def probe(call: ToolCall) -> Happened | Never | Unsure:
            await asyncio.sleep(self._draw.expovariate(10))
            happened = self._outside.probe(call.dispatch, call.args["call"], call.try_number)
            return Happened("done") if happened else Never()

        async def permit(call: ToolCall) -> bool | Denied | Ask:
            # what is asked again after a crash gets the same answer
            choice = int(call.args["call"][-2:], 16)
            return Ask() if choice < 26 else Denied("no") if choice < 39 else True

        probed = probe if effect == "reconcilable" else None
        return Tool(effect, run, effect, permit=permit, probe=probed)

    async def _start(self, effect: Effect, call: ToolCall) -> Json:
        start = Start(
            self._actor.name,
            call.session,
            call.operation,
            call.dispatch,
            call.try_number,
            call.args["call"],
            effect,
            call.idempotency_key,
            self._world.end,
        )
        self._watch.started(self._actor, start)
        if not self._outside.start(start):
            raise Failed("the receiver refuses this start")
        self._watch.happened(start)
        await asyncio.sleep(self._draw.expovariate(3))
        if self._draw.random() < 0.1:
            raise Failed("it went wrong")
        return f"done {call.args['call']}"
