"""Frames: how events are checked, sealed, written and read, and the limits they keep.

`seal` is the only way to make a frame for the log and `decode` the only way to read one. Both give
the same `Frame`, so that what is folded at once and what is folded after reading back are equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from turnlog.core.errors import SchemaError, TooLarge
from turnlog.core.events import ENTRY_TYPES, TYPES, VERSIONS
from turnlog.core.shapes import is_list, is_object
from turnlog.core.upcast import UPCASTERS, Upcasters, upcast

MAX_EVENTS = 1024
MAX_FRAME_BYTES = 900_000
MAX_PART_BYTES = 256 * 1024
MAX_BLOB_BYTES = 16 * 1024 * 1024
MAX_ID = 512
MAX_DEPTH = 200
"""How deep JSON may be nested: the encoder stops at 254, and an event adds a few levels."""

Data: TypeAlias = dict[str, Any]
Body: TypeAlias = bytes

_CHECKS = {name: TypeAdapter(schema).validator.validate_python for name, schema in TYPES.items()}


class Header(NamedTuple):
    """What travels beside a frame's body. A guest frame has claim, epoch and seq None."""

    session: str
    claim: str | None
    epoch: int | None
    seq: int | None
    writer: str | None

    @property
    def is_guest(self) -> bool:
        """Whether the frame was written by somebody who need not own the session."""
        return self.claim is None and self.epoch is None and self.seq is None


class Event(NamedTuple):
    """One fact as read. `fault` says why it cannot be folded; `newer`, that it is from later."""

    type: str
    v: int
    id: str
    time: str | None
    data: Data
    digest: str = ""
    fault: str | None = None
    newer: bool = False


class Frame(NamedTuple):
    """A frame that could be read. `digest` covers everything but time and writer."""

    header: Header
    events: tuple[Event, ...]
    digest: str


class Unreadable(NamedTuple):
    """A record that is no frame: `header` is None where not even that is known."""

    session: str
    header: Header | None
    reason: str
    digest: str


class Record(NamedTuple):
    """What a log stores: the session it is filed under, the header beside the body, the body."""

    session: str
    header: Header | None
    body: Body


class SealedFrame(NamedTuple):
    """A frame ready for the log; it is sent byte for byte, however often."""

    record: Record
    frame: Frame


class NewEvent(NamedTuple):
    """An event as its writer gives it."""

    type: str
    id: str
    time: str | None
    data: Data
    v: int = 1


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, the form that digests cover."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest_of(body: bytes) -> str:
    """The SHA-256 of some bytes, in hex."""
    return sha256(body).hexdigest()


def content_of(event: Event) -> str:
    """The digest of what a record says: the same under another event id (the fold's rule 1)."""
    return digest_of(canonical([event.type, event.data]))


def seal(header: Header, events: Sequence[NewEvent]) -> SealedFrame:
    """Check events and make them one frame.

    Raises SchemaError for data that breaks the vocabulary or the number rule, with the path of the
    offending value, and TooLarge where a limit is passed. Nothing has been written then.
    """
    _check_header(header)
    where = f"session {header.session!r}"
    if not 0 < len(events) <= MAX_EVENTS:
        raise TooLarge(
            f"{where}: a frame holds 1 to {MAX_EVENTS} events, not {len(events)}; split it"
        )
    sealed: list[Event] = []
    wire: list[Data] = []
    for new in events:
        place = f"{where}, event {new.id!r} ({new.type})"
        _check_values(new.data, f"{place}: data")
        _check_values(new.time, f"{place}: time")
        _check_parts(new.data, place)
        raw = {"type": new.type, "v": new.v, "id": new.id, "time": new.time, "data": new.data}
        event = _event(raw, UPCASTERS)
        if event.fault is not None:
            raise SchemaError(f"{place}: {event.fault}")
        sealed.append(event)
        wire.append(raw)
    body = orjson.dumps({**header._asdict(), "events": wire})
    if len(body) > MAX_FRAME_BYTES:
        largest = max(wire, key=lambda raw: len(orjson.dumps(raw)))
        raise TooLarge(
            f"{where}: the frame has {len(body):,} bytes, over {MAX_FRAME_BYTES:,}; its largest"
            f" event is {largest['id']!r} ({largest['type']}) with"
            f" {len(orjson.dumps(largest)):,} bytes: split the frame, or make large parts blobs"
        )
    frame = Frame(header, tuple(sealed), _frame_digest(header, sealed))
    return SealedFrame(Record(header.session, header, body), frame)


def decode(record: Record, upcasters: Upcasters = UPCASTERS) -> Frame | Unreadable:
    """Read one record of the log. Never raises: what is wrong is in the answer.

    A frame whose body names another session, claim, epoch or seq than its header is unreadable.
    An event that is malformed is in the frame, with its `fault`.
    """
    header = record.header
    if header is None:
        return _unreadable(record, "the header cannot be read")
    if header.session != record.session:
        return _unreadable(record, f"filed under another session than {header.session!r}")
    if not header.is_guest and None in (header.claim, header.epoch, header.seq):
        return _unreadable(record._replace(header=None), "the header is incomplete")
    try:
        raw = orjson.loads(record.body)
    except orjson.JSONDecodeError as error:
        return _unreadable(record, f"the body is no JSON: {error}")
    if not is_object(raw) or not is_list(raw.get("events")):
        return _unreadable(record, "the body is no object with a list of events")
    for name, beside in (
        ("session", header.session),
        ("claim", header.claim),
        ("epoch", header.epoch),
        ("seq", header.seq),
    ):
        if raw.get(name) != beside:
            return _unreadable(record, f"the body's {name} is not its header's")
    events = [_event(item, upcasters) for item in raw["events"]]
    return Frame(header, tuple(events), _frame_digest(header, events))


def header_of(raw: Mapping[str, Any]) -> Header | None:
    """The header in a frame's own JSON, or None where it has none that can be read."""
    session, claim = raw.get("session"), raw.get("claim")
    epoch, seq, writer = raw.get("epoch"), raw.get("seq"), raw.get("writer")
    if not isinstance(session, str) or not session:
        return None
    if claim is None and epoch is None and seq is None:
        pass
    elif not isinstance(claim, str) or not _is_count(epoch) or not _is_count(seq):
        return None
    return Header(session, claim, epoch, seq, writer if isinstance(writer, str) else None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**62


def _unreadable(record: Record, reason: str) -> Unreadable:
    return Unreadable(record.session, record.header, reason, digest_of(record.body))


def _frame_digest(header: Header, events: Sequence[Event]) -> str:
    return digest_of(canonical([*header[:4], [event.digest for event in events]]))


def _event(raw: Any, upcasters: Upcasters) -> Event:
    """One event of a frame's JSON, checked against the vocabulary."""
    try:
        type_, v, id_, data = raw["type"], raw["v"], raw["id"], raw["data"]
        digest = sha256(canonical([type_, v, id_, data])).hexdigest()
    except (TypeError, KeyError) as error:  # orjson's encoding errors are TypeErrors, too
        return _faulty(raw, f"it has no type, v, id and data that can be read ({error})")
    time = raw.get("time")
    if (
        not isinstance(type_, str)
        or type(v) is not int
        or not isinstance(id_, str)
        or not is_object(data)
        or not 0 < len(id_) <= MAX_ID
        or not (time is None or isinstance(time, str))
    ):
        return _faulty(raw, "type, id and time must be text, v a number and data an object")
    current = VERSIONS.get(type_)
    if current is None:
        return Event(type_, v, id_, time, data, digest)
    if v > current:
        return Event(type_, v, id_, time, data, digest, newer=True)
    if v < current:
        raised = upcast(type_, v, data, upcasters)
        if raised is None:
            return Event(type_, v, id_, time, data, digest, f"there is no {type_} version {v}")
        data = raised
    return Event(type_, current, id_, time, data, digest, _fault(type_, data))


def _fault(type_: str, data: Data) -> str | None:
    """What breaks the vocabulary in the data of a known type, or None."""
    try:
        _CHECKS[type_](data)
    except ValidationError as error:
        return _reason(error)
    if type_ == "message" and not all(_is_call(part) for part in _tool_calls(data)):
        return "data.content: a tool_call has no call_id or no name"
    return None


def _faulty(raw: Any, reason: str) -> Event:
    def text(name: str) -> str:
        value = raw.get(name) if is_object(raw) else None
        return value if isinstance(value, str) else ""

    return Event(text("type"), 0, text("id"), None, {}, _digest_of_any(raw), reason)


def _digest_of_any(raw: Any) -> str:
    """A digest of what need be no event: however deep it is nested, and without its time."""
    digest = sha256()
    if is_object(raw):
        raw = {name: value for name, value in raw.items() if name != "time"}
    waiting = [raw]
    while waiting:
        value = waiting.pop()
        if is_object(value):
            digest.update(b"{%d" % len(value))
            for name in sorted(value):
                waiting += (value[name], name)
        elif is_list(value):
            digest.update(b"[%d" % len(value))
            waiting += value
        else:
            digest.update(repr(value).encode() + b",")
    return digest.hexdigest()


def _reason(error: ValidationError) -> str:
    """The first fault that pydantic found, as one line: path, then what is wrong."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(step) for step in first["loc"])
    return f"data.{path}: {first['msg']}"


def _tool_calls(data: Data) -> Iterator[Data]:
    content = data["content"]
    if is_list(content):
        for part in content:
            if part["type"] == "tool_call":
                yield part


def _is_call(part: Data) -> bool:
    return bool(part.get("call_id")) and isinstance(part.get("name"), str)


def check_session(session: str) -> None:
    """Raise SchemaError for what can be the id of no session."""
    _check_header(Header(session, None, None, None, None))


def _check_header(header: Header) -> None:
    if header_of(header._asdict()) != header:
        raise SchemaError(
            f"session {header.session!r}: a frame needs a session id, and"
            " claim, epoch and seq either all (text, and numbers from 1) or none"
        )
    if len(header.session) > MAX_ID:
        raise SchemaError(f"the session id has {len(header.session)} characters, over {MAX_ID}")
    for name in ("session", "claim", "writer"):
        _check_values(getattr(header, name), f"session {header.session!r}: the frame's {name}")


def _check_values(value: Any, path: str, depth: int = 0) -> None:
    """Refuse what the one encoder cannot write and read back unchanged (the number rule)."""
    if depth > MAX_DEPTH:
        raise SchemaError(f"{path}: nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        if not value.isascii():
            _check_text(value, path)
    elif is_object(value):
        for name, item in cast("dict[object, Any]", value).items():
            if not isinstance(name, str):
                raise SchemaError(f"{path}: the key {name!r} is no text")
            if not name.isascii():
                _check_text(name, path)
            _check_values(item, f"{path}.{name}", depth + 1)
    elif is_list(value):
        for index, item in enumerate(value):
            _check_values(item, f"{path}[{index}]", depth + 1)
    elif value is None or isinstance(value, bool):
        pass
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise SchemaError(f"{path}: the integer {value} does not fit 64 bits; write it as text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise SchemaError(f"{path}: {value} is no JSON number; write null or text")
    else:
        raise SchemaError(f"{path}: a {type(value).__name__} is no JSON value")


def _check_text(value: str, path: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SchemaError(
            f"{path}: the text holds half a character (a lone surrogate);"
            " make it well-formed with turnlog.core.text.well_formed"
        ) from None


def _check_parts(data: object, place: str) -> None:
    content = data.get("content") if is_object(data) else None
    if not is_list(content):
        return
    for index, part in enumerate(content):
        size = _part_size(part)
        if size > MAX_PART_BYTES:
            raise TooLarge(
                f"{place}: content[{index}] has {size:,} bytes, over {MAX_PART_BYTES:,};"
                " store it as a blob (turnlog.core.blobs.externalise)"
            )


def _part_size(part: Any) -> int:
    text = part.get("text") if is_object(part) and part.get("type") == "text" else None
    if isinstance(text, str) and len(part) == 2 and len(text) * 6 < MAX_PART_BYTES - 64:
        return len(text)  # the common case: far below, at six bytes for each character
    return len(orjson.dumps(part))


def is_entry(event: Event) -> bool:
    """Whether an event is a node of the session tree; an unknown type with a parent is."""
    if event.type in ENTRY_TYPES and not event.newer:
        return True
    if event.type in TYPES and not event.newer:
        return False
    return "parent" in event.data and isinstance(event.data["parent"], str | None)
