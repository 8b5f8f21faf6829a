"""The file adapter: the port over a folder of files, and tables in SQLite that follow them.

It is the SQLite log over `tables.db`, but for what appends, and that the files come first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from turnlog.core.errors import LogUnavailable
from turnlog.core.fold import fold as fold_frame
from turnlog.log.file import files, following
from turnlog.log.file.disk import Disk
from turnlog.log.file.folder import Busy, open_folder
from turnlog.log.file.writer import FileWriter
from turnlog.log.port import Difference, Progress
from turnlog.log.sqlite.log import SqliteLog
from turnlog.log.sqlite.writer import Writer
from turnlog.tables import database
from turnlog.tables.folding import Fold


class FileLog(SqliteLog):
    """See the module's text and `turnlog.log.open`, which makes it. The folder must be there."""

    application_id = database.TABLES_APPLICATION_ID

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], int],
        busy_ms: int,
        format_: str | None = None,
        catch_up: bool = True,
        progress: Progress | None = None,
        fold: Fold = fold_frame,
        disk: Disk | None = None,
    ) -> None:
        self._wait_s = busy_ms / 1000
        with _reading(path):
            self._folder = open_folder(path, format_, disk or Disk())
            tables = path / "tables.db"
            if not tables.exists():
                tables.touch(mode=0o600)
        try:
            super().__init__(
                tables,
                clock=clock,
                busy_ms=busy_ms,
                catch_up=catch_up,
                progress=progress,
                fold=fold,
                connect=_connect,
            )
        except LogUnavailable as error:
            raise _about_tables(error, tables) from error
        self.url = f"file:{path}"

    def prepare(self, progress: Progress | None, *, catch_up: bool) -> None:
        super().prepare(progress, catch_up=False)
        try:
            with database.reading(self.path), _reading(self._folder.path):
                self._follow_files()
        except BaseException:
            self.connection.close()
            raise
        super().prepare(progress, catch_up=catch_up)

    def _follow_files(self) -> None:
        self.connection.execute(files.CREATE)
        if following.is_behind(self.connection, self._folder):
            with self._folder.locked(self._wait_s):
                following.take_in(self.connection, self._folder, anew=True)

    def _make_writer(self) -> Writer:
        return FileWriter(
            self.connection,
            self.folding,
            path=self.path,
            clock=self._clock,
            changed=self.signal.notify,
            folder=self._folder,
            wait_s=self._wait_s,
        )

    def rebuild(self, progress: Progress | None = None) -> int:
        with self._aside() as connection, _reading(self._folder.path):
            following.put_right(connection, self._folder)
        return super().rebuild(progress)

    def verify(self, progress: Progress | None = None) -> Iterator[Difference]:
        with _reading(self._folder.path):
            yield from self._find_aside(partial(following.differences, folder=self._folder))
        yield from super().verify(progress)


def _connect(path: Path, **options: Any) -> sqlite3.Connection:
    """As to a log, but that a commit is not synced: the files are."""
    connection = database.connect(path, **options)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _about_tables(error: LogUnavailable, tables: Path) -> LogUnavailable:
    """What to do about tables that are damaged is simpler than with a log in one file."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.Error) or not database.is_damage(cause):
        return error
    return LogUnavailable(
        f"{tables}: it is damaged ({cause}); the log itself is not: take it away, with its"
        " -wal and -shm, and it is made again from the files"
    )


@contextmanager
def _reading(path: Path) -> Generator[None]:
    """Turn what the disk says into our errors, where nothing is appended."""
    try:
        yield
    except Busy:
        raise LogUnavailable(
            f"{path}: another process holds its lock; try again, or see what holds it",
            retriable=True,
        ) from None
    except OSError as error:
        raise LogUnavailable(
            f"{error.filename or path}: {error.strerror or error}; look at the path, its rights and"
            " the disk"
        ) from error
