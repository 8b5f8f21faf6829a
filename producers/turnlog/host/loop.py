"""A plain agent loop: ask the model, run its calls, until it has nothing more to ask for.

It is an example of how the parts fit, good enough to use. Going on after a crash is the same loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from turnlog.core.errors import SchemaError, TurnlogError
from turnlog.core.recovery import Instruction
from turnlog.host.compaction import Compaction
from turnlog.host.errors import ContextOverflow, told
from turnlog.host.resuming import under_way
from turnlog.host.room import Room
from turnlog.host.session import Session
from turnlog.host.turn import Turn
from turnlog.tables.evidence import Report

Json = Any


class Reply(NamedTuple):
    """What a model answers: text, parts, or an object with `content` and perhaps `stop_reason`;
    and what it cost."""

    message: Json
    usage: dict[str, Json] | None = None


Model = Callable[[list[dict[str, Json]]], Awaitable[Reply]]
"""Given the context, gives the next message."""
ATTEMPTS = 3
"""How often a model that fails or answers nonsense is asked in a row."""
STEPS = 200
"""How many requests one turn may make: a model that never stops is stopped."""


async def run_turn(
    session: Session,
    model: Model,
    message: Json = None,
    *,
    name: str = "model",
    attempts: int = ATTEMPTS,
    steps: int = STEPS,
    compaction: Compaction | None = None,
) -> str:
    """Run a turn to its end, and give its outcome, or `parked`.

    Without a message it goes on with the turn that is open, and where none is, with the oldest
    queued input. A model that keeps failing ends the turn as failed. With `compaction` room is made
    before a request that needs it; a model that raises ContextOverflow is asked once more, if the
    surface has changed by then. Where nothing is left to go on with but something to end, such as a
    compaction that was cut short, it is ended, and `interrupted` given. Raises what `Session.turn`
    and `Session.resume` raise, Fenced, and LogError, after which the turn is still open.
    """
    running = under_way(session.link)
    left = [item for item in session.reports() if item.operation.operation not in running]
    is_open = message is None and any(_goes_on(report) for report in left)
    if message is None and left and not is_open and not session.pending():
        await session.close_open()  # what a crash cut short there has nothing to go on with
        return "interrupted"
    async with session.resume() if is_open else session.turn(message) as turn:
        room = Room(session, compaction)
        await _run(session, model, turn, room, _Bounds(name, attempts, steps))
    return turn.outcome or "parked"


class _Bounds(NamedTuple):
    name: str
    attempts: int
    steps: int


async def _run(session: Session, model: Model, turn: Turn, room: Room, bounds: _Bounds) -> None:
    asked = failed = 0
    while not turn.has_ended:
        plan = turn.plan()
        if not plan:
            return
        if _wants_model(plan) or (_is_finish(plan) and session.pending("steer")):
            if asked >= bounds.steps:
                await turn.finish("blocked", {"message": f"{asked} requests made no end of it"})
                return
            asked += 1
            await room.make()
            try:
                error = await room.within(lambda: _ask(session, model, turn, bounds.name))
            except ContextOverflow as overflow:
                await turn.finish("failed", told(overflow))
                return
            failed = 0 if error is None else failed + 1
            if failed >= bounds.attempts:
                await turn.finish("failed", {"message": f"the model failed: {error}"})
        else:
            await turn.carry_out(plan)


def _goes_on(report: Report) -> bool:
    """Whether a turn can go on with it; of anything else only the end has to be written."""
    is_bracket = report.operation.kind in ("compaction", "navigation")
    return bool(report.evidence.reruns) or (report.is_open and not is_bracket)


def _wants_model(plan: list[Instruction]) -> bool:
    """Whether nothing is left to do but to ask the model."""
    return all(step["do"] in ("ask_model", "continue") for step in plan)


def _is_finish(plan: list[Instruction]) -> bool:
    return [step["do"] for step in plan] == ["finish"] and plan[0]["outcome"] == "completed"


async def _ask(session: Session, model: Model, turn: Turn, name: str) -> str | None:
    """One request; what went wrong, or None."""
    async with turn.attempt(name) as attempt:
        try:
            reply: Json = await model(session.context())
        except (TurnlogError, ContextOverflow):
            raise
        except Exception as error:
            return ": ".join(told(error).values())
        if not isinstance(reply, Reply):
            return f"the model gave a {type(reply).__name__}, which is no Reply"
        try:
            await attempt.finish(reply.message, usage=reply.usage)
        except SchemaError as error:
            return str(error)
    return None
