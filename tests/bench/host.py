"""What a host adds to its log: a call's T1, the calls of many sessions, small events in batches.

Everything goes the host's own way, through sessions and turns, next to a reference that takes turns
with it in short rounds, on write-ahead logs that have their full size (see `append`). Figures are
medians over the rounds.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.append import Bare, grow, open_log
from tests.bench.figures import Figure, report
from turnlog.host import Session, Tool, ToolCall, open_session
from turnlog.log import EmbeddedLog
from turnlog.owner import places
from turnlog.owner.ambient import Ambient

SESSIONS = 64
ROUNDS = 15
CALLS = 50
"""T1s in a round."""
CALLS_EACH = 20
"""Calls of each session, of one or of many, in a turn."""
EVENTS = 500
ONE_BY_ONE = 50

Round = Callable[[], Awaitable[float]]
"""Does some of the work, and gives the seconds that one piece of it took."""


async def run_rounds(cases: Mapping[str, Round], rounds: int) -> dict[str, float]:
    """Each case in turn, in every round; the median of its seconds."""
    return {name: median(each) for name, each in (await seconds_of(cases, rounds)).items()}


async def seconds_of(cases: Mapping[str, Round], rounds: int) -> dict[str, list[float]]:
    """Each case in turn, in every round; its seconds in each."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for round_ in range(rounds + 2):
        for name, case in cases.items():
            seconds = await case()
            if round_ >= 2:  # the first ones fill the caches
                found[name].append(seconds)
    return found


class Looking:
    """A tool that does nothing, and the seconds from sending a T1 to the start of its effect."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.ambient = Ambient(reach=self._reach)
        self.tool = Tool("look", self._run, effect="read_only")
        self._ready = 0.0

    def _reach(self, place: str) -> None:
        if place == places.T1_READY:
            self._ready = time.perf_counter()

    async def _run(self, call: ToolCall) -> str:
        self.seconds.append(time.perf_counter() - self._ready)
        return f"what {call.call_id} found: " + "lorem ipsum dolor " * 6


def _answer(number: int) -> list[dict[str, Any]]:
    """A model's answer that makes some calls."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": "Let me look at them."}]
    for index in range(number):
        args = {"path": f"/home/somebody/project/file-{index}.py", "limit": 100}
        part = {"type": "tool_call", "call_id": f"call-{index}", "name": "look", "args": args}
        parts.append(part)
    return parts


async def call_in_turn(session: Session, answers: int, calls: int, last: str | None = None) -> None:
    """A turn in which the model answers so often, with so many calls, made one after another, and
    perhaps with a last word."""
    async with session.turn("Look at these files.") as turn:
        for _ in range(answers):
            async with turn.attempt("model") as attempt:
                usage = {"input": 1_000, "output": 100}
                said = await attempt.finish(_answer(calls), usage=usage)
            if calls > 1:  # then the T1s are alone in their frames
                await session.flush()
            for call in said.calls:
                await turn.call(call)
        if last is not None:
            async with turn.attempt("model") as attempt:
                await attempt.finish(last)


class Starts:
    """Rounds of calls, and of bare commits of the frames of their T1s."""

    def __init__(self, log: EmbeddedLog, bare: Bare, session: Session, looking: Looking) -> None:
        self._log, self._bare, self._session, self._looking = log, bare, session, looking
        self._bodies: list[bytes] = []

    async def run(self, answers: int, calls: int) -> float:
        before, self._looking.seconds = self._log.tables.position(), []
        await call_in_turn(self._session, answers, calls)
        records = self._log.tables.records(self._session.id, after=before)
        bodies = (stored.record.body for stored in records)
        self._bodies = [body for body in bodies if b'"tool_dispatched"' in body]
        assert len(self._bodies) == len(self._looking.seconds) == answers * calls
        return sum(self._looking.seconds) / len(self._bodies)

    async def run_bare(self) -> float:
        start = time.perf_counter()
        for body in self._bodies:
            await self._bare.put(self._session.id, body)
        return (time.perf_counter() - start) / len(self._bodies)


async def measure_starts(folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """T1, from sending it to the start of the effect, next to a bare commit of the same bytes."""
    kinds = {"T1": (1, CALLS), "T1 with its answer": (max(CALLS // 2, 1), 1)}
    looking = Looking()
    async with open_log(folder / "starts.db") as log, AsyncExitStack() as stack:
        bare = stack.enter_context(closing(Bare(folder / "bare.db")))
        await asyncio.gather(bare.grow(), grow(log))
        cases: dict[str, Round] = {}
        for index, (kind, numbers) in enumerate(kinds.items()):
            opened = open_session(
                log, f"starts-{index}", host="h", tools=[looking.tool], ambient=looking.ambient
            )
            session = await stack.enter_async_context(opened)
            starts = Starts(log, bare, session, looking)
            cases[kind] = partial(starts.run, *numbers)
            cases[f"bare {kind}"] = starts.run_bare
        each = await run_rounds(cases, rounds)
    return [
        Figure(
            f"{kind}, until the effect starts, times a bare commit",
            each[kind] / each[f"bare {kind}"],
            "",
            "<= 1.7" if kind == "T1" else "",
            f"{each[kind] * 1e6:.0f} µs; bare {each[f'bare {kind}'] * 1e6:.0f} µs",
        )
        for kind in kinds
    ]


async def _seconds_a_call(sessions: Sequence[Session], calls: int) -> float:
    start = time.perf_counter()
    await asyncio.gather(*(call_in_turn(session, 1, calls) for session in sessions))
    return (time.perf_counter() - start) / (calls * len(sessions))


async def measure_sessions(folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """64 sessions that make calls at once next to one, each in a file of its own."""
    looking = Looking()
    async with AsyncExitStack() as stack:
        cases: dict[str, Round] = {}
        for name, number in (("one", 1), ("many", SESSIONS)):
            log = await stack.enter_async_context(open_log(folder / f"{name}.db"))
            await grow(log)
            sessions = [
                await stack.enter_async_context(
                    open_session(log, f"{name}-{index}", host="h", tools=[looking.tool])
                )
                for index in range(number)
            ]
            cases[name] = partial(_seconds_a_call, sessions, CALLS_EACH)
        each = await run_rounds(cases, rounds)
    return [
        Figure(
            f"calls of {SESSIONS} sessions at once, times the speed of one",
            each["one"] / each["many"],
            "",
            ">= 8",
            f"{1 / each['many']:,.0f} calls a second; one {1 / each['one']:,.0f}",
        )
    ]


async def _seconds_an_event(session: Session, number: int, *, flush_each: bool) -> float:
    start = time.perf_counter()
    for index in range(number):
        await session.set_extension("progress", {"step": index, "of": number})
        if flush_each:
            await session.flush()
    await session.flush()
    return (time.perf_counter() - start) / number


async def measure_stream(folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """Small events that wait for each other within the window, next to one by one."""
    async with open_log(folder / "stream.db") as log, AsyncExitStack() as stack:
        await grow(log)
        one, many = [
            await stack.enter_async_context(open_session(log, name, host="h"))
            for name in ("one by one", "batched")
        ]
        cases: dict[str, Round] = {
            "one": partial(_seconds_an_event, one, ONE_BY_ONE, flush_each=True),
            "many": partial(_seconds_an_event, many, EVENTS, flush_each=False),
        }
        each = await run_rounds(cases, rounds)
    return [
        Figure(
            "small events in batches, times the speed of one by one",
            each["one"] / each["many"],
            "",
            ">= 10",
            f"{each['many'] * 1e6:.0f} µs each; one by one {each['one'] * 1e6:.0f} µs",
        )
    ]


def measure() -> list[Figure]:
    """All figures of writing through a host."""
    figures: list[Figure] = []
    for part in (measure_starts, measure_sessions, measure_stream):
        with tempfile.TemporaryDirectory() as folder:
            figures += asyncio.run(part(Path(folder)))
    return figures


if __name__ == "__main__":
    report(measure())
