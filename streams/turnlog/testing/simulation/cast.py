"""The actors of a history, as coroutines over the real code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from random import Random

from turnlog.core.errors import LogError, OwnershipError, SessionNotFound
from turnlog.core.frames import Header, NewEvent, seal
from turnlog.core.rows import Head
from turnlog.owner import guest, places
from turnlog.owner.ambient import Ambient
from turnlog.owner.guest import write_guest
from turnlog.recovery.executor import recover_session
from turnlog.recovery.liveness import look_around
from turnlog.recovery.policies import Policy
from turnlog.tables.view import SessionView
from turnlog.testing.simulation.chance import Chance
from turnlog.testing.simulation.client import Client
from turnlog.testing.simulation.loop import Actor, Killed
from turnlog.testing.simulation.outside import Outside
from turnlog.testing.simulation.scene import Scene
from turnlog.testing.simulation.tools import SESSION, Workshop
from turnlog.testing.simulation.watch import Watch
from turnlog.testing.simulation.world import EPOCH_MS, World

LOST = (OwnershipError, LogError)
"""How an actor's work may end: somebody else has the session, or the log cannot be reached."""

SAYS: tuple[guest.Status, ...] = ("ok", "error", "not_started")
"""What a person may say of an outcome that is unknown."""


class Cast:
    """Makes actors and what they need. A copy of an actor has the `identity` of its original: it
    gets the same ids and makes the same choices."""

    def __init__(self, world: World, chance: Chance, scene: Scene, *, has_clone: bool) -> None:
        self.world = world
        self.chance = chance
        self.scene = scene
        self.outside = Outside()
        self.watch = Watch(world, self.outside, has_clone=has_clone)

    def ambient(self, actor: Actor, identity: str) -> Ambient:
        """The clock, the ids and the places of one run of an actor."""
        ids, times = self.chance.again(f"ids:{identity}"), count(EPOCH_MS)
        return Ambient(
            clock=lambda: next(times),
            ids=lambda: f"{ids.getrandbits(64):016x}",
            uptime=lambda: self.world.loop.now,
            reach=self._reach(actor),
        )

    def client(self, actor: Actor) -> Client:
        """A connection to the log."""
        return Client(self.world, actor, self.watch.sent)

    def workshop(self, actor: Actor, draw: Random) -> Workshop:
        """Tools and a model."""
        return Workshop(actor, self.world, self.outside, self.watch, draw)

    def _reach(self, actor: Actor) -> Callable[[str], None]:
        """Where an actor gets to: it is told that its frame is saved, dies, or freezes."""
        trouble, strikes, loop = self.scene.trouble, self.chance.strikes, self.world.loop
        durations = self.chance.stream(f"frozen:{actor.name}")

        def reach(place: str) -> None:
            if actor.is_dead:
                raise Killed(actor.name)
            if place == places.FRAME_SAVED:
                self.watch.told_saved(actor, SESSION)
            extra = trouble.focused if place == trouble.focus else 0.0
            # both are drawn each time, so that leaving one out moves none of the others
            kills = strikes(f"kill:{actor.name}", trouble.kill + extra / 2)
            freezes = strikes(f"freeze:{actor.name}", trouble.freeze + extra / 2)
            if kills:
                loop.kill(actor)
                raise Killed(actor.name)
            if freezes:
                duration_s = durations.expovariate(1 / trouble.frozen_s)
                loop.freeze(actor, duration_s, stands=durations.random() < 0.5)

        return reach


async def recovery(cast: Cast, actor: Actor) -> None:
    """The recovery consumer: it looks now and then, and closes what it takes for left behind."""
    client, ambient = cast.client(actor), cast.ambient(actor, actor.name)
    draw = cast.chance.stream(f"recovery:{actor.name}")
    for _ in range(draw.randrange(1, 5)):
        await asyncio.sleep(draw.expovariate(0.3))
        policy = Policy(mode="park" if draw.random() < 0.2 else "close")
        try:
            alive = await look_around(client, ambient) if draw.random() < 0.5 else ()
            if draw.random() < 0.8:
                await client.tables.wait(await client.end())
            await recover_session(
                client, SESSION, policy=policy, alive=alive, ambient=ambient, host=actor.name
            )
        except (*LOST, SessionNotFound):
            continue


async def hasty(cast: Cast, actor: Actor) -> None:
    """Somebody who claims by what it heard elsewhere of what is about to be in the log, and sends
    that again; then it is gone."""
    client, ambient = cast.client(actor), cast.ambient(actor, actor.name)
    draw = cast.chance.stream(f"hasty:{actor.name}")
    await asyncio.sleep(draw.expovariate(0.3))
    try:
        await client.tables.wait(await client.end())
        head: Head = client.tables.get(("sessions", SESSION)) or Head(SESSION)
        data = {"claim": ambient.ids(), "expects": head.epoch, "host": actor.name}
        if draw.random() < 0.5:
            data |= {"expects": head.epoch + 1}
        else:
            data |= {"expects_seq": head.seq + draw.randrange(3)}
        event = NewEvent("session_claimed", ambient.ids(), ambient.now(), data)
        frame = seal(Header(SESSION, None, None, None, actor.name), [event])
        for _ in range(draw.randrange(1, 8)):
            with suppress(*LOST):
                await client.append(frame)
            await asyncio.sleep(draw.expovariate(1))
    except LOST:
        return


async def person(cast: Cast, actor: Actor) -> None:
    """Somebody who queues inputs, asks for aborts, and decides what is unknown."""
    client, ambient = cast.client(actor), cast.ambient(actor, actor.name)
    draw = cast.chance.stream(f"person:{actor.name}")
    for _ in range(draw.randrange(2, 6)):
        await asyncio.sleep(draw.expovariate(0.5))
        try:
            await client.tables.wait(await client.end())
            view = SessionView(client.tables, SESSION)
            events = list(_words(view, ambient, draw, actor.name))
            if events:
                await write_guest(client, SESSION, events, writer=actor.name, ambient=ambient)
        except (LogError, SessionNotFound):
            continue


async def decider(cast: Cast, actor: Actor) -> None:
    """Somebody who in the end decides every call that waits, so that nothing waits for ever."""
    client, ambient = cast.client(actor), cast.ambient(actor, actor.name)
    while True:
        await asyncio.sleep(5)
        if cast.chance.is_calm:
            await client.tables.wait(await client.end())
            head: Head | None = client.tables.get(("sessions", SESSION))
            if head is not None and head.waiting:
                events = list(_decisions(SessionView(client.tables, SESSION), ambient, actor.name))
                await write_guest(client, SESSION, events, writer=actor.name, ambient=ambient)


def _decisions(view: SessionView, ambient: Ambient, by: str) -> Iterator[NewEvent]:
    for row in view.rows("approvals"):
        if row.decision is None:
            yield guest.decide_approval(
                row.operation,
                ambient,
                assistant_entry=row.assistant_entry,
                call_id=row.call_id,
                decision="deny" if row.asked % 3 == 0 else "allow",
                by=by,
            )


def _words(view: SessionView, ambient: Ambient, draw: Random, by: str) -> Iterator[NewEvent]:
    """What a person says now."""
    if draw.random() < 0.5:
        yield from _decisions(view, ambient, by)
    choice = draw.random()
    head = view.head
    unknown = [row for row in view.rows("dispatches") if row.status == "unknown"]
    if unknown and choice < 0.7:
        row = draw.choice(unknown)
        number = row.tries[-1]["try"]
        if choice < 0.35:
            yield guest.allow_rerun(row.dispatch, ambient, by=by, try_=number)
        else:
            status: guest.Status = draw.choice(SAYS)
            yield guest.settle_dispatch(row.dispatch, status, ambient, by=by, try_=number)
    elif choice < 0.85:
        yield guest.queue_input("and this", ambient)
    elif head.open_operations:
        yield guest.request_abort(draw.choice(sorted(head.open_operations)), ambient)
