"""Frames: what may be written, how it is read back, and the limits (design, 2)."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Any

import orjson
import pytest

from tests.story import assistant, call, claimed, created, custom, event, fact, forge, text, user
from turnlog.core.errors import SchemaError, TooLarge
from turnlog.core.events import VERSIONS
from turnlog.core.frames import (
    MAX_DEPTH,
    MAX_EVENTS,
    MAX_FRAME_BYTES,
    MAX_ID,
    MAX_PART_BYTES,
    Event,
    Frame,
    Header,
    NewEvent,
    Record,
    SealedFrame,
    Unreadable,
    canonical,
    decode,
    digest_of,
    header_of,
    is_entry,
    seal,
)

HEADER = Header("s", "claim", 1, 1, "writer")
GUEST = Header("s", None, None, None, "guest")


def sealed(*events: NewEvent, header: Header = HEADER) -> SealedFrame:
    return seal(header, events)


def decoded(record: Record) -> Frame:
    frame = decode(record)
    assert isinstance(frame, Frame), frame
    return frame


def read(*events: Any, header: Header = HEADER) -> tuple[Event, ...]:
    """Events that nobody checked on writing, as read."""
    return decoded(forge(header, *events)).events


def raw(**fields: Any) -> dict[str, Any]:
    good = {"type": "fact", "v": 1, "id": "e", "time": None, "data": {"name": "n", "value": 1}}
    return {**good, **fields}


def refused(*events: NewEvent, header: Header = HEADER) -> str:
    with pytest.raises(SchemaError) as caught:
        seal(header, events)
    message = str(caught.value)
    assert "\n" not in message
    return message


# ---- what is sealed is what is read ------------------------------------------------------------


@pytest.mark.parametrize("header", [HEADER, GUEST])
def test_a_sealed_frame_is_the_frame_that_is_read(header: Header) -> None:
    events = (
        user("u", None, "grüß \U0001f600 \x00"),
        assistant("a", "u", "c1"),
        event("zzz", "z", what={"ever": [1, 2.5, None, True]}),
    )
    record, frame = seal(header, events)
    assert record.session == "s"
    assert record.header == header
    assert decode(record) == frame
    assert [new.data for new in events] == [found.data for found in frame.events]
    assert [new.id for new in events] == [found.id for found in frame.events]
    assert {found.time for found in frame.events} == {"2026-01-01T00:00:00Z"}


def test_a_body_holds_the_header_and_the_events() -> None:
    record = sealed(fact("n", 1, "f")).record
    assert orjson.loads(record.body) == {
        "session": "s",
        "claim": "claim",
        "epoch": 1,
        "seq": 1,
        "writer": "writer",
        "events": [
            {
                "type": "fact",
                "v": 1,
                "id": "f",
                "time": "2026-01-01T00:00:00Z",
                "data": {"name": "n", "value": 1},
            }
        ],
    }


def test_a_frame_is_a_guests_iff_claim_epoch_and_seq_are_null() -> None:
    assert GUEST.is_guest
    assert not HEADER.is_guest
    assert not Header("s", None, 1, 1, None).is_guest
    assert not Header("s", "c", None, None, None).is_guest
    assert not Header("s", None, None, 1, None).is_guest
    assert not Header("s", None, 1, None, None).is_guest


# ---- digests -----------------------------------------------------------------------------------

NEW = fact("n", {"b": 1, "a": 2}, "f")


def test_a_digest_is_the_sha_256_of_canonical_json() -> None:
    frame = sealed(NEW).frame
    data = b'{"name":"n","value":{"a":2,"b":1}}'
    digest = sha256(b'["fact",1,"f",' + data + b"]").hexdigest()
    assert frame.events[0].digest == digest
    assert frame.digest == sha256(b'["s","claim",1,1,["%s"]]' % digest.encode()).hexdigest()


@pytest.mark.parametrize(
    ("other", "header"),
    [
        (NEW._replace(time=None), HEADER),
        (NEW._replace(time="2030-12-24T00:00:00Z"), HEADER),
        (NEW, HEADER._replace(writer="another")),
        (NEW._replace(data={"value": {"a": 2, "b": 1}, "name": "n"}), HEADER),
    ],
)
def test_digests_never_cover_time_writer_or_the_order_of_keys(
    other: NewEvent, header: Header
) -> None:
    assert sealed(other, header=header).frame.digest == sealed(NEW).frame.digest


@pytest.mark.parametrize(
    ("other", "header"),
    [
        (NEW._replace(id="g"), HEADER),
        (NEW._replace(type="factoid"), HEADER),
        (NEW._replace(v=2), HEADER),
        (NEW._replace(data={"name": "n", "value": {"a": 2}}), HEADER),
        (NEW._replace(data={**NEW.data, "unknown": None}), HEADER),
        (NEW, HEADER._replace(session="t")),
        (NEW, HEADER._replace(claim="d")),
        (NEW, HEADER._replace(epoch=2)),
        (NEW, HEADER._replace(seq=2)),
    ],
)
def test_digests_cover_everything_else(other: NewEvent, header: Header) -> None:
    assert sealed(other, header=header).frame.digest != sealed(NEW).frame.digest


def test_canonical_json_has_sorted_keys_at_every_level() -> None:
    assert (
        canonical({"b": [{"d": 1, "c": 2}], "a": "ü"}) == '{"a":"ü","b":[{"c":2,"d":1}]}'.encode()
    )
    assert digest_of(b"x") == sha256(b"x").hexdigest()


# ---- limits: refused, with session, event and path ---------------------------------------------


def test_a_frame_holds_1_to_1024_events() -> None:
    events = [fact("n", number) for number in range(MAX_EVENTS)]
    assert MAX_EVENTS == 1024
    assert len(seal(HEADER, events).frame.events) == 1024
    for count, wrong in ((1025, [*events, fact("n", 0)]), (0, [])):
        with pytest.raises(TooLarge, match=rf"session 's': .*1 to 1024 events, not {count}"):
            seal(HEADER, wrong)


def padded(size: int) -> list[NewEvent]:
    """Two events whose frame has a given number of bytes."""
    events = [fact("n", 1, "small"), fact("n", "", "large")]
    missing = size - len(seal(HEADER, events).record.body)
    return [events[0], fact("n", "x" * missing, "large")]


def test_a_frame_has_at_most_900_kb() -> None:
    assert MAX_FRAME_BYTES == 900_000
    assert len(seal(HEADER, padded(900_000)).record.body) == 900_000
    with pytest.raises(TooLarge) as caught:
        seal(HEADER, padded(900_001))
    message = str(caught.value)
    assert message.startswith("session 's': the frame has 900,001 bytes, over 900,000")
    assert "largest event is 'large' (fact) with 8" in message


def part_of(size: int, **fields: Any) -> dict[str, Any]:
    """A content part with a given number of bytes in JSON."""
    part = {"type": "text", "text": "", **fields}
    name = "text" if part["text"] == "" else next(iter(fields))
    return {**part, name: "x" * (size - len(orjson.dumps({**part, name: ""})))}


def message(*parts: Any) -> NewEvent:
    return event("message", "big", parent=None, role="user", content=list(parts))


@pytest.mark.parametrize("fields", [{}, {"extra": 1}, {"a": 1, "b": [2], "c": None}])
def test_a_part_has_at_most_256_kb(fields: dict[str, Any]) -> None:
    assert MAX_PART_BYTES == 256 * 1024
    good, bad = part_of(256 * 1024, **fields), part_of(256 * 1024 + 1, **fields)
    sealed(message(good))
    with pytest.raises(TooLarge) as caught:
        sealed(message({"type": "text", "text": "a"}, bad))
    assert str(caught.value).startswith(
        "session 's', event 'big' (message): content[1] has 262,145 bytes, over 262,144"
    )


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "\x00" * 60_000},
        {"type": "reasoning", "text": "short", "signature": "x" * 300_000},
        {"type": "image", "bytes": "x" * 300_000},
        {"type": "text", "text": None, "more": ["x" * 300_000]},
        {"type": "x" * 300_000, "text": "short"},
        {"type": "text", "text": "\U0001f600" * 70_000},
        {"type": "tool_call", "call_id": "c", "name": "n", "args": {"a": "x" * 300_000}},
    ],
    ids=lambda part: next(iter(part.values()))[:9],
)
def test_a_part_is_measured_as_it_is_written_with_all_its_fields(part: dict[str, Any]) -> None:
    assert len(orjson.dumps(part)) > MAX_PART_BYTES
    with pytest.raises(TooLarge, match=r"session 's', event 'big' \(message\): content\[0\] has"):
        sealed(message(part))


def test_sealed_content_is_no_list_of_parts_and_not_measured() -> None:
    data = {"parent": None, "role": "user", "content": {"sealed": "key", "ct": "x" * 300_000}}
    assert sealed(event("message", "m", **data)).frame.events[0].fault is None


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


VALUES: list[tuple[Any, str]] = [
    (2**63, "data.value.0: the integer 9223372036854775808 does not fit 64 bits"),
    (-(2**63) - 1, "does not fit 64 bits"),
    (10**400, "does not fit 64 bits"),
    (math.nan, "data.value.0: nan is no JSON number"),
    (math.inf, "data.value.0: inf is no JSON number"),
    (-math.inf, "-inf is no JSON number"),
    ("half \ud83d", "data.value.0: the text holds half a character"),
    ("\udfff", "data.value.0: the text holds half a character"),
    ({"half \ud83d": 1}, "data.value.0: the text holds half a character"),
    ({1: "one"}, "data.value.0: the key 1 is no text"),
    ({None: 1}, "the key None is no text"),
    (b"bytes", "data.value.0: a bytes is no JSON value"),
    ((1, 2), "data.value.0: a tuple is no JSON value"),
    ({1, 2}, "data.value.0: a set is no JSON value"),
    (object(), "data.value.0: a object is no JSON value"),
]


@pytest.mark.parametrize(("value", "words"), VALUES)
def test_a_value_that_json_cannot_hold_is_refused_with_its_path(value: Any, words: str) -> None:
    message = refused(fact("fine", 1), fact("n", {"0": value}, "bad"))
    assert message.startswith("session 's', event 'bad' (fact): data.value.0")
    assert words in message


@pytest.mark.parametrize("levels", [MAX_DEPTH, 5_000])
def test_a_value_that_is_nested_too_deep_is_refused(levels: int) -> None:
    message = refused(fact("n", nested(levels), "bad"))
    assert message.startswith("session 's', event 'bad' (fact): data.value")
    assert message.endswith(f"nested deeper than {MAX_DEPTH}")


def test_the_path_of_a_value_goes_through_lists_and_objects() -> None:
    message = refused(fact("n", [{"a": [0, {"b": math.nan}]}], "bad"))
    assert message.startswith("session 's', event 'bad' (fact): data.value[0].a[1].b: nan")


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0.5, "\x00", "\U0001f600", True, None, ""])
def test_what_json_holds_is_kept_as_it_is(value: Any) -> None:
    record = sealed(fact("n", {"k\x00ü": [value]})).record
    found = decoded(record).events[0].data["value"]
    assert found == {"k\x00ü": [value]}
    assert type(found["k\x00ü"][0]) is type(value)


def test_the_deepest_value_that_is_accepted_is_read_back() -> None:
    value = nested(MAX_DEPTH - 1)
    [found] = decoded(sealed(fact("n", value)).record).events
    assert found.fault is None
    assert found.data["value"] == value


def test_an_events_id_may_have_512_characters() -> None:
    assert MAX_ID == 512
    new = user("é" * MAX_ID, None)
    assert decoded(sealed(new).record).events[0].id == new.id
    assert read(raw(id="x" * MAX_ID))[0].fault is None


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (user("u", None)._replace(id=""), "event '' (message): type, id and time must be text"),
        (user("u" * (MAX_ID + 1), None), "type, id and time must be text"),
        (user("u\ud800", None), "it has no type, v, id and data that can be read"),
        (user("u", None)._replace(time="\ud800"), "event 'u' (message): time: the text holds half"),
        (user("u", None)._replace(time=5), "type, id and time must be text"),
        (user("u", None)._replace(v="1"), "type, id and time must be text, v a number"),
        (user("u", None)._replace(v=True), "v a number"),
        (user("u", None)._replace(v=1.0), "v a number"),
        (user("u", None)._replace(v=0), "there is no message version 0"),
        (user("u", None)._replace(data=[]), "data an object"),
        (user("u", None)._replace(type=None), "must be text"),
        (user("u", None)._replace(type="x\ud800"), "can be read"),
        (user("u", None, role="poet"), "event 'u' (message): data.role: "),
        (fact("n", 1)._replace(data={"name": "n"}), "data.value: Field required"),
    ],
)
def test_an_event_that_breaks_the_vocabulary_is_refused(bad: NewEvent, words: str) -> None:
    assert words in refused(fact("fine", 1), bad)


@pytest.mark.parametrize(
    "header",
    [
        Header("", None, None, None, None),
        Header("s", "c", 1, None, None),
        Header("s", "c", None, 1, None),
        Header("s", None, 1, 1, None),
        Header("s", "c", 0, 1, None),
        Header("s", "c", 1, 0, None),
        Header("s", "c", -1, 1, None),
        Header("s", "c", True, 1, None),
        Header("s", "c", 1, 2**62, None),
        Header("s", "c", 1.0, 1, None),  # type: ignore[arg-type]  # wrong on purpose
        Header(7, "c", 1, 1, None),  # type: ignore[arg-type]  # wrong on purpose
        Header("s", 7, 1, 1, None),  # type: ignore[arg-type]  # wrong on purpose
        Header("s", "c", 1, 1, 7),  # type: ignore[arg-type]  # wrong on purpose
        Header("s\ud800", "c", 1, 1, None),
        Header("s", "c\ud800", 1, 1, None),
        Header("s", "c", 1, 1, "w\ud800"),
        Header("s" * (MAX_ID + 1), "c", 1, 1, None),
    ],
)
def test_a_header_is_whole_or_refused(header: Header) -> None:
    assert "session" in refused(fact("n", 1), header=header)


@pytest.mark.parametrize(
    "header",
    [
        Header("s" * MAX_ID, None, None, None, None),
        Header("s", "c", 2**62 - 1, 2**62 - 1, "w"),
    ],
)
def test_a_header_at_its_limits_is_accepted(header: Header) -> None:
    assert decoded(sealed(fact("n", 1), header=header).record).header == header


# ---- reading -----------------------------------------------------------------------------------

BODY = sealed(NEW).record.body


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record("s", None, BODY), "the header cannot be read"),
        (Record("other", HEADER, BODY), "filed under another session than 's'"),
        (Record("s", HEADER._replace(seq=None), BODY), "the header is incomplete"),
        (Record("s", HEADER._replace(claim=None), BODY), "the header is incomplete"),
        (Record("s", HEADER._replace(epoch=None), BODY), "the header is incomplete"),
        (Record("s", HEADER, b""), "the body is no JSON"),
        (Record("s", HEADER, b"\xff\xfe"), "the body is no JSON"),
        (Record("s", HEADER, BODY[:-1]), "the body is no JSON"),
        (Record("s", HEADER, b'{"x": NaN}'), "the body is no JSON"),
        (Record("s", HEADER, b'{"x": "\\ud83d"}'), "the body is no JSON"),
        (Record("s", HEADER, b"[" * 5_000 + b"]" * 5_000), "the body is no JSON"),
        (Record("s", HEADER, b"[]"), "no object with a list of events"),
        (Record("s", HEADER, b"7"), "no object with a list of events"),
        (Record("s", HEADER, b'{"events":{}}'), "no object with a list of events"),
        (Record("s", HEADER, b'{"events":[]}'), "the body's session is not its header's"),
        (Record("s", HEADER._replace(claim="x"), BODY), "the body's claim is not its header's"),
        (Record("s", HEADER._replace(epoch=2), BODY), "the body's epoch is not its header's"),
        (Record("s", HEADER._replace(seq=2), BODY), "the body's seq is not its header's"),
        (Record("s", GUEST, BODY), "the body's claim is not its header's"),
    ],
)
def test_a_record_that_is_no_frame_is_unreadable_and_never_raises(
    record: Record, reason: str
) -> None:
    found = decode(record)
    assert isinstance(found, Unreadable)
    assert reason in found.reason
    assert found.session == record.session
    assert found.digest == sha256(record.body).hexdigest()
    whole = record.header is not None and (record.header.is_guest or None not in record.header[:4])
    assert found.header == (record.header if whole else None)


def test_only_the_writer_may_differ_between_body_and_header() -> None:
    record = Record("s", HEADER._replace(writer="relay"), BODY)
    assert decoded(record).header.writer == "relay"
    assert decoded(record).digest == sealed(NEW).frame.digest


def test_a_frame_from_elsewhere_may_be_larger_than_what_is_written_here() -> None:
    assert len(read(*[raw(id=f"e{number}") for number in range(2_000)])) == 2_000
    [found] = read(raw(data={"name": "n", "value": "x" * 2_000_000}))
    assert found.fault is None


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("text", "it has no type, v, id and data"),
        (None, "it has no type, v, id and data"),
        ([], "it has no type, v, id and data"),
        ({}, "it has no type, v, id and data"),
        ({"type": "fact", "v": 1, "id": "e"}, "it has no type, v, id and data"),
        (raw(type=1), "must be text"),
        (raw(v=None), "v a number"),
        (raw(v="1"), "v a number"),
        (raw(v=1.5), "v a number"),
        (raw(v=True), "v a number"),
        (raw(id=None), "must be text"),
        (raw(id=""), "must be text"),
        (raw(id="x" * (MAX_ID + 1)), "must be text"),
        (raw(time=12), "must be text"),
        (raw(data=None), "data an object"),
        (raw(data=[1]), "data an object"),
        (raw(v=0), "there is no fact version 0"),
        (raw(v=-3), "there is no fact version -3"),
        (raw(data={"name": "n"}), "data.value: Field required"),
        (raw(data={"name": 7, "value": 1}), "data.name: Input should be a valid string"),
    ],
)
def test_a_malformed_event_is_kept_with_its_fault(item: Any, reason: str) -> None:
    good, bad = read(raw(id="first"), item)
    assert good.fault is None
    assert bad.fault is not None
    assert reason in bad.fault
    assert "\n" not in bad.fault
    assert bad.digest
    named = item if isinstance(item, dict) else {}
    for name in ("type", "id"):
        known = named.get(name)
        assert getattr(bad, name) == (known if isinstance(known, str) else "")


def test_malformed_events_are_told_apart_by_their_digests() -> None:
    items = ["a", "b", "", {}, [], None, [[]], [{}], raw(id=None), raw(id=7), raw(id=[7])]
    items += [
        {"x": {"b": {}, "a": 1}},
        {"x": {"b": {"a": 1}}},
        {"x": [1, 2]},
        {"x": [12]},
        {"x": [13]},
    ]
    assert len({found.digest for found in read(*items)}) == len(items)


def test_the_digest_of_a_malformed_event_covers_no_time_either() -> None:
    one, other = read(raw(id=None, time="t1"), raw(id=None, time="t2"))
    assert one.digest == other.digest


@pytest.mark.parametrize("depth", [300, 1_000])
def test_an_event_nested_too_deep_to_encode_is_malformed_and_never_raises(depth: int) -> None:
    value = b'{"a":' * depth + b"1" + b"}" * depth
    body = sealed(fact("n", "HERE")).record.body.replace(b'"HERE"', value)
    [found] = decoded(Record("s", HEADER, body)).events
    assert found.fault is not None
    assert found.type == "fact"
    other = Record("s", HEADER, body.replace(b"1}}", b"2}}"))
    assert decoded(other).events[0].digest != found.digest


def test_a_tool_call_needs_an_id_and_a_name() -> None:
    for bad in ({"call_id": ""}, {"call_id": None}, {"name": None}):
        part = {**call("c1"), **bad}
        [found] = read(event("message", "m", parent=None, role="assistant", content=[part]))
        assert found.fault == "data.content: a tool_call has no call_id or no name"
    good = {**call("c1"), "name": ""}
    [found] = read(event("message", "m", parent=None, role="assistant", content=[good]))
    assert found.fault is None


# ---- what is not known -------------------------------------------------------------------------


def test_unknown_types_and_fields_are_kept() -> None:
    unknown = event("zzz", "z", deep={"x": 1})._replace(v=77)
    more = user("u", None, invented={"a": 1}, content=[{**text("x")[0], "extra": 1}])
    found = decoded(sealed(unknown, more).record).events
    assert [(item.fault, item.newer) for item in found] == [(None, False)] * 2
    assert found[0].data == unknown.data
    assert found[0].v == 77
    assert found[1].data == more.data


def test_a_newer_version_of_a_known_type_is_not_judged() -> None:
    [found] = read(raw(v=2, data={"all": "else"}))
    assert (found.fault, found.newer, found.v) == (None, True, 2)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (event("message", parent=None), True),
        (custom("c", None), True),
        (event("app_state", parent=None), True),
        (event("branch", parent=None), True),
        (event("compaction", parent=None), True),
        (fact("n", 1, parent=None), False),
        (created(parent="x"), False),
        (event("zzz", parent=None), True),
        (event("zzz", parent="p"), True),
        (event("zzz", parent=7), False),
        (event("zzz", parent={}), False),
        (event("zzz"), False),
        (event("message", parent=None)._replace(v=2), True),
        (event("message")._replace(v=2), False),
        (fact("n", 1, parent=None)._replace(v=2), True),
        (fact("n", 1)._replace(v=2), False),
    ],
)
def test_an_entry_is_a_known_one_or_what_has_a_parent(new: NewEvent, expected: bool) -> None:
    newer = new.v > VERSIONS.get(new.type, new.v)
    found = Event(new.type, new.v, new.id, None, new.data, newer=newer)
    assert is_entry(found) is expected


# ---- headers in JSON ---------------------------------------------------------------------------


@pytest.mark.parametrize("header", [HEADER, GUEST, HEADER._replace(writer=None)])
def test_a_header_is_read_from_the_json_of_its_frame(header: Header) -> None:
    assert header_of({**header._asdict(), "events": []}) == header


def test_a_header_without_a_readable_writer_is_a_header() -> None:
    assert header_of({"session": "s", "writer": 7}) == Header("s", None, None, None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"session": None},
        {"session": ""},
        {"session": 7},
        {"claim": None},
        {"claim": 7},
        {"epoch": None},
        {"epoch": "1"},
        {"epoch": 1.0},
        {"epoch": True},
        {"epoch": 0},
        {"epoch": 2**62},
        {"seq": None},
        {"claim": None, "epoch": None},
        {"claim": None, "seq": None},
        {"epoch": None, "seq": None},
        {"seq": 0},
        {"seq": -1},
    ],
)
def test_a_header_that_is_not_whole_is_none(fields: dict[str, Any]) -> None:
    assert header_of({**HEADER._asdict(), **fields}) is None


def test_claims_are_checked_like_any_event() -> None:
    assert "data.expects" in refused(claimed("c", -1), header=GUEST)
    assert "data.claim" in refused(claimed("", 0), header=GUEST)
