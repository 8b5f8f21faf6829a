"""A host that dies in the middle of its work, in the process of the test.

A crash is an exception that nothing catches, raised where the protocol says that a place is reached
(`turnlog.owner.places`). At that moment everything of the dead host ends: its log refuses whatever
it still tries, and its tasks are cancelled. What other tasks do, such as a server that the host
talked to, goes on: it is not in that process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Generator
from contextvars import ContextVar, Token
from typing import Any, Self, TypeVar
from weakref import WeakSet

from turnlog.log.port import EmbeddedLog
from turnlog.owner.ambient import Ambient, Reach
from turnlog.testing.mortal import MortalLog

_T = TypeVar("_T")
REAP_S = 0.001
"""Whatever of the dead host has not ended is cancelled again after so long: a task that waits for
one that never began would not end by being cancelled once."""
BURY_S = 5.0
"""After so long a task that goes on although it is cancelled is an error."""

_life: ContextVar[dying | None] = ContextVar("turnlog_testing_life", default=None)


class Crash(BaseException):
    """The process dies here. No exception of `Exception`: what catches those does not stop it."""


class NotReached(AssertionError):
    """A host ended without reaching the place where it was to die."""


def crash_at(place: str, nth: int = 1) -> Reach:
    """A `reach` for an `Ambient` that raises Crash at a place, the nth time it is reached.

    That alone ends no other task and no log; `dying` does.
    """
    reached: Counter[str] = Counter()

    def reach(at: str) -> None:
        reached[at] += 1
        if at == place and reached[at] == nth:
            raise Crash(f"{place}:{nth}")

    return reach


class dying:  # noqa: N801 - used as a function: async with dying(…) as host
    """A block that runs as a host of its own, which dies where it reaches a place.

        async with dying(log, at="effect.done") as host:
            async with open_session(
                host.log, "bill-7", host="h1", tools=tools, ambient=host.ambient
            ) as session:
                await run_turn(session, model, "Pay the bill.")
        # a second host goes on with `log`

    The block ends at the crash, and what it raises from then on is not passed on: it is dead. `at`
    is a place, or `place:nth` for another time than the first; None only counts what is reached.
    The host must use `host.log` and `host.ambient`; what it leaves behind outside those two, such
    as files and threads, stays as it is.

    Raises NotReached where the block ends by itself, and RuntimeError where a task of the dead host
    does not end although it is cancelled.
    """

    def __init__(
        self, log: EmbeddedLog, *, at: str | None = None, ambient: Ambient | None = None
    ) -> None:
        self._place, self._nth = _parse(at)
        base = ambient or Ambient()
        self._go_on = base.reach
        self.log: EmbeddedLog = MortalLog(log, self._check)
        self.ambient = base._replace(reach=self._reach)
        self.reached: Counter[str] = Counter()
        """How often each place was reached."""
        self.crashed = False
        self._tasks: set[asyncio.Future[Any]] = set()
        self._made: WeakSet[asyncio.Future[Any]] = WeakSet()
        self._cancels = 0
        self._has_left = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        body = asyncio.current_task()
        assert body is not None, "a coroutine runs in a task"
        self._body = body
        self._cancelling = body.cancelling()
        self._token: Token[dying | None] = _life.set(self)
        self._factory_before = self._loop.get_task_factory()
        self._factory = self._make_task
        self._loop.set_task_factory(self._factory)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        self._has_left = True
        try:
            if self.crashed:
                await self._bury()
        finally:
            _life.reset(self._token)
            if self._loop.get_task_factory() == self._factory:
                self._loop.set_task_factory(self._factory_before)
            for _ in range(self._cancels):
                self._body.uncancel()
        if not self.crashed:
            if error is None and self._place is not None:
                raise NotReached(self._not_reached())
            return False
        if self._body.cancelling() > self._cancelling:
            raise asyncio.CancelledError  # by somebody else: that concerns the test, too
        return not isinstance(error, (KeyboardInterrupt, SystemExit))

    def _reach(self, place: str) -> None:
        self._check()
        self.reached[place] += 1
        self._go_on(place)
        if place == self._place and self.reached[place] == self._nth:
            self._die()
            self._check()

    def _check(self) -> None:
        if self.crashed:
            raise Crash(f"{self._place}:{self._nth}")

    def _die(self) -> None:
        self.crashed = True
        self._cancel_all()
        self._loop.call_later(REAP_S, self._reap)

    def _reap(self) -> None:
        if self._tasks or not self._has_left:
            self._cancel_all()
            self._loop.call_later(REAP_S, self._reap)

    def _cancel_all(self) -> None:
        """Cancel what is not running at this moment: that ends by Crash."""
        running = asyncio.current_task()
        for task in tuple(self._tasks):
            if task is not running:
                task.cancel()
        if not self._has_left and self._body is not running:
            self._cancels += 1
            self._body.cancel()

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, _T] | Generator[Any, None, _T],
        **given: Any,
    ) -> asyncio.Future[_T]:
        """Make a task; one that this host's code asks for dies with the host."""
        if self._factory_before is None:
            task: asyncio.Future[_T] = asyncio.Task(work, loop=loop, **given)
        else:
            task = self._factory_before(loop, work, **given)
        if _life.get() is self:
            self._made.add(task)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if self.crashed:
                task.cancel()
        return task

    async def _bury(self) -> None:
        """Return when all tasks of the dead host have ended."""
        await asyncio.sleep(0)  # a cancellation of the test that waits is heard here
        until = self._loop.time() + BURY_S
        while self._tasks:
            await asyncio.sleep(REAP_S)
            if self._loop.time() > until:
                raise RuntimeError(
                    f"the host died at {self._place}:{self._nth}, but these tasks of it do not end"
                    f" when they are cancelled: {', '.join(map(repr, self._tasks))}"
                )
        for task in self._made:
            if task.done() and not task.cancelled():
                task.exception()  # asyncio would tell that nobody looked at it

    def _not_reached(self) -> str:
        reached = ", ".join(f"{place} ({count})" for place, count in self.reached.items())
        return (
            f"the host was to die at {self._place}:{self._nth} and ended without reaching it; it"
            f" reached {reached or 'no place: give it host.log and host.ambient'}"
        )


def _parse(at: str | None) -> tuple[str | None, int]:
    """Place and count of `place` or `place:nth`. Raises ValueError."""
    if at is None:
        return None, 1
    place, colon, nth = at.partition(":")
    if colon and not (nth.isascii() and nth.isdigit() and int(nth)):
        raise ValueError(f"{at!r} is no place: write place or place:nth, nth from 1")
    return place, int(nth) if colon else 1
