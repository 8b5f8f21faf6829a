"""Looking after who follows a log: how far each is, what that means for readiness, and the gauges.

It looks by itself and keeps what it found, so that a probe waits for nothing and however many of
them cost a broker nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from turnlog.cli.process.health import Health
from turnlog.cli.process.lag import Lag
from turnlog.cli.process.metrics import Metrics, topic_of
from turnlog.core.errors import TurnlogError
from turnlog.log import EmbeddedLog

LOOK_S = 5.0
OLD_S = 60.0
"""A look that is older says nothing any more. A log on Kafka may take 15 s for one."""
TABLES = "tables"
_LOG = logging.getLogger(__name__)


class Reading:
    """Somebody who follows one partition; `position` is what he has dealt with."""

    def __init__(self, group: str, partition: int, position: int) -> None:
        self.group = group
        self.partition = partition
        self.position = position


class Watch:
    """Looks at one log, and at the partitions of it that somebody follows."""

    def __init__(
        self,
        log: EmbeddedLog,
        health: Health,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._health = health
        self._metrics = metrics
        self._topic = topic_of(log.url)
        self._clock = clock
        self._looked_s = clock()
        self._trouble: str | None = "not looked at yet"
        self._lags: dict[tuple[str, int], Lag] = {}
        self._found: dict[str, dict[int, str | None]] = {}
        self._readings: list[Reading] = []
        self._wake = asyncio.Event()
        health.add("log", self._log_check)

    def add(self, reading: Reading) -> None:
        """Look after somebody more, from now on."""
        self._readings.append(reading)
        for name in (TABLES, reading.group):
            self._found.setdefault(name, {})[reading.partition] = "not looked at yet"
            self._health.add(name, partial(_worst, self._found[name]))
        self._wake.set()

    async def run(self) -> None:
        """Look now and then, for ever."""
        while True:
            self._wake.clear()
            try:
                await self.look()
            except TurnlogError as error:
                self._trouble = str(error)
            except Exception as error:
                self._trouble = f"{type(error).__name__}: {error}"
                _LOG.exception("the log could not be looked at")
            with suppress(TimeoutError):
                # not by wait_for, which loses a cancellation that comes together with the wake
                async with asyncio.timeout(LOOK_S):
                    await self._wake.wait()

    async def look(self) -> None:
        """Ask where the log ends and how far everybody is. Raises what the log raises."""
        readings = self._readings[:]  # others may come meanwhile
        partitions = {reading.partition for reading in readings} or {0}
        ends = {each: await self._log.end(each) for each in sorted(partitions)}
        for partition, end in ends.items():
            at = self._log.tables.position(partition)
            self._metrics.log_end.labels(partition).set(end)
            self._metrics.projection_position.labels(TABLES, partition).set(at)
            self._judge(TABLES, partition, at, end)
        for reading in readings:
            end = ends[reading.partition]
            behind = max(0, end - reading.position)
            gauge = self._metrics.lag.labels(reading.group, self._topic, reading.partition)
            gauge.set(behind)
            self._judge(reading.group, reading.partition, reading.position, end)
        self._looked_s, self._trouble = self._clock(), None

    def _judge(self, name: str, partition: int, position: int, end: int) -> None:
        lag = self._lags.setdefault((name, partition), Lag(self._clock()))
        said = lag.look(position, end, self._clock())
        self._found.setdefault(name, {})[partition] = said

    def _log_check(self) -> str | None:
        old_s = self._clock() - self._looked_s
        if self._trouble is None and old_s > OLD_S:
            return f"its end is not known since {old_s:.0f} s"
        return self._trouble


def _worst(found: dict[int, str | None]) -> str | None:
    said = [f"partition {partition} is {what}" for partition, what in [*found.items()] if what]
    return "; ".join(said) or None
