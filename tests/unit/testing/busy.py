"""A busy agent to crash: everything a session offers, and a second host that clears up after it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from turnlog.host import Ask, Denied, OutcomeUnknown, Session, Tool, open_session, run_turn
from turnlog.owner.guest import decide_approval, write_guest
from turnlog.testing import ScriptedModel, World, call

ANSWERS = [
    [
        call("look", call_id="same"),
        call("pay", call_id="same"),
        call("spawn", call_id="c"),
        call("no such tool", call_id="d"),
    ],
    [call("denied"), call("asked"), call("broken"), call("unsure"), call("book", call_id="same")],
    "The first turn is done.",
    "The second is, too.",
]


class Desk:
    """The tools of one host; some need its session."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.session: Session | None = None

    def tools(self) -> list[Tool]:
        make = self.world.effects.tool

        async def denied(asked):
            return Denied("not today")

        async def ask(asked):
            return Ask()

        async def unsure(asked):
            raise OutcomeUnknown("the line went dead")

        async def broken(asked):
            raise ValueError("broken")

        return [
            make("look", "read_only"),
            make("pay", "opaque"),
            make("book", "reconcilable"),
            Tool("spawn", self.spawn, "idempotent"),
            Tool("denied", broken, "opaque", permit=denied),
            Tool("asked", make("asked", "opaque").run, "opaque", permit=ask),
            Tool("broken", broken, "idempotent"),
            Tool("unsure", unsure, "opaque"),
        ]

    async def spawn(self, asked):
        child = await self.session.spawn(asked.dispatch)
        model = ScriptedModel([[call("put")], "The child is done."], by_context=True)
        async with self.open(child, [self.world.effects.tool("put", "idempotent")]) as session:
            if session.recovery or not session.context():
                await run_turn(session, model, None if session.recovery else "Go on, child.")
        return child

    def open(self, session: str, tools: list[Tool]) -> open_session:
        world = self.world
        return open_session(world.log, session, host=world.host, tools=tools, ambient=world.ambient)

    async def decide(self) -> None:
        """A person who allows whatever is asked."""
        world = self.world
        while True:
            await asyncio.sleep(0)
            for row in world.log.tables.scan("approvals", "s"):
                if row.decision is None:
                    allow = decide_approval(
                        row.operation,
                        world.ambient,
                        assistant_entry=row.assistant_entry,
                        call_id=row.call_id,
                        decision="allow",
                    )
                    await write_guest(
                        world.log, "s", [allow], writer="person", ambient=world.ambient
                    )

    @asynccontextmanager
    async def at_work(self):
        """The session, with the person at hand."""
        person = asyncio.create_task(self.decide())
        try:
            async with self.open("s", self.tools()) as session:
                self.session = session
                yield session
        finally:
            person.cancel()


async def summarise(*given, **named):
    return "In short."


async def work(world: World) -> None:
    async with Desk(world).at_work() as session:
        await session.queue_input("And then this.")
        await session.set_extension("plan", {"step": 1}, in_context=True)
        await run_turn(session, ScriptedModel(ANSWERS, by_context=True), "Do it all.")
        await session.set_state({"turns": 1})
        leaf = session.leaf
        await run_turn(session, ScriptedModel(ANSWERS, by_context=True))
        await session.compact_now(summarise, limit=10)
        await session.navigate(leaf, label="back", summary="I was elsewhere.")
        await session.fork()
        await abort_one(session)


async def abort_one(session: Session) -> None:
    async with session.turn("Stop half-way.") as turn:
        async with turn.attempt("model") as attempt:
            said = await attempt.finish([call("pay"), call("look")])
        await turn.call(said.calls[1])
        await session.abort()
        await asyncio.Event().wait()


async def clear_up(world: World) -> None:
    desk = Desk(world)
    async with desk.at_work() as session:
        while session.reports():
            if any(report.operation.kind == "prompt" for report in session.reports()):
                await run_turn(session, ScriptedModel(["I go on from here."] * 3))
            else:
                await session.close_open()
    for head in list(world.log.tables.scan("sessions")):
        if head.open_operations or head.open_dispatches:  # a child whose parent asks no more
            async with desk.open(head.session, []) as session:
                await session.close_open()
