"""Rule 4: what a compaction replaces, and when it is void and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    assistant,
    branch,
    custom,
    event,
    prune,
    result,
    state,
    summary,
    t1,
    user,
)
from turnlog.core.rows import Entry

FORK = {"parent_session": "parent", "fork_at": {"entry": "p9"}}


def chain(*ids: str, **created: Any) -> Story:
    story = Story().begin("first", **created)
    for id_, parent in zip(ids, (None, *ids), strict=False):
        story.own(user(id_, parent))
    return story


def with_calls() -> Story:
    """u1, a1 with calls c1 c2, their results r1 r2, then a2."""
    story = Story().begin("first")
    story.own(
        user("u1", None),
        assistant("a1", "u1", "c1", "c2"),
        result("r1", "a1", "c1"),
        result("r2", "r1", "c2"),
        assistant("a2", "r2"),
    )
    return story


def void(story: Story, new: Any) -> str | None:
    """Write a compaction; why it is void, after checking that a void one changes nothing."""
    before, surface, path = story.head, story.surface(), story.path
    story.own(new)
    row = story.entry(new.id)
    if row.void is None:
        return None
    assert story.surface() == surface
    assert story.path == path
    assert story.head.generation == before.generation
    assert (row.node, row.replaces, row.role, row.answers, row.branch) == (
        False,
        None,
        None,
        None,
        0,
    )
    assert row.place == story.view.entry(row.parent).depth + 1
    assert story.counts["voids"] == before.counts["voids"] + 1
    return row.void


def covered(story: Story, number: int) -> set[int]:
    """The messages that a surface node stands for, through summaries of summaries."""
    row: Entry = story.view.entry(number)
    if row.replaces is None:
        return {number}
    before = story.view.surface(row.parent)
    first, last = (before.index(node) for node in row.replaces)
    return {number}.union(*(covered(story, node) for node in before[first : last + 1]))


def assert_every_message_is_covered(story: Story) -> None:
    """The invariant of rule 4, for any number of compactions."""
    seen: set[int] = set()
    for node in story.view.surface():
        stands_for = covered(story, node)
        assert not seen & stands_for, "nothing is shown twice"
        seen |= stands_for
    assert {row.number for row in story.view.path() if row.kind == "message"} <= seen


# ---- valid ones --------------------------------------------------------------------------------


def test_rule_4_a_summary_stands_in_the_place_of_what_it_replaces_as_a_user_message() -> None:
    story = chain("a", "b", "c", "d")
    story.own(summary("k", "d", "b", "c"))
    assert story.surface() == ["a", "k", "d"]
    assert story.leaf == "k"
    row = story.entry("k")
    assert (row.role, row.node, row.answers, row.void) == ("user", True, None, None)
    assert row.replaces == (story.entry("b").number, story.entry("c").number)
    assert row.place == story.entry("c").place
    story.own(user("e", "k"))
    assert story.surface() == ["a", "k", "d", "e"]


@pytest.mark.parametrize(
    ("first", "last", "surface"),
    [
        ("a", "a", ["k", "b", "c"]),
        ("c", "c", ["a", "b", "k"]),
        ("a", "c", ["k"]),
        ("a", "b", ["k", "c"]),
        ("b", "c", ["a", "k"]),
    ],
)
def test_rule_4_any_span_may_be_replaced(first: str, last: str, surface: list[str]) -> None:
    story = chain("a", "b", "c")
    story.own(summary("k", "c", first, last))
    assert story.surface() == surface
    assert story.surface("c") == ["a", "b", "c"], "above the compaction nothing changed"
    assert_every_message_is_covered(story)


def test_rule_4_a_summary_may_replace_a_summary_and_its_kept_tail_or_not() -> None:
    story = chain("m1", "m2", "m3", "m4")
    story.own(summary("k1", "m4", "m1", "m2"), user("m5", "k1"))
    story.own(summary("k2", "m5", "m3", "m4"))
    assert story.surface() == ["k1", "k2", "m5"]
    assert_every_message_is_covered(story)
    story.own(summary("k3", "k2", "k1", "m5"), user("m6", "k3"))
    assert story.surface() == ["k3", "m6"]
    assert_every_message_is_covered(story)


def test_rule_4_every_message_is_on_the_surface_or_covered_however_many_compactions() -> None:
    story = chain("m0")
    for number in range(1, 13):
        story.own(user(f"m{number}", story.leaf), user(f"n{number}", f"m{number}"))
        surface = story.surface()
        start, end = number % len(surface), len(surface) - 1 - number % 2
        if start <= end:
            first, last = surface[start], surface[end]
            assert first is not None
            assert last is not None
            story.own(summary(f"k{number}", story.leaf, first, last))
            assert story.voids() == {}
        assert_every_message_is_covered(story)
    made = [row for row in story.view.path() if row.kind == "compaction"]
    assert len(made) == 12
    assert any(len(covered(story, row.number)) > 3 for row in made)


def test_rule_4_a_summary_replaces_calls_together_with_their_results() -> None:
    story = with_calls()
    assert void(story, summary("k", "a2", "u1", "r2")) is None
    assert story.surface() == ["k", "a2"]


def test_rule_4_nodes_that_are_no_messages_are_replaced_like_any() -> None:
    story = chain("a")
    story.own(
        custom("c", "a", "text", in_context=True),
        state("s", "c", k=1),
        branch("n", "s", "s", summary="tried"),
        user("b", "n"),
    )
    assert void(story, summary("k", "b", "c", "n")) is None
    assert story.surface() == ["a", "k", "b"]
    assert story.state == {"k": 1}


def test_rule_4_a_prune_takes_role_and_call_of_the_result_it_trims() -> None:
    story = with_calls()
    assert void(story, prune("p", "a2", "r1")) is None
    row = story.entry("p")
    assert (row.role, row.answers) == ("tool", story.entry("r1").answers)
    assert row.place == story.entry("r1").place
    assert story.surface() == ["u1", "a1", "p", "r2", "a2"]


def test_rule_4_a_prune_may_be_pruned_again_and_summarised() -> None:
    story = with_calls()
    story.own(prune("p1", "a2", "r1"), prune("p2", "p1", "p1"))
    assert story.surface() == ["u1", "a1", "p2", "r2", "a2"]
    assert story.entry("p2").answers == story.entry("r1").answers
    assert void(story, summary("k", "p2", "a1", "r2")) is None, "a prune counts as its result"
    assert story.surface() == ["u1", "k", "a2"]
    assert_every_message_is_covered(story)


def test_rule_4_a_prune_of_a_result_that_answers_nothing() -> None:
    story = chain("a")
    story.own(result("r", "a", "c1"), prune("p", "r", "r"))
    row = story.entry("p")
    assert (row.void, row.role, row.answers) == (None, "tool", None)


def test_rule_4_a_pruned_result_still_answers_its_call() -> None:
    """A result without a dispatch takes the next call with its id, not the one that was pruned."""
    story = Story().begin("first")
    story.own(
        assistant("a", None, "same", "same"),
        result("r1", "a", "same"),
        prune("p", "r1", "r1"),
        result("r2", "p", "same"),
        result("r3", "r2", "same"),
    )
    number = story.entry("a").number
    answers = [story.entry(id_).answers for id_ in ("r1", "p", "r2", "r3")]
    assert answers == [(number, 0), (number, 0), (number, 1), None]


def test_rule_4_a_navigation_before_a_compaction_brings_back_what_it_replaced() -> None:
    story = chain("a", "b", "c")
    story.own(summary("k", "c", "a", "b"), user("d", "k"), branch("n", "c", "d"))
    assert story.surface() == ["a", "b", "c"]
    story.own(branch("m", "d", "n"))
    assert story.surface() == ["k", "c", "d"]


@pytest.mark.parametrize("prepared_at", ["a", "b", "c", None])
def test_rule_4_prepared_at_may_be_anything_on_the_path_or_null(prepared_at: str | None) -> None:
    story = chain("a", "b", "c")
    assert void(story, summary("k", "c", "a", "b", prepared_at=prepared_at)) is None


def test_rule_4_prepared_at_may_be_above_forks() -> None:
    story = chain("a", "b", "c")
    story.own(branch("n", "b", "c"), user("d", "n"), branch("m", "n", "d"), user("e", "m"))
    for number, target in enumerate(("a", "b", "n", "m", "e")):
        new = summary(f"k{number}", story.leaf, "a", "a", prepared_at=target)
        assert void(story, new) == (None if number == 0 else "not_on_surface")


# ---- void ones, by reason and in their order ---------------------------------------------------


def test_rule_4_a_late_compaction_is_void() -> None:
    story = chain("a", "b")
    story.own(user("c", "k"))
    assert void(story, summary("k", "c", "a", "b", prepared_at="nowhere")) == "late"


@pytest.mark.parametrize("parent", ["a", None])
def test_rule_4_a_compaction_whose_parent_is_not_the_leaf_is_void(parent: str | None) -> None:
    story = chain("a", "b", "c")
    new = summary("k", parent, "a", "b", prepared_at="nowhere")
    assert void(story, new) == "not_at_leaf"
    assert story.counts["jumps"] == 0


def test_rule_4_a_compaction_whose_parent_is_missing_is_void_though_it_is_bridged() -> None:
    story = chain("a", "b")
    assert void(story, summary("k", "nowhere", "a", "b", prepared_at="b")) == "not_at_leaf"
    assert story.damage() == ["dangling_parent"]


def test_rule_4_a_compaction_under_a_void_entry_at_the_leaf_is_at_the_leaf() -> None:
    story = chain("a", "b")
    story.own(result("void", "b", "c1", dispatch="nobody"))
    assert void(story, summary("k", "void", "a", "b")) is None
    assert story.entry("k").declared == "void"


@pytest.mark.parametrize(
    ("prepared_at", "reason"),
    [
        ("nowhere", "prepared_elsewhere"),
        ("c", "prepared_elsewhere"),
        ("void_c", "prepared_elsewhere"),
        ("late", "prepared_elsewhere"),
        ("void_b", None),
        ("void_root", None),
        ("b", None),
        ("n", None),
    ],
)
def test_rule_4_a_compaction_that_was_prepared_elsewhere_is_void(
    prepared_at: str, reason: str | None
) -> None:
    story = chain("a", "b", "c")
    story.own(
        result("void_b", "b", "c1", dispatch="nobody"),
        result("void_c", "c", "c1", dispatch="nobody"),
        result("void_root", None, "c1", dispatch="nobody"),
        branch("n", "b", "c"),
        user("d", "late"),
        user("late", "a"),
    )
    new = summary("k", "d", "a", "b", prepared_at=prepared_at)
    assert void(story, new) == reason


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("nowhere", "b"),
        ("a", "nowhere"),
        ("b", "a"),
        ("c", "c"),  # on another branch
        ("s", "b"),  # no node
        ("a", "s"),
        ("z", "z"),
        ("x", "x"),  # replaced by k0
        ("a", "x"),
        ("void", "b"),
        ("p9", "b"),  # a fork's reference in a session that is none
    ],
)
def test_rule_4_a_compaction_of_what_is_not_on_the_surface_in_this_order_is_void(
    first: str, last: str
) -> None:
    story = chain("a", "x", "b", "c")
    story.own(
        branch("n", "b", "c"),
        state("s", "n", k=1),
        event("zzz", "z", parent="s"),
        summary("k0", "z", "x", "x"),
        result("void", "k0", "c1", dispatch="nobody"),
    )
    assert story.surface() == ["a", "k0", "b"]
    assert void(story, summary("k", "k0", first, last)) == "not_on_surface"
    assert void(story, prune("p", "k0", first)) in ("not_on_surface", "not_one_result")


def test_rule_4_what_stood_before_the_first_node_of_the_surface_is_not_on_it() -> None:
    story = chain("a", "b", "c")
    story.own(summary("k0", "c", "a", "b"))
    assert story.surface() == ["k0", "c"]
    assert void(story, summary("k", "k0", "a", "c")) == "not_on_surface"
    story.own(branch("n", None, "k0"))
    assert void(story, summary("empty", "n", "a", "a", prepared_at=None)) == "not_on_surface"


def test_rule_4_a_compaction_prepared_under_another_root_is_void() -> None:
    story = chain("a", "deep", "deeper")
    story.own(user("b", None))
    for number, elsewhere in enumerate(("a", "deep", "deeper")):
        new = summary(f"k{number}", "b", "b", "b", prepared_at=elsewhere)
        assert void(story, new) == "prepared_elsewhere"


@pytest.mark.parametrize(
    ("first", "last"),
    [("u1", "u1"), ("a1", "a1"), ("a2", "a2"), ("r1", "r2"), ("a1", "r1"), ("k", "k")],
)
def test_rule_4_a_prune_of_anything_but_one_result_is_void(first: str, last: str) -> None:
    story = with_calls()
    story.own(user("u2", "a2"), summary("k", "u2", "u2", "u2"))
    new = summary("p", "k", first, last, kind="prune")
    assert void(story, new) == "not_one_result"


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("u1", "a1"),
        ("a1", "a1"),
        ("a1", "r1"),
        ("r1", "r1"),
        ("r1", "r2"),
        ("r2", "a2"),
        ("u1", "r1"),
    ],
)
def test_rule_4_a_summary_that_parts_a_call_from_its_result_is_void(first: str, last: str) -> None:
    assert void(with_calls(), summary("k", "a2", first, last)) == "unbalanced"


def test_rule_4_a_summary_of_a_call_without_a_result_is_void() -> None:
    story = Story().begin("first")
    story.own(user("u", None), assistant("a", "u", "c1", "c2"), result("r", "a", "c1"))
    assert void(story, summary("k", "r", "u", "r")) == "unbalanced"
    story.own(user("v", "r"))
    assert void(story, summary("k2", "v", "v", "v")) is None


def test_rule_4_a_result_that_answers_no_call_binds_nothing() -> None:
    story = with_calls()
    story.own(result("stray", "a2", "unheard of"), user("u2", "stray"))
    assert story.entry("stray").answers is None
    assert void(story, summary("k", "u2", "stray", "u2")) is None
    assert story.surface() == ["u1", "a1", "r1", "r2", "a2", "k"]


def test_rule_4_two_results_of_one_call_need_one_call() -> None:
    """After a rerun a call has two results on the path; the second may not be parted from it."""
    story = Story().called("c1")
    story.own(result("r1", "a1", "c1", dispatch="d1", status="unknown"), user("u2", "r1"))
    story.guest(event("rerun_allowed", dispatch="d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2))
    story.own(result("r1b", "u2", "c1", dispatch="d1"))
    assert void(story, summary("k", "r1b", "a1", "r1")) is None
    assert void(story, summary("k2", "k", "u2", "r1b")) == "unbalanced"


def test_rule_4_the_reasons_are_given_in_their_order() -> None:
    story = chain("a", "b")
    reasons = [
        (summary("v1", "a", "nowhere", "b", prepared_at="nowhere"), "not_at_leaf"),
        (summary("v2", "b", "nowhere", "b", prepared_at="nowhere"), "prepared_elsewhere"),
        (prune("v3", "b", "nowhere"), "not_on_surface"),
        (prune("v4", "b", "a"), "not_one_result"),
    ]
    for new, reason in reasons:
        assert void(story, new) == reason
    assert [story.voids()[f"v{number}"] for number in range(1, 5)] == [r for _, r in reasons]


# ---- forks -------------------------------------------------------------------------------------


def test_a_forks_surface_starts_with_its_parents_which_may_be_summarised() -> None:
    story = chain("a", "b", **FORK)
    assert story.surface() == [None, "a", "b"]
    assert void(story, summary("k", "b", "p9", "a")) is None
    assert story.surface() == ["k", "b"]
    assert story.entry("k").replaces == (0, story.entry("a").number)
    assert story.surface("b") == [None, "a", "b"]
    assert_every_message_is_covered(story)


def test_a_forks_reference_alone_may_be_summarised_but_not_pruned() -> None:
    story = chain("a", **FORK)
    assert void(story, prune("p", "a", "p9")) == "not_one_result"
    assert void(story, summary("k", "a", "p9", "p9")) is None
    assert story.surface() == ["k", "a"]
    assert story.entry("k").place == 0
    assert void(story, summary("again", "k", "p9", "a")) == "not_on_surface"


def test_a_forks_reference_goes_by_its_id_in_the_parent() -> None:
    story = chain("a", **FORK)
    assert void(story, summary("k", "a", "p8", "a")) == "not_on_surface"


def test_an_entry_of_the_child_goes_before_the_forks_reference() -> None:
    story = chain("a", "p9", "b", **FORK)
    assert void(story, summary("k", "b", "p9", "b")) is None
    assert story.surface() == [None, "a", "k"]
