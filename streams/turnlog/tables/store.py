"""What readers of tables may ask, whatever holds them. Rows are those of `turnlog.core.rows`.

The tables of a log are its fold up to `position`; the records that rows point into, by position and
index, are read here too, so reading a session never scans a partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from turnlog.core.errors import UsageError
from turnlog.core.frames import Record
from turnlog.core.rows import Key, Row


class Stored(NamedTuple):
    """A record as a log holds it. `time` is when it was appended, ms since 1970: a label."""

    position: int
    time: int
    record: Record


class Difference(NamedTuple):
    """A row that is not what a fresh fold of the log gives. None: there is no such row."""

    table: str
    key: Key
    stored: Row | None
    fresh: Row | None


def check_partition(partition: int, partitions: int = 1) -> None:
    """Refuse to look for what a store of so many partitions cannot have."""
    if not 0 <= partition < partitions:
        has = "one, number 0" if partitions == 1 else f"{partitions}, from 0"
        raise UsageError(f"there is no partition {partition}: this log has {has}")


class View(Protocol):
    """Tables that can be read. Every method may raise `LogUnavailable`.

    A key is a table's name followed by the row's key fields: see `turnlog.core.rows.key_of`.
    """

    def get(self, key: Key, /) -> Row | None:
        """One row; for a key ("ids", session, entry id) the entry's number."""
        ...

    def scan(
        self,
        table: str,
        session: str | None = None,
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[Row]:
        """Rows in key order, of one session or of all, behind a key; backwards with `reverse`."""
        ...

    def find(self, table: str, session: str, field: str, value: str) -> Iterator[Row]:
        """The rows of one session with a value in an indexed field, in key order: `dispatches` by
        `operation` or `status`."""
        ...

    def position(self, partition: int = 0) -> int:
        """The position up to which the tables are folded, in one partition."""
        ...

    def partition_of(self, session: str) -> int:
        """The partition, from 0, that a session's records are in."""
        ...

    def record(self, session: str, position: int) -> Stored | None:
        """The record that is filed under a session at a position of its partition."""
        ...

    def records(self, session: str, *, after: int = 0) -> Iterator[Stored]:
        """The records filed under a session, in order, up to the end as it is when asked."""
        ...


class Store(View, Protocol):
    """The tables of a log, as they are now."""

    async def wait(self, position: int, partition: int = 0) -> None:
        """Return once the tables hold a position.

        Raises StateError where the log holds it and the tables lag behind for good.
        """
        ...

    def snapshot(self) -> AbstractContextManager[View]:
        """The tables as they are now, however they change while the context lasts. Keep it short:
        what is written meanwhile cannot be tidied up."""
        ...
