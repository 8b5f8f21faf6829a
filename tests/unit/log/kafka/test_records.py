from __future__ import annotations

import pytest

from turnlog.core.frames import Header, Record
from turnlog.log.kafka.partition import STRAY, partition_of
from turnlog.log.kafka.records import to_message, to_record

WHOLE = Header("s", "c1", 3, 7, "host")


def back(record: Record, partitions: int = 5) -> Record:
    message = to_message(record, partitions)
    assert message.partition == partition_of(record.session, partitions)
    return to_record(
        message.key,
        message.headers,
        message.value,
        partition=message.partition,
        partitions=partitions,
    )


@pytest.mark.parametrize(
    "header",
    [
        None,
        WHOLE,
        Header("s", None, None, None, None),
        Header("another", "c1", None, -3, ""),
        Header("", "", 0, 2**63 - 1, "nul\0 ✓"),
    ],
)
def test_a_record_comes_back_as_it_was(header: Header | None) -> None:
    for body in (b"", b"{}", b"\xff\0"):
        record = Record("s", header, body)
        assert back(record) == record


def test_what_is_sent_is_key_headers_and_body() -> None:
    message = to_message(Record("s", WHOLE, b"{}"), 1)
    assert message.key == b"s"
    assert message.headers == [
        ("session", b"s"),
        ("claim", b"c1"),
        ("epoch", b"3"),
        ("seq", b"7"),
        ("writer", b"host"),
    ]
    assert message.value == b"{}"
    assert message.size > len(b"s{}sessions" + b"claimc1epoch3seq7writerhost")


HEADERS = to_message(Record("s", WHOLE, b""), 1).headers


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"\xff",
        b"not of this partition",
        f"{STRAY}4".encode(),
        f"{STRAY}{'9' * 5_000}".encode(),  # more digits than Python makes a number of
    ],
)
def test_what_belongs_to_no_session_here_is_stray(key: bytes | None) -> None:
    partitions = 1_000_003
    record = to_record(key, HEADERS, b"body", partition=9, partitions=partitions)
    assert record == Record(f"{STRAY}9", WHOLE, b"body")
    assert back(record, partitions) == record


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("claim", b"c1")],
        [*HEADERS, ("seq", b"8")],
        [("session", b"\xff"), *HEADERS[1:]],
        [("session", None), *HEADERS[1:]],
        [*HEADERS[:2], ("epoch", b"three"), *HEADERS[3:]],
        [*HEADERS[:2], ("epoch", b"9223372036854775808"), *HEADERS[3:]],
        [*HEADERS[:2], ("epoch", "٣".encode()), *HEADERS[3:]],
        [*HEADERS[:4], ("writer", b"\xff")],
    ],
)
def test_a_header_that_cannot_be_read_is_none(headers: list[tuple[str, bytes | None]]) -> None:
    record = to_record(b"s", headers, None, partition=0, partitions=1)
    assert record == Record("s", None, b"")


def test_headers_of_others_are_left_alone() -> None:
    others = [("traceparent", b"00-x"), *HEADERS, ("traceparent", None)]
    assert to_record(b"s", others, b"", partition=0, partitions=1).header == WHOLE
