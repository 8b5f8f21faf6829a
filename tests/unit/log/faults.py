"""Faults of SQLite on demand: a connection that fails where a test says so."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from turnlog.log.sqlite.log import SqliteLog
from turnlog.tables import database


def sqlite_error(code: int, text: str = "failed on demand") -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


class FaultyCursor(sqlite3.Cursor):
    """Fails as its connection says."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:  # type: ignore[override]  # thin
        assert isinstance(self.connection, Faulty)
        fault = self.connection.fault(sql)
        if fault is not None and not self.connection.late:
            raise fault
        cursor = super().execute(sql, *values)
        if fault is not None:
            raise fault
        return cursor


class Faulty(sqlite3.Connection):
    """`faults` maps a statement's beginning to the error it raises; with `late` it does its work
    first, as a disk may that loses only the answer."""

    faults: dict[str, sqlite3.Error]
    late = False

    def cursor(self, *_: Any) -> sqlite3.Cursor:  # type: ignore[override]  # thin
        return super().cursor(FaultyCursor)

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:  # type: ignore[override]  # thin
        return self.cursor().execute(sql, *values)

    def fault(self, sql: str) -> sqlite3.Error | None:
        faults: dict[str, sqlite3.Error] = self.__dict__.get("faults", {})
        return next((error for start, error in faults.items() if sql.startswith(start)), None)


class FaultyLog(SqliteLog):
    """A log whose writing connection can be made to fail."""

    def __init__(self, path: Path, **options: Any) -> None:
        options = {"clock": lambda: 0, "busy_ms": 50, **options}
        super().__init__(path, connect=partial(database.connect, factory=Faulty), **options)

    @property
    def writing(self) -> Faulty:
        connection = self.connection
        assert isinstance(connection, Faulty)
        return connection

    def fail(self, statement: str, code: int, *, late: bool = False) -> None:
        self.writing.faults = {statement: sqlite_error(code)}
        self.writing.late = late

    def heal(self) -> None:
        self.writing.faults = {}
