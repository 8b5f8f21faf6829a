"""Archive lines: the exchange format of `dump`, `restore` and `copy`. Pure.

NDJSON in log order. A frame that can be read is `{"position": N, "frame": {...}}` with the frame's
own JSON, byte for byte; one that cannot is `{"position": N, "session": S, "raw": base64}` with the
header fields that are known. `position` is for people.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import Any

import orjson

from turnlog.core.errors import SchemaError
from turnlog.core.frames import Frame, Header, Record, decode, header_of
from turnlog.core.shapes import is_list, is_object

_PLAIN = re.compile(rb'\{"position":\d+,"frame":(\{.*\})\}\s*', re.DOTALL)


def to_line(position: int, record: Record) -> bytes:
    """One line, newline included."""
    if isinstance(decode(record), Frame) and header_of(orjson.loads(record.body)) == record.header:
        # a newline in a JSON text can only be white space between its tokens
        body = record.body.replace(b"\n", b" ").replace(b"\r", b" ")
        return b'{"position":%d,"frame":%s}\n' % (position, body.strip())
    known: dict[str, Any] = {"position": position, "session": record.session}
    if record.header is not None:
        known["header"] = record.header._asdict()
    known["raw"] = b64encode(record.body).decode()
    return orjson.dumps(known) + b"\n"


def from_line(line: bytes) -> Record:
    """The record of one line. Raises SchemaError, saying what is wrong with the line."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise SchemaError(f"it is no JSON: {error}") from None
    if not is_object(value):
        raise SchemaError("it is no object")
    if is_object(value.get("frame")):
        return _frame(value["frame"], line)
    if not isinstance(value.get("raw"), str) or not isinstance(value.get("session"), str):
        raise SchemaError('it has neither a "frame" nor a "session" with "raw"')
    try:
        body = b64decode(value["raw"], validate=True)
    except ValueError as error:
        raise SchemaError(f'its "raw" is no base64: {error}') from None
    beside = value.get("header")
    if beside is None:
        return Record(value["session"], None, body)
    return Record(value["session"], _known_header(beside), body)


def _known_header(beside: Any) -> Header:
    """A header of which only some need be known: it is restored as it was."""
    if not is_object(beside):
        raise SchemaError('its "header" cannot be read')
    session, claim, epoch, seq, writer = (beside.get(name) for name in Header._fields)
    if (
        not isinstance(session, str)
        or not all(isinstance(value, str | None) for value in (claim, writer))
        or not all(type(value) in (int, type(None)) for value in (epoch, seq))
    ):
        raise SchemaError('its "header" cannot be read')
    return Header(session, claim, epoch, seq, writer)


def _frame(frame: dict[str, Any], line: bytes) -> Record:
    header = header_of(frame)
    if header is None:
        raise SchemaError("its frame has no session, or an incomplete claim, epoch and seq")
    if not is_list(frame.get("events")):
        raise SchemaError("its frame has no list of events")
    plain = _PLAIN.fullmatch(line)
    body = plain.group(1) if plain is not None else b""
    return Record(header.session, header, body if _is(body, frame) else orjson.dumps(frame))


def _is(body: bytes, frame: dict[str, Any]) -> bool:
    """Whether a body that was cut out of a line is the line's frame, and not the start of more."""
    try:
        return bool(orjson.loads(body) == frame)
    except orjson.JSONDecodeError:
        return False
