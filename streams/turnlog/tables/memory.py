"""Tables in dicts: for the memory log, and the plainest thing that a `Store` can be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from turnlog.core.errors import StateError
from turnlog.core.rows import TABLES, Changes, Key, Row, key_of
from turnlog.tables.signal import Signal
from turnlog.tables.store import Difference, Stored, View, check_partition

_Rows = dict[Key, Row]


class DictStore:
    """Tables over a list of records that somebody else appends to.

    `stopped` is the position that could not be folded, if any; the tables lag from there on.
    """

    def __init__(self, log: Sequence[Stored], signal: Signal) -> None:
        self._log = log
        self._signal = signal
        self._tables: dict[str, dict[str, _Rows]] = {table: {} for table in (*TABLES, "ids")}
        self._position = 0
        self.stopped: int | None = None

    def apply(self, changes: Changes, position: int) -> None:
        """Take in what the fold of the frame at a position gave."""
        for key, row in changes.items():
            rows = self._tables[key[0]].setdefault(key[1], {})
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = row
        self._position = position

    def take(self, other: DictStore) -> None:
        """Take over what another one holds."""
        self._tables, self._position, self.stopped = other._tables, other._position, other.stopped

    def get(self, key: Key, /) -> Row | None:
        rows = self._tables[key[0]].get(key[1])
        return None if rows is None else rows.get(key)

    def scan(
        self,
        table: str,
        session: str | None = None,
        *,
        after: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[Row]:
        sessions = self._tables[table]
        names = sorted(sessions, reverse=reverse) if session is None else [session]
        for name in names:
            rows = sessions.get(name, {})
            for key in sorted(rows, reverse=reverse):
                if after is not None and (key >= after if reverse else key <= after):
                    continue
                if limit is not None:
                    if limit <= 0:
                        return
                    limit -= 1
                yield rows[key]

    def find(self, table: str, session: str, field: str, value: str) -> Iterator[Row]:
        return (row for row in self.scan(table, session) if getattr(row, field) == value)

    def position(self, partition: int = 0) -> int:
        check_partition(partition)
        return self._position

    async def wait(self, position: int, partition: int = 0) -> None:
        check_partition(partition)
        while True:
            seen = self._signal.count
            if self._position >= position:
                return
            if self.stopped is not None and self.stopped <= position:
                raise StateError(
                    f"memory: the tables stopped before position {self.stopped}, which could not"
                    " be folded; `rebuild` raises what it was"
                )
            await self._signal.wait(seen)

    def partition_of(self, session: str) -> int:
        del session  # there is one for all
        return 0

    def record(self, session: str, position: int) -> Stored | None:
        index = bisect_left(self._log, position, key=lambda stored: stored.position)
        stored = self._log[index] if index < len(self._log) else None
        if stored is None or (stored.position, stored.record.session) != (position, session):
            return None
        return stored

    def records(self, session: str, *, after: int = 0) -> Iterator[Stored]:
        for stored in self._log[:]:
            if stored.position > after and stored.record.session == session:
                yield stored

    @contextmanager
    def snapshot(self) -> Generator[View]:
        copy = DictStore(self._log[:], self._signal)
        copy._position, copy.stopped = self._position, self.stopped
        copy._tables = {
            table: {session: dict(rows) for session, rows in sessions.items()}
            for table, sessions in self._tables.items()
        }
        yield copy


def differences(stored: View, fresh: View) -> Iterator[Difference]:
    """The rows that two sets of tables do not have in common, in key order."""
    for table in TABLES:
        left = {key_of(table, row): row for row in stored.scan(table)}
        right = {key_of(table, row): row for row in fresh.scan(table)}
        for key in sorted({*left, *right}):
            if left.get(key) != right.get(key):
                yield Difference(table, key, left.get(key), right.get(key))
