"""The rows at hand: what the fold reads is what was written last, from wherever."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.adapter import beginning, owned, talking
from tests.contract.tables import history
from tests.story import state
from turnlog.core.fold import fold
from turnlog.core.frames import decode
from turnlog.tables import folding as module
from turnlog.tables.folding import Cache, Folding
from turnlog.tables.frames import CREATE
from turnlog.tables.schema import create_statements


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in (*CREATE, *create_statements("", 1)):
        connection.execute(statement)
    connection.execute("INSERT INTO names (session) VALUES ('another'), ('s')")
    yield connection
    connection.close()


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "get", "remove", "clear"]), st.integers(0, 9)),
        max_size=60,
    )
)
def test_a_cache_forgets_but_never_errs(steps: list[tuple[str, int]]) -> None:
    cache, truth = Cache(3), {}
    for number, (step, key) in enumerate(steps):
        if step == "put":
            cache.put((key,), number)
            truth[key] = number
        elif step == "remove":
            cache.remove((key,))
            truth.pop(key, None)
        elif step == "clear":
            cache.clear()
            truth.clear()
        else:
            assert cache.get((key,), None) in (None, truth.get(key))
    assert len(cache.young) + len(cache._old) <= 6


def test_a_cache_keeps_what_is_used() -> None:
    cache = Cache(10)
    cache.put(("hot",), 1)
    for number in range(1_000):
        cache.put((number,), number)
        assert cache.get(("hot",), None) == 1


def commit(folding: Folding, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    folding.write()
    connection.execute("COMMIT")
    folding.keep()


@pytest.mark.parametrize("rows", [2, 64, 8192])
@pytest.mark.parametrize("seed", range(4))
def test_a_cache_of_any_size_gives_the_same_rows(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, rows: int, seed: int
) -> None:
    monkeypatch.setattr(module, "CACHE_CHARS", 100)
    folding = Folding(connection)
    folding._cache = Cache(rows)
    plain: dict[Any, Any] = {}
    for position, record in enumerate(history(seed), 1):
        frame = decode(record)
        folding.look_up([frame] * 3)
        folding.fold(frame, position)
        if position % 5 == 0:
            commit(folding, connection)
        plain.update(fold(frame, position, plain))
    fresh = Folding(connection)
    commit(folding, connection)
    for key, row in plain.items():
        assert folding.get(key) == row
        assert fresh.get(key) == row


def test_what_is_dropped_was_never_there(connection: sqlite3.Connection) -> None:
    folding = Folding(connection)
    frames = talking("s", 3)
    folding.fold(frames[0].frame, 1)
    commit(folding, connection)
    before = folding.get(("sessions", "s"))
    folding.fold(frames[1].frame, 2)
    assert folding.get(("sessions", "s")) != before
    folding.drop()
    assert folding.get(("sessions", "s")) == before
    assert folding.get(("entries", "s", 1)) is None


def test_what_another_wrote_is_seen_after_forgetting(connection: sqlite3.Connection) -> None:
    folding, other = Folding(connection), Folding(connection)
    frames = talking("s", 3)
    for position, frame in enumerate(frames, 1):
        who = (folding, other)[position % 2]
        who.forget()
        who.fold(frame.frame, position)
        commit(who, connection)
    folding.forget()
    assert folding.get(("sessions", "s")).leaf == 3


def test_a_large_value_is_not_kept_in_memory(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    folding = Folding(connection)
    frames = [*beginning("s"), owned("s", 3, state("st", "a1", text="x" * 20_000))]
    for position, frame in enumerate(frames, 1):
        folding.fold(frame.frame, position)
        commit(folding, connection)
    cached = {**folding._cache._old, **folding._cache.young}
    assert ("entries", "s", 3) not in cached
    assert ("app_states", "s") not in cached
    assert ("entries", "s", 2) in cached
    assert ("sessions", "s") in cached
    assert folding.get(("entries", "s", 3)).value == {"text": "x" * 20_000}
    assert ("entries", "s", 3) not in folding._cache.young


def test_only_the_changed_fields_of_a_head_are_written(connection: sqlite3.Connection) -> None:
    folding = Folding(connection)
    for position, frame in enumerate(talking("s", 5), 1):
        folding.fold(frame.frame, position)
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        commit(folding, connection)
    (update,) = (item for item in statements if item.startswith("UPDATE sessions"))
    assert "status" not in update
    assert "cwd" not in update
    assert len(statements) == 4  # BEGIN, entry, head with its branch and surface, COMMIT


def test_a_row_that_is_in_the_way_is_not_swept_aside(connection: sqlite3.Connection) -> None:
    folding = Folding(connection)
    for position, frame in enumerate(talking("s", 2), 1):
        folding.fold(frame.frame, position)
    commit(folding, connection)
    row = folding.get(("entries", "s", 2))
    folding._changes[("entries", "s", 3)] = row._replace(number=3)
    connection.execute("BEGIN")
    with pytest.raises(sqlite3.IntegrityError, match=r"entries\.id"):
        folding.write()
    connection.execute("ROLLBACK")


def test_a_row_may_go_and_come_again(connection: sqlite3.Connection) -> None:
    folding = Folding(connection)
    key = ("facts", "s", "name")
    row = module.CODECS["facts"].row("s", "name", "e", 1, 1)
    for change in (row, None, row._replace(value=2), row._replace(value=2)):
        folding._changes[key] = change
        commit(folding, connection)
        folding.forget()
        assert folding.get(key) == change
    folding._changes[key] = folding.get(key)
    commit(folding, connection)  # nothing changed, and it is written all the same
    folding.forget()
    assert folding.get(key) == row._replace(value=2)
