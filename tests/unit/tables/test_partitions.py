"""Tables over several partitions: a position for each, and one file for all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.adapter import rows_of, talking
from turnlog.core.errors import UsageError
from turnlog.core.frames import Record, decode
from turnlog.tables import database, frames
from turnlog.tables.catchup import catch_up
from turnlog.tables.folding import Folding
from turnlog.tables.names import Names
from turnlog.tables.rebuild import rebuild
from turnlog.tables.signal import Signal
from turnlog.tables.sql import SqlStore
from turnlog.tables.store import Stored
from turnlog.tables.verify import verify

PARTITIONS = 3


class Filed:
    """A file with a session in each partition, all at the same positions, not yet folded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = self.connect()
        database.prepare(self.connection, path)
        for partition in range(PARTITIONS):
            records = [frame.record for frame in talking(f"s{partition}", 5)]
            self.add(partition, records, first=1)
        self.store = SqlStore(self.connect, path, Signal(), partitions=PARTITIONS)

    def connect(self) -> sqlite3.Connection:
        return database.connect(self.path, busy_ms=1_000)

    def add(self, partition: int, records: list[Record], *, first: int) -> None:
        names = Names(self.connection)
        for position, record in enumerate(records, first):
            row = frames.to_row(
                Stored(position, 0, record),
                names.make(record.session),
                folded=False,
                partition=partition,
            )
            self.connection.execute(frames.INSERT, row)

    def catch_up(self, **options: object) -> None:
        folding = Folding(self.connection)
        catch_up(self.connection, folding, self.path, partitions=PARTITIONS, **options)  # type: ignore[arg-type]  # progress


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[Filed]:
    filed = Filed(tmp_path / "tables.db")
    yield filed
    filed.store.close()
    filed.connection.close()


def test_each_partition_has_its_own_position(filed: Filed) -> None:
    seen: list[tuple[int, int]] = []
    filed.catch_up(progress=lambda *reached: seen.append(reached))
    assert [filed.store.position(each) for each in range(PARTITIONS)] == [6, 6, 6]
    assert seen[0] == (0, 18)
    assert seen[-1] == (18, 18)
    more = [frame.record for frame in talking("s1", 8)][6:]
    filed.add(1, more, first=40)
    assert filed.store.position(1) == 6
    assert filed.store.end(1) == 42
    filed.catch_up()
    assert [filed.store.position(each) for each in range(PARTITIONS)] == [6, 42, 6]
    assert filed.store.get(("sessions", "s1")).position == 42
    assert list(verify(filed.connection, filed.path, partitions=PARTITIONS)) == []


def test_rows_are_those_of_the_fold_and_a_rebuild_gives_them_again(filed: Filed) -> None:
    filed.catch_up()
    rows = rows_of(filed.store)
    assert {row.session: row.position for row in filed.store.scan("sessions")} == {
        "s0": 6, "s1": 6, "s2": 6,
    }  # fmt: skip
    assert rebuild(filed.connection, filed.path, partitions=PARTITIONS) == 18
    assert rows_of(filed.store) == rows
    assert [filed.store.position(each) for each in range(PARTITIONS)] == [6, 6, 6]


def test_a_record_is_found_in_its_partition_and_a_session_in_its_own(filed: Filed) -> None:
    for partition in range(PARTITIONS):
        session = f"s{partition}"
        stored = filed.store.record(session, 3)
        assert stored is not None
        assert (stored.position, stored.record.session) == (3, session)
        found = list(filed.store.records(session, after=2))
        assert [item.position for item in found] == [3, 4, 5, 6]
        assert {decode(item.record).header.session for item in found} == {session}  # type: ignore[union-attr]  # readable
    assert filed.store.record("s2", 7) is None
    assert filed.store.record("none", 3) is None
    assert list(filed.store.records("none")) == []


def test_pages_end_with_their_partition(filed: Filed) -> None:
    page = frames.read_page(filed.connection, 0, partition=0)
    assert [item.position for item in page.records] == [1, 2, 3, 4, 5, 6]
    assert page.last
    assert frames.read_page(filed.connection, 6, partition=0).records == []
    assert frames.last_position(filed.connection, 2) == 6
    assert frames.last_position(filed.connection, PARTITIONS) == 0


def test_a_partition_that_is_not_there_is_refused(filed: Filed) -> None:
    with pytest.raises(UsageError, match="no partition 3: this log has 3, from 0"):
        filed.store.position(3)
    with pytest.raises(UsageError, match="no partition -1"):
        filed.store.position(-1)


async def test_who_waits_is_asked_whether_it_is_in_vain(filed: Filed) -> None:
    asked: list[int] = []

    def watch(partition: int) -> None:
        asked.append(partition)
        if len(asked) == 2:
            raise UsageError("in vain")

    store = SqlStore(filed.connect, filed.path, Signal(), partitions=PARTITIONS, watch=watch)
    with pytest.raises(UsageError, match="in vain"):
        await store.wait(1, 2)
    assert asked == [2, 2]
    store.close()
