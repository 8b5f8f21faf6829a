"""Batching: events wait a little for company, but what others rely on is written at once.

The first event opens a window that later ones do not extend. `flush` writes now, and who flushes
while a frame is under way shares the next one. A write that fails keeps what waited, is not
repeated by itself, and is told through a callback and by the flushes that wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from copy import copy

import orjson

from turnlog.core.errors import AppendRefused, AppendUnknown, Fenced, LogError, TurnlogError
from turnlog.core.events import ENTRY_TYPES
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
            if isinstance(outcome, TurnlogError):  # raised in several places: each has its own
                future.set_exception(copy(outcome))
            elif isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


class Batch:
    """The events of one session that are not known to be saved. A unit is never split.

    `on_less` is called whenever something that waited does so no longer, or is another.
    """

    def __init__(
        self,
        owner: Owner,
        *,
        window_s: float,
        on_error: Callable[[TurnlogError], None],
        on_less: Callable[[], None],
    ) -> None:
        self._owner = owner
        self._window_s = window_s
        self._on_error = on_error
        self._on_less = on_less
        self._units: list[Unit] = []
        self._size = 0
        self._in_doubt = 0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._failed = False
        self._by_timer = False

    @property
    def waiting(self) -> list[NewEvent]:
        """The events that are not known to be saved, in order."""
        return [event for unit in self._units for event in unit.events]

    def put(self, events: Sequence[NewEvent]) -> None:
        """Take events that belong in one frame.

        Raises SchemaError and TooLarge, and has taken nothing then.
        """
        self._put(events, withdraws=False)
        if self._timer is None and not self._failed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._window_s, self._fire)

    async def relieve(self) -> None:
        """Wait for the log while too much is waiting."""
        if self._size > MAX_WAITING_BYTES:
            await self.send()

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
        """Forget what waits, and tell everybody who waits for it."""
        units, self._units, self._size, self._in_doubt = self._units, [], 0, 0
        self._on_less()
        self._stop_timer()
        for unit in units:
            unit.end(error)

    def _put(self, events: Sequence[NewEvent], *, withdraws: bool) -> None:
        """Checked here, so that no event can spoil the frame of others, and copied: whoever gave
        the data may change it while it waits."""
        owner = self._owner
        header = Header(owner.session, owner.claim_id, owner.epoch, 1, owner.host)
        body = seal(header, events).record.body
        copies = orjson.loads(body)["events"]
        kept = [event._replace(data=raw["data"]) for event, raw in zip(events, copies, strict=True)]
        self._units.append(Unit(kept, len(body), withdraws=withdraws))
        self._size += len(body)

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
                await self._owner.known(position)
                done, self._units = self._units[:count], self._units[count:]
                self._size -= sum(unit.size for unit in done)
                self._in_doubt, self._failed = 0, False
                self._on_less()
                for unit in done:
                    unit.end(position)
            self._by_timer = False
        except BaseException as error:
            self._failed = True
            self._end_all(error)
            raise

    async def _write(self, events: list[NewEvent], count: int) -> int:
        try:
            if self._in_doubt:
                return await self._owner.settle()
            return await self._owner.write(events)
        except BaseException:
            self._in_doubt = count if self._owner.in_doubt else 0
            raise

    def _end_all(self, error: BaseException) -> None:
        """Tell everybody who waits; only the units of the frame in doubt may be in the log."""
        units, doubtful, behind = self._units, self._units[: self._in_doubt], error
        is_heard = any(not future.done() for unit in units for future in unit.waiting)
        if isinstance(error, Fenced):
            error = Fenced(str(error), self.waiting)
            self.drop(error)
        else:
            self._keep(doubtful, units[self._in_doubt :])
            for unit in doubtful:
                is_unknown = isinstance(error, AppendUnknown) or not isinstance(error, LogError)
                unit.end(error if is_unknown else AppendUnknown(f"not known to be saved: {error}"))
            if doubtful and isinstance(error, LogError):
                behind = AppendRefused(f"an earlier frame is in doubt: {error}", retriable=True)
            for unit in units[len(doubtful) :]:
                unit.end(behind)
        by_timer, self._by_timer = self._by_timer, False
        if isinstance(error, Fenced) or (
            isinstance(error, TurnlogError) and (by_timer or not is_heard)
        ):
            self._on_error(error)

    def _keep(self, doubtful: list[Unit], rest: list[Unit]) -> None:
        """Take back what asked for it. Entries behind hang where it would have hung."""
        stand_in: dict[str, str | None] = {}
        kept = list(doubtful)
        for unit in rest:
            if unit.withdraws:
                for event in unit.events:
                    if event.type in ENTRY_TYPES:
                        parent: str | None = event.data.get("parent")
                        stand_in[event.id] = stand_in.get(parent or "", parent)
                continue
            if stand_in:
                unit.events = [_under(event, stand_in) for event in unit.events]
            kept.append(unit)
        self._units = kept
        self._size = sum(unit.size for unit in kept)
        self._on_less()

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
        self._by_timer = True
        self._drain_now()


def _under(event: NewEvent, stand_in: Mapping[str, str | None]) -> NewEvent:
    """An event with its references to entries that were taken back replaced."""
    moved = {
        name: stand_in[event.data[name]]
        for name in ("parent", "from", "start_leaf")
        if event.data.get(name) in stand_in
    }
    return event._replace(data={**event.data, **moved}) if moved else event


def _look_at(future: asyncio.Future[int] | asyncio.Task[None]) -> None:
    """Who waited may be gone; what failed is still kept, and told by the next flush."""
    if not future.cancelled():
        future.exception()
