"""The balanced context: what the model is sent is never refused for a dangling call (rule 5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    assistant,
    branch,
    call,
    custom,
    event,
    prune,
    result,
    summary,
    t1,
    text,
    user,
)
from turnlog.core.context import TELL, Answer, Node, balanced, text_of
from turnlog.core.fold.entries import ROOT
from turnlog.core.rows import Entry

Message = dict[str, Any]


def chat(*events: Any) -> Story:
    story = Story().begin("first")
    story.own(*events)
    return story


def unasked(entry: Entry, index: int) -> Answer:
    raise AssertionError(f"call {index} of {entry.id} has its result on the surface")


def context(story: Story, answer: Any = unasked) -> list[Message]:
    return balanced(story.view.nodes(), answer)


def short(messages: list[Message]) -> list[tuple[Any, ...]]:
    """role, entry and, for results, call id and status."""
    return [
        (item["role"], item["entry"], item["call_id"], item["status"])
        if item["role"] == "tool"
        else (item["role"], item["entry"])
        for item in messages
    ]


def told(status: str) -> list[Message]:
    return [{"type": "text", "text": TELL[status]}]


# ---- messages ----------------------------------------------------------------------------------


def test_messages_are_given_in_the_order_of_the_surface_with_their_content() -> None:
    story = chat(
        user("sys", None, "be brief", role="system"),
        user("u", "sys", "hi"),
        assistant("a", "u"),
        user("sealed", "a", content={"sealed": "key"}),
    )
    assert context(story) == [
        {"role": "system", "content": text("be brief"), "entry": "sys"},
        {"role": "user", "content": text("hi"), "entry": "u"},
        {"role": "assistant", "content": text("well"), "entry": "a"},
        {"role": "user", "content": {"sealed": "key"}, "entry": "sealed"},
    ]


def test_what_is_no_message_but_a_node_speaks_as_user() -> None:
    story = chat(
        user("u", None),
        branch("n", "u", "u", summary="tried x"),
        custom("c", "n", "remember", in_context=True),
        summary("k", "c", "u", "u"),
    )
    assert context(story) == [
        {"role": "user", "content": text("summary k"), "entry": "k"},
        {"role": "user", "content": text("tried x"), "entry": "n"},
        {"role": "user", "content": text("remember"), "entry": "c"},
    ]


# ---- results -----------------------------------------------------------------------------------


def test_rule_5_results_stand_right_after_their_call_in_the_order_of_the_calls() -> None:
    story = chat(
        user("u", None),
        assistant("a", "u", "c1", "c2", "c3"),
        user("steer", "a"),
        result("r3", "steer", "c3", status="error"),
        result("r1", "r3", "c1"),
        result("r2", "r1", "c2", status=None),
        user("v", "r2"),
    )
    messages = context(story)
    assert short(messages) == [
        ("user", "u"),
        ("assistant", "a"),
        ("tool", "r1", "c1", "ok"),
        ("tool", "r2", "c2", "ok"),
        ("tool", "r3", "c3", "error"),
        ("user", "steer"),
        ("user", "v"),
    ]
    assert messages[2] == {
        "role": "tool",
        "call_id": "c1",
        "tool": "bash",
        "status": "ok",
        "content": text("result r1"),
        "entry": "r1",
    }


def test_rule_5_each_of_several_calls_with_one_id_has_its_own_result() -> None:
    story = chat(
        assistant("a", None, "same", "same"),
        result("r1", "a", "same"),
        result("r2", "r1", "same"),
        assistant("b", "r2", "same"),
        result("r3", "b", "same"),
    )
    assert [item[1] for item in short(context(story))] == ["a", "r1", "r2", "b", "r3"]


def test_rule_5_a_call_without_a_result_is_answered_in_the_view() -> None:
    asked: list[tuple[str, int]] = []

    def answer(entry: Entry, index: int) -> Answer:
        asked.append((entry.id, index))
        return Answer("unknown") if index else Answer("ok", text("elsewhere"))

    story = chat(
        user("u", None),
        assistant("a", "u", "c1", "c2", "c3", content=[call("c1"), *text("x"), call("c2", "rm")]),
        user("v", "a"),
    )
    messages = context(story, answer)
    assert asked == [("a", 0), ("a", 1)]
    assert messages[2:4] == [
        {
            "role": "tool",
            "call_id": "c1",
            "tool": "bash",
            "status": "ok",
            "content": text("elsewhere"),
            "entry": None,
        },
        {
            "role": "tool",
            "call_id": "c2",
            "tool": "rm",
            "status": "unknown",
            "content": told("unknown"),
            "entry": None,
        },
    ]
    assert short(messages)[4] == ("user", "v")


@pytest.mark.parametrize("status", TELL)
def test_every_status_tells_the_model_something(status: str) -> None:
    story = chat(assistant("a", None, "c1"))
    [_, message] = context(story, lambda *_: Answer(status))
    assert (message["status"], message["content"]) == (status, told(status))
    assert len({*TELL.values()}) == len(TELL)


def test_a_result_without_content_tells_its_status() -> None:
    story = chat(
        assistant("a", None, "c1", "c2"),
        result("r1", "a", "c1", content=[], status="unknown"),
        result("r2", "r1", "c2", content={"sealed": "key"}),
    )
    messages = context(story)
    assert messages[1]["content"] == told("unknown")
    assert messages[2]["content"] == {"sealed": "key"}


def test_rule_4_a_prune_stands_for_the_result_it_trims() -> None:
    story = chat(
        assistant("a", None, "c1", "c2"),
        result("r1", "a", "c1", status="error", tool="bash"),
        result("r2", "r1", "c2"),
        prune("p", "r2", "r1"),
        prune("q", "p", "p"),
    )
    messages = context(story)
    assert short(messages) == [
        ("assistant", "a"),
        ("tool", "q", "c1", "error"),
        ("tool", "r2", "c2", "ok"),
    ]
    assert messages[1]["content"] == text("summary q")


def test_of_two_results_of_one_call_the_later_stands() -> None:
    nodes = chat(
        assistant("a", None, "c1"),
        result("r1", "a", "c1", status="unknown"),
        user("u", "r1"),
        result("r2", "u", "c1"),
    ).view.nodes()
    again = nodes[3].entry._replace(answers=nodes[1].entry.answers)
    messages = balanced([*nodes[:3], Node(again, nodes[3].data)], unasked)
    assert short(messages) == [("assistant", "a"), ("tool", "r2", "c1", "ok"), ("user", "u")]


# ---- results whose call is not there -----------------------------------------------------------


def test_a_result_that_answers_nothing_is_told_as_text() -> None:
    story = chat(
        user("u", None),
        result("r", "u", "c9", tool="bash"),
        result("s", "r", "c8", content={"sealed": "key"}),
    )
    assert context(story)[1:] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[Result of bash, call c9, made before this context]"},
                *text("result r"),
            ],
            "entry": "r",
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[Result of a tool, call c8, made before this context]"},
                {"sealed": "key"},
            ],
            "entry": "s",
        },
    ]


def test_a_result_whose_call_was_replaced_is_told_as_text_and_a_prune_of_it_too() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", status="unknown"), user("u2", "r1"))
    story.guest(event("rerun_allowed", dispatch="d1"))
    story.own(summary("k", "u2", "u1", "r1"))
    story.own(t1("d1", "op", "a1", "r2", try_=2))
    story.own(result("r2", "k", "c1", dispatch="d1", tool="bash"))
    assert [item[:2] for item in short(context(story))] == [
        ("user", "k"),
        ("user", "u2"),
        ("user", "r2"),
    ]
    story.own(prune("p", "r2", "r2"))
    [head, body] = context(story)[-1]["content"]
    assert head["text"] == "[Result of bash, call c1, made before this context]"
    assert body == text("summary p")[0]


def test_calls_of_different_sessions_are_told_apart() -> None:
    """A fork's surface holds entries of its parents, whose numbers mean others."""
    nodes = chat(assistant("a", None, "c1"), result("r", "a", "c1")).view.nodes()
    foreign = [node._replace(entry=node.entry._replace(session="parent")) for node in nodes]
    messages = balanced([foreign[0], *nodes], lambda entry, _: Answer("open", text(entry.session)))
    assert short(messages) == [
        ("assistant", "a"),
        ("tool", None, "c1", "open"),
        ("assistant", "a"),
        ("tool", "r", "c1", "ok"),
    ]
    assert messages[1]["content"] == text("parent")
    assert [item[0] for item in short(balanced([nodes[0], foreign[1]], told_open))] == [
        "assistant",
        "tool",
        "user",
    ]


def told_open(entry: Entry, index: int) -> Answer:
    return Answer("open")


# ---- the text of an entry ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("message", {"content": [*text("a"), {"type": "image"}, *text("b")]}, "a\nb"),
        ("message", {"content": {"sealed": "k"}}, ""),
        ("compaction", {"content": text("s")}, "s"),
        ("branch", {"summary": "left"}, "left"),
        ("branch", {"summary": {"sealed": "k"}}, ""),
        ("branch", {}, ""),
        ("custom", {"value": "v"}, "v"),
        ("custom", {"value": {"content": text("c")}}, "c"),
        ("custom", {"value": {"other": 1}}, ""),
        ("custom", {"value": [1]}, ""),
        ("custom", {"value": None}, ""),
        ("app_state", {"value": {"content": text("no")}}, ""),
        ("opaque", {}, ""),
    ],
)
def test_the_text_of_an_entry(kind: str, data: dict[str, Any], expected: str) -> None:
    assert text_of(ROOT._replace(kind=kind), data) == expected
