"""A session has one key for ever, and no key where a transaction was rolled back."""

from __future__ import annotations

import sqlite3

import pytest

from turnlog.tables import names as module
from turnlog.tables.frames import CREATE
from turnlog.tables.names import Names


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in CREATE:
        connection.execute(statement)
    return connection


def test_a_key_is_made_once_and_found_by_all(connection: sqlite3.Connection) -> None:
    names = Names(connection)
    assert names.find("s") is None
    key = names.make("s")
    assert names.make("s") == names.find("s") == Names(connection).make("s") == key
    assert names.make("t") != key


def test_a_key_that_was_rolled_back_is_made_anew(connection: sqlite3.Connection) -> None:
    names = Names(connection)
    connection.execute("BEGIN")
    names.make("s")
    connection.execute("ROLLBACK")
    names.forget()
    assert names.find("s") is None
    names.make("t")
    assert names.make("s") == Names(connection).find("s")


def test_only_so_many_are_held(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHED", 10)
    names = Names(connection)
    keys = [names.make(str(number)) for number in range(100)]
    assert len(names._keys) <= 10
    assert [names.find(str(number)) for number in range(100)] == keys
