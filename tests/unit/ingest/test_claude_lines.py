"""What a Claude Code line says by itself."""

from typing import Any

import pytest

from tests.unit.ingest.foreign import answer, call, result, system, text, user
from turnlog.ingest.claude_lines import (
    content_of,
    details_of,
    extra_of,
    first_text,
    group_of,
    kind_of,
    parent_of,
    results_of,
    stop_of,
    usage_of,
    usage_since,
)
from turnlog.ingest.outline import Kind

Json = Any


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (user("u", None), Kind.PROMPT),
        (user("u", None, [text("x"), {"type": "image"}]), Kind.PROMPT),
        (user("u", None, []), Kind.USER),
        (user("u", None, "x", isMeta=True), Kind.USER),
        (user("u", None, "<local-command-stderr>x"), Kind.USER),
        (user("u", None, [text("[Request interrupted by user]")]), Kind.USER),
        (user("u", None, "  <command-message>x"), Kind.COMMAND),
        (user("u", None, "x", isCompactSummary=True), Kind.SUMMARY),
        (user("u", None, "x", isVisibleInTranscriptOnly=True), Kind.OTHER),
        (result("u", None, "c"), Kind.RESULT),
        (answer("a", None), Kind.ASSISTANT),
        (system("s", None), Kind.OTHER),
        (system("s", None, logicalParentUuid="x"), Kind.OTHER | Kind.WEAK),
        ({"type": "user", "uuid": "u"}, Kind.OTHER),
        ({"type": "user", "uuid": "u", "message": {}}, Kind.USER | Kind.WEAK),
        ({"type": "mode"}, Kind.RECORD),
        ({"uuid": 5}, Kind.RECORD),
    ],
)
def test_where_a_line_stands(line: Json, kind: int) -> None:
    assert kind_of(line) == kind


def test_the_logical_parent_joins_the_roots() -> None:
    assert parent_of(system("s", None, logicalParentUuid="x")) == "x"
    assert parent_of(system("s", "p", logicalParentUuid="x")) == "p"
    assert parent_of(system("s", None)) is None


def test_lines_of_an_answer_share_its_id_or_its_request() -> None:
    line = answer("a", None, requestId="q")
    assert group_of(line) == "msg_a"
    line["message"]["id"] = None
    assert group_of(line) == "q"
    assert group_of(user("u", None)) is None


def test_blocks_become_parts() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "sig", "x": 1},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "redacted_thinking", "data": "enc"},
        {"type": "text", "text": "hi", "citations": None, "cache_control": {"type": "e"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
        {"type": "image", "source": {"type": "url", "url": "u"}},
        {"type": "tool_use", "id": "c", "name": "n", "input": {"a": 1}, "caller": {}},
        {"type": "server_tool_use", "id": "s", "name": "n"},
        {"type": "text", "text": 5},
        "loose",
    ]
    parts, calls = content_of(answer("a", None, *blocks))
    assert [part["type"] for part in parts] == [
        *("reasoning", "reasoning", "reasoning", "text", "image", "opaque", "tool_call"),
        *("opaque", "opaque", "opaque"),
    ]
    assert parts[0] == {"type": "reasoning", "text": "hm", "signature": "sig", "extra": {"x": 1}}
    assert parts[2]["encrypted_content"] == "enc"
    assert parts[4] == {"type": "image", "media_type": "image/png", "data": "AA"}
    assert [entry.call_id for entry in calls] == ["c"]


def test_a_call_of_a_user_is_no_call() -> None:
    assert content_of(user("u", None, [call("c")]))[1] == []


def test_results_have_parts_whatever_their_content() -> None:
    for content, wanted in (
        ("x", [text("x")]),
        ("", []),
        (None, []),
        ([text("a"), {"type": "tool_reference"}], [text("a"), None]),
        ({"odd": 1}, [{"type": "opaque", "value": {"odd": 1}}]),
    ):
        [found] = results_of(result("r", None, "c", content))
        for part, expected in zip(found.content, wanted, strict=True):
            assert expected is None or part == expected


def test_the_copy_of_a_result_is_kept_where_it_says_more() -> None:
    line = result("r", None, "c", "no such file", toolUseResult="Error: no such file")
    assert details_of(line, results_of(line)) is None
    line["toolUseResult"] = "something else"
    assert details_of(line, results_of(line)) == "something else"
    line["toolUseResult"] = {"stdout": "x"}
    assert details_of(line, results_of(line)) == {"stdout": "x"}


def test_stop_reasons_in_our_words() -> None:
    wanted = {"stop_sequence": "stop", "tool_use": "tool_use", "pause_turn": "pause_turn"}
    assert {stop: stop_of(answer("a", None, stop=stop)) for stop in wanted} == wanted
    assert stop_of(answer("a", None, stop=None)) is None


def test_usage_with_all_that_it_holds() -> None:
    line = answer("a", None, costUSD=0.25)
    line["message"]["usage"] = {
        "input_tokens": 1,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": "x",
        "service_tier": "standard",
        "reasoning": "not a count",
    }
    assert usage_of(line) == {
        "input": 1,
        "output": None,
        "cache_read": 2,
        "cache_write": None,
        "cost_usd": "0.25",
        "service_tier": "standard",
    }
    line["message"]["usage"] = 5
    assert usage_of(line) is None


def test_a_later_part_adds_the_difference() -> None:
    first, last = (
        {"input": 5, "output": 7, "cache_read": None, "cache_write": 1},
        {
            "input": 5,
            "output": 20,
            "cache_read": 3,
            "cache_write": None,
        },
    )
    assert usage_since(None, last) == last
    assert usage_since(first, last) == {
        "input": 0,
        "output": 13,
        "cache_read": 3,
        "cache_write": None,
    }
    assert usage_since(last, first)["output"] == 0  # figures do not shrink


def test_what_else_a_line_says_is_kept() -> None:
    line = answer("a", None, requestId="q", slug="s", permissionMode="plan", isMeta=True)
    line["message"]["container"] = {"id": 1}
    assert extra_of(line) == {
        "permissionMode": "plan",
        "request": "q",
        "message": "msg_a",
        "meta": True,
        "message_extra": {"container": {"id": 1}},
    }


def test_the_first_text() -> None:
    assert first_text(user("u", None, "x")) == "x"
    assert first_text(user("u", None, [{"type": "image"}, text("y")])) == "y"
    assert first_text(user("u", None, [5])) == first_text(user("u", None, 5)) == ""
