"""The log as a process hands it out: what is appended through it is counted and timed.

It stands in front of the log, so neither the log nor anything below it knows that somebody counts,
and a log that is opened elsewhere pays nothing.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from turnlog.cli.process.metrics import Metrics, kind_of
from turnlog.core.errors import AppendRefused, LogUnavailable, OwnershipError, SchemaError
from turnlog.core.frames import Frame, Record, SealedFrame, decode
from turnlog.log import EmbeddedLog

APPENDED, REFUSED, UNKNOWN = "appended", "refused", "unknown"
_REFUSALS = (AppendRefused, LogUnavailable, OwnershipError, SchemaError)
"""What says that nothing was appended."""


def measured(log: EmbeddedLog, metrics: Metrics) -> EmbeddedLog:
    """The same log, whose appends are counted."""
    return cast("EmbeddedLog", _MeasuredLog(log, metrics))


class _MeasuredLog:
    """Everything but appends is the log's own."""

    def __init__(self, log: EmbeddedLog, metrics: Metrics) -> None:
        self._log = log
        self._metrics = metrics
        self._kind = kind_of(log.url)

    async def append(self, frame: SealedFrame) -> int:
        with self._timed():
            position = await self._log.append(frame)
        types = (event.type for event in frame.frame.events)
        self._metrics.count_appended(self._kind, types, len(frame.record.body))
        return position

    async def load(self, records: Sequence[Record]) -> list[int]:
        with self._timed():
            positions = await self._log.load(records)
        for record in records:
            frame = decode(record)
            types = [event.type for event in frame.events] if isinstance(frame, Frame) else []
            self._metrics.count_appended(self._kind, types, len(record.body))
        return positions

    @contextmanager
    def _timed(self) -> Generator[None]:
        began = time.perf_counter()
        outcome = UNKNOWN  # also where nobody waits for it any more
        try:
            yield
            outcome = APPENDED
        except _REFUSALS:
            outcome = REFUSED
            raise
        finally:
            duration = time.perf_counter() - began
            self._metrics.append_duration.labels(self._kind, outcome).observe(duration)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def __aenter__(self) -> _MeasuredLog:
        await self._log.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._log.__aexit__(*exc)

    def __enter__(self) -> _MeasuredLog:
        self._log.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._log.__exit__(*exc)
