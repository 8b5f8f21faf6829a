"""One actor's connection to the simulated log: the port `Log`, with everything that goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import NoReturn, Self

from turnlog.core.errors import AppendRefused, AppendUnknown, LogUnavailable, TurnlogError
from turnlog.core.frames import Record, SealedFrame
from turnlog.log.port import Difference, Heartbeat, Progress
from turnlog.log.refusals import refusal
from turnlog.tables.memory import DictStore
from turnlog.tables.store import Stored
from turnlog.testing.simulation.loop import Actor
from turnlog.testing.simulation.stores import LaggingStore
from turnlog.testing.simulation.world import World

Sent = Callable[[Actor, SealedFrame], None]


class Client:
    """See the module's text. It dies with its actor: what it has sent may still arrive."""

    url = "simulated:"
    partitions = 1

    def __init__(self, world: World, actor: Actor, sent: Sent) -> None:
        self.world = world
        self.actor = actor
        self.sent = sent
        self.outcomes: dict[int, tuple[Record, int | Exception]] = {}
        """What each append came to, in the order in which they were asked for."""
        self._appends = 0
        self._delays = world.chance.stream(f"delay:{actor.name}")
        self._cut_until_s = 0.0
        self._store: DictStore = world.tables
        if world.weather.lags:
            self._store = LaggingStore(world, world.chance.stream(f"lag:{actor.name}"))

    @property
    def tables(self) -> DictStore:
        """The client's tables: its own, behind the log, or those of an embedded log."""
        return self._store

    def partition_of(self, session: str) -> int:
        del session  # there is one for all
        return 0

    async def append(self, frame: SealedFrame) -> int:
        number, self._appends = self._appends, self._appends + 1
        try:
            position = await self._append(frame)
        except TurnlogError as error:
            self.outcomes[number] = frame.record, error
            raise
        self.outcomes[number] = frame.record, position
        return position

    async def _append(self, frame: SealedFrame) -> int:
        self.sent(self.actor, frame)
        if self._is_cut():
            await asyncio.sleep(self._delay())
            if self._delays.random() < 0.5:
                raise AppendRefused(f"{self.actor.name} is cut off", retriable=True)
            raise AppendUnknown(f"{self.actor.name} is cut off")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._send(frame, answer)
        position = await answer
        self._drift()
        return position

    async def load(self, records: Sequence[Record]) -> list[int]:
        del records
        raise LogUnavailable("a simulated log takes frames only")

    def check_record(self, record: Record) -> None:
        del record

    async def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        del partition
        await self.pause()
        for stored in self.world.records[:]:
            if stored.position > after and session in (None, stored.record.session):
                yield stored
        self._drift()

    def follow(
        self, after: int = 0, *, partition: int = 0, pause_s: float = 0.0
    ) -> AsyncIterator[Stored]:
        del partition
        return _Follow(self, after, pause_s)

    async def end(self, partition: int = 0) -> int:
        del partition
        await self.pause()
        return self.world.end

    async def close(self) -> None:
        """Nothing is under way that a client would finish."""

    def rebuild(self, progress: Progress | None = None) -> int:
        del progress
        return _refuse("rebuilt")

    def verify(self, progress: Progress | None = None) -> Iterator[Difference]:
        del progress
        return _refuse("verified")

    async def beat(self, beat: Heartbeat) -> None:
        await self.pause()
        self.world.beats[beat.instance] = beat

    async def end_beating(self, instance: str) -> None:
        await self.pause()
        self.world.beats.pop(instance, None)

    async def heartbeats(self) -> list[Heartbeat]:
        await self.pause()
        return [self.world.beats[instance] for instance in sorted(self.world.beats)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    async def pause(self) -> None:
        """A round trip. Raises LogUnavailable while the client is cut off."""
        await asyncio.sleep(self._delay())
        if self._is_cut():
            raise LogUnavailable(f"{self.actor.name} is cut off", retriable=True)

    def _drift(self) -> None:
        if isinstance(self._store, LaggingStore):
            self._store.drift()

    def _is_cut(self) -> bool:
        now = self.world.loop.now
        if self._strikes("cut"):
            self._cut_until_s = now + self._delays.expovariate(0.5)
        return now < self._cut_until_s and not self.world.chance.is_calm

    def _strikes(self, what: str) -> bool:
        probability: float = getattr(self.world.weather, what)
        if not probability:
            return False
        return self.world.chance.strikes(f"{what}:{self.actor.name}", probability)

    def _delay(self) -> float:
        """Seconds; mostly some milliseconds."""
        return self._delays.expovariate(200 / self.world.weather.slow)

    def _long_delay(self) -> float:
        """Seconds that let other frames overtake."""
        return self._delays.expovariate(2)

    def _send(self, frame: SealedFrame, answer: asyncio.Future[int]) -> None:
        later, delay = self.world.loop.later, self._delay()
        # every fault is drawn each time, so that leaving one out moves none of the others
        refused, dropped, lost, late, repeated = (
            self._strikes(what) for what in ("refused", "dropped", "lost", "late", "repeated")
        )
        if refused:
            later(delay, self._fail, answer, AppendRefused("refused", retriable=True))
        elif dropped or lost or late:
            why = "lost" if lost else "late" if late else "dropped"
            later(delay + self._delay(), self._fail, answer, AppendUnknown(why))
            if lost or late:
                later(self._long_delay() if late else delay, self._arrive, frame, None)
        else:
            later(delay, self._arrive, frame, answer)
            if repeated:
                later(delay + self._long_delay(), self._arrive, frame, None)

    def _arrive(self, frame: SealedFrame, answer: asyncio.Future[int] | None) -> None:
        world = self.world
        if world.weather.strict:
            refused = refusal(frame.frame, world.tables)
            if refused is not None:
                if answer is not None:
                    world.loop.later(self._delay(), self._fail, answer, refused)
                return
        position = world.put(frame.record)
        if answer is not None:
            world.loop.later(self._delay(), self._acknowledge, answer, position)

    def _acknowledge(self, answer: asyncio.Future[int], position: int) -> None:
        if not answer.done():
            answer.set_result(position)

    def _fail(self, answer: asyncio.Future[int], error: Exception) -> None:
        if not answer.done():
            answer.set_exception(error)


class _Follow:
    """The records after a position, and then what comes, a little later."""

    def __init__(self, client: Client, after: int, pause_s: float) -> None:
        self._client = client
        self._pause_s = pause_s
        records = client.world.records
        self._index = next((i for i, item in enumerate(records) if item.position > after), None)
        self._from = len(records)

    def __aiter__(self) -> AsyncIterator[Stored]:
        return self

    async def __anext__(self) -> Stored:
        index = self._from if self._index is None else self._index
        world = self._client.world
        if index >= len(world.records):
            while index >= len(world.records):
                await world.signal.wait(world.signal.count)
            await self._client.pause()
            await asyncio.sleep(self._pause_s)
        self._index = index + 1
        return world.records[index]


def _refuse(what: str) -> NoReturn:
    raise LogUnavailable(f"a simulated log is not {what}")
