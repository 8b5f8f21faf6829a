"""Rules 1 to 3: identity, parents, the leaf, branches, state; RULES, "Entries"."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    accepted,
    assistant,
    branch,
    claimed,
    created,
    custom,
    event,
    fact,
    finished,
    parked,
    queued,
    result,
    state,
    summary,
    t1,
    user,
)
from turnlog.core.fold.draft import MAX_MISSING_PARENTS
from turnlog.core.fold.entries import ROOT


def chain(*ids: str) -> Story:
    """A begun session with user messages, each under the one before."""
    story = Story().begin("first")
    parents = (None, *ids)
    story.own(*(user(id_, parent) for id_, parent in zip(ids, parents, strict=False)))
    return story


# ---- rule 1: identity --------------------------------------------------------------------------


def test_rule_1_an_entry_again_with_the_same_digest_is_a_duplicate() -> None:
    story = chain("a", "b")
    before = story.head
    position = story.own(user("a", None)._replace(time="2031-01-01T00:00:00Z"))
    assert story.counts["duplicates"] == 1
    assert story.leaf == "b"
    assert story.entry("a").position < position
    assert (story.counts["entries"], story.damage()) == (before.counts["entries"], [])


@pytest.mark.parametrize(
    "other",
    [
        user("a", None, "other words"),
        user("a", "b"),
        user("a", None, extra=None),
        state("a", None, k=1),
        event("zzz", "a", parent=None),
        user("a", None)._replace(v=2),
    ],
)
def test_rule_1_an_entry_again_with_other_content_is_a_conflict_and_the_first_wins(
    other: Any,
) -> None:
    story = chain("a", "b")
    first = story.entry("a")
    position = story.own(fact("before", 1), other, user("c", "b"))
    assert story.quarantined() == [(position, 1, "fold")]
    assert story.quarantine()[0].damage
    assert [item[:2] for item in story.head.damage] == [("conflict", position)]
    assert story.entry("a") == first
    assert story.path == ["a", "b", "c"], "the rest of the frame applies"


@pytest.mark.parametrize("kind", ["void", "late", "opaque"])
def test_rule_1_every_entry_counts_for_its_id(kind: str) -> None:
    story = chain("a", "b")
    if kind == "void":
        entry = result("x", "b", "c1", dispatch="nobody")
        story.own(entry)
    elif kind == "late":
        entry = user("x", "a")
        story.own(user("child", "x"), entry)
    else:
        entry = event("zzz", "x", parent="b")
        story.own(entry)
    duplicates = story.counts["duplicates"]
    story.own(entry, entry._replace(data={**entry.data, "else": 1}))
    assert story.counts["duplicates"] == duplicates + 1
    assert story.damage() == ["conflict"]


# ---- rule 2: parents ---------------------------------------------------------------------------


def test_rule_2_an_entry_hangs_under_its_parent() -> None:
    story = chain("a", "b", "c")
    assert story.path == ["a", "b", "c"]
    assert [story.entry(id_).number for id_ in "abc"] == [1, 2, 3]
    assert [story.entry(id_).parent for id_ in "abc"] == [0, 1, 2]
    assert [story.entry(id_).declared for id_ in "abc"] == [None] * 3


def test_rule_2_an_unknown_parent_is_bridged_to_the_leaf_kept_and_counted_as_a_gap() -> None:
    story = chain("a", "b")
    position = story.own(user("d", "c"), user("e", "d"))
    assert story.path == ["a", "b", "d", "e"]
    assert (story.entry("d").declared, story.entry("e").declared) == ("c", None)
    assert story.head.missing_parents == {"c": position}
    assert story.view.damage() == [("dangling_parent", position, "parent 'c' is not in the log")]
    assert story.counts["jumps"] == 0


def test_rule_2_a_missing_parent_is_shown_at_the_first_entry_that_declared_it() -> None:
    story = chain("a")
    first = story.own(user("d", "c"))
    story.own(user("e", "c"))
    assert story.head.missing_parents == {"c": first}
    assert story.path == ["a", "d", "e"], "both are bridged"


def test_rule_2_a_bridge_may_start_at_the_root() -> None:
    story = Story().begin("first")
    story.own(user("b", "a"))
    assert story.path == ["b"]
    assert story.entry("b").declared == "a"
    assert story.damage() == ["dangling_parent"]


def test_rule_2_an_entry_that_was_missed_closes_the_gap_and_does_not_become_the_leaf() -> None:
    story = chain("a", "b")
    story.own(user("d", "c"))
    story.own(user("c", "b"))
    assert story.leaf == "d"
    assert story.path == ["a", "b", "d"], "what was bridged stays where it is"
    assert story.entry("c").parent == story.entry("b").number
    assert story.damage() == []
    assert story.head.missing_parents == {}
    row = story.branches()[-1]
    assert story.id_of(row.first) == story.id_of(row.tip) == "c"
    assert story.id_of(row.fork_point) == "b"
    assert not row.active
    assert row.position == len(story.records)


def test_rule_2_a_late_entry_may_be_built_upon() -> None:
    story = chain("a", "b")
    story.own(user("d", "c"), user("c", "a"), user("after", "c"))
    assert story.path == ["a", "c", "after"]
    assert story.entry("after").branch == story.entry("c").branch == story.entry("c").number
    assert story.counts["jumps"] == 1


def test_rule_2_a_late_entry_at_the_tip_of_a_branch_starts_a_branch_of_its_own() -> None:
    story = chain("a")
    story.own(branch("nav", None, "a"), user("d", "c"), user("c", "a"))
    assert story.entry("c").parent == story.entry("a").number
    assert story.entry("c").branch == story.entry("c").number
    assert story.entry("a").branch == story.entry("a").number


def test_rule_2_the_parent_of_a_late_entry_may_be_missing_in_turn() -> None:
    story = chain("a")
    story.own(user("d", "c"), user("c", "b"))
    assert story.damage() == ["dangling_parent"]
    assert list(story.head.missing_parents) == ["b"]
    assert (story.leaf, story.entry("c").declared) == ("d", "b")
    story.own(user("b", "a"))
    assert story.damage() == []
    assert story.leaf == "d"


def test_rule_2_a_late_entry_carries_its_state_but_brings_none() -> None:
    story = chain("a")
    story.own(user("d", "missing"), state("missing", "a", k=1))
    assert story.state == {}
    assert story.surface() == ["a", "d"]
    story.own(user("e", "missing"))
    assert story.state == {"k": 1}
    assert story.surface() == ["a", "e"]


def test_rule_2_a_later_null_is_the_root_position() -> None:
    story = chain("a", "b")
    story.own(user("c", None))
    assert story.path == ["c"]
    assert story.surface() == ["c"]
    assert story.counts["jumps"] == 1
    assert story.damage() == []


def test_rule_2_an_absent_parent_of_an_entry_is_no_entry_and_of_an_unknown_type_a_record() -> None:
    story = chain("a")
    data = {name: value for name, value in user("x", None).data.items() if name != "parent"}
    story.forge(event("message", "x", **data), event("zzz", "y"))
    assert not story.has("x")
    assert not story.has("y")
    assert story.damage() == ["malformed"]


def test_rule_2_a_void_parent_stands_for_its_own_parent() -> None:
    story = chain("a", "b")
    story.own(
        result("v1", "a", "c1", dispatch="nobody"),
        result("v2", "v1", "c1", dispatch="nobody"),
        user("c", "v2"),
    )
    assert story.voids() == {"v1": "unknown_dispatch", "v2": "unknown_dispatch"}
    assert story.entry("v2").parent == story.entry("a").number
    assert story.entry("v2").declared == "v1"
    assert story.path == ["a", "c"]
    assert story.entry("c").declared == "v2"


def test_rule_2_a_void_parent_at_the_root_stands_for_the_root() -> None:
    story = chain("a")
    story.own(result("v", None, "c1", dispatch="nobody"), user("b", "v"))
    assert story.path == ["b"]
    assert story.entry("b").declared == "v"


def test_rule_2_an_unknown_type_with_a_parent_is_an_opaque_entry() -> None:
    story = chain("a")
    story.own(event("zzz", "b", parent="a", role="user", content=[]), user("c", "b"))
    row = story.entry("b")
    assert (row.kind, row.role, row.node, row.void) == ("opaque", None, False, None)
    assert story.path == ["a", "b", "c"]
    assert story.surface() == ["a", "c"]


def test_rule_2_cycles_are_cut_and_flagged() -> None:
    story = chain("a")
    story.own(user("x", "y"))
    position = story.own(user("y", "x"))
    assert story.path == ["a", "x"]
    assert story.entry("y").parent == story.entry("x").number
    assert [item[:2] for item in story.head.damage] == [("cycle", position)]
    assert story.damage() == ["cycle"], "the gap is closed"


def test_rule_2_a_long_cycle_is_found_by_walking_up() -> None:
    story = chain("a")
    story.own(user("x", "z"), user("y", "x"), user("w", "y"), user("z", "w"))
    assert story.path == ["a", "x", "y", "w"]
    assert story.damage() == ["cycle"]


def test_rule_2_what_hangs_below_its_child_by_a_bridge_only_is_no_cycle() -> None:
    """m2 is bridged to m4, so m3 comes to hang below the entry that declared it."""
    story = Story().begin("first")
    story.own(user("m4", "m3"), user("m2", "m1"), user("m1", None), user("m3", "m2"))
    assert story.entry("m2").parent == story.entry("m4").number
    assert story.entry("m3").parent == story.entry("m2").number
    assert story.damage() == []


def test_rule_2_a_cycle_that_is_declared_is_found_wherever_its_entries_hang() -> None:
    story = chain("a")
    story.own(user("x", "z"), branch("n", "a", "x"), user("y", "x"), user("z", "y"))
    assert story.damage() == ["cycle"]


def test_rule_2_a_cycle_above_an_entry_that_is_not_in_it_is_not_its_own() -> None:
    story = chain("a")
    story.own(user("x", "y"), user("q", "p"), user("y", "x"), user("p", "x"))
    assert story.damage() == ["cycle"], "that of x and y, found once"


def test_rule_2_an_entry_that_was_missed_and_is_its_own_parent_is_a_cycle() -> None:
    story = chain("a")
    story.own(user("y", "x"), user("x", "x"))
    assert sorted(story.damage()) == ["cycle", "dangling_parent"]
    assert story.path == ["a", "y"]


def test_rule_2_a_late_entry_without_its_child_above_it_is_no_cycle() -> None:
    story = chain("a", "b")
    story.own(user("x", "z"), branch("nav", "b", "x"), user("z", "nav"))
    assert story.damage() == []


def test_rule_2_an_entry_that_is_its_own_parent_is_bridged() -> None:
    story = chain("a")
    story.own(user("x", "x"), user("b", "x"))
    assert story.path == ["a", "x", "b"]
    assert story.damage() == ["dangling_parent"]


def test_rule_2_missing_parents_are_kept_up_to_256_and_then_counted() -> None:
    story = chain("a")
    known = [user(f"child-{number}", f"lost-{number}") for number in range(MAX_MISSING_PARENTS)]
    story.own(*known)
    assert len(story.head.missing_parents) == MAX_MISSING_PARENTS == 256
    assert story.overflow == {}
    position = story.own(user("one", "over"), user("two", "over too"), user("same", "lost-7"))
    assert story.overflow == {"missing_parents": 2}
    assert [item[:2] for item in story.head.damage] == [("overflow", position)]
    assert story.leaf == "same", "nothing is dropped"
    story.own(user("three", "over again"))
    assert story.overflow == {"missing_parents": 3}
    assert story.head.damage[1:] == ()
    # one that was beyond the bound is not known to be missed
    story.own(user("over", "a"))
    assert story.leaf == "over"


# ---- declared ----------------------------------------------------------------------------------


def test_declared_is_kept_where_an_entry_hangs_elsewhere_than_it_says() -> None:
    story = Story().called("c1", "c2")
    story.own(t1("d2", "op", "a1", "r2", call_index=1, call_id="c2"))
    story.own(result("r1", "a1", "c1", dispatch="d1"), result("r2", "a1", "c2", dispatch="d2"))
    story.own(result("void", "a1", "c1", dispatch="nobody"))
    story.own(user("u2", "void"), user("u3", "nowhere"), user("u4", "u3"), user("u5", None))
    declared = {row.id: row.declared for row in story.view.rows("entries") if row.declared}
    assert declared == {"r2": "a1", "u2": "void", "u3": "nowhere"}


# ---- rule 3: the leaf --------------------------------------------------------------------------


def test_rule_3_an_applied_entry_becomes_the_leaf_and_a_void_one_never_does() -> None:
    story = chain("a")
    for id_, new in (
        ("s", state("s", "a", k=1)),
        ("c", custom("c", "s")),
        ("z", event("zzz", "z", parent="c")),
        ("n", branch("n", "z", "z")),
        ("m", assistant("m", "n")),
    ):
        story.own(new)
        assert story.leaf == id_
    story.own(result("void", "m", "c1", dispatch="nobody"))
    assert story.leaf == "m"
    assert story.counts["voids"] == 1


def test_rule_3_the_state_is_the_newest_app_state_on_the_path() -> None:
    story = Story().begin("first", initial_app_state={"start": True})
    assert story.state == {"start": True}
    story.own(user("a", None), state("s1", "a", k=1), user("b", "s1"), state("s2", "b", k=2))
    assert story.state == {"k": 2}
    assert story.row("app_states").initial == {"start": True}
    for target, expected in (("b", {"k": 1}), ("a", {"start": True}), ("s2", {"k": 2})):
        story.own(branch(f"to-{target}", target))
        assert story.state == expected
    story.own(branch("to-root", None))
    assert story.state == {"start": True}
    refs = {id_: story.id_of(story.entry(id_).state_ref) for id_ in ("a", "s1", "b", "s2")}
    assert refs == {"a": None, "s1": "s1", "b": "s1", "s2": "s2"}


def test_rule_3_a_state_again_with_the_same_value_is_a_new_entry() -> None:
    story = chain("a")
    story.own(state("s1", "a", k=1))
    position = story.own(state("s2", "s1", k=1))
    row = story.row("app_states")
    assert (story.id_of(row.entry), row.value, row.position) == ("s2", {"k": 1}, position)


def test_rule_3_a_navigation_without_change_of_state_writes_no_state() -> None:
    story = chain("a", "b")
    story.own(state("s", "b", k=1), user("c", "s"), user("d", "c"))
    row = story.row("app_states")
    story.own(branch("n", "c", "d"))
    assert story.row("app_states") == row


def test_rule_3_a_session_without_state_has_no_state_row() -> None:
    story = Story().claim("first")
    story.own(user("a", None), user("b", "a"), branch("n", "a"))
    assert story.row("app_states") is None
    assert story.state == {}


def test_rule_3_a_jump_without_a_branch_event_is_counted_and_recomputes_everything() -> None:
    story = chain("a")
    story.own(state("s1", "a", k=1), user("b", "s1"), state("s2", "b", k=2), user("c", "s2"))
    generation = story.head.generation
    story.own(user("d", "a"))
    assert story.counts["jumps"] == 1
    assert (story.state, story.surface(), story.path) == ({}, ["a", "d"], ["a", "d"])
    assert story.head.generation == generation + 1
    story.own(branch("n", "c", "d"))
    assert story.counts["jumps"] == 1
    assert (story.state, story.surface()) == ({"k": 2}, ["a", "b", "c"])
    assert story.head.generation == generation + 2


def test_rule_3_under_the_old_leaf_nothing_is_recomputed() -> None:
    story = chain("a", "b")
    generation = story.head.generation
    story.own(user("c", "b"), branch("n", "c", "c"), user("d", "n"))
    assert story.head.generation == generation
    assert story.counts["jumps"] == 0


def test_rule_3_a_newer_branch_event_is_a_jump_like_any_opaque_entry() -> None:
    story = chain("a", "b")
    story.own(branch("n", "a", "b", label="l", summary="s")._replace(v=2))
    assert story.counts["jumps"] == 1
    assert story.surface() == ["a"]
    assert story.branches()[-1].label is None


def test_rule_3_the_refs_of_an_entry_are_the_nearest_on_its_own_path() -> None:
    story = chain("a")
    story.own(
        state("s1", "a", k=1),
        assistant("m1", "s1"),
        user("b", "m1"),
        summary("k1", "b", "a", "m1"),
        user("c", "k1"),
    )
    story.own(branch("n", "m1", "c"), user("d", "n"))

    def refs(id_: str) -> tuple[Any, Any, Any]:
        row = story.entry(id_)
        return (
            story.id_of(row.state_ref),
            story.id_of(row.compaction_ref),
            story.id_of(row.assistant_ref),
        )

    assert refs("a") == (None, None, None)
    assert refs("m1") == ("s1", None, None), "strictly above for the assistant"
    assert refs("b") == ("s1", None, "m1")
    assert refs("k1") == ("s1", "k1", "m1")
    assert refs("c") == ("s1", "k1", "m1")
    assert refs("d") == ("s1", None, "m1")


def test_rule_3_a_void_compaction_is_no_ref() -> None:
    story = chain("a", "b")
    story.own(summary("void", "b", "b", "a"), user("c", "b"))
    assert story.voids() == {"void": "not_on_surface"}
    assert story.entry("void").compaction_ref == 0
    assert story.entry("c").compaction_ref == 0


# ---- branches ----------------------------------------------------------------------------------


def tree(story: Story) -> dict[str | None, tuple[str | None, str | None, bool]]:
    """First entry → tip, fork point, active."""
    return {
        story.id_of(row.first): (story.id_of(row.tip), story.id_of(row.fork_point), row.active)
        for row in story.branches()
    }


def test_branches_are_runs_of_entries_between_forks() -> None:
    story = chain("a", "b", "c")
    assert tree(story) == {"a": ("c", None, True)}
    story.own(branch("n", "b", "c"), user("d", "n"))
    assert tree(story) == {"a": ("c", None, False), "n": ("d", "b", True)}
    story.own(user("e", "c"))
    assert tree(story) == {"a": ("e", None, True), "n": ("d", "b", False)}
    story.own(user("f", None))
    assert tree(story)["f"] == ("f", None, True)
    assert [row.depth for row in story.branches()] == [4, 4, 1]


def test_an_entry_under_the_root_always_starts_a_branch() -> None:
    story = chain("a")
    story.own(user("b", None), user("c", None))
    assert tree(story) == {
        "a": ("a", None, False),
        "b": ("b", None, False),
        "c": ("c", None, True),
    }


def test_void_entries_belong_to_no_branch() -> None:
    story = chain("a")
    story.own(result("void", "a", "c1", dispatch="nobody"), user("b", "void"))
    assert story.entry("void").branch == 0
    assert tree(story) == {"a": ("b", None, True)}


def test_the_branch_that_holds_the_leaf_is_the_active_one() -> None:
    story = chain("a", "b")
    story.own(user("c", "a"))
    story.own(user("d", "b"))
    assert tree(story) == {"a": ("d", None, True), "c": ("c", "a", False)}
    position = len(story.records)
    assert {row.position for row in story.branches()} == {position}


def test_a_branch_is_labelled_by_the_branch_event_that_begins_it() -> None:
    story = chain("a", "b")
    story.own(branch("n", "a", "b", label="try two"), branch("m", "n", "n", label="inside"))
    story.own(custom("c", "a", label="of a custom entry"))
    assert [row.label for row in story.branches()] == [None, "try two", None]


def test_a_fact_labels_the_branch_that_an_entry_is_in() -> None:
    story = chain("a", "b")
    story.own(branch("n", "a", "b", label="two"), user("c", "n"))
    story.own(fact("label:b", "one"), fact("label:c", "better"), fact("label:nobody", "x"))
    assert [row.label for row in story.branches()] == ["one", "better"]
    story.own(fact("label:a", None), fact("label:n", 7), fact("label:", "x"), fact("c", "x"))
    assert [row.label for row in story.branches()] == [None, "better"]


def test_a_fact_does_not_label_a_void_entry() -> None:
    story = chain("a")
    story.own(result("void", "a", "c1", dispatch="nobody"), fact("label:void", "x"))
    assert [row.label for row in story.branches()] == [None]
    assert story.row("facts", "label:void").value == "x"


# ---- nodes of the surface ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "role"),
    [
        (user("x", "a"), "user"),
        (user("x", "a", role="system"), "system"),
        (assistant("x", "a"), "assistant"),
        (result("x", "a", "c1"), "tool"),
        (branch("x", "a", summary="what was tried"), "user"),
        (branch("x", "a", summary=""), "user"),
        (branch("x", "a", summary={"sealed": "k"}), "user"),
        (custom("x", "a", "text", in_context=True), "user"),
        (state("x", "a", k=1), None),
        (branch("x", "a"), None),
        (branch("x", "a", summary=None, label="l"), None),
        (custom("x", "a", "text"), None),
        (custom("x", "a", "text", in_context=False), None),
        (custom("x", "a", "text", in_context=None), None),
        (event("zzz", "x", parent="a", role="user", in_context=True, summary="s"), None),
    ],
)
def test_what_is_a_node_of_the_surface(new: Any, role: str | None) -> None:
    story = chain("a")
    story.own(new)
    row = story.entry("x")
    assert row.node is (role is not None)
    assert row.role == role
    assert story.surface() == (["a", "x"] if role else ["a"])


def test_only_an_assistant_message_makes_calls() -> None:
    story = chain("a")
    parts = [{"type": "tool_call", "call_id": "c1", "name": "n"}] * 2
    story.own(
        user("u", "a", content=parts),
        assistant("m", "u", content=[{"type": "text", "text": "x"}, *parts]),
        assistant("sealed", "m", content={"sealed": "key"}),
    )
    assert [story.entry(id_).calls for id_ in ("u", "m", "sealed")] == [(), ("c1", "c1"), ()]


def test_an_entry_remembers_what_it_was_written_with() -> None:
    story = chain("a")
    position = story.own(fact("n", 1), assistant("m", "a", stop_reason="length"))
    row = story.entry("m")
    assert (row.position, row.event_index, row.depth) == (position, 1, 2)
    assert (row.stop_reason, row.imported, row.session) == ("length", False, "s")
    story.own(custom("c", "m", {"deep": [1]}), state("s", "c", k=1))
    assert story.entry("s").value == {"k": 1}
    assert story.entry("c").value is None, "only a state is kept in its row"


def test_entries_under_an_import_claim_are_imported() -> None:
    story = Story().claim("first", reason="import")
    story.own(created(), user("a", None))
    story.claim("second", reason="resume")
    story.own(user("b", "a"))
    story.guest(claimed("lost", 0, reason="import"))
    story.own(user("c", "b"))
    assert [story.entry(id_).imported for id_ in "abc"] == [True, False, False]


def test_the_root_position_is_no_entry() -> None:
    assert ROOT.number == ROOT.depth == ROOT.branch == 0
    assert (ROOT.id, ROOT.void, ROOT.node, ROOT.calls) == ("", None, False, ())


def test_entries_place_inputs_also_when_void_or_late() -> None:
    story = chain("a")
    story.guest(queued("i1", "void"), queued("i2", "late"), queued("i3", "plain"))
    story.own(result("void", "a", "c1", dispatch="nobody"))
    story.own(user("b", "late"), user("late", "a"), user("plain", "b"))
    assert [story.input(id_).status for id_ in ("i1", "i2", "i3")] == ["placed"] * 3


def test_operations_are_untouched_by_entries() -> None:
    story = Story().prompt()
    story.own(parked("op"))
    before = story.operation("op")
    story.own(user("x", "u1"), state("s", "x"), branch("n", "u1"), custom("c", "n"))
    assert story.operation("op") == before
    story.own(finished("op"), user("y", "c"), accepted("op2", "y"))
    assert story.operation("op").corruption == ()
