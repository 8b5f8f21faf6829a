"""An agent tried against every crash: once for each place that it reaches, each time it does."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from turnlog.core.rows import Head, Operation
from turnlog.log.port import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.testing.crashes import dying
from turnlog.testing.effects import EffectCounter
from turnlog.testing.memory import ManualClock, counted_ids, memory_log

Path = tuple[str, ...]
"""Where the first host dies, then the one after it, and so on: `place:nth` each."""
COMPARED = ("entries", "operations", "attempts", "dispatches", "inputs", "facts")


class World:
    """What a host of a run finds: a new world for each run, the same one for all hosts of it.

    Open sessions with `log`, `host` and `ambient`; they are those of the host that runs now.
    """

    def __init__(self, log: EmbeddedLog, clock: ManualClock, path: Path) -> None:
        self.log = log
        self.clock = clock
        self.path = path
        """Where hosts die in this run; empty where none does."""
        self.effects = EffectCounter()
        """A world of effects that survives every crash."""
        self.kept: dict[str, Any] = {}
        """Whatever else of yours survives them: files, the other side of a connection."""
        self.ambient = Ambient(clock, counted_ids(), clock.uptime)
        self.host = "host-1"


Step = Callable[[World], Awaitable[object]]
Check = Callable[[World], object]
"""A function, or a coroutine function."""


async def for_each_crash(
    scenario: Step,
    recover: Step,
    check: Check | None = None,
    *,
    make_log: Callable[[Callable[[], int]], EmbeddedLog] = memory_log,
    depth: int = 1,
    only: str | None = None,
    settled: bool = True,
) -> list[Path]:
    """Run an agent again and again, each time with another crash, recover, and check.

    `scenario` is the agent at work. It is run once as it is, which shows what places it reaches,
    and then once for each time that it reached one, dying there. After each run, a second host runs
    `recover`: it is to go on with what is open, and to do nothing where nothing is. Then `check`
    asserts what must be true. With a `depth` of 2 the second host dies at each place that it
    reaches, too, and a third one recovers. `only` begins with one crash instead of none:
    `"t1.sent:2"`, or several with a > between. `make_log` is given the clock. Gives the crashes
    that were tried.

    Asserted by itself, unless `settled` is False: after `recover` no operation is open but those
    that are parked, no dispatch is without an answer, and recovering again adds nothing.

    Raises AssertionError that names the crashes that went wrong, from the first one's error: that
    is NotReached for a scenario that does not come the same way each time. What goes wrong without
    a crash is raised as it is.
    """
    runner = _Runner(scenario, recover, check, make_log, settled)
    waiting: list[Path] = [tuple(map(str.strip, only.split(">"))) if only else ()]
    failed: list[tuple[Path, Exception]] = []
    tried: list[Path] = []
    while waiting:
        path = waiting.pop(0)
        try:
            reached = await runner.run(path)
        except Exception as error:
            if not path:
                raise  # the agent does not even work without a crash
            failed.append((path, error))
            continue
        finally:
            tried.append(path)
        if len(path) < depth:
            waiting.extend((*path, point) for point in _points(reached))
    if failed:
        raise AssertionError(_told(failed, len(tried))) from failed[0][1]
    return tried


class _Runner:
    """What all runs of one agent have in common."""

    def __init__(
        self,
        scenario: Step,
        recover: Step,
        check: Check | None,
        make_log: Callable[[Callable[[], int]], EmbeddedLog],
        settled: bool,
    ) -> None:
        self._scenario = scenario
        self._recover = recover
        self._check = check
        self._make_log = make_log
        self._settled = settled

    async def run(self, path: Path) -> Counter[str]:
        """One world, with its crashes; gives how often the last host but the final one, or the
        first where none dies, reached each place."""
        clock = ManualClock()
        async with self._make_log(clock) as log:
            world = World(log, clock, path)
            for number, point in enumerate(path):
                await self._host(world, number, point)
            reached = await self._host(world, len(path), None)
            if not path:
                await self._host(world, 1, None)
            if self._settled:
                await self._assert_settled(world, len(path) + 1)
            if self._check is not None:
                found = self._check(world)
                if inspect.isawaitable(found):
                    await found
        return reached

    async def _host(self, world: World, number: int, point: str | None) -> Counter[str]:
        """Run one host: the first one works, all others recover."""
        log, ambient = world.log, world.ambient
        step = self._recover if number else self._scenario
        async with dying(log, at=point, ambient=ambient) as host:
            world.log, world.ambient, world.host = host.log, host.ambient, f"host-{number + 1}"
            await step(world)
        world.log, world.ambient = log, ambient
        return host.reached

    async def _assert_settled(self, world: World, number: int) -> None:
        left = list(_left_open(world.log))
        assert not left, "after recovering, this is open: " + "; ".join(left)
        before = _rows(world.log)
        await self._host(world, number + 1, None)
        for table, rows in _rows(world.log).items():
            added = [row for row in rows if row not in before[table]]
            assert not added, f"recovering a second time added to {table}: {added[0]}"


def _points(reached: Counter[str]) -> Iterator[str]:
    for place, count in reached.items():
        for nth in range(1, count + 1):
            yield f"{place}:{nth}"


def _left_open(log: EmbeddedLog) -> Iterator[str]:
    heads: Iterator[Head] = log.tables.scan("sessions")
    for head in heads:
        parked: set[str] = set()
        for id_ in head.open_operations:
            row: Operation | None = log.tables.get(("operations", head.session, id_))
            if row is not None and row.parked is not None:
                parked.add(id_)
            else:
                yield f"operation {id_!r} of session {head.session!r}"
        for dispatch, operation in head.open_dispatches.items():
            if operation not in parked:
                yield f"dispatch {dispatch!r} of session {head.session!r}"


def _rows(log: EmbeddedLog) -> dict[str, list[Any]]:
    return {table: list(log.tables.scan(table)) for table in COMPARED}


def _told(failed: list[tuple[Path, Exception]], tried: int) -> str:
    lines = [
        f"{len(failed)} of {tried} runs went wrong; run one of them alone with only=…:",
        *(f'  only="{" > ".join(path)}": {_line(error)}' for path, error in failed[:20]),
    ]
    if len(failed) > 20:
        lines.append(f"  and {len(failed) - 20} more")
    return "\n".join(lines)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
