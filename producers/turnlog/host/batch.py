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
    """Events that belong in one frame, and who waits until they are saved."""

    __slots__ = ("events", "size", "waiting", "withdraws")

    def __init__(self, events: Sequence[NewEvent], size: int, *, withdraws: bool) -> None:
        self.events = events
        self.size = size
        self.withdraws = withdraws
        self.waiting: list[asyncio.Future[int]] = []

    def end(self, outcome: int | BaseException) -> None:
        """Tell who waits the position of the frame, or how this attempt to write it failed."""
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if future.done():
                continue
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
        self._put(events, withdraws=False)
        if self._size > MAX_WAITING_BYTES:
            await self.send()
        elif self._timer is None and not self._failed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._window_s, self._fire)

    def send(
        self, events: Sequence[NewEvent] = (), *, withdraw: bool = False
    ) -> asyncio.Future[int]:
        """Write everything that waits, and these events, now.

        The future gets the position of the last frame once it is saved, or what `Owner.write`
        raises; to give up waiting stops nothing. What could not be written waits on; with
        `withdraw` these events are taken back instead, unless the error is AppendUnknown: their
        frame may have arrived. Raises SchemaError and TooLarge, and has taken nothing then.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if events:
            self._put(events, withdraws=withdraw)
        if not self._units:
            future.set_result(0)
            return future
        future.add_done_callback(_look_at)
        self._units[-1].waiting.append(future)
        self._stop_timer()
        self._drain_now()
        return future

    def drop(self, error: Fenced) -> None:
        """The session is lost: forget what waits, and tell who waits for it."""
        units, self._units = self._units, []
        self._size = self._in_doubt = 0
        self.version += 1
        self._stop_timer()
        for unit in units:
            unit.end(error)

    def _put(self, events: Sequence[NewEvent], *, withdraws: bool) -> None:
        """Checked here, so that no event can spoil the frame of others."""
        owner = self._owner
        header = Header(owner.session, owner.claim_id, owner.epoch, 1, owner.host)
        size = len(seal(header, events).record.body)
        unit = Unit(events, size, withdraws=withdraws)
        self._units.append(unit)
        self._size += size
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
        behind = error
        if isinstance(error, Fenced):
            behind = error = Fenced(str(error), self.waiting)
        elif isinstance(error, AppendUnknown):
            behind = AppendRefused(f"an earlier frame is in doubt: {error}", retriable=True)
        doubtful, rest = self._units[: self._in_doubt], self._units[self._in_doubt :]
        self._units = doubtful + [unit for unit in rest if not unit.withdraws]
        self._size = sum(unit.size for unit in self._units)
        self.version += 1
        for unit in doubtful:
            unit.end(error)
        for unit in rest:
            unit.end(behind)
        if isinstance(error, Fenced):  # last, since it drops what is here
            self._on_error(error)

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
        if isinstance(error, TurnlogError) and not isinstance(error, Fenced):
            self._on_error(error)


def _look_at(future: asyncio.Future[int] | asyncio.Task[None]) -> None:
    """Who waited may be gone; what failed is still kept, and told by the next flush."""
    if not future.cancelled():
        future.exception()
