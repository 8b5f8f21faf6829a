"""The legible format: each frame is a line of JSON (`turnlog.log.file.sealed_lines`).

`{"crc":…,"seq":1,"position":7,"time":…,"frame":{…}}` with the frame's own JSON byte for byte, or
`"raw"` in base64 with what is known of the header beside it, where the body is no such JSON. A line
counts only with its newline, and only with the next `seq`.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import Any

import orjson

from turnlog.core.frames import Header, Record, header_of
from turnlog.core.shapes import is_object
from turnlog.log.file import sealed_lines
from turnlog.log.file.frames import Found, Window
from turnlog.tables.store import Stored

_PLAIN = re.compile(rb'"seq":(\d+),"position":(\d+),"time":(-?\d+),"frame":(\{.*\})\}', re.DOTALL)


class Jsonl:
    """See the module's text."""

    name = "jsonl"
    suffix = ".jsonl"
    marker = sealed_lines.START

    def encode(self, stored: Stored, seq: int) -> bytes:
        position, time, record = stored
        numbers = b'"seq":%d,"position":%d,"time":%d,' % (seq, position, time)
        if _is_plain(record):
            return sealed_lines.seal(b'%b"frame":%b}' % (numbers, record.body))
        header = record.header
        values = None if header is None else header._asdict()
        raw = {"header": values, "raw": b64encode(record.body).decode()}
        return sealed_lines.seal(numbers + orjson.dumps(raw)[1:])

    def parse(self, window: Window, start: int, session: str) -> Found | None:
        end = window.find(b"\n", start) + 1
        if end > window.size:
            return None
        rest = sealed_lines.unseal(window.get(start, end - 1 - start))
        if rest is None:
            return None
        plain = _PLAIN.fullmatch(rest)
        if plain is not None:
            body = plain[4]
            record = Record(session, header_of(orjson.loads(body)), body)
            return Found(start, end, int(plain[1]), int(plain[2]), int(plain[3]), record)
        values: dict[str, Any] = orjson.loads(b"{" + rest)
        if "raw" not in values:
            return None
        header = None if values["header"] is None else Header(**values["header"])
        record = Record(session, header, b64decode(values["raw"]))
        return Found(start, end, values["seq"], values["position"], values["time"], record)

    def is_short(self, window: Window, start: int) -> bool:
        """A line that is whole but for another byte in its newline's place was written once."""
        if window.find(b"\n", start) < window.size:
            return False
        return sealed_lines.unseal(window.get(start, window.size - 1 - start)) is None


def _is_plain(record: Record) -> bool:
    """Whether a record can be written as the JSON that it is, and read back the same."""
    body = record.body
    if b"\n" in body or b"\r" in body or body[:1] != b"{" or body[-1:] != b"}":
        return False
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    header = header_of(value) if is_object(value) else None
    return header == record.header and header is not None and header.session == record.session
