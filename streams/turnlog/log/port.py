"""The port that every log adapter implements, and the contract behind it.

A log stores records in partitions. A position is where a record stands in its partition: a number
from 1 that grows, with holes; it is opaque above the log and ordered only within one session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, Self

from turnlog.core.frames import Record, SealedFrame
from turnlog.tables.store import Difference, Store, Stored

__all__ = ["Difference", "EmbeddedLog", "Heartbeat", "Log", "Progress", "Store", "Stored"]

Progress = Callable[[int, int], None]
"""Called with the position that was reached and the one that is wanted."""


class Heartbeat(NamedTuple):
    """The last sign of life of one run of a host.

    A host's name may be used again after a restart, so each run has an `instance` of its own and
    says since which position of the log it has run: of partition 0, and in `others` of 1, 2, ….
    `uptime` is in seconds on the clock of `boot` (`turnlog.owner.ambient.Uptime`); `time`, ms since
    1970, is a label.
    """

    host: str
    instance: str
    since: int
    boot: str
    uptime: float
    time: int
    others: tuple[int, ...] = ()

    def since_in(self, partition: int) -> int:
        """Since which position of a partition it has run."""
        return (self.since, *self.others)[partition]


class Log(Protocol):
    """A durable log of frames.

    Every method may raise `LogUnavailable`. An append has three outcomes: it returns the position
    (the frame is on disk, or acknowledged by all in-sync replicas), raises `AppendRefused` (it is
    certainly not there), or raises `AppendUnknown` (it may be there, or still arrive).
    """

    url: str
    partitions: int

    def partition_of(self, session: str) -> int:
        """The partition, from 0, that holds a session."""
        ...

    async def append(self, frame: SealedFrame) -> int:
        """Append one sealed frame durably. A fenced frame is never refused for being fenced,
        but an adapter that can see it in the same transaction may refuse a claim that would lose
        and a frame with a T1 of an owner who is not in force."""
        ...

    async def load(self, records: Sequence[Record]) -> list[int]:
        """Append records as they are, whatever they hold: all of them or none. For restore.

        A log that cannot do so raises AppendUnknown; then of each session's records the first ones
        may be there or still arrive, and no others."""
        ...

    def check_record(self, record: Record) -> None:
        """Raise SchemaError where `load` would refuse a record for what it is, or how large."""
        ...

    def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        """The records after a position, in order, up to the end as it is when asked."""
        ...

    def follow(
        self, after: int = 0, *, partition: int = 0, pause_s: float = 0.0
    ) -> AsyncIterator[Stored]:
        """As `read`, then what is appended from then on, by whatever process; never ends.

        With a pause it looks again that much later only, and so costs a busy log little.
        """
        ...

    async def end(self, partition: int = 0) -> int:
        """The position of the last record, 0 for an empty partition."""
        ...

    async def close(self) -> None:
        """Finish the appends under way and give everything back. May be called twice."""
        ...


class EmbeddedLog(Log, Protocol):
    """A log of this process or machine, whose tables are folded with each append.

    It closes at the end of `async with`; where it is only read, `with` does.
    """

    @property
    def tables(self) -> Store:
        """The tables; they can be read synchronously."""
        ...

    def rebuild(self, progress: Progress | None = None) -> int:
        """Build the tables anew from the log, while others read and append, then put them in the
        place of the present ones. Gives the position up to which they are folded. Synchronous, and
        may take long. Raises StateError where the fold fails."""
        ...

    def verify(self, progress: Progress | None = None) -> Iterator[Difference]:
        """Compare the tables with a fresh fold of the log; gives what is not equal."""
        ...

    async def beat(self, beat: Heartbeat) -> None:
        """Keep a host's sign of life in the place of its instance's last one. It is no record of
        the log and no row of the tables, and need not survive the machine."""
        ...

    async def end_beating(self, instance: str) -> None:
        """Forget an instance that has ended as it should."""
        ...

    async def heartbeats(self) -> list[Heartbeat]:
        """The last sign of life of each instance that is known, dead ones among them."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
