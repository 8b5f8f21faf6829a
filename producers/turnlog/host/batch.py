"""Batching: events wait a little for company, but what others rely on is written at once.

The first event opens a window that later ones do not extend. `flush` writes now, and who flushes
while a frame is under way shares the next one. A write that fails keeps what waited, is not
repeated by itself, and is told through a callback and by the flushes that wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from turnlog.core.errors import AppendRefused, AppendUnknown, Fenced, TurnlogError
from turnlog.core.frames import MAX_EVENTS, MAX_FRAME_BYTES, Header, NewEvent, seal
from turnlog.owner.owner import Owner

WINDOW_S = 0.2
MAX_WAITING_BYTES = 4_000_000
"""Beyond this much a writer waits for the log: memory stays bounded when the log is slow."""


class Unit:
    """Events that belong in one frame, and the future of who waits until they are saved."""

    __slots__ = ("events", "future", "size")

    def __init__(self, events: Sequence[NewEvent], size: int) -> None:
        self.events = events
        self.size = size
        self.future: asyncio.Future[int] | None = None

    def saved(self) -> asyncio.Future[int]:
        """Gets the position of the frame, or the error that this attempt to write it ended with."""
        if self.future is None:
            self.future = asyncio.get_running_loop().create_future()
            self.future.add_done_callback(_look_at)
        return self.future

    def end(self, outcome: int | BaseException) -> None:
        """Tell who waits."""
        future, self.future = self.future, None
        if future is None or future.done():
            return
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class Batch:
    """The events of one session that are not known to be saved. A unit is never split."""

    def __init__(
        self, owner: Owner, *, window_s: float, on_error: Callable[[TurnlogError], None]
    ) -> None:
        self._owner = owner
        self._window_s = window_s
        self._on_error = on_error
        self._units: list[Unit] = []
        self._size = 0
        self._in_doubt = 0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._failed = False
        self.version = 0
        """Another one whenever something else waits."""

    @property
    def waiting(self) -> list[NewEvent]:
        """The events that are not known to be saved, in order."""
        return [event for unit in self._units for event in unit.events]

    async def add(self, events: Sequence[NewEvent]) -> None:
        """Take events that belong in one frame. Waits for the log while too much is waiting.

        Raises SchemaError and TooLarge, and has taken nothing then.
        """
        self._put(events)
        if self._size > MAX_WAITING_BYTES:
            await self.flush()
        elif self._timer is None and not self._failed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._window_s, self._fire)

    async def flush(self, events: Sequence[NewEvent] = (), *, withdraw: bool = False) -> int:
        """Write everything that waits, and these events, and return once it is saved.

        Gives the position of the last frame. What could not be written waits on; with `withdraw`
        these events are taken back instead, unless the error is AppendUnknown: their frame may have
        arrived. A call that is cancelled leaves the write under way. Raises what `Owner.write`
        raises.
        """
        if events:
            self._put(events)
        if not self._units:
            return 0
        unit = self._units[-1]
        self._stop_timer()
        self._drain_now()
        try:
            return await asyncio.shield(unit.saved())
        except AppendUnknown:
            raise
        except TurnlogError:
            if withdraw:
                self._withdraw(unit)
            raise

    def drop(self) -> list[NewEvent]:
        """Forget what waits, and give it back."""
        events = self.waiting
        self._units, self._size, self._in_doubt = [], 0, 0
        self.version += 1
        self._stop_timer()
        return events

    def _put(self, events: Sequence[NewEvent]) -> None:
        """Checked here, so that no event can spoil the frame of others."""
        owner = self._owner
        header = Header(owner.session, owner.claim_id, owner.epoch, 1, owner.host)
        unit = Unit(events, len(seal(header, events).record.body))
        self._units.append(unit)
        self._size += unit.size
        self.version += 1

    def _withdraw(self, unit: Unit) -> None:
        if unit in self._units:
            self._units.remove(unit)
            self._size -= unit.size
            self.version += 1

    def _drain_now(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._drain())
            self._task.add_done_callback(_look_at)
        return self._task

    async def _drain(self) -> None:
        try:
            while self._units:
                count = self._in_doubt or self._next_frame()
                events = [event for unit in self._units[:count] for event in unit.events]
                position = await self._write(events, count)
                done, self._units = self._units[:count], self._units[count:]
                self._size -= sum(unit.size for unit in done)
                self._in_doubt, self._failed = 0, False
                self.version += 1
                for unit in done:
                    unit.end(position)
        except BaseException as error:
            self._failed = True
            self._end_all(error)
            raise

    async def _write(self, events: list[NewEvent], count: int) -> int:
        if self._in_doubt:
            return await self._owner.settle()
        try:
            return await self._owner.write(events)
        except AppendUnknown:
            self._in_doubt = count
            raise

    def _end_all(self, error: BaseException) -> None:
        """Tell everybody who waits; only the units of the frame in doubt may be in the log."""
        if isinstance(error, Fenced):
            error = Fenced(str(error), self.waiting)
        behind = error
        if isinstance(error, AppendUnknown):
            behind = AppendRefused(f"an earlier frame is in doubt: {error}", retriable=True)
        for index, unit in enumerate(tuple(self._units)):
            unit.end(error if index < self._in_doubt else behind)

    def _next_frame(self) -> int:
        """How many units go into the next frame: at least one."""
        events = size = 0
        for count, unit in enumerate(self._units):
            events, size = events + len(unit.events), size + unit.size
            if count and (events > MAX_EVENTS or size > MAX_FRAME_BYTES):
                return count
        return len(self._units)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._drain_now().add_done_callback(self._tell)

    def _tell(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, TurnlogError):
            self._on_error(error)


def _look_at(future: asyncio.Future[int] | asyncio.Task[None]) -> None:
    """Who waited may be gone; what failed is still kept, and told by the next flush."""
    if not future.cancelled():
        future.exception()
