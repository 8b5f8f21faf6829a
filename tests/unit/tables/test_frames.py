"""Bodies come back byte for byte, whatever they are and however they are stored."""

from __future__ import annotations

import sqlite3
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.core.errors import SchemaError
from turnlog.core.frames import Header, Record
from turnlog.tables import frames
from turnlog.tables.frames import COMPRESS_FROM, ZSTD, check, from_row, pack, to_row, unpack
from turnlog.tables.store import Stored

LONG = b'{"text": "again and again"}' * 1_000


@given(st.binary(max_size=64) | st.binary(max_size=64).map(lambda body: ZSTD + body))
def test_any_body_comes_back(body: bytes) -> None:
    assert unpack(pack(body)) == body
    assert unpack(pack(body * 500)) == body * 500
    assert unpack(pack(pack(body))) == pack(body)


def test_a_long_body_is_compressed_where_that_gains_much() -> None:
    assert pack(LONG).startswith(ZSTD)
    assert len(pack(LONG)) < len(LONG) / 10
    assert pack(LONG[: COMPRESS_FROM - 1]) == LONG[: COMPRESS_FROM - 1]
    noise = bytes(range(256)) * 8
    scrambled = bytes((7 * a + 13 * i * i) % 256 for i, a in enumerate(noise * 2))
    assert unpack(pack(scrambled)) == scrambled


def test_what_is_broken_on_disk_is_given_as_it_lies_there() -> None:
    broken = pack(LONG)[:-9] + b"\0" * 9
    assert unpack(broken) == broken
    no_frame = ZSTD + b"\xff" * 20
    assert unpack(no_frame) == no_frame


def test_threads_share_no_compressor() -> None:
    failed: list[int] = []

    def work(number: int) -> None:
        body = LONG + bytes([number])
        for _ in range(50):
            if unpack(pack(body)) != body:
                failed.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.parametrize(
    "header",
    [
        None,
        Header("s", None, None, None, None),
        Header("s", "c", 1, 2, "w"),
        Header("other", "c", 1, 2, "w"),
        Header("s", "c", None, 2, None),
        Header("", "", 0, 0, ""),
    ],
)
def test_any_header_comes_back(header: Header | None) -> None:
    stored = Stored(7, 8, Record("s", header, b"{}"))
    folded, position, time, key, *rest = to_row(stored, 99, folded=True)
    assert (folded, key) == (True, 99)
    assert from_row((position, time, "s", *rest)) == stored


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (Record("\ud800", None, b""), "half a character"),
        (Record("s", Header("s", "\udc00", 1, 1, None), b""), "half a character"),
        (Record("s", Header("s", "c", 2**63, 1, None), b""), "does not fit 64 bits"),
        (Record("s", Header("s", "c", 1, -(2**63) - 1, None), b""), "does not fit 64 bits"),
    ],
)
def test_what_sql_cannot_hold_is_refused_before(record: Record, says: str) -> None:
    with pytest.raises(SchemaError, match=f"session .*{says}"):
        check(record)


def test_the_index_by_session_is_used_for_a_session_and_in_order() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in frames.CREATE:
        connection.execute(statement)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    frames.read_page(connection, 1, 9, "s")
    connection.set_trace_callback(None)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statements[0]}")]
    connection.close()
    assert any("frames_by_session (session=? AND rowid>? AND rowid<?)" in step for step in plan)
    assert not any("TEMP B-TREE" in step for step in plan), "no sorting"
