"""Verifying finds every kind of difference, beside those who append."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import append_all, talking
from tests.contract.tables import history
from turnlog.core.rows import key_of
from turnlog.log.sqlite.log import SqliteLog
from turnlog.tables import frames
from turnlog.tables.store import Difference

KEY = "(SELECT key FROM names WHERE names.session = ?)"

open_log = partial(SqliteLog, clock=lambda: 0, busy_ms=5_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def change(path: Path, sql: str, *values: Any) -> int:
    with sqlite3.connect(path) as connection:
        count = connection.execute(sql, values).rowcount
    connection.close()
    return count


async def test_missing_surplus_and_changed_rows_are_told_in_key_order(path: Path) -> None:
    with open_log(path) as log:
        for session in ("a", "b", "c"):
            await append_all(log, talking(session, 4))
        rows = {key_of("entries", row): row for row in log.tables.scan("entries")}
        change(path, "INSERT INTO names VALUES (9, 'd')")
        change(path, f"DELETE FROM entries WHERE session = {KEY} AND number < 3", "a")
        change(path, f"UPDATE entries SET session = 9 WHERE session = {KEY} AND number = 1", "b")
        change(path, f"UPDATE entries SET depth = 9 WHERE session = {KEY} AND number = 4", "c")
        found = {item.key: item for item in log.verify()}
        assert list(found) == sorted(found)
        a1, b1, c4 = ("entries", "a", 1), ("entries", "b", 1), ("entries", "c", 4)
        assert found == {
            a1: Difference("entries", a1, None, rows[a1]),
            ("entries", "a", 2): Difference(
                "entries", ("entries", "a", 2), None, rows[("entries", "a", 2)]
            ),
            b1: Difference("entries", b1, None, rows[b1]),
            c4: Difference("entries", c4, rows[c4]._replace(depth=9), rows[c4]),
            ("entries", "d", 1): Difference(
                "entries", ("entries", "d", 1), rows[b1]._replace(session="d"), None
            ),
        }


async def test_json_that_is_none_any_more_is_a_difference(path: Path) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 2))
        change(path, "UPDATE sessions SET counts = 'no JSON'")
        (found,) = log.verify()
        assert found.key == ("sessions", "s")
        assert "no JSON" in found.stored


async def test_json_in_another_order_is_none(path: Path) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 2))
        (text,) = sqlite3.connect(path).execute("SELECT usage FROM sessions").fetchone()
        assert text.startswith('{"input":0,')
        turned = "{" + text[1:-1].partition(",")[2] + ', "input" : 0}'
        assert change(path, "UPDATE sessions SET usage = ?", turned) == 1
        assert list(log.verify()) == []


async def test_it_is_of_one_moment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "PAGE_ROWS", 10)
    async with open_log(path) as log:
        await log.load(history(9, 60))
        later = talking("later", 20)
        verifying = log.verify(lambda reached, end: seen.append((reached, end)))
        seen: list[tuple[int, int]] = []
        change(path, "UPDATE sessions SET depth = 77")
        found = next(verifying)
        await append_all(log, later)
        assert found.table == "sessions"
        assert list(verifying) == []
        assert seen[-1][0] == seen[-1][1]
        assert len(seen) > 3


async def test_whoever_stops_asking_leaves_nothing_behind(path: Path) -> None:
    with open_log(path) as log:
        await append_all(log, talking("s", 4))
        change(path, "UPDATE entries SET depth = 9")
        verifying = log.verify()
        next(verifying)
        verifying.close()  # type: ignore[attr-defined]  # it is a generator
        await append_all(log, talking("t", 4))
        assert len(list(log.verify())) == 4
