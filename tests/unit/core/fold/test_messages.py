"""Rule 5: where tool results go and which call they answer; what a message says of its attempt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    assistant,
    attempted,
    branch,
    prune,
    released,
    rerun_allowed,
    result,
    settled,
    state,
    summary,
    t1,
    user,
)


def two_calls() -> Story:
    """`a1` makes calls c1 and c2; both are dispatched, d1 → r1 and d2 → r2."""
    story = Story().called("c1", "c2")
    story.own(t1("d2", "op", "a1", "r2", call_index=1, call_id="c2"))
    return story


def answers(story: Story, id_: str) -> tuple[str | None, int] | None:
    found = story.entry(id_).answers
    return None if found is None else (story.id_of(found[0]), found[1])


# ---- results with a dispatch -------------------------------------------------------------------


def test_rule_5_a_result_that_settles_hangs_under_the_leaf_and_answers_its_call() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    assert story.path == ["u1", "a1", "r1"]
    assert answers(story, "r1") == ("a1", 0)
    row = story.entry("r1")
    assert (row.void, row.node, row.role, row.declared) == (None, True, "tool", None)
    assert story.dispatch("d1").status == "ok"


def test_rule_5_parallel_results_follow_one_another_whatever_they_declare() -> None:
    story = two_calls()
    story.own(result("r2", "a1", "c2", dispatch="d2"), result("r1", "a1", "c1", dispatch="d1"))
    assert story.path == ["u1", "a1", "r2", "r1"]
    assert (story.entry("r2").declared, story.entry("r1").declared) == (None, "a1")
    assert (answers(story, "r2"), answers(story, "r1")) == (("a1", 1), ("a1", 0))
    assert story.counts["jumps"] == 0


@pytest.mark.parametrize("parent", ["nowhere", None, "u1", "r1"])
def test_rule_5_a_placed_result_leaves_no_gap_whatever_it_declares(parent: str | None) -> None:
    story = Story().called("c1")
    story.own(result("r1", parent, "c1", dispatch="d1"))
    assert story.path == ["u1", "a1", "r1"]
    assert story.entry("r1").declared == parent
    assert story.damage() == []
    assert story.counts["jumps"] == 0


def test_rule_5_the_dispatch_counts_and_not_the_providers_call_id() -> None:
    story = Story().called("same", "same")
    story.own(t1("d2", "op", "a1", "r2", call_index=1, call_id="same"))
    story.own(result("r2", "a1", "unheard of", dispatch="d2"))
    assert answers(story, "r2") == ("a1", 1)


def test_rule_5_a_result_below_further_entries_of_the_path_is_placed_at_the_leaf() -> None:
    story = Story().called("c1")
    story.own(state("s", "a1", k=1), user("u2", "s"), assistant("a2", "u2"))
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    assert story.path == ["u1", "a1", "s", "u2", "a2", "r1"]
    assert answers(story, "r1") == ("a1", 0)
    assert story.state == {"k": 1}


def test_rule_5_a_result_without_a_known_dispatch_is_void() -> None:
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="nobody"))
    assert story.voids() == {"r1": "unknown_dispatch"}
    assert story.leaf == "a1"
    assert story.dispatch("d1").status == "open"
    assert story.row("dispatches", "nobody") is None
    assert (story.entry("r1").role, story.entry("r1").node) == ("tool", False)
    assert story.entry("r1").parent == story.entry("a1").number


def test_rule_5_a_result_under_another_entry_than_the_last_t1_says_is_evidence() -> None:
    story = Story().called("c1")
    story.own(result("other", "a1", "c1", dispatch="d1"))
    assert story.voids() == {"other": "late_result"}
    assert story.dispatch("d1").status == "open"
    assert [item["event"] for item in story.dispatch("d1").evidence] == ["other"]
    assert story.surface() == ["u1", "a1"]


def test_rule_5_the_first_terminal_answer_wins_and_later_ones_are_evidence() -> None:
    story = Story().called("c1")
    story.own(settled("d1", "unknown", settled_by="recovery"))
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    row = story.dispatch("d1")
    assert (row.status, row.settled_by) == ("unknown", "recovery")
    assert [(item["event"], item["status"]) for item in row.evidence] == [("r1", "ok")]
    assert story.voids() == {"r1": "late_result"}
    assert story.leaf == "a1"


def test_rule_5_a_result_of_the_first_try_after_a_second_is_evidence() -> None:
    story = Story().called("c1")
    story.own(settled("d1", "unknown"))
    story.guest(rerun_allowed("d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2))
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    assert story.dispatch("d1").status == "open"
    assert story.voids() == {"r1": "late_result"}
    story.own(result("r1b", "a1", "c1", dispatch="d1", status="error"))
    assert story.dispatch("d1").status == "error"
    assert story.path == ["u1", "a1", "r1b"]


def test_rule_5_off_the_path_of_its_call_a_result_settles_and_moves_nothing() -> None:
    story = Story().called("c1")
    story.own(branch("n", "u1", "a1"))
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    assert story.voids() == {"r1": "not_placed"}
    assert (story.leaf, story.surface()) == ("n", ["u1"])
    assert story.dispatch("d1").status == "ok"
    assert story.entry("r1").parent == story.entry("a1").number, "its parent is resolved"
    assert story.entry("r1").answers is None


def test_rule_5_back_on_its_path_a_result_is_placed() -> None:
    story = Story().called("c1")
    story.own(branch("n", "u1", "a1"), user("x", "n"), branch("m", "a1", "x"))
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    assert story.path == ["u1", "a1", "m", "r1"]


def test_rule_5_an_unplaced_result_may_lack_its_parent() -> None:
    story = Story().called("c1")
    story.own(branch("n", "u1", "a1"), result("r1", "nowhere", "c1", dispatch="d1"))
    assert story.voids() == {"r1": "not_placed"}
    assert story.damage() == ["dangling_parent"]


@pytest.mark.parametrize(
    ("entry", "index"),
    [("u1", 0), ("a1", 1), ("a1", 7), ("s", 0), ("void", 0), ("later", 0), ("nowhere", 0)],
)
def test_rule_5_a_result_is_placed_only_where_its_call_is(entry: str, index: int) -> None:
    story = Story().prompt()
    story.own(
        assistant("a1", "u1", "c1"),
        state("s", "a1", k=1),
        result("void", "s", "c1", dispatch="nobody"),
    )
    story.own(t1("d1", "op", entry, "r1", call_index=index))
    story.own(result("r1", "s", "c1", dispatch="d1"))
    assert story.entry("r1").void == "not_placed"
    assert story.leaf == "s"
    assert story.dispatch("d1").status == "ok"


def test_rule_5_a_late_result_settles_and_is_not_placed() -> None:
    story = Story().called("c1")
    story.own(user("u2", "r1"))
    assert story.damage() == ["dangling_parent"]
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    assert story.voids() == {"r1": "not_placed"}
    assert story.dispatch("d1").status == "ok"
    assert story.leaf == "u2"
    assert story.damage() == [], "the gap is closed all the same"


def test_rule_5_a_copy_of_the_standing_answer_is_no_evidence() -> None:
    story = Story().called("c1")
    answer = result("r1", "a1", "c1", dispatch="d1")
    story.own(answer)
    story.own(answer)
    assert story.counts["duplicates"] == 1
    former = story.pen
    story.claim()
    story.own(answer, **former, seq=9)
    assert story.dispatch("d1").evidence == ()
    assert story.counts["evidence"] == 0


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("ok", "ok"),
        ("error", "error"),
        ("unknown", "unknown"),
        ("not_started", "not_started"),
        (None, "ok"),
    ],
)
@pytest.mark.parametrize("by", ["host", "recovery", "import", None])
def test_rule_5_a_result_says_how_and_by_whom_its_dispatch_was_settled(
    status: str | None, expected: str, by: str | None
) -> None:
    story = Story().called("c1")
    position = story.own(result("r1", "a1", "c1", dispatch="d1", status=status, settled_by=by))
    row = story.dispatch("d1")
    assert (row.status, row.settled_by) == (expected, by or "host")
    assert row.answer["event"] == "r1"
    assert (row.answer["type"], row.answer["status"]) == ("message", expected)
    assert (row.answer["position"], row.answer["index"]) == (position, 0)
    assert story.head.open_dispatches == {}
    assert story.operation("op").open_dispatches == 0


# ---- results without a dispatch ----------------------------------------------------------------


def imported(*calls: str) -> Story:
    story = Story().begin("first")
    story.own(user("u1", None), assistant("a1", "u1", *calls))
    return story


def test_rule_5_without_a_dispatch_a_result_is_an_ordinary_entry() -> None:
    story = imported("c1")
    story.own(result("r1", "a1", "c1", dispatch=None))
    row = story.entry("r1")
    assert (row.void, row.node, row.role) == (None, True, "tool")
    assert story.path == ["u1", "a1", "r1"]
    story.own(result("r2", "u1", "c1"))
    assert story.path == ["u1", "r2"], "it hangs where it declares"
    assert story.counts["jumps"] == 1
    assert answers(story, "r2") is None


def test_rule_5_a_result_answers_the_first_unanswered_call_with_its_call_id() -> None:
    story = imported("x", "same", "y", "same")
    story.own(
        result("r1", "a1", "same"),
        result("r2", "r1", "y"),
        result("r3", "r2", "same"),
        result("r4", "r3", "same"),
        result("r5", "r4", "x"),
        result("r6", "r5", "unheard of"),
        result("r7", "r6", None),
    )
    assert {f"r{n}": answers(story, f"r{n}") for n in range(1, 8)} == {
        "r1": ("a1", 1),
        "r2": ("a1", 2),
        "r3": ("a1", 3),
        "r4": None,
        "r5": ("a1", 0),
        "r6": None,
        "r7": None,
    }


def test_rule_5_only_the_nearest_assistant_message_is_answered() -> None:
    story = imported("c1")
    story.own(assistant("a2", "a1", "c2"), result("r1", "a2", "c1"), result("r2", "r1", "c2"))
    assert answers(story, "r1") is None
    assert answers(story, "r2") == ("a2", 0)
    story.own(assistant("a3", "r2"), result("r3", "a3", "c2"))
    assert answers(story, "r3") is None


def test_rule_5_other_entries_between_call_and_result_do_not_part_them() -> None:
    story = imported("c1", "c2")
    story.own(
        state("s", "a1", k=1),
        result("r1", "s", "c1"),
        user("u2", "r1"),
        branch("n", "u2", "u2"),
        result("r2", "n", "c2"),
        result("r3", "r2", "c1"),
    )
    assert [answers(story, f"r{n}") for n in (1, 2, 3)] == [("a1", 0), ("a1", 1), None]


def test_rule_5_what_is_answered_on_another_branch_is_not_answered_here() -> None:
    story = imported("c1")
    story.own(result("r1", "a1", "c1"), branch("n", "a1", "r1"), result("r2", "n", "c1"))
    assert answers(story, "r1") == answers(story, "r2") == ("a1", 0)


def test_rule_5_a_result_of_a_dispatch_counts_as_the_answer_of_its_call() -> None:
    story = Story().called("same", "same")
    story.own(result("r1", "a1", "same", dispatch="d1"), result("r2", "r1", "same"))
    assert (answers(story, "r1"), answers(story, "r2")) == (("a1", 0), ("a1", 1))


def test_rule_5_a_result_placed_below_a_later_assistant_message_answers_the_former() -> None:
    story = Story().called("same")
    story.own(assistant("a2", "a1", "same"))
    story.own(result("r1", "a1", "same", dispatch="d1"), result("r2", "r1", "same"))
    assert answers(story, "r1") == ("a1", 0)
    assert answers(story, "r2") == ("a2", 0), "the call of the nearest is still unanswered"
    story.own(result("r3", "r2", "same"))
    assert answers(story, "r3") is None


def test_rule_5_a_result_at_the_root_answers_nothing() -> None:
    story = Story().begin("first")
    story.own(result("r1", None, "c1"), result("r2", "r1", None))
    assert (answers(story, "r1"), answers(story, "r2")) == (None, None)


def test_rule_5_a_late_result_without_a_dispatch_is_kept_where_it_declares() -> None:
    story = imported("c1")
    story.own(user("u2", "r1"), result("r1", "a1", "c1"))
    assert answers(story, "r1") == ("a1", 0)
    assert story.entry("r1").void is None
    assert story.leaf == "u2"
    assert story.surface() == ["u1", "a1", "u2"]


def test_rule_5_a_compaction_is_no_assistant_message() -> None:
    story = imported("c1")
    story.own(result("r1", "a1", "c1"), prune("p", "r1", "r1"), summary("k", "p", "a1", "p"))
    story.own(result("r2", "k", "c1"))
    assert answers(story, "r2") is None, "answered by then"
    assert story.id_of(story.entry("r2").assistant_ref) == "a1"


# ---- attempts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        ("stop", "completed"),
        ("length", "completed"),
        ("content_filter", "completed"),
        ("error", "failed"),
        ("aborted", "aborted"),
        ("tool_use", "continues"),
        ("anything else", "continues"),
        ("", "continues"),
        (None, "continues"),
    ],
)
def test_an_assistant_message_says_how_its_attempt_ended(stop: str | None, status: str) -> None:
    story = Story().prompt()
    story.own(attempted("at1", "op", "a1"))
    assert story.attempt("at1").status == "started"
    position = story.own(assistant("a1", "u1", attempt="at1", stop_reason=stop))
    assert (story.attempt("at1").status, story.attempt("at1").position) == (status, position)
    assert story.entry("a1").stop_reason == stop


@pytest.mark.parametrize(
    "message",
    [
        assistant("a1", "u1"),
        assistant("a1", "u1", attempt=None),
        assistant("a1", "u1", attempt="another"),
        assistant("a2", "u1", attempt="at1"),
        user("a1", "u1", attempt="at1", stop_reason="stop"),
    ],
)
def test_only_the_entry_that_an_attempt_preallocated_ends_it(message: Any) -> None:
    story = Story().prompt()
    story.own(attempted("at1", "op", "a1"))
    story.own(message)
    assert story.attempt("at1").status == "started"


def test_a_late_assistant_message_ends_its_attempt_too() -> None:
    story = Story().prompt()
    story.own(attempted("at1", "op", "a1"), user("u2", "a1"))
    story.own(assistant("a1", "u1", attempt="at1"))
    assert story.attempt("at1").status == "completed"
    assert story.leaf == "u2"


def test_messages_after_a_release_are_fenced() -> None:
    story = Story().called("c1")
    story.own(released(story.claim_id))
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    assert not story.has("r1")
    assert story.dispatch("d1").status == "open"
    assert [item["event"] for item in story.dispatch("d1").evidence] == ["r1"]
