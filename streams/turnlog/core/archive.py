"""Archive lines: the exchange format of `dump`, `restore` and `copy`. Pure.

NDJSON in log order. A frame that can be read is `{"position": N, "frame": {...}}` with the frame's
own JSON, byte for byte; one that cannot is `{"position": N, "session": S, "raw": base64}` with the
header fields that are known beside them. `position` is for people.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from json import JSONDecoder
from typing import Any, cast

import orjson

from turnlog.core.errors import SchemaError
from turnlog.core.frames import Frame, Header, Record, decode, header_of
from turnlog.core.shapes import is_list, is_object

_PLAIN = re.compile(rb'\{"position":\d+,"frame":(\{.*\})\}\s*', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_BESIDE = ("claim", "epoch", "seq", "writer")
"""Header fields beside `raw`: all of them where the record had a header, none where it had none."""


def to_line(position: int, record: Record) -> bytes:
    """One line, newline included."""
    if isinstance(decode(record), Frame) and header_of(orjson.loads(record.body)) == record.header:
        # a newline in a JSON text can only be white space between its tokens
        body = record.body.replace(b"\n", b" ").replace(b"\r", b" ")
        return b'{"position":%d,"frame":%s}\n' % (position, body.strip())
    known: dict[str, Any] = {"position": position, "session": record.session}
    header = record.header
    if header is not None:
        known |= {name: getattr(header, name) for name in _BESIDE}
        if header.session != record.session:
            known["header_session"] = header.session
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
    if ("frame" in value) == ("raw" in value):
        raise SchemaError('it must have either a "frame", or a "session" with "raw"')
    if "frame" in value:
        return _frame(value["frame"], line)
    return _raw(value)


def _raw(value: dict[str, Any]) -> Record:
    unknown = sorted(value.keys() - {"position", "session", "raw", "header_session", *_BESIDE})
    if unknown:
        raise SchemaError(f'beside "raw" it has {unknown[0]!r}, which would be lost')
    session, raw = value.get("session"), value["raw"]
    if not isinstance(session, str) or not session or not isinstance(raw, str):
        raise SchemaError('its "session" and "raw" must be text')
    try:
        body = b64decode(raw, validate=True)
    except ValueError as error:
        raise SchemaError(f'its "raw" is no base64: {error}') from None
    if not any(name in value for name in (*_BESIDE, "header_session")):
        return Record(session, None, body)
    filed, writer = value.get("header_session", session), value.get("writer")
    claim, epoch, seq = value.get("claim"), value.get("epoch"), value.get("seq")
    for name, number in (("epoch", epoch), ("seq", seq)):
        if number is not None and not (type(number) is int and -(2**63) <= number < 2**63):
            raise SchemaError(f'its "{name}" must be a number of 64 bits, or null')
    if not isinstance(filed, str) or not all(isinstance(x, str | None) for x in (claim, writer)):
        raise SchemaError("its header fields must be text, or null")
    return Record(session, Header(filed, claim, epoch, seq, writer), body)


def _frame(frame: Any, line: bytes) -> Record:
    header = header_of(frame) if is_object(frame) else None
    if header is None:
        raise SchemaError("its frame has no session, or an incomplete claim, epoch and seq")
    if not is_list(frame.get("events")):
        raise SchemaError("its frame has no list of events")
    plain = _PLAIN.fullmatch(line)
    if plain is None or not _is(plain.group(1), frame):
        return Record(header.session, header, _cut_out(line))
    return Record(header.session, header, plain.group(1))


def _is(body: bytes, frame: dict[str, Any]) -> bool:
    """Whether a body that was cut out of a line is the line's frame, and not the start of more."""
    try:
        return bool(orjson.loads(body) == frame)
    except orjson.JSONDecodeError:
        return False


def _cut_out(line: bytes) -> bytes:
    """The frame's own text in a line of any spelling: reading and writing it again would change
    numbers beyond 64 bits, and drop keys that stand twice."""
    text, decoder, body = line.decode(), JSONDecoder(), ""
    at = text.index("{") + 1
    try:
        while text[(at := _skip(text, at))] != "}":
            key, at = decoder.raw_decode(text, _skip(text, at + (text[at] == ",")))
            start = _skip(text, _skip(text, at) + 1)
            _, at = decoder.raw_decode(text, start)
            if key == "frame":
                body = text[start:at]
    except RecursionError:
        raise SchemaError("it is nested too deep") from None
    return body.encode()


def _skip(text: str, at: int) -> int:
    """The next place that is no white space."""
    return cast("re.Match[str]", _SPACE.match(text, at)).end()  # it matches nothing, too
