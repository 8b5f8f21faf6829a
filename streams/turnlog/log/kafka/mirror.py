"""What was read from the topic, in the local file: frames and their rows in one transaction.

Any number of processes may mirror the same partition into the same file: who is later finds the
records there and adds none. Frames never depend on the tables: where folding fails the page is
written without, and the tables lag from there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from turnlog.core.errors import StateError
from turnlog.log.sqlite.file import SqliteFile
from turnlog.tables import database, frames
from turnlog.tables.catchup import fold_page, write_page
from turnlog.tables.schema import TABLES_VERSION
from turnlog.tables.store import Stored

_CREATE_SOURCE = "CREATE TABLE IF NOT EXISTS source (name TEXT PRIMARY KEY, value TEXT) STRICT"


class Mirror:
    """See the module's text. It is used by one thread at a time."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._connection = file.connection
        self._version = -1
        """PRAGMA data_version as of what the folding has at hand."""

    def name_source(self, topic: str, id_: str, partitions: int) -> None:
        """Write down what the file mirrors. Raises StateError where it is something else."""
        wanted = {"topic": topic, "id": id_, "partitions": str(partitions)}
        with database.reading(self._file.path), database.immediate(self._connection):
            self._connection.execute(_CREATE_SOURCE)
            found = dict(self._connection.execute("SELECT name, value FROM source"))
            is_new = not found and not frames.last_position(self._connection)
            if is_new:
                self._connection.executemany("INSERT INTO source VALUES (?, ?)", wanted.items())
            elif found != wanted:
                what = f"topic {found['topic']!r} ({found['id']})" if found else "a log of its own"
                raise StateError(
                    f"{self._file.path}: holds {what}, and not topic {topic!r} ({id_}) of"
                    f" {partitions} partitions; give another file for the tables"
                )

    def reached(self, partition: int) -> int:
        """The position up to which the file knows a partition."""
        with database.reading(self._file.path):
            meta = database.read_meta(self._connection, partition)
        return max(meta.end, meta.position)

    def add(self, partition: int, records: Sequence[Stored], until: int) -> None:
        """Add a page of a partition, which is then known up to a position: records end there, or
        what followed them is none. Raises LogUnavailable where the file cannot be written."""
        with database.reading(self._file.path):
            try:
                self._add(partition, records, until)
            except BaseException:
                self._undo()
                raise

    def _add(self, partition: int, records: Sequence[Stored], until: int) -> None:
        """A page at once; after a bug of the fold, which must not cost a frame, one by one."""
        try:
            self._attempt(partition, records, until, tables=True)
        except StateError:
            self._undo()
            if len(records) > 1:
                for stored in records:
                    self._add(partition, [stored], stored.position)
                return
            self._attempt(partition, records, until, tables=False)
        self._file.folding.keep()

    def _attempt(
        self, partition: int, records: Sequence[Stored], until: int, *, tables: bool
    ) -> None:
        connection, folding = self._connection, self._file.folding
        connection.execute("BEGIN IMMEDIATE")
        self._refresh()
        meta = database.read_meta(connection, partition)
        known = max(meta.end, meta.position)
        new = [stored for stored in records if stored.position > known]
        folds = tables and meta.position >= meta.end and meta.tables_version == TABLES_VERSION
        if new:
            make = folding.names.make
            rows = [
                frames.to_row(
                    stored, make(stored.record.session), folded=folds, partition=partition
                )
                for stored in new
            ]
            connection.executemany(frames.INSERT, rows)
            if folds:
                fold_page(folding, new, self._file.path)
                write_page(folding, self._file.path, new[-1].position)
        last = new[-1].position if new else known
        if folds and until > last:
            database.set_position(connection, until, partition)
        connection.execute("COMMIT")

    def _refresh(self) -> None:
        """See what others have committed since our last transaction."""
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self._file.folding.forget()
            self._version = version

    def _undo(self) -> None:
        self._file.folding.drop()
        with suppress(sqlite3.Error):  # SQLite has ended it by itself
            database.roll_back(self._connection)
        self._version = -1
