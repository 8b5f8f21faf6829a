"""A record as Kafka holds it: the key is the session, the headers are the frame's, the value is the
body. What is read is checked: a record that has no session, or another partition's, is stray.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from turnlog.core.frames import Header, Record
from turnlog.log.kafka.partition import STRAY, partition_of

OVERHEAD = 100
"""Bytes of a batch and of a record's own lengths, generously."""
_NUMBER = re.compile(rb"-?\d{1,19}")


class Message(NamedTuple):
    """What is sent."""

    partition: int
    key: bytes
    headers: list[tuple[str, bytes]]
    value: bytes

    @property
    def size(self) -> int:
        """No less than what the record takes, before compression."""
        headers = sum(len(name) + len(value) + 10 for name, value in self.headers)
        return len(self.key) + len(self.value) + headers + OVERHEAD


def to_message(record: Record, partitions: int) -> Message:
    """A record for a topic of so many partitions. What is None in the header is left out."""
    headers = [
        (name, str(value).encode())
        for name, value in zip(Header._fields, record.header or (), strict=False)
        if value is not None
    ]
    partition = partition_of(record.session, partitions)
    return Message(partition, record.session.encode(), headers, record.body)


def to_record(
    key: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    value: bytes | None,
    *,
    partition: int,
    partitions: int,
) -> Record:
    """The record of what was read. Never raises.

    Without a header that can be read it has None there. What names no session, or one that belongs
    on another partition, is filed under the partition's own name: under the session's it would
    stand among positions of another order. Such a record, copied to another topic, has that name
    as its key and keeps it, however many partitions there are.
    """
    header = _header(headers)
    session = _text(key)
    if session is None or partition_of(session, partitions) != partition:
        session = f"{STRAY}{partition}"
    return Record(session, header, value or b"")


def _header(headers: Sequence[tuple[str, bytes | None]]) -> Header | None:
    """The frame's header. Others' headers are left alone; one of ours twice is none of ours."""
    found: dict[str, bytes | None] = {}
    for name, value in headers:
        if name in Header._fields:
            if name in found or value is None:
                return None
            found[name] = value
    session = _text(found.get("session"))
    claim, writer = _text(found.get("claim")), _text(found.get("writer"))
    epoch, seq = _number(found.get("epoch")), _number(found.get("seq"))
    header = Header(session or "", claim, epoch, seq, writer)
    readable = {name for name, value in header._asdict().items() if value is not None}
    is_whole = session is not None and readable >= found.keys()
    return header if is_whole else None


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _number(value: bytes | None) -> int | None:
    if value is None or not _NUMBER.fullmatch(value):
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None
