"""What rides on a session's row is seen in the views, and nothing else is put in its place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.adapter import beginning, owned, talking
from tests.story import branch, fact, summary, user
from turnlog.core.frames import SealedFrame
from turnlog.core.rows import Branch, Head, Surface
from turnlog.tables.codec import CODECS
from turnlog.tables.folding import Folding
from turnlog.tables.frames import CREATE
from turnlog.tables.riders import branch_rider, surface_rider
from turnlog.tables.schema import create_statements

HEAD = Head("s", leaf=7, depth=5, pages=2, position=9)
BRANCH = Branch("s", 1, 7, 0, 5, None, active=True, position=9)
BEFORE = BRANCH._replace(tip=6, depth=4, position=8)


class Tables:
    """Tables that are folded frame by frame, each a transaction."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in (*CREATE, *create_statements("", 1)):
            self.connection.execute(statement)
        self.connection.execute("INSERT INTO names (session) VALUES ('other'), ('s')")
        self.folding = Folding(self.connection)
        self.position = 0

    def put(self, *frames: SealedFrame) -> None:
        self.connection.execute("BEGIN")
        for frame in frames:
            self.position += 1
            self.folding.fold(frame.frame, self.position)
        self.folding.write()
        self.connection.execute("COMMIT")
        self.folding.keep()
        self.check()

    def rows(self, table: str) -> list[Any]:
        codec = CODECS[table]
        select = f"SELECT {', '.join(codec.names[1:])} FROM {table} WHERE session = 2"
        return [codec.decode("s", row) for row in self.connection.execute(f"{select} ORDER BY 1")]

    def kept(self, table: str) -> int:
        """The position of the newest row that was written to its own table."""
        sql = f"SELECT max(position) FROM {table}_kept"
        position: int = self.connection.execute(sql).fetchone()[0]
        return position

    def check(self) -> None:
        """The views give what the fold gave."""
        for table in ("branches", "surfaces"):
            for row in self.rows(table):
                key = (table, "s", row[1])
                assert row == self.folding.get(key)
        assert len(self.rows("surfaces")) == self.folding.get(("sessions", "s")).pages


@pytest.fixture
def tables() -> Iterator[Tables]:
    tables = Tables()
    yield tables
    tables.connection.close()


def test_messages_ride(tables: Tables) -> None:
    for frame in talking("s", 10):
        tables.put(frame)
    assert tables.kept("branches") == tables.kept("surfaces") == 2
    (row,) = tables.rows("branches")
    assert (row.tip, row.depth, row.position) == (10, 10, 11)


def test_a_page_is_kept_when_the_next_begins(tables: Tables) -> None:
    frames = talking("s", 300)
    tables.put(*frames[:100])
    for frame in frames[100:]:
        tables.put(frame)
    pages = tables.rows("surfaces")
    assert [len(page.nodes) for page in pages] == [128, 128, 44]


def test_other_branches_keep_what_they_are(tables: Tables) -> None:
    for frame in [
        *beginning("s"),
        owned("s", 3, user("u2", "a1")),
        owned("s", 4, branch("b1", "u1", "u2")),
        owned("s", 5, user("u3", "b1")),
        owned("s", 6, fact("label:u2", "the first way")),
        owned("s", 7, branch("b2", "u2", "u3")),
        owned("s", 8, user("u4", "u2")),
        owned("s", 9, user("u5", "u4"), fact("label:u5", "the second way")),
        owned("s", 10, user("u6", "u5")),
    ]:
        tables.put(frame)
    assert [row.first for row in tables.rows("branches")] == [1, 4, 7]


def test_pages_may_become_fewer_and_more_again(tables: Tables) -> None:
    frames = talking("s", 300)
    for frame in frames:
        tables.put(frame)
    tables.put(owned("s", 301, summary("c1", "m300", "m2", "m299")))
    assert [len(page.nodes) for page in tables.rows("surfaces")] == [3]
    parent = "c1"
    for number in range(302, 302 + 260):
        tables.put(owned("s", number, user(f"n{number}", parent)))
        parent = f"n{number}"
    assert len(tables.rows("surfaces")) == 3


def test_a_page_that_was_left_without_a_word_is_kept(tables: Tables) -> None:
    """Whatever the fold does about a page that is no longer the last one."""
    frames = talking("s", 129)
    tables.put(*frames[:100])
    for frame in frames[100:129]:
        tables.put(frame)
    assert tables.kept("surfaces") < 129
    tables.folding.fold(frames[129].frame, 130)
    del tables.folding._changes[("surfaces", "s", 0)]
    tables.folding.write()
    tables.folding.keep()
    tables.check()
    assert [len(page.nodes) for page in tables.rows("surfaces")] == [128, 1]


@pytest.mark.parametrize(
    ("change", "before"),
    [
        ({}, None),
        ({}, BEFORE._replace(label="old")),
        ({}, BEFORE._replace(active=False)),
        ({}, BEFORE._replace(fork_point=3)),
        ({"active": False}, BEFORE),
        ({"tip": 6}, BEFORE),
        ({"depth": 6}, BEFORE),
    ],
)
def test_a_branch_that_is_more_than_a_moved_tip_is_written(
    change: dict[str, Any], before: Branch | None
) -> None:
    assert branch_rider(BRANCH, BEFORE, HEAD) == {"branch_position": 9}
    assert branch_rider(BRANCH._replace(**change), before, HEAD) is None


def test_only_the_last_page_rides() -> None:
    row = Surface("s", 1, (1, 2), 9)
    rider = {"tail_page": 1, "tail_position": 9, "tail": "[1,2]"}
    assert surface_rider(row, row, HEAD) == rider
    assert surface_rider(row, None, HEAD) is None
    assert surface_rider(row, row, HEAD._replace(pages=3)) is None
