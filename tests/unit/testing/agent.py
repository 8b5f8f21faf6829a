"""An agent to crash: one turn with a call of each effect class, and a second host's way on."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.host import Tool, open_session, run_turn
from turnlog.host.tools import STRICTNESS
from turnlog.testing import ScriptedModel, World, call


def tools(world: World) -> list[Tool]:
    return [world.effects.tool(effect, effect, returns=f"{effect} ok") for effect in STRICTNESS]


def model(names: Sequence[str] = STRICTNESS) -> ScriptedModel:
    calls = [call(name, call_id=f"call-{name}", of=name) for name in names]
    return ScriptedModel([calls, "All done."], by_context=True)


async def work(world: World) -> None:
    async with open_session(
        world.log, "s", host=world.host, tools=tools(world), ambient=world.ambient
    ) as session:
        await run_turn(session, model(), "Do everything.")


async def go_on(world: World) -> None:
    async with open_session(
        world.log, "s", host=world.host, tools=tools(world), ambient=world.ambient
    ) as session:
        if session.recovery:
            await run_turn(session, model())
