"""Archive lines: a frame goes from one log into another without changing in meaning."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from tests.story import assistant, claimed, event, fact, forge, released, user
from turnlog.core.archive import from_line, to_line
from turnlog.core.errors import SchemaError
from turnlog.core.frames import Header, NewEvent, Record, decode, seal

HEADER = Header("s", "claim", 1, 1, "writer")
GUEST = Header("s", None, None, None, "guest")


def sealed(*events: NewEvent, header: Header = HEADER) -> Record:
    return seal(header, events).record


def line_of(**fields: Any) -> bytes:
    return orjson.dumps(fields)


READABLE = [
    sealed(user("u", None, "grüß \U0001f600 \x00\n"), assistant("a", "u", "c1")),
    sealed(claimed("c"), header=GUEST),
    sealed(released("claim"), header=HEADER._replace(epoch=9, seq=12, writer=None)),
    sealed(event("zzz", "z", parent=None, frame={"x": '"frame":{'})),
    forge(HEADER, "no event", fact("n", 1, "twice"), fact("n", 2, "twice"), user("", None)),
    forge(HEADER),
    # spaces, and numbers as another encoder writes them
    Record("s", GUEST, b'{ "session": "s", "events": [ ], "n": 1.50e1 , "writer":"guest"}'),
]
UNREADABLE = [
    Record("s", HEADER, b"{"),
    Record("s", HEADER, b""),
    Record("s", HEADER, bytes(range(256))),
    Record("s", GUEST, b"[]"),
    Record("s", None, b'{"session":"s"}'),
    Record("s", None, READABLE[0].body),
    Record("s", None, b"\xff\x00"),
    Record("other", HEADER, READABLE[0].body),
    Record("s", HEADER._replace(seq=2), READABLE[0].body),
    Record("s", HEADER._replace(writer="relay"), READABLE[0].body),
    Record("s", HEADER._replace(writer=None), READABLE[0].body),
    # a header of which only some is known
    Record("s", HEADER._replace(seq=None), READABLE[0].body),
    Record("s", HEADER._replace(claim=None), READABLE[0].body),
    Record("s", Header("s", None, None, 3, None), b"x"),
    Record("s", Header("s", "c", 0, -1, None), b"x"),
]


@pytest.mark.parametrize("record", READABLE)
def test_a_frame_that_can_be_read_is_a_line_of_its_own_json(record: Record) -> None:
    line = to_line(17, record)
    assert line == b'{"position":17,"frame":' + record.body + b"}\n"
    assert line.count(b"\n") == 1
    assert from_line(line) == record


@pytest.mark.parametrize("record", UNREADABLE)
def test_a_record_that_cannot_be_read_is_restored_as_it_was(record: Record) -> None:
    line = to_line(17, record)
    value = orjson.loads(line)
    assert line.count(b"\n") == 1
    assert value["position"] == 17
    assert value["session"] == record.session
    assert base64.b64decode(value["raw"]) == record.body
    assert from_line(line) == record
    assert decode(from_line(line)) == decode(record)


@pytest.mark.parametrize("record", [*READABLE, *UNREADABLE])
@pytest.mark.parametrize("ending", [b"\n", b"", b"\r\n", b" \t\n"])
def test_lines_may_end_in_any_white_space(record: Record, ending: bytes) -> None:
    line = to_line(1, record)[:-1] + ending
    assert decode(from_line(line)) == decode(record)


@pytest.mark.parametrize("record", READABLE)
def test_a_line_written_by_others_means_the_same(record: Record) -> None:
    """Spaces, another order of keys and further fields change nothing."""
    frame = orjson.loads(record.body)
    shuffled = dict(reversed(frame.items()))
    for line in (
        orjson.dumps({"position": 1, "frame": frame}, option=orjson.OPT_APPEND_NEWLINE),
        orjson.dumps({"frame": frame, "position": 1}),
        orjson.dumps({"frame": frame}),
        orjson.dumps({"position": 1, "frame": shuffled}),
        orjson.dumps({"position": 1, "frame": frame, "note": {"a": 1}}),
        orjson.dumps({"position": 1, "frame": frame, "frames": {}}),
        b'{"position": 1, "frame": ' + record.body + b"}\n",
        b'{"position":1,"frame":' + record.body + b',"more":{}}\n',
        b'{"position":1,"frame":{},"frame":' + record.body + b"}\n",
    ):
        found = from_line(line)
        assert found.header == record.header
        assert decode(found) == decode(record)


NUMBERS = "123456789012345678901234567890", "1.0000000000000000000001", "1e-400", "-0", "1E5"


@pytest.mark.parametrize(
    "spelling",
    [
        '{"position":1,"frame":%s}',
        '{"position": 1, "frame" : %s }',
        '{"frame":%s,"position":1}',
        '{ "x":[{"frame":1}], "frame":\t%s, "frame2":{}}\r\n',
    ],
)
def test_a_frame_is_restored_byte_for_byte_however_its_line_is_spelled(spelling: str) -> None:
    data = ",".join(f'"{index}":{number},"a":{index}' for index, number in enumerate(NUMBERS))
    body = (
        '{"session":"s","claim":null,"epoch":null,"seq":null,"writer":null,"events":['
        '{"type":"zzz","v":1,"id":"é","time":null,"data":{"text":"\\u00e9",' + data + "}}]}"
    )
    found = from_line((spelling % body).encode())
    assert found.body == body.encode()


def test_a_line_that_only_one_parser_can_read_is_refused() -> None:
    deep = "[" * 1000 + "]" * 1000
    body = '{"session":"s","claim":null,"epoch":null,"seq":null,"events":[' + deep + "]}"
    with pytest.raises(SchemaError, match=r"nested too deep|no JSON"):
        from_line(f'{{"frame": {body}}}'.encode())


@pytest.mark.parametrize("beside", [HEADER, GUEST, Header("t", None, None, None, None)])
def test_the_header_fields_that_are_known_stand_beside_raw(beside: Header) -> None:
    value = orjson.loads(to_line(3, Record("s", beside, b"junk")))
    for name in ("claim", "epoch", "seq", "writer"):
        assert value[name] == getattr(beside, name)
    assert value.get("header_session", "s") == beside.session


def test_of_a_header_only_what_is_known_need_be_there() -> None:
    found = from_line(line_of(position=3, session="s", claim="c1", epoch=1, seq=2, raw="anVuaw=="))
    assert found == Record("s", Header("s", "c1", 1, 2, None), b"junk")


def test_a_body_of_several_lines_becomes_one() -> None:
    frame = orjson.loads(READABLE[0].body)
    body = b"\n" + orjson.dumps(frame, option=orjson.OPT_INDENT_2).replace(b"\n", b"\r\n")
    record = READABLE[0]._replace(body=body)
    line = to_line(1, record)
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert decode(from_line(line)) == decode(record)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "it is no JSON"),
        (b"{", "it is no JSON"),
        (b"\xff", "it is no JSON"),
        (b"[]", "it is no object"),
        (b'"frame"', "it is no object"),
        (b"{}", 'it must have either a "frame", or'),
        (line_of(frame={"session": "s", "events": []}, raw=""), "it must have either"),
        (line_of(frame=[], session="s"), "its frame has no session"),
        (line_of(frame=None, session="s"), "its frame has no session"),
        (line_of(raw="eA=="), 'its "session" and "raw" must be text'),
        (line_of(raw="eA==", session=""), 'its "session" and "raw" must be text'),
        (line_of(session="s", raw=7), 'its "session" and "raw" must be text'),
        (line_of(session="s", raw="eA="), 'its "raw" is no base64'),
        (line_of(session="s", raw="é"), 'its "raw" is no base64'),
        (line_of(session="s", raw="e A=="), 'its "raw" is no base64'),
        (line_of(session="s", raw="eA==", claim=7), "its header fields must be text"),
        (line_of(session="s", raw="eA==", writer={}), "its header fields must be text"),
        (line_of(session="s", raw="eA==", header_session=7), "its header fields must be text"),
        (line_of(session="s", raw="eA==", epoch="1"), 'its "epoch" must be a number'),
        (line_of(session="s", raw="eA==", seq=True), 'its "seq" must be a number'),
        (line_of(session="s", raw="eA==", epoch=2**64 - 1), 'its "epoch" must be a number of 64'),
        (line_of(session="s", raw="eA==", header={"claim": "c"}), "'header', which would be lost"),
        (line_of(frame={}), "its frame has no session"),
        (line_of(frame={"session": "", "events": []}), "its frame has no session"),
        (line_of(frame={"session": "s", "claim": "c", "events": []}), "or an incomplete claim"),
        (line_of(frame={"session": "s"}), "its frame has no list of events"),
        (line_of(frame={"session": "s", "events": {}}), "its frame has no list of events"),
    ],
)
def test_a_line_that_is_none_says_what_is_wrong_with_it(line: bytes, reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        from_line(line)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_position_is_for_people() -> None:
    record = READABLE[0]
    for position in (b"0", b"-3", b'"x"', b"null", b"1.5"):
        line = b'{"position":' + position + b',"frame":' + record.body + b"}\n"
        assert decode(from_line(line)) == decode(record)
