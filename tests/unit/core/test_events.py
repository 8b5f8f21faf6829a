"""The vocabulary, version 1 (design, 2): what is frozen, so this file only ever grows.

A log of version 1 stays readable for ever. Whoever has to change an assertion here breaks a log
that somebody has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
import pytest

from turnlog.core.events import ENTRY_TYPES, GUEST_TYPES, RECORD_TYPES, TYPES, VERSIONS
from turnlog.core.frames import Event, Frame, Header, Record, decode

SEALED = {"sealed": "key", "alg": "a", "nonce": "n", "ct": "c"}
PARTS = [
    {"type": "text", "text": "t"},
    {"type": "reasoning", "text": "r", "signature": "s"},
    {"type": "tool_call", "call_id": "c", "name": "n", "args": {"x": [1]}},
    {"type": "image", "anything": {"at": "all"}},
    {"type": "blob", "digest": "d", "size": 5, "media_type": "m", "preview": "p"},
    {"type": "opaque"},
    {"type": "from the future"},
]
USAGE = {
    "input": 1,
    "output": 2,
    "cache_read": 3,
    "cache_write": 4,
    "reasoning": 5,
    "cost_usd": "0.25",
}


class Shape(NamedTuple):
    """The fields that must be there, and those that may be null or absent."""

    required: dict[str, Any]
    optional: dict[str, Any]


SHAPES: dict[str, Shape] = {
    "message": Shape(
        {"parent": "p", "role": "user", "content": PARTS},
        {
            "attempt": "a",
            "stop_reason": "max_tokens",
            "call_id": "c",
            "tool": "t",
            "dispatch": "d",
            "status": "ok",
            "settled_by": "host",
        },
    ),
    "app_state": Shape({"parent": "p", "value": {"k": {"deep": [1]}}}, {}),
    "compaction": Shape(
        {
            "parent": "p",
            "kind": "summary",
            "replaces": {"first": "a", "last": "b"},
            "content": PARTS,
        },
        {
            "prepared_at": "p",
            "operation": "o",
            "tokens_before": 9,
            "tokens_after": 1,
            "usage": USAGE,
        },
    ),
    "branch": Shape({"parent": "p"}, {"from": "f", "operation": "o", "label": "l", "summary": "s"}),
    "custom": Shape({"parent": "p", "kind": "k", "value": [1]}, {"in_context": True}),
    "session_created": Shape(
        {},
        {
            "title": "t",
            "cwd": "/",
            "agent": "a",
            "initial_app_state": {"k": 1},
            "parent_session": "p",
            "fork_at": {"entry": "e", "epoch": 1, "seq": 2},
            "spawned_by": {"entry": "e", "call_index": 0, "dispatch": "d"},
            "origin": {"format": "pi", "version": 3, "path": "x", "cursor": {"line": 4}},
        },
    ),
    "session_claimed": Shape(
        {"claim": "c", "expects": 0}, {"host": "h", "expects_seq": 3, "reason": "takeover"}
    ),
    "session_released": Shape({"claim": "c"}, {}),
    "fact": Shape({"name": "n", "value": 1.5}, {"replaces": "r"}),
    "context_set": Shape(
        {"digest": "d"}, {"system": ["s"], "tools": [{}], "settings": {"t": 0.5}, "model": "m"}
    ),
    "operation_accepted": Shape(
        {"operation": "o", "kind": "prompt"},
        {"input_entry": "i", "start_leaf": "l", "trigger": "queue"},
    ),
    "model_attempted": Shape(
        {"operation": "o", "attempt": "a", "assistant_entry": "e"},
        {"model": "m", "context": "d", "request_digest": "r"},
    ),
    "usage_settled": Shape({"operation": "o", "attempt": "a"}, {"model": "m", "usage": USAGE}),
    "approval_asked": Shape({"operation": "o", "call_id": "c", "assistant_entry": "e"}, {}),
    "approval_decided": Shape(
        {"operation": "o", "call_id": "c", "assistant_entry": "e", "decision": "deny"},
        {"by": "ann"},
    ),
    "tool_dispatched": Shape(
        {
            "operation": "o",
            "dispatch": "d",
            "call_index": 0,
            "assistant_entry": "e",
            "result_entry": "r",
        },
        {
            "call_no": 0,
            "try": 1,
            "call_id": "c",
            "tool": "t",
            "args": {"x": 1},
            "args_hash": "h",
            "effect": "read_only",
            "idempotency_key": "k",
        },
    ),
    "dispatch_settled": Shape(
        {"dispatch": "d", "status": "unknown"},
        {"try": 1, "settled_by": "person", "by": "ann", "note": "n"},
    ),
    "rerun_allowed": Shape({"dispatch": "d"}, {"try": 1, "by": "ann", "note": "n"}),
    "input_queued": Shape({"input": "i", "entry": "e", "content": PARTS}, {"delivery": "steer"}),
    "input_cancelled": Shape({"input": "i"}, {}),
    "abort_requested": Shape({"operation": "o"}, {}),
    "operation_parked": Shape({"operation": "o"}, {"reason": "r"}),
    "operation_finished": Shape(
        {"operation": "o", "outcome": "completed"}, {"error": {"any": "thing"}, "inferred": True}
    ),
    "blob_part": Shape({"digest": "d", "index": 0, "of": 1, "bytes": "QUJD"}, {}),
    "chunk": Shape(
        {"entry": "e"}, {"attempt": "a", "part": 0, "deltas": ["a", {"x": 1}], "dt": [1, 2]}
    ),
}
REQUIRED = [(type_, name) for type_, shape in SHAPES.items() for name in shape.required]
OPTIONAL = [(type_, name) for type_, shape in SHAPES.items() for name in shape.optional]


def read(type_: str, data: Any) -> Event:
    header = Header("s", "c", 1, 1, None)
    event = {"type": type_, "v": 1, "id": "e", "time": None, "data": data}
    body = orjson.dumps({**header._asdict(), "events": [event]})
    frame = decode(Record("s", header, body))
    assert isinstance(frame, Frame)
    return frame.events[0]


def full(type_: str) -> dict[str, Any]:
    return {**SHAPES[type_].required, **SHAPES[type_].optional}


def fault(type_: str, **data: Any) -> str | None:
    """What is wrong with an event of a type, all fields filled in, but for these."""
    return read(type_, {**full(type_), **data}).fault


# ---- types -------------------------------------------------------------------------------------


def test_version_1_has_these_types() -> None:
    assert set(TYPES) == set(SHAPES) == set(VERSIONS)
    assert set(ENTRY_TYPES) == {"message", "app_state", "compaction", "branch", "custom"}
    assert set(RECORD_TYPES) == set(SHAPES) - set(ENTRY_TYPES)
    assert set(VERSIONS.values()) == {1}


def test_a_guest_may_write_these_types() -> None:
    assert set(GUEST_TYPES) == {
        "session_claimed",
        "input_queued",
        "input_cancelled",
        "abort_requested",
        "approval_decided",
        "fact",
        "rerun_allowed",
        "dispatch_settled",
    }


# ---- fields ------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", SHAPES)
def test_an_event_needs_its_required_fields_and_may_have_all(type_: str) -> None:
    for data in (SHAPES[type_].required, full(type_), {**full(type_), "unknown": [{"x": 1}]}):
        found = read(type_, data)
        assert found.fault is None
        assert found.data == data


@pytest.mark.parametrize(("type_", "name"), OPTIONAL)
def test_a_field_may_be_null(type_: str, name: str) -> None:
    assert fault(type_, **{name: None}) is None


@pytest.mark.parametrize(("type_", "name"), REQUIRED)
def test_a_required_field_may_not_be_absent(type_: str, name: str) -> None:
    data = {other: value for other, value in full(type_).items() if other != name}
    assert read(type_, data).fault == f"data.{name}: Field required"


@pytest.mark.parametrize(("type_", "name"), REQUIRED)
def test_of_the_required_fields_only_parent_and_free_values_may_be_null(
    type_: str, name: str
) -> None:
    free = {("custom", "value"), ("fact", "value")}
    found = fault(type_, **{name: None})
    if name == "parent" or (type_, name) in free:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(f"data.{name}")


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (type_, name)
        for type_, name in [*REQUIRED, *OPTIONAL]
        if isinstance(full(type_)[name], str)
        and (type_, name) != ("branch", "summary")
        and name not in {"system", "reason", "by", "note", "bytes"}
    ],
)
def test_text_is_text(type_: str, name: str) -> None:
    for wrong in (7, True, ["x"], {"x": 1}):
        assert fault(type_, **{name: wrong}) is not None


IDS = [
    ("message", "parent"),
    ("message", "attempt"),
    ("message", "dispatch"),
    ("app_state", "parent"),
    ("compaction", "parent"),
    ("compaction", "prepared_at"),
    ("compaction", "operation"),
    ("branch", "parent"),
    ("branch", "from"),
    ("branch", "operation"),
    ("custom", "parent"),
    ("custom", "kind"),
    ("session_created", "parent_session"),
    ("session_claimed", "claim"),
    ("session_released", "claim"),
    ("fact", "name"),
    ("fact", "replaces"),
    ("context_set", "digest"),
    ("operation_accepted", "operation"),
    ("operation_accepted", "input_entry"),
    ("operation_accepted", "start_leaf"),
    ("model_attempted", "operation"),
    ("model_attempted", "attempt"),
    ("model_attempted", "assistant_entry"),
    ("usage_settled", "operation"),
    ("usage_settled", "attempt"),
    ("approval_asked", "call_id"),
    ("approval_decided", "assistant_entry"),
    ("tool_dispatched", "dispatch"),
    ("tool_dispatched", "result_entry"),
    ("dispatch_settled", "dispatch"),
    ("rerun_allowed", "dispatch"),
    ("input_queued", "input"),
    ("input_queued", "entry"),
    ("input_cancelled", "input"),
    ("abort_requested", "operation"),
    ("operation_parked", "operation"),
    ("operation_finished", "operation"),
    ("blob_part", "digest"),
    ("chunk", "entry"),
]


@pytest.mark.parametrize(("type_", "name"), IDS)
def test_an_id_has_1_to_512_characters(type_: str, name: str) -> None:
    assert fault(type_, **{name: "x" * 512}) is None
    assert fault(type_, **{name: "é"}) is None
    assert fault(type_, **{name: ""}) is not None
    assert fault(type_, **{name: "x" * 513}) is not None


@pytest.mark.parametrize(
    ("type_", "name", "words"),
    [
        ("message", "role", "user assistant tool system"),
        ("message", "status", "ok error unknown not_started"),
        ("message", "settled_by", "host recovery import"),
        ("compaction", "kind", "summary prune"),
        ("operation_accepted", "kind", "prompt compaction navigation"),
        ("approval_decided", "decision", "allow deny"),
        ("tool_dispatched", "effect", "read_only idempotent reconcilable opaque"),
        ("dispatch_settled", "status", "ok error unknown not_started"),
        ("dispatch_settled", "settled_by", "host recovery person"),
        ("input_queued", "delivery", "steer follow_up"),
        ("operation_finished", "outcome", "completed failed aborted blocked interrupted"),
    ],
)
def test_a_choice_is_one_of_these_words(type_: str, name: str, words: str) -> None:
    for word in words.split():
        assert fault(type_, **{name: word}) is None
    for wrong in ("", "other", words.split(maxsplit=1)[0].upper(), 1):
        assert fault(type_, **{name: wrong}) is not None


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("message", "stop_reason"),
        ("operation_accepted", "trigger"),
        ("session_claimed", "reason"),
        ("operation_parked", "reason"),
    ],
)
def test_what_no_rule_closes_is_any_text(type_: str, name: str) -> None:
    assert fault(type_, **{name: "words of another release"}) is None
    assert fault(type_, **{name: ""}) is None


COUNTS = [
    ("compaction", "tokens_before", 0),
    ("compaction", "tokens_after", 0),
    ("session_claimed", "expects", 0),
    ("session_claimed", "expects_seq", 0),
    ("tool_dispatched", "call_index", 0),
    ("tool_dispatched", "call_no", 0),
    ("tool_dispatched", "try", 1),
    ("dispatch_settled", "try", 1),
    ("rerun_allowed", "try", 1),
]


@pytest.mark.parametrize(("type_", "name", "least"), COUNTS)
def test_a_count_is_a_whole_number_within_bounds(type_: str, name: str, least: int) -> None:
    assert fault(type_, **{name: least}) is None
    assert fault(type_, **{name: 2**40}) is None
    for wrong in (least - 1, 2**40 + 1, 1.0, True, "1"):
        assert fault(type_, **{name: wrong}) is not None


@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write", "reasoning"])
@pytest.mark.parametrize("type_", ["usage_settled", "compaction"])
def test_usage_counts_tokens(type_: str, name: str) -> None:
    for good in (0, 2**40, None):
        assert fault(type_, usage={name: good}) is None
    for wrong in (-1, 2**40 + 1, 1.5, "3", True):
        assert fault(type_, usage={name: wrong}) is not None
    assert fault(type_, usage={"further": "fields"}) is None


def test_a_price_is_a_decimal_string() -> None:
    digits = "9" * 24
    for good in (
        "0",
        "0.1",
        "12.50",
        f"{digits}.{digits}",
        "-0.01",
        "1e3",
        "1E-7",
        "2.5e+99",
        None,
    ):
        assert fault("usage_settled", usage={"cost_usd": good}) is None
    for wrong in (
        0.1,
        1,
        "",
        ".5",
        "5.",
        "1e",
        "1e100",
        "1,5",
        " 1",
        "1\n",
        f"1{digits}",
        "NaN",
        "٣",
    ):
        assert fault("usage_settled", usage={"cost_usd": wrong}) is not None, wrong


@pytest.mark.parametrize("type_", ["message", "compaction", "input_queued"])
def test_content_is_a_list_of_parts_or_sealed(type_: str) -> None:
    for good in ([], PARTS, SEALED, {"sealed": "k"}):
        assert fault(type_, content=good) is None
    for wrong in ("text", 7, {}, {"ct": "c"}, {"sealed": 7}, [7], ["t"], [{}], [{"type": 7}]):
        assert fault(type_, content=wrong) is not None
    assert fault(type_, content=[{"type": "text", "text": 7}]) is not None
    assert fault(type_, content=[{"type": "text", "text": None}]) is None


def test_values_may_be_sealed() -> None:
    assert fault("app_state", value=SEALED) is None
    assert fault("custom", value=SEALED) is None
    assert fault("fact", value=SEALED) is None
    assert fault("branch", summary=SEALED) is None
    assert fault("tool_dispatched", args=SEALED) is None
    assert fault("branch", summary={"ct": "c"}) is not None
    assert fault("branch", summary=7) is not None


def test_a_state_is_an_object() -> None:
    for wrong in ([], "text", 7):
        assert fault("app_state", value=wrong) is not None
        assert fault("session_created", initial_app_state=wrong) is not None
    assert fault("app_state", value={}) is None


@pytest.mark.parametrize("name", ["first", "last"])
def test_replaces_names_two_entries(name: str) -> None:
    good = {"first": "a", "last": "b"}
    for wrong in (None, "", 7):
        assert fault("compaction", replaces={**good, name: wrong}) is not None
    other = {key: value for key, value in good.items() if key != name}
    assert fault("compaction", replaces=other) == f"data.replaces.{name}: Field required"


def test_a_fork_names_an_entry() -> None:
    assert fault("session_created", fork_at={"entry": "e"}) is None
    assert fault("session_created", fork_at={"entry": "e", "epoch": None, "seq": None}) is None
    for wrong in ({}, {"entry": None}, {"entry": ""}, {"entry": "e", "epoch": -1}, "e"):
        assert fault("session_created", fork_at=wrong) is not None


def test_a_spawned_session_may_know_little_of_its_parent() -> None:
    assert fault("session_created", spawned_by={}) is None
    assert fault("session_created", spawned_by=dict.fromkeys(("entry", "dispatch"))) is None
    assert fault("session_created", spawned_by={"call_index": -1}) is not None


def test_a_blob_has_at_most_4096_parts() -> None:
    assert fault("blob_part", index=4095, of=4096) is None
    for wrong in ({"index": 4096}, {"index": -1}, {"of": 4097}, {"of": 0}, {"bytes": None}):
        assert fault("blob_part", **wrong) is not None


def test_flags_are_true_false_or_null() -> None:
    for type_, name in (("custom", "in_context"), ("operation_finished", "inferred")):
        assert fault(type_, **{name: False}) is None
        assert fault(type_, **{name: 1}) is not None
        assert fault(type_, **{name: "true"}) is not None
