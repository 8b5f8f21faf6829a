"""An event loop without a real clock, whose order is drawn from a seed.

Everything that is scheduled belongs to an *actor*: a process with its own tasks and clock. Within
an actor callbacks run in order, as asyncio promises; which actor runs next is drawn. Time jumps to
the next timer when nothing is ready. An actor can be killed (nothing of it ever runs again) and
frozen, even in the middle of a callback: the loop then runs the others inside that call.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from itertools import count
from random import Random
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Killed(BaseException):
    """Unwinds the stack of an actor that was killed in the middle of a callback."""


class Actor:
    """A process: its callbacks, whether it lives, and how far its clock stood still (seconds)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: list[asyncio.Task[Any]] = []
        self.main: asyncio.Task[Any] | None = None
        self.held: list[tuple[float, asyncio.TimerHandle]] = []
        self.is_dead = False
        self.is_frozen = False
        self.is_queued = False
        self.stood_s = 0.0
        self.context = copy_context()
        self.context.run(_ACTOR.set, self)


_ACTOR: ContextVar[Actor] = ContextVar("actor")
_serial = count()


class _Future(asyncio.Future[Any]):
    """Futures are kept in sets, whose order must not come from where they lie in memory."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._hash = next(_serial)

    def __hash__(self) -> int:
        return self._hash


class _Task(asyncio.Task[Any]):
    """As `_Future`; and one that is left behind by a killed actor is no mistake."""

    def __init__(self, coro: Coroutine[Any, Any, Any], actor: Actor, **options: Any) -> None:
        self.actor = actor
        self._hash = next(_serial)
        super().__init__(coro, **options)
        self._log_destroy_pending = False

    def __hash__(self) -> int:
        return self._hash


class SimulatedLoop(asyncio.BaseEventLoop):
    """See the module's text. `order` draws who is next; after `steps_max` callbacks it stops.
    `lost_error` is told of errors that nobody looked after."""

    def __init__(self, order: Random, steps_max: int, lost_error: Callable[[str], None]) -> None:
        super().__init__()
        self.world = Actor("world")
        self.steps = 0
        self._lost_error = lost_error
        self._everybody: list[Actor] = []
        self._order = order
        self._steps_max = steps_max
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Actor]] = []
        self._timer_no = count()
        self._runnable: list[Actor] = []
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether the history has ended."""
        return self._over

    @property
    def is_exhausted(self) -> bool:
        """Whether the history ended because it took too many steps."""
        return self.steps >= self._steps_max

    # ---- what asyncio asks of a loop ---------------------------------------------------------

    def time(self) -> float:
        return self._now - self.actor.stood_s

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._push(self._actor_of(context), handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._set_timer(self._now + max(delay, 0.0), callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        when += self._actor_of(context).stood_s
        return self._set_timer(max(when, self._now), callback, args, context)

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,
    ) -> asyncio.Task[T]:
        del options
        named = None if name is None else str(name)
        actor = self._actor_of(context)
        task = _Task(coro, actor, loop=self, name=named, context=context)  # type: ignore[arg-type]  # as asyncio.Task
        actor.tasks.append(task)
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        del executor, func, args
        raise RuntimeError("there are no threads in a simulation: they cannot be replayed")

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what a live actor did not look after; a future may be left behind by a dead one."""
        error, task = context.get("exception"), context.get("task")
        actor = task.actor if isinstance(task, _Task) else self.actor
        is_told = task is not None or "handle" in context
        if is_told and not actor.is_dead and not isinstance(error, Killed):
            self._lost_error(f"{actor.name}: {context.get('message')}: {error!r}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing: a cancelled timer is thrown away when it is due."""

    def _write_to_self(self) -> None:
        """Nothing: nobody waits in a selector."""

    def _run_once(self) -> None:
        """One callback. BaseEventLoop.run_forever calls this until the loop is stopped."""
        if self._over or not self._has_ready():
            self.stop()
        else:
            self._step()

    # ---- actors ------------------------------------------------------------------------------

    @property
    def actor(self) -> Actor:
        """The actor that runs now."""
        return _ACTOR.get(self.world)

    @property
    def now(self) -> float:
        """Seconds since the history began, for the world."""
        return self._now

    def spawn(self, actor: Actor, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a coroutine as an actor's. What it schedules belongs to the actor, too."""
        return self.create_task(coro, context=actor.context.copy())

    def later(self, delay_s: float, callback: Callable[..., object], *args: Any) -> None:
        """Call something as the world, whatever becomes of the actor that runs now."""
        self.call_later(delay_s, callback, *args, context=self.world.context.copy())

    def kill(self, actor: Actor) -> None:
        """Nothing of the actor runs any more. If it runs now, raise `Killed` after this."""
        actor.is_dead = True
        actor.ready.clear()

    def freeze(self, actor: Actor, duration_s: float, *, stands: bool) -> None:
        """Hold an actor back for a time. With `stands` the loop's clock stands still for it
        meanwhile, as in a suspended machine; else it jumps on waking, as after SIGSTOP.

        Where the actor itself calls this, others run inside the call. Raises Killed where the
        actor was killed meanwhile, or the history is over.
        """
        if actor.is_dead or actor.is_frozen:
            return
        actor.is_frozen = True
        self.later(duration_s, self._wake, actor, duration_s if stands else 0.0)
        if self.actor is not actor:
            return
        task = asyncio.current_task(self)
        if task is not None:
            asyncio.tasks._leave_task(self, task)  # pyright: ignore[reportPrivateUsage]  # asyncio's own way to extend it
        while actor.is_frozen and not self._over and self._has_ready():
            self._step()
        if task is not None:
            asyncio.tasks._enter_task(self, task)  # pyright: ignore[reportPrivateUsage]  # as above
        if actor.is_dead or actor.is_frozen:
            self.kill(actor)
            raise Killed(actor.name)

    def end(self) -> None:
        """End the history: nothing more runs."""
        self._over = True

    def bury(self) -> None:
        """Close what is left of every coroutine. The log no longer takes anything of them."""
        self._over = True
        for actor in (*self._everybody, self.world):
            actor.is_dead = True
            for task in actor.tasks:
                if not task.done():
                    actor.context.copy().run(_close, task.get_coro())
        self._timers.clear()
        self.close()

    # ---- inside ------------------------------------------------------------------------------

    def add(self, name: str) -> Actor:
        """A new actor."""
        actor = Actor(name)
        self._everybody.append(actor)
        return actor

    def is_anybody_busy(self) -> bool:
        """Whether an actor's main task can still go on."""
        return any(
            actor.main is not None and not actor.is_dead and not actor.main.done()
            for actor in self._everybody
        )

    def _actor_of(self, context: Context | None) -> Actor:
        if context is None:
            return _ACTOR.get(self.world)
        return context.get(_ACTOR, self.world)

    def _push(self, actor: Actor, handle: asyncio.Handle) -> None:
        if actor.is_dead:
            return
        actor.ready.append(handle)
        if not actor.is_queued and not actor.is_frozen:
            actor.is_queued = True
            self._runnable.append(actor)

    def _set_timer(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        actor = self._actor_of(context)
        handle = asyncio.TimerHandle(when - actor.stood_s, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._timer_no), handle, actor))
        return handle

    def _has_ready(self) -> bool:
        """Whether anything can run now; if not, time goes on to the next timer."""
        while not self._runnable:
            if not self._timers or self.is_exhausted:
                return False
            self._now = max(self._now, self._timers[0][0])
            while self._timers and self._timers[0][0] <= self._now:
                when, _, handle, actor = heapq.heappop(self._timers)
                if handle.cancelled():
                    continue
                if actor.is_frozen:
                    actor.held.append((when, handle))
                else:
                    self._push(actor, handle)
        return not self.is_exhausted

    def _step(self) -> None:
        self.steps += 1
        runnable = self._runnable
        index = int(self._order.random() * len(runnable)) if len(runnable) > 1 else 0
        actor = runnable[index]
        ready = actor.ready
        handle = ready.popleft() if ready and not actor.is_frozen else None
        if not ready or actor.is_frozen:
            runnable[index] = runnable[-1]
            runnable.pop()
            actor.is_queued = False
        if handle is not None and not handle.cancelled():
            handle._run()

    def _wake(self, actor: Actor, stood_s: float) -> None:
        actor.is_frozen = False
        held, actor.held = actor.held, []
        if stood_s:
            actor.stood_s += stood_s
            self._timers = [
                (when + stood_s if whose is actor else when, no, handle, whose)
                for when, no, handle, whose in self._timers
            ]
            heapq.heapify(self._timers)
        for when, handle in held:
            if stood_s and when + stood_s > self._now:
                entry = (when + stood_s, next(self._timer_no), handle, actor)
                heapq.heappush(self._timers, entry)
            else:
                actor.ready.append(handle)
        if actor.ready and not actor.is_dead and not actor.is_queued:
            actor.is_queued = True
            self._runnable.append(actor)


def _close(coro: Any) -> None:
    """Close a coroutine, however often its cleanup awaits something that never comes."""
    for _ in range(100):
        try:
            coro.close()
        except RuntimeError:
            continue
        except BaseException:
            return
        return
