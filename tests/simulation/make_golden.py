"""How the golden crash windows were made: `python -m tests.simulation.make_golden`.

A host of ours is killed at one moment of a turn, and what is then in the log stands in a file, with
the verdict and the plans that it must give for ever. It overwrites nothing: a change of the host
makes other logs, but what an old log means stays.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.golden.reading import read
from tests.story import Story
from turnlog.core.archive import to_line
from turnlog.core.frames import Frame
from turnlog.host import Happened, Tool, Turn, open_session
from turnlog.owner import places
from turnlog.owner.ambient import Ambient
from turnlog.testing.simulation.chance import Chance
from turnlog.testing.simulation.client import Client
from turnlog.testing.simulation.loop import Killed, SimulatedLoop
from turnlog.testing.simulation.world import EPOCH_MS, Landed, Weather, World

FOLDER = Path(__file__).parent / "golden"
EFFECTS = ("read_only", "idempotent", "reconcilable", "opaque")
CALL_WINDOWS = {
    "t1-ready": places.T1_READY,
    "t1-arrived": "tool_dispatched",
    "t1-acknowledged": places.T1_SENT,
    "t1-checked": places.T1_CHECKED,
    "effect-done": places.EFFECT_DONE,
    "t2-arrived": "tool",
    "t2-acknowledged": places.T2_SAVED,
}
"""By window: the place where the host dies, or what has just arrived, not yet acknowledged."""
OTHER_WINDOWS = {
    "claimed": places.CLAIM_SAVED,
    "streaming": "model_attempted",
    "answered": "tool_use",
    "final": "stop",
    "compacting": places.COMPACTION_STARTED,
}


def windows() -> Iterator[tuple[str, str, str | None]]:
    """Every window: its name, the moment, and the effect class where that matters."""
    for name, moment in CALL_WINDOWS.items():
        for effect in EFFECTS:
            yield f"{name}-{effect}", moment, effect
    for name, moment in OTHER_WINDOWS.items():
        yield name, moment, None


def make(name: str, moment: str, effect: str | None) -> bytes:
    """The archive of a history that ends at a moment."""
    loop = SimulatedLoop(Random(0), 10_000, sys.exit)
    world = World(loop, Chance(0), Weather(lags=False))
    actor = loop.add("h1")

    def reach(place: str) -> None:
        if place == moment:
            loop.kill(actor)
            raise Killed(place)

    def landed(item: Landed) -> None:
        assert isinstance(item.frame, Frame)
        for event in item.frame.events:
            if moment in (event.type, event.data.get("role"), event.data.get("stop_reason")):
                loop.kill(actor)

    world.watchers.append(landed)
    ids, times = count(1), count(EPOCH_MS, 1_000)
    ambient = Ambient(lambda: next(times), lambda: f"i{next(ids)}", lambda: loop.now, reach)
    client = Client(world, actor, lambda actor, frame: None)
    calls = (effect,) if effect else EFFECTS if name == "answered" else ()
    loop.spawn(actor, _host(client, name, ambient, calls))
    loop.run_forever()
    loop.bury()
    lines = (to_line(number, item.record) for number, item in enumerate(world.records, 1))
    return b"".join(lines)


async def _host(client: Client, session: str, ambient: Ambient, calls: tuple[str, ...]) -> None:
    """Two turns, then a compaction; with pauses, so that what waits to be written is written."""

    async def run(call: Any) -> str:
        return "done"

    async def probe(call: Any) -> Happened:
        return Happened("done")

    async def summarise(messages: list[Any]) -> str:
        return "in short"

    tools = [
        Tool(effect, run, effect, probe=probe if effect == "reconcilable" else None)  # type: ignore[arg-type]
        for effect in EFFECTS
    ]
    opened = open_session(client, session, host="h1", tools=tools, title=session, ambient=ambient)
    async with opened as held:
        for _ in range(2):
            async with held.turn("Look at this, please. " * 20) as turn:
                if calls:
                    await _ask(turn, calls)
                    await turn.call_all()
                await _ask(turn, ())
        await held.compact_now(summarise, limit=100)


async def _ask(turn: Turn, calls: tuple[str, ...]) -> None:
    parts: list[dict[str, Any]] = [
        {"type": "tool_call", "call_id": f"call_{n}", "name": tool, "args": {"n": n}}
        for n, tool in enumerate(calls)
    ]
    content = [{"type": "text", "text": "I look." if calls else "Done."}, *parts]
    async with turn.attempt("model") as attempt:
        await asyncio.sleep(1)
        await attempt.finish({"content": content, "stop_reason": "tool_use" if calls else "stop"})
    await asyncio.sleep(1)


def meaning(story: Story) -> dict[str, Any]:
    """What a history means to those who come after, without words for people."""
    return {
        "listed": story.head.listed,
        "dispatches": {row.dispatch: row.status for row in story.view.rows("dispatches")},
        "operations": {
            row.operation: {
                "kind": row.kind,
                "outcome": row.outcome,
                "verdict": (verdict := story.verdict(row.operation)).name,
                "inferred": verdict.outcome,
                "host": _steps(story, "host", row.operation),
                "consumer": _steps(story, "consumer", row.operation),
            }
            for row in story.view.rows("operations")
        },
    }


def _steps(story: Story, executor: Any, operation: str) -> list[dict[str, Any]]:
    without = ("reason", "why", "text")
    steps = story.plan(executor, operation)
    return [{k: v for k, v in step.items() if k not in without} for step in steps]


def main(folder: Path, write: Callable[[str], object] = sys.stdout.write) -> None:
    """Write what is not there yet."""
    for name, moment, effect in windows():
        log = folder / f"{name}.ndjson"
        if log.exists():
            continue
        log.write_bytes(make(name, moment, effect))
        found = json.dumps(meaning(read(log)), indent=1)
        log.with_suffix(".json").write_text(found + "\n", "utf-8")
        write(f"{log.name}\n")


if __name__ == "__main__":
    main(FOLDER)
