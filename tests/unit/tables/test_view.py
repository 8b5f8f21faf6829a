"""A session as its tables and its log show it, at the leaf and at any entry."""

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
    rerun_allowed,
    result,
    settled,
    state,
    summary,
    t1,
    text,
    user,
)
from turnlog.core.context import TELL
from turnlog.core.errors import EntryNotFound, SessionNotFound, StateError
from turnlog.tables.store import Stored
from turnlog.tables.view import KEPT_FRAMES, SessionView


def rewound() -> Story:
    """m1 s1 m2 | m3 s2, rewound to m2, then m4: design's own example with a compaction."""
    story = Story().begin("first", initial_app_state={"k": 0})
    story.own(user("m1", None), state("s1", "m1", k=1), assistant("m2", "s1"))
    story.own(user("m3", "m2"), state("s2", "m3", k=2), summary("c", "s2", "m1", "m2"))
    story.own(branch("n", "m2", "c"), user("m4", "n"))
    return story


def ids(view: SessionView, nodes: list[int]) -> list[str]:
    return [view.entry(node).id for node in nodes]


# ---- looking up --------------------------------------------------------------------------------


def test_a_session_that_is_not_there_is_not_found() -> None:
    story = Story().begin("first")
    with pytest.raises(SessionNotFound, match="no session 'nobody' is in this log"):
        SessionView(story, "nobody")


def test_an_entry_is_found_by_its_id() -> None:
    view = rewound().view
    assert view.entry(view.number("m3")).id == "m3"
    with pytest.raises(EntryNotFound, match="session 's' has no entry 'm9'"):
        view.number("m9")


def test_the_root_position_is_an_entry_too() -> None:
    view = rewound().view
    assert view.entry(0).number == 0
    assert view.path(0) == []
    assert view.surface(0) == []
    assert view.state(0) == {"k": 0}


def test_an_empty_session_has_an_empty_view() -> None:
    view = Story().claim("first").view
    assert (view.path(), view.surface(), view.nodes(), view.context()) == ([], [], [], [])
    assert (view.state(), view.damage()) == ({}, [])
    assert view.rows("entries") == []


def test_rows_and_operations_are_read_by_table_and_id() -> None:
    story = Story().called("c1")
    assert [row.id for row in story.view.rows("entries")] == ["u1", "a1"]
    operation = story.view.operation("op")
    assert operation is not None
    assert operation.kind == "prompt"
    assert story.view.operation("nobody") is None
    story.own(event("operation_accepted", operation="k", kind="compaction"))
    story.own(t1("d2", "k", "a1", "r2"))
    assert [row.dispatch for row in story.view.dispatches_of("op")] == ["d1"]


# ---- bodies ------------------------------------------------------------------------------------


def test_the_data_of_an_entry_is_read_from_the_log() -> None:
    story = rewound()
    for id_ in ("m1", "s1", "c", "n"):
        row = story.entry(id_)
        assert story.view.data(row) == story.view.event_data(row.position, row.event_index)
    assert story.view.data(story.entry("s2"))["value"] == {"k": 2}
    assert story.view.data(story.entry("m4"))["content"] == text("hello")


def test_frames_are_decoded_once_while_they_are_among_the_last() -> None:
    story = Story().begin("first")
    for number in range(KEPT_FRAMES + 5):
        story.own(user(f"m{number}", story.leaf), custom(f"c{number}", f"m{number}"))
    asked: list[int] = []

    class Counting:
        get, scan = story.get, story.scan

        def record(self, session: str, position: int) -> Stored | None:
            asked.append(position)
            return story.record(session, position)

    view = SessionView(Counting(), "s")
    rows = view.path()
    for row in rows:
        view.data(row)
    assert len(asked) == KEPT_FRAMES + 5
    view.data(rows[-1])
    assert len(asked) == KEPT_FRAMES + 5
    view.data(rows[0])
    assert len(asked) == KEPT_FRAMES + 6


def test_a_frame_that_can_no_longer_be_read_is_lost_state() -> None:
    story = rewound()
    row = story.entry("m1")
    story.records[row.position - 1] = story.records[row.position - 1]._replace(body=b"{")
    with pytest.raises(StateError, match=rf"session 's': the frame at position {row.position} can"):
        story.view.data(row)


# ---- at any entry ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "path", "surface", "value"),
    [
        (None, "m1 s1 m2 n m4", "m1 m2 m4", 1),
        ("m4", "m1 s1 m2 n m4", "m1 m2 m4", 1),
        ("m1", "m1", "m1", 0),
        ("s1", "m1 s1", "m1", 1),
        ("m2", "m1 s1 m2", "m1 m2", 1),
        ("s2", "m1 s1 m2 m3 s2", "m1 m2 m3", 2),
        ("c", "m1 s1 m2 m3 s2 c", "c m3", 2),
        ("n", "m1 s1 m2 n", "m1 m2", 1),
    ],
)
def test_path_surface_and_state_at_any_entry(
    at: str | None, path: str, surface: str, value: int
) -> None:
    view = rewound().view
    number = None if at is None else view.number(at)
    assert [row.id for row in view.path(number)] == path.split()
    assert ids(view, view.surface(number)) == surface.split()
    assert view.state(number) == {"k": value}
    assert [item["entry"] for item in view.context(number)] == surface.split()


def test_a_void_entry_stands_for_its_parent() -> None:
    story = rewound()
    story.own(result("void", "m3", "c1", dispatch="nobody"), summary("void2", "m1", "m1", "m1"))
    view = story.view
    for id_, surface, value in (("void", "m1 m2 m3", 1), ("void2", "m1", 0)):
        number = view.number(id_)
        assert ids(view, view.surface(number)) == surface.split()
        assert view.state(number) == {"k": value}
        assert ids(view, [view.real(number)]) == [surface.split()[-1]]


def test_a_late_entry_has_a_surface_of_its_own() -> None:
    story = Story().begin("first")
    story.own(user("a", None), user("c", "b"), user("b", "a"))
    view = story.view
    assert ids(view, view.surface(view.number("b"))) == ["a", "b"]


def test_a_state_is_given_away_as_a_copy() -> None:
    story = rewound()
    for number in (None, story.entry("m1").number, story.entry("s2").number):
        story.view.state(number)["k"] = "changed"
    assert story.view.state() == {"k": 1}
    assert story.view.state(story.entry("m1").number) == {"k": 0}


def test_a_session_without_creation_has_no_state_anywhere() -> None:
    story = Story().claim("first")
    story.own(user("a", None), user("b", "a"))
    assert story.view.state() == {}
    assert story.view.state(story.entry("a").number) == {}


# ---- damage ------------------------------------------------------------------------------------


def test_damage_is_given_in_log_order_with_the_parents_that_are_missing() -> None:
    story = Story().begin("first")
    one = story.own(user("a", "lost"))
    two = story.own(user("a", None))
    three = story.own(user("b", "lost too"))
    four = story.own(user("c", "b"), seq=9)
    assert [(kind, position) for kind, position, _ in story.view.damage()] == [
        ("dangling_parent", one),
        ("conflict", two),
        ("dangling_parent", three),
        ("gap", four),
    ]


# ---- answers in the view: rule 5 ---------------------------------------------------------------


def answered(story: Story, number: int | None = None) -> list[tuple[Any, ...]]:
    """Status, entry and text of the tool messages of a context."""
    return [
        (item["status"], item["entry"], item["content"][0]["text"])
        for item in story.view.context(number)
        if item["role"] == "tool"
    ]


def test_a_call_without_t1_is_told_as_not_started() -> None:
    story = Story().prompt()
    story.own(assistant("a1", "u1", "c1"))
    assert answered(story) == [("not_started", None, TELL["not_started"])]


def test_a_call_without_t1_under_an_import_claim_or_after_a_gap_is_told_as_unknown() -> None:
    story = Story().claim("first", reason="import")
    story.own(user("u1", None), assistant("a1", "u1", "c1"))
    assert answered(story) == [("unknown", None, TELL["unknown"])]
    story = Story().prompt()
    story.own(assistant("a1", "u1", "c1"))
    assert answered(story)[0][0] == "not_started"
    story.own(user("u2", "a1"), seq=9)
    assert answered(story) == [("unknown", None, TELL["unknown"])]


@pytest.mark.parametrize("status", ["open", "ok", "error", "unknown", "not_started"])
def test_a_dispatched_call_is_told_by_the_status_of_its_dispatch(status: str) -> None:
    story = Story().called("c1")
    if status != "open":
        story.own(settled("d1", status))
    assert answered(story) == [(status, None, TELL[status])]


def test_a_call_whose_result_is_elsewhere_has_its_content() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", status="error"))
    story.own(branch("n", "a1", "r1"))
    assert answered(story) == [("error", None, "result r1")]
    assert answered(story, story.entry("r1").number) == [("error", "r1", "result r1")]
    assert answered(story, story.entry("a1").number) == [("error", None, "result r1")]


def test_a_call_whose_result_was_not_placed_has_its_content() -> None:
    story = Story().called("c1")
    story.own(branch("n", "u1", "a1"), result("r1", "a1", "c1", dispatch="d1"))
    story.own(branch("m", "a1", "n"))
    assert answered(story) == [("ok", None, "result r1")]


def test_a_result_elsewhere_without_content_is_told_by_its_status() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", content=[]), branch("n", "a1", "r1"))
    assert answered(story) == [("ok", None, TELL["ok"])]
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", content={"sealed": "k"}))
    story.own(branch("n", "a1", "r1"))
    assert answered(story) == [("ok", None, TELL["ok"])]


def test_a_result_elsewhere_without_a_dispatch_has_its_content() -> None:
    story = Story().begin("first")
    story.own(
        assistant("a1", None, "c1", "c2"),
        result("r1", "a1", "c1", status=None),
        prune("p", "r1", "r1"),
        branch("n", "a1", "p"),
        user("u2", "n"),
    )
    assert answered(story) == [
        ("ok", None, "result r1"),
        ("not_started", None, TELL["not_started"]),
    ]


def test_a_persons_verdict_is_told_without_content() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", status="unknown"), branch("n", "a1", "r1"))
    assert answered(story) == [("unknown", None, "result r1")]
    story.guest(settled("d1", "ok", settled_by="person"))
    assert answered(story) == [("ok", None, TELL["ok"])]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("not_started", "ok", "ok"),
        ("ok", "not_started", "ok"),
        ("unknown", "not_started", "unknown"),
        ("not_started", "unknown", "unknown"),
        ("not_started", "open", "open"),
        ("unknown", "open", "open"),
        ("unknown", "error", "error"),
        ("ok", "ok", "ok"),
    ],
)
def test_of_several_dispatches_of_one_call_the_model_is_told_of_what_did_most(
    first: str, second: str, told: str
) -> None:
    story = Story().called("c1")
    for dispatch, status in (("d1", first), ("d0", second)):
        if dispatch == "d0":
            story.own(t1("d0", "op", "a1", "r0", call_no=0))
        if status != "open":
            story.own(settled(dispatch, status))
    assert [item[0] for item in answered(story)] == [told]


def test_a_rerun_below_a_later_message_stands_after_its_call() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", status="unknown"), user("u2", "r1"))
    story.guest(rerun_allowed("d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2), result("r1b", "u2", "c1", dispatch="d1"))
    assert story.path == ["u1", "a1", "r1", "u2", "r1b"]
    assert answered(story) == [("ok", "r1b", "result r1b")]
    assert [item["entry"] for item in story.view.context()] == ["u1", "a1", "r1b", "u2"]


def test_rule_4_a_prune_has_tool_call_and_status_of_what_it_trims() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", status="error", tool="bash"))
    story.own(prune("p", "r1", "r1"), prune("q", "p", "p", status="invented"))
    assert answered(story) == [("error", "q", "summary q")]
    node = story.view.nodes()[-1]
    assert (node.data["tool"], node.data["call_id"], node.data["status"]) == ("bash", "c1", "error")
    assert node.data["content"] == text("summary q")


# ---- forks -------------------------------------------------------------------------------------


def forked(at: str = "m2") -> tuple[Story, Story]:
    parent = rewound()
    child = Story("child", beside=parent)
    fork = {"parent_session": "s", "fork_at": {"entry": at}}
    child.begin("child-claim", **fork, initial_app_state=parent.view.state())
    return parent, child


def context_ids(story: Story, number: int | None = None) -> list[str]:
    return [item["entry"] for item in story.view.context(number)]


def test_a_forks_context_begins_with_its_parents() -> None:
    parent, child = forked()
    assert context_ids(child) == ["m1", "m2"]
    child.own(user("x", None), assistant("y", "x"))
    assert child.surface() == [None, "x", "y"]
    assert context_ids(child) == ["m1", "m2", "x", "y"]
    assert context_ids(child, child.entry("x").number) == ["m1", "m2", "x"]
    assert child.state == {"k": 1}
    parent.own(user("later", "m4"))
    assert context_ids(child)[:2] == ["m1", "m2"], "nothing of what the parent did since"
    assert child.head.usage["attempts"] == 0


def test_a_forks_context_is_that_of_its_parent_at_the_fork_point() -> None:
    _, child = forked("c")
    child.own(user("x", None))
    assert context_ids(child) == ["c", "m3", "x"]


def test_the_forks_reference_may_be_summarised_away() -> None:
    _, child = forked()
    child.own(user("x", None), summary("k", "x", "m2", "x"))
    assert context_ids(child) == ["k"]
    assert context_ids(child, child.entry("x").number) == ["m1", "m2", "x"]


def test_a_fork_of_a_fork_follows_both() -> None:
    parent, child = forked()
    child.own(user("x", None))
    grandchild = Story("grandchild", beside=parent)
    grandchild.begin("g", parent_session="child", fork_at={"entry": "x"})
    grandchild.own(user("z", None))
    assert context_ids(grandchild) == ["m1", "m2", "x", "z"]


@pytest.mark.parametrize(("parent_session", "entry"), [("gone", "m2"), ("s", "nowhere")])
def test_a_parent_that_is_not_in_this_log_is_told(parent_session: str, entry: str) -> None:
    parent = rewound()
    child = Story("child", beside=parent)
    child.begin("c", parent_session=parent_session, fork_at={"entry": entry})
    child.own(user("x", None))
    assert child.view.parent() is None
    first, second = child.view.context()
    assert first["role"] == "user"
    assert f"forked from {parent_session!r}, which cannot be" in first["content"][0]["text"]
    assert (first["entry"], second["entry"]) == (entry, "x")


def test_a_session_that_is_no_fork_has_no_parent() -> None:
    assert rewound().view.parent() is None
    spawned = Story("child", beside=rewound())
    spawned.begin("first", parent_session="s", spawned_by={"entry": "m2"})
    assert spawned.view.parent() is None


def test_a_circle_of_forks_ends() -> None:
    one = Story("one")
    one.begin("c1", parent_session="two", fork_at={"entry": "y"})
    one.own(user("x", None))
    two = Story("two", beside=one)
    two.begin("c2", parent_session="one", fork_at={"entry": "x"})
    two.own(user("y", None))
    # two's own node, one's, and a node that stands for what would be two again
    assert context_ids(two) == ["y", "x", "y"]
    assert [node.entry.kind for node in two.view.nodes()] == ["fork", "message", "message"]


def test_a_session_forked_from_itself_ends() -> None:
    story = Story("s").begin("c1", parent_session="s", fork_at={"entry": "x"})
    story.own(user("x", None))
    assert [node.entry.kind for node in story.view.nodes()] == ["fork", "message"]


def test_the_calls_of_a_parent_are_answered_from_the_parent() -> None:
    """Numbers and ids of the child mean other things."""
    parent = Story().called("c1")
    parent.own(result("r1", "a1", "c1", dispatch="d1"))
    child = Story("child", beside=parent)
    child.begin("c", parent_session="s", fork_at={"entry": "a1"})
    child.own(user("x", None), assistant("a1", "x", content=[call("c9")]))
    assert answered(child) == [
        ("ok", None, "result r1"),
        ("not_started", None, TELL["not_started"]),
    ]
