"""Tables that lag are brought up to date by whoever opens the log, before anything reads them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from turnlog.core.errors import StateError
from turnlog.core.frames import decode
from turnlog.tables import database, frames
from turnlog.tables.folding import Folding
from turnlog.tables.store import Stored

Progress = Callable[[int, int], None]


def catch_up(
    connection: sqlite3.Connection,
    folding: Folding,
    path: Path,
    progress: Progress | None = None,
    *,
    partitions: int = 1,
) -> None:
    """Fold what the tables do not hold yet, a page in each transaction; others may go on meanwhile.

    Progress adds up the partitions. Raises StateError where the fold fails: the tables stay as they
    are.
    """
    total = sum(frames.last_position(connection, each) for each in range(partitions))
    before = 0
    for partition in range(partitions):
        while True:
            meta = database.read_meta(connection, partition)
            if progress is not None:
                progress(before + meta.position, max(total, before + meta.position))
            if meta.position >= meta.end:
                break
            _fold_next(connection, folding, path, partition)
        before += meta.position


def _fold_next(
    connection: sqlite3.Connection, folding: Folding, path: Path, partition: int
) -> None:
    """Fold the next page of a partition."""
    with database.immediate(connection):
        folding.forget()
        meta = database.read_meta(connection, partition)  # somebody else may be at it, too
        page = frames.read_page(connection, meta.position, meta.end, partition=partition).records
        if page:
            fold_page(folding, page, path)
            write_page(folding, path, page[-1].position)
            database.set_position(connection, page[-1].position, partition)
    folding.keep()


def fold_page(folding: Folding, page: Sequence[Stored], path: Path) -> None:
    """Fold some records. Raises StateError, naming the record, where the fold fails."""
    decoded = [decode(stored.record) for stored in page]
    folding.look_up(decoded)
    for stored, frame in zip(page, decoded, strict=True):
        try:
            folding.fold(frame, stored.position)
        except sqlite3.Error:
            raise
        except Exception as error:
            raise _failed(path, stored, error) from error


def write_page(folding: Folding, path: Path, position: int) -> None:
    """Write what was folded. Raises StateError where a row cannot be written."""
    try:
        folding.write()
    except sqlite3.OperationalError:
        raise  # the disk, not a row
    except Exception as error:
        raise StateError(
            f"{path}: the tables cannot be brought to position {position}:"
            f" {type(error).__name__}: {error}; {_ADVICE}"
        ) from error


def _failed(path: Path, stored: Stored, error: Exception) -> StateError:
    return StateError(
        f"{path}: the record at position {stored.position} of session {stored.record.session!r}"
        f" cannot be folded: {type(error).__name__}: {error}; {_ADVICE}"
    )


_ADVICE = (
    "this is a bug of turnlog: upgrade, or report it; the log itself is whole, and `turnlog dump`"
    " reads it"
)
