"""The log of a simulated world: what has really arrived, and the tables that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from turnlog.core import fold as folding
from turnlog.core.frames import Frame, Record, Unreadable, decode
from turnlog.core.rows import Changes
from turnlog.log.port import Heartbeat
from turnlog.tables.memory import DictStore
from turnlog.tables.signal import Signal
from turnlog.tables.store import Stored
from turnlog.testing.simulation.chance import Chance
from turnlog.testing.simulation.loop import SimulatedLoop

EPOCH_MS = 1_770_000_000_000
"""When every history begins, as labels tell it."""


class Weather(NamedTuple):
    """How bad a history's world is: probabilities of each fault, and what the log does by itself.

    `lost`: appended, not acknowledged. `dropped`: neither. `late`: not acknowledged, and arriving
    after other frames. `repeated`: arriving twice. `refused`: certainly not there. `cut`: a client
    is cut off for a while. `slow`: how much slower than usual answers may be. `lags`: whether
    tables are each client's own and behind. `strict`: whether the log refuses claims that would
    lose and T1 of owners who are not in force, as an embedded one does.
    """

    lost: float = 0.0
    dropped: float = 0.0
    late: float = 0.0
    repeated: float = 0.0
    refused: float = 0.0
    cut: float = 0.0
    slow: float = 1.0
    lags: bool = True
    strict: bool = False


class Landed(NamedTuple):
    """A record at its position, and what folding it changed."""

    stored: Stored
    frame: Frame | Unreadable
    changes: Changes


class World:
    """One partition, with holes between positions."""

    def __init__(self, loop: SimulatedLoop, chance: Chance, weather: Weather) -> None:
        self.loop = loop
        self.chance = chance
        self.weather = weather
        self.records: list[Stored] = []
        self.landed: list[Landed] = []
        self.signal = Signal()
        self.tables = DictStore(self.records, self.signal)
        self.beats: dict[str, Heartbeat] = {}
        self.watchers: list[Callable[[Landed], None]] = []
        self._holes = chance.stream("holes")

    @property
    def end(self) -> int:
        """The position of the last record."""
        return self.records[-1].position if self.records else 0

    @property
    def time_ms(self) -> int:
        """The time of day, as records are labelled."""
        return EPOCH_MS + int(self.loop.now * 1000)

    def put(self, record: Record) -> int:
        """A record arrives: it gets the next position and is folded."""
        position = self.end + 1 + int(self._holes.random() * 3)
        stored = Stored(position, self.time_ms, record)
        frame = decode(record)
        self.records.append(stored)
        changes = folding.fold(frame, position, self.tables)
        self.tables.apply(changes, position)
        landed = Landed(stored, frame, changes)
        self.landed.append(landed)
        self.signal.notify()
        for watcher in self.watchers:
            watcher(landed)
        return position
