"""Records of the session itself: creation, release, facts, approvals, blobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    accepted,
    asked,
    blob_part,
    created,
    decided,
    event,
    fact,
    finished,
    parked,
    released,
    state,
    t1,
    user,
)

FULL: dict[str, Any] = {
    "title": "T",
    "cwd": "/w",
    "agent": "pi",
    "initial_app_state": {"k": 0},
    "parent_session": "p",
    "fork_at": {"entry": "e", "epoch": 1, "seq": 2},
    "spawned_by": {"entry": "x", "call_index": 0, "dispatch": "d"},
    "origin": {"format": "pi", "version": 3, "path": "f", "cursor": 7},
}


def begun(**data: Any) -> Story:
    return Story().begin("first", **data)


# ---- session_created ---------------------------------------------------------------------------


def test_a_session_starts_from_what_its_creation_says() -> None:
    story = begun(**FULL)
    head = story.head
    assert head.created
    assert {name: getattr(head, name) for name in FULL if name != "initial_app_state"} == {
        name: value for name, value in FULL.items() if name != "initial_app_state"
    }
    row = story.row("app_states")
    assert (row.entry, row.value, row.initial) == (0, {"k": 0}, {"k": 0})


def test_everything_a_creation_does_not_say_is_null() -> None:
    story = begun()
    head = story.head
    assert head.created
    names = ("title", "cwd", "agent", "parent_session", "fork_at", "spawned_by", "origin")
    assert [getattr(head, name) for name in names] == [None] * len(names)
    assert (story.state, story.surface()) == ({}, [])


def test_creation_may_follow_other_events_of_the_first_frame() -> None:
    story = Story().claim("first")
    story.own(user("u1", None), state("s1", "u1", k=1), created(initial_app_state={"k": 0}))
    assert story.state == {"k": 1}
    assert story.row("app_states").initial == {"k": 0}
    story.own(user("u2", "u1"))
    assert story.state == {"k": 0}


@pytest.mark.parametrize("new_id", [False, True])
def test_the_same_creation_again_is_a_duplicate(new_id: bool) -> None:
    story = Story().claim("first")
    new = created(**FULL)
    story.own(new, new)
    again = new._replace(id="other") if new_id else new
    story.own(user("u1", None), again)
    story.claim("second")
    story.own(again)
    assert story.quarantine() == []
    assert story.damage() == []


@pytest.mark.parametrize("same_frame", [True, False])
def test_another_creation_is_quarantined_alone_and_damage(same_frame: bool) -> None:
    story = Story().claim("first")
    other = created(title="other", initial_app_state={"x": 1})
    if same_frame:
        position = story.own(created(title="T"), other, user("u1", None))
        index = 1
    else:
        story.own(created(title="T"))
        position = story.own(other, user("u1", None))
        index = 0
    assert story.quarantined() == [(position, index, "fold")]
    assert [item[:2] for item in story.head.damage] == [("late_created", position)]
    assert (story.head.title, story.state, story.leaf) == ("T", {}, "u1")


def test_a_creation_after_the_first_applied_frame_is_late() -> None:
    story = Story().claim("first")
    story.own(user("u1", None))
    story.own(created(title="T", parent_session="p", fork_at={"entry": "e"}))
    assert story.damage() == ["late_created"]
    assert not story.head.created
    assert (story.head.title, story.surface()) == (None, ["u1"])


def test_a_creation_under_the_second_claim_counts_where_nothing_was_applied_before() -> None:
    story = Story().claim("first").claim("second")
    story.own(created(title="T"))
    assert story.head.title == "T"
    assert story.damage() == []


def test_a_creation_without_a_title_leaves_the_title_that_a_guest_gave() -> None:
    story = Story().claim("first")
    story.guest(fact("title", "given before"))
    story.own(created())
    assert story.head.title == "given before"
    other = Story().claim("first")
    other.guest(fact("title", "given before"))
    other.own(created(title="T"))
    assert other.head.title == "T"


# ---- session_released --------------------------------------------------------------------------


def test_a_release_names_the_claim_in_force() -> None:
    story = begun()
    story.own(released("first"))
    assert (story.head.released, story.head.claim, story.head.epoch) == (True, "first", 1)


def test_a_release_of_another_claim_is_quarantined_alone_and_malformed() -> None:
    story = begun()
    position = story.own(released("other"), user("u1", None))
    assert story.quarantined() == [(position, 0, "fold")]
    assert [item[:2] for item in story.head.damage] == [("malformed", position)]
    assert not story.head.released
    assert story.leaf == "u1"


# ---- facts -------------------------------------------------------------------------------------


def test_of_an_owners_facts_the_latest_wins() -> None:
    story = begun()
    story.own(fact("n", 1, "f1"))
    position = story.own(fact("n", {"deep": 2}, "f2", replaces="wrong, and an owner need not care"))
    row = story.row("facts", "n")
    assert (row.event, row.value, row.position) == ("f2", {"deep": 2}, position)
    story.own(fact("n", None, "f3"))
    assert story.row("facts", "n").value is None


def test_a_guests_fact_applies_iff_what_it_saw_is_in_force() -> None:
    story = begun()
    story.guest(fact("n", 0, "f0", replaces="ghost"))
    assert story.row("facts", "n") is None
    story.guest(fact("n", 1, "f1"))
    assert story.row("facts", "n").value == 1
    story.guest(fact("n", 2, "f2"), fact("n", 3, "f3", replaces="f0"))
    assert story.row("facts", "n").value == 1
    story.guest(fact("n", 4, "f4", replaces="f1"))
    assert (story.row("facts", "n").value, story.row("facts", "n").event) == (4, "f4")
    story.guest(fact("n", 4, "f4", replaces="f1"))
    assert story.quarantine() == []


def test_a_fact_that_is_text_titles_the_session() -> None:
    story = begun(title="T")
    story.own(fact("title", "new"))
    assert story.head.title == "new"
    for value in (None, 7, {"sealed": "k"}):
        story.own(fact("title", value))
        assert story.head.title == "new"
    [position] = [row.position for row in story.view.rows("facts")]
    assert position == len(story.records)


def test_other_facts_are_only_kept() -> None:
    story = begun(title="T")
    before = story.head
    story.own(fact("score:x", 0.5), fact("ingest_cursor", {"line": 9}), fact("titles", "no"))
    after = story.head
    assert (after.title, after.leaf, after.damage) == (before.title, before.leaf, ())
    assert {row.name: row.value for row in story.view.rows("facts")} == {
        "score:x": 0.5,
        "ingest_cursor": {"line": 9},
        "titles": "no",
    }


# ---- approvals ---------------------------------------------------------------------------------


def prompted() -> Story:
    story = begun()
    story.own(user("u1", None), accepted("op", "u1"))
    return story


def waits(story: Story) -> bool:
    found = bool(story.head.waiting)
    expected = "requires_action" if found else "open" if story.head.open_operations else "idle"
    assert story.head.status == expected
    return found


def test_a_call_that_was_asked_about_waits_for_its_decision() -> None:
    story = prompted()
    position = story.own(asked("op", "a1", "c1"))
    row = story.row("approvals", "op", "a1", "c1")
    assert (row.asked, row.decision, row.by) == (position, None, None)
    assert row.position == position
    assert waits(story)
    story.guest(decided("op", "a1", "c1", "deny", by="ann"))
    row = story.row("approvals", "op", "a1", "c1")
    assert (row.asked, row.decision, row.by) == (position, "deny", "ann")
    assert not waits(story)


@pytest.mark.parametrize("guest", [True, False])
def test_the_first_decision_of_a_call_stands(guest: bool) -> None:
    story = prompted()
    story.own(asked("op", "a1"))
    story.guest(decided("op", "a1", decision="allow", by="ann"))
    before = story.row("approvals", "op", "a1", "c1")
    (story.guest if guest else story.own)(decided("op", "a1", decision="deny", by="bob"))
    assert story.row("approvals", "op", "a1", "c1") == before
    assert story.corruption() == []


def test_a_decision_may_come_before_the_question() -> None:
    story = prompted()
    story.guest(decided("op", "a1"))
    position = story.own(asked("op", "a1"))
    assert not waits(story)
    row = story.row("approvals", "op", "a1", "c1")
    assert (row.asked, row.decision) == (position, "allow")


@pytest.mark.parametrize(
    "other",
    [("op", "a1", "c2"), ("op", "a2", "c1"), ("ghost", "a1", "c1"), ("op2", "a1", "c1")],
)
@pytest.mark.parametrize("guest", [True, False])
def test_a_decision_on_another_call_ends_no_waiting(
    other: tuple[str, str, str], guest: bool
) -> None:
    story = prompted()
    story.own(accepted("op2", kind="compaction"), asked("op", "a1", "c1"))
    (story.guest if guest else story.own)(decided(*other))
    assert waits(story)
    assert story.row("approvals", "op", "a1", "c1").decision is None
    assert story.row("approvals", *other).decision == "allow"


def test_calls_with_ids_that_run_into_one_another_are_told_apart() -> None:
    story = prompted()
    story.own(asked("op", "a:1", "c"), asked("op", "a", "1:c"))
    assert len(story.head.waiting) == 2
    story.own(decided("op", "a:1", "c"))
    assert len(story.head.waiting) == 1


def test_asking_twice_changes_nothing() -> None:
    story = prompted()
    story.own(asked("op", "a1"))
    before = story.row("approvals", "op", "a1", "c1")
    story.own(asked("op", "a1"))
    story.own(decided("op", "a1"), asked("op", "a1"))
    assert not waits(story)
    assert story.row("approvals", "op", "a1", "c1").asked == before.asked


def test_two_operations_may_wait_for_one_call() -> None:
    story = prompted()
    story.own(accepted("k", kind="compaction"), asked("op", "a1"), asked("k", "a1"))
    assert sorted(story.head.waiting.values()) == ["k", "op"]
    story.own(t1("d1", "op", "a1", "r1"))
    assert list(story.head.waiting.values()) == ["k"]
    story.guest(decided("k", "a1"))
    assert story.head.waiting == {}


@pytest.mark.parametrize(
    "end",
    [finished("op"), decided("op", "a1"), t1("d1", "op", "a1", "r1")],
)
def test_the_waiting_ends_with_a_decision_a_t1_or_the_operation(end: Any) -> None:
    story = prompted()
    story.own(asked("op", "a1", "c1"))
    assert waits(story)
    story.own(end)
    assert not waits(story)


def test_the_waiting_ends_when_the_operation_is_superseded() -> None:
    story = prompted()
    story.own(accepted("k", kind="compaction"), asked("op", "a1"), asked("k", "a2"))
    story.claim("second")
    story.own(user("u2", "u1"), accepted("op2", "u2"))
    assert list(story.head.waiting.values()) == ["k"]


def test_a_question_about_what_is_not_open_does_not_wait() -> None:
    story = prompted()
    story.own(finished("op"), asked("op", "a1"))
    assert story.head.waiting == {}
    assert story.corruption() == ["after_finished"]
    story.own(user("u2", "u1"), accepted("op2", "u2"))
    story.claim("second")
    story.own(user("u3", "u2"), accepted("op3", "u3"), asked("op2", "a1"))
    assert story.head.waiting == {}
    assert story.corruption("op2") == []


def test_a_guests_decision_names_no_operation_and_an_owners_does() -> None:
    story = begun()
    story.guest(decided("ghost", "a1"))
    assert story.row("operations", "ghost") is None
    story.own(decided("other", "a1"))
    assert story.corruption("other") == ["not_accepted"]


def test_waiting_and_parked_both_require_action() -> None:
    story = prompted()
    story.own(asked("op", "a1"), parked("op"))
    story.own(decided("op", "a1"))
    assert story.head.status == "requires_action"


# ---- blobs and what no table keeps -------------------------------------------------------------


def test_the_parts_of_a_blob_are_found_by_index_and_the_first_of_each_counts() -> None:
    story = begun()
    one = story.own(user("u1", None), blob_part("d", 1, 3, "QUJD"))
    two = story.own(blob_part("d", 0, 3, "QQ=="), blob_part("d", 1, 3, "WFla"))
    row = story.row("blobs", "d")
    assert row.positions == {"1": (one, 1), "0": (two, 0)}
    assert (row.of, row.size, row.media_type) == (3, 3 + 1, None)
    three = story.own(blob_part("d", 2, 9, "QUI="))
    row = story.row("blobs", "d")
    assert row.positions["2"] == (three, 0)
    assert (row.of, row.size, row.position) == (3, 6, three)


@pytest.mark.parametrize(
    ("bytes_", "size"), [("", 0), ("QQ==", 1), ("QUI=", 2), ("QUJD", 3), ("QUJDRA==", 4)]
)
def test_the_size_of_a_part_is_that_of_its_bytes(bytes_: str, size: int) -> None:
    story = begun()
    story.own(blob_part("d", 0, 1, bytes_), blob_part("other", 0, 1, "QUJD"))
    assert story.row("blobs", "d").size == size


def test_no_table_keeps_contexts_and_chunks() -> None:
    story = begun()
    tables = {key[0] for key in story.rows}
    before = story.head
    position = story.own(event("context_set", digest="d"), event("chunk", entry="a1", deltas=["x"]))
    assert {key[0] for key in story.rows} == tables
    assert story.head.position == position
    assert story.head.counts["events"] == before.counts["events"] + 2
    assert story.damage() == []
