"""Runs of hosts: ours, over `turnlog.host`, and those written by hand straight on the owner."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

from turnlog.core.errors import UsageError
from turnlog.host import CompactionFailed, OperationOpen, Reply, Session, open_session, run_turn
from turnlog.testing.simulation.byhand import ByHand
from turnlog.testing.simulation.cast import LOST, Cast
from turnlog.testing.simulation.client import Client
from turnlog.testing.simulation.loop import Actor
from turnlog.testing.simulation.surfaces import unbalanced
from turnlog.testing.simulation.tools import SESSION, Workshop

Json = Any
BUSY = (*LOST, CompactionFailed, OperationOpen, UsageError)
"""How work may end that meets what somebody else left: it is not for this host to go on with."""


async def host_by_hand(cast: Cast, actor: Actor, client: Client, identity: str, turns: int) -> None:
    """One run of a host: claim, pick up what is open, some turns, sometimes a release."""
    draw = cast.chance.again(f"host:{identity}")
    ambient = cast.ambient(actor, identity)
    workshop = cast.workshop(actor, cast.chance.again(f"work:{identity}"))
    host = ByHand(client, identity, ambient, workshop, draw)
    try:
        await host.claim("open")
        cast.watch.told_owner(actor, SESSION, host.owner.claim_id)
        await host.pick_up()
        for _ in range(turns):
            await host.turn()
        if draw.random() < 0.5:
            await host.release()
    except LOST:
        return
    except BaseExceptionGroup as group:
        if group.split(LOST)[1] is not None:
            raise


def _overlook(error: Exception) -> None:
    """What failed in the background is told again by whoever waits for it."""
    del error


async def host(cast: Cast, actor: Actor, client: Client, identity: str, turns: int) -> None:
    """One run of a host of ours: open, resume what is open, some turns, close."""
    draw = cast.chance.again(f"host:{identity}")
    workshop = cast.workshop(actor, cast.chance.again(f"work:{identity}"))
    opened = open_session(
        client,
        SESSION,
        host=identity,
        tools=list(workshop.tools.values()),
        window_s=draw.choice((0.0, 0.2)),
        ambient=cast.ambient(actor, identity),
        on_error=_overlook,
    )
    try:
        await client.tables.wait(await client.end())
        async with opened as session:
            cast.watch.told_owner(actor, SESSION, session.link.owner.claim_id)
            await _work(_Model(cast, workshop, draw), session, draw, turns)
    except BUSY:
        return


async def _work(model: _Model, session: Session, draw: Random, turns: int) -> None:
    for _ in range(5):  # a rerun that a person allows opens what had ended
        if session.reports():
            with suppress(UsageError):  # it is parked, or was only to be closed
                await run_turn(session, model)
    for _ in range(turns):
        await run_turn(session, model, "please")
        choice = draw.random()
        if choice < 0.2:
            await session.set_state({"n": draw.randrange(100)})
        elif choice < 0.4:
            path = [entry.id for entry in session.view().path()]
            await session.navigate(draw.choice(path))
        elif choice < 0.6:
            await session.compact_now(model.summarise, limit=100)
        elif choice < 0.8:
            await session.queue_input("and that")
    for _ in range(3 if turns else 100):
        if session.pending():
            await run_turn(session, model)


class _Model:
    """A scripted model: it calls tools, then it has done. It looks at what it is shown."""

    def __init__(self, cast: Cast, workshop: Workshop, draw: Random) -> None:
        self._cast = cast
        self._workshop = workshop
        self._draw = draw

    async def __call__(self, context: list[dict[str, Json]]) -> Reply:
        told = unbalanced(context)
        if told is not None:
            self._cast.watch.fail("balanced", f"a model is shown: {told}")
        await self._workshop.think()
        count = self._draw.randrange(4) if context[-1]["role"] == "user" else 0
        content = [{"type": "text", "text": "well"}, *self._workshop.calls(count)]
        usage = {"input": 10, "output": 1}
        stop = "tool_use" if count else "stop"
        return Reply({"content": content, "stop_reason": stop}, usage)

    async def summarise(self, messages: list[Json]) -> str:
        """In short."""
        await self._workshop.think()
        return f"{len(messages)}"
