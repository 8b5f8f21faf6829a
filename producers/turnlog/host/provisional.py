"""A session as its host sees it: the tables, and over them what is not yet in the log.

Waiting events are folded at positions beyond the log's, into rows that only this host reads. Once
they are saved the tables have them, and the layer is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turnlog.core.fold import fold
from turnlog.core.frames import Header, NewEvent, seal
from turnlog.core.rows import Head, Key, Row, key_of
from turnlog.tables.store import Stored, View

BEYOND = 1 << 60
"""No log comes to positions above it, so that no record, of whatever session, is hidden."""


class Provisional:
    """A reader of one session (see `turnlog.tables.view.Reader`) that also shows waiting events."""

    def __init__(self, tables: View, session: str, waiting: Sequence[NewEvent]) -> None:
        self._tables = tables
        self._session = session
        self._rows: dict[Key, Row | None] = {}
        self._records: dict[int, Stored] = {}
        self._count = 0
        self.take(waiting)

    def take(self, waiting: Sequence[NewEvent]) -> None:
        """Show what waits now: the events that are shown, and those that came behind them."""
        for event in waiting[self._count :]:
            self._add(event)
        self._count = len(waiting)

    def _add(self, event: NewEvent) -> None:
        head: Head = self.get(("sessions", self._session)) or Head(self._session)
        header = Header(self._session, head.claim, head.epoch, head.seq + 1, None)
        sealed = seal(header, [event])
        position = max(head.position, BEYOND) + 1
        self._records[position] = Stored(position, 0, sealed.record)
        self._rows.update(fold(sealed.frame, position, self))

    def get(self, key: Key, /) -> Row | None:
        """The row of a key."""
        if key in self._rows:
            return self._rows[key]
        return self._tables.get(key)

    def scan(self, table: str, session: str) -> Iterator[Row]:
        """The rows of a session in key order."""
        if not self._rows or session != self._session:
            return self._tables.scan(table, session)
        return self._merged(table, self._tables.scan(table, session))

    def find(self, table: str, session: str, field: str, value: str) -> Iterator[Row]:
        """The rows of a session with a value in a field."""
        if not self._rows or session != self._session:
            return self._tables.find(table, session, field, value)
        return (
            row
            for row in self._merged(table, self._tables.find(table, session, field, value))
            if getattr(row, field) == value
        )

    def record(self, session: str, position: int) -> Stored | None:
        """The record at a position; those that wait are behind the log's."""
        found = self._records.get(position) if session == self._session else None
        return found if found is not None else self._tables.record(session, position)

    def _merged(self, table: str, stored: Iterator[Row]) -> Iterator[Row]:
        rows = {key_of(table, row): row for row in stored}
        for key, row in self._rows.items():
            if key[0] == table and row is not None:
                rows[key] = row
            elif key[0] == table:
                rows.pop(key, None)
        return iter([rows[key] for key in sorted(rows)])
