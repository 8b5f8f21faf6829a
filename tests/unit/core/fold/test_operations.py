"""Rules 6 and 8: what is open, whose it is, and what corrupts it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    abort,
    accepted,
    asked,
    assistant,
    attempted,
    branch,
    created,
    decided,
    event,
    finished,
    parked,
    queued,
    rerun_allowed,
    result,
    settled,
    summary,
    t1,
    used,
    user,
)
from turnlog.core.frames import NewEvent

KINDS = ("prompt", "compaction", "navigation")


def other_id(new: NewEvent) -> NewEvent:
    """The same record again, written as another event."""
    return new._replace(id=f"{new.id}-again", time=None)


def begun() -> Story:
    story = Story().begin("first")
    story.own(user("u1", None), user("u2", "u1"))
    return story


def accept(operation: str, kind: str = "prompt", **data: Any) -> NewEvent:
    entry = "u1" if kind == "prompt" else None
    return accepted(operation, entry, **{"kind": kind, **data})


# ---- acceptance --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_accepted_operation_is_open(kind: str) -> None:
    story = begun()
    position = story.own(accept("op", kind, trigger="queue", start_leaf="u2"))
    row = story.operation("op")
    assert (row.kind, row.trigger, row.start_leaf) == (kind, "queue", "u2")
    assert row.input_entry == ("u1" if kind == "prompt" else None)
    assert (row.claim, row.accepted, row.outcome) == ("first", position, None)
    assert (row.superseded, row.corruption, row.open_dispatches) == (False, (), 0)
    assert story.head.open_operations == {"op": {"kind": kind, "attempt": None, "parked": False}}
    assert story.head.status == "open"


@pytest.mark.parametrize("again", [lambda new: new, other_id])
def test_rule_1_the_same_acceptance_again_is_a_duplicate(again: Any) -> None:
    story = begun()
    new = accept("op")
    story.own(new)
    before = story.operation("op")
    story.own(again(new))
    assert story.operation("op") == before
    story.own(finished("op"), again(new))
    assert story.corruption() == []
    assert story.operation("op").outcome == "completed"
    assert story.head.open_operations == {}


def test_rule_8_an_operation_that_is_accepted_twice_is_corrupted_and_nothing_else() -> None:
    story = begun()
    story.own(accept("op"))
    before = story.operation("op")
    story.claim("second")
    story.own(accept("op", "compaction"))
    row = story.operation("op")
    assert row.corruption == ("accepted_twice",)
    assert (row.kind, row.claim, row.accepted) == (before.kind, "first", before.accepted)
    story.own(accept("op", trigger="manual"))
    assert story.corruption() == ["accepted_twice"], "each reason is kept once"


def test_rule_8_accepted_twice_after_the_finish_does_not_open_it() -> None:
    story = begun()
    story.own(accept("op"), finished("op"), accept("op", trigger="manual"))
    assert story.corruption() == ["accepted_twice"]
    assert story.operation("op").outcome == "completed"
    assert story.head.open_operations == {}


@pytest.mark.parametrize("entry", [None, "nowhere"])
def test_rule_8_a_prompt_whose_input_entry_is_missing_is_corrupted_and_open(
    entry: str | None,
) -> None:
    story = begun()
    story.own(accepted("op", entry))
    assert story.corruption() == ["input_missing"]
    assert "op" in story.head.open_operations


def test_the_input_entry_may_stand_before_its_operation_in_the_same_frame_and_be_void() -> None:
    story = begun()
    story.own(user("u3", "u2"), accepted("op", "u3"), finished("op"))
    story.own(result("void", "u3", "c1", dispatch="nobody"), accepted("op2", "void"))
    assert story.corruption("op") == story.corruption("op2") == []
    story.own(finished("op2"))
    story.own(accepted("op3", "u4"), user("u4", "u3"))
    assert story.corruption("op3") == ["input_missing"]


@pytest.mark.parametrize("kind", ["compaction", "navigation"])
def test_only_a_prompt_needs_an_input_entry(kind: str) -> None:
    story = begun()
    story.own(accepted("op", "nowhere", kind=kind))
    assert story.corruption() == []


# ---- a first record that is no acceptance ------------------------------------------------------

NAMING: dict[str, NewEvent] = {
    "model_attempted": attempted("at9", "op", "a9"),
    "usage_settled": used("at9", "op", input=1),
    "approval_asked": asked("op", "u1"),
    "approval_decided": decided("op", "u1"),
    "tool_dispatched": t1("d9", "op", "u1", "r9"),
    "operation_parked": parked("op"),
    "operation_finished": finished("op"),
}


@pytest.mark.parametrize("type_", NAMING)
def test_rule_8_an_operation_whose_first_record_is_not_its_acceptance_is_corrupted(
    type_: str,
) -> None:
    story = begun()
    position = story.own(NAMING[type_])
    row = story.operation("op")
    assert row.corruption == ("not_accepted",)
    assert (row.kind, row.claim, row.accepted) == (None, "first", position)
    is_open = type_ != "operation_finished"
    assert ("op" in story.head.open_operations) is is_open
    assert story.damage() == []


def test_an_acceptance_that_comes_later_fills_the_operation_in() -> None:
    story = begun()
    story.own(attempted("at1", "op", "a1"))
    story.own(accept("op", trigger="user"))
    row = story.operation("op")
    assert (row.kind, row.trigger, row.input_entry) == ("prompt", "user", "u1")
    assert row.corruption == ("not_accepted",)
    assert row.attempt == "at1"
    assert story.head.open_operations["op"] == {"kind": "prompt", "attempt": "at1", "parked": False}
    story.own(accept("op", trigger="user"))
    assert story.corruption() == ["not_accepted"]
    story.own(accept("op", trigger="manual"))
    assert story.corruption() == ["not_accepted", "accepted_twice"]


@pytest.mark.parametrize("entry", [None, "nowhere"])
def test_an_acceptance_that_comes_later_has_its_input_checked(entry: str | None) -> None:
    story = begun()
    story.own(attempted("at1", "op", "a1"), accepted("op", entry))
    assert story.corruption() == ["not_accepted", "input_missing"]


def test_an_acceptance_after_the_finish_fills_in_and_does_not_open() -> None:
    story = begun()
    story.own(finished("op"), accept("op"))
    assert story.corruption() == ["not_accepted"]
    assert (story.operation("op").kind, story.operation("op").outcome) == ("prompt", "completed")
    assert story.head.open_operations == {}


def test_an_operation_of_unknown_kind_supersedes_none_and_is_superseded_by_none() -> None:
    story = begun()
    story.own(accept("a"), parked("ghost"))
    story.claim("second")
    story.own(accept("b"))
    assert story.operation("a").superseded
    assert not story.operation("ghost").superseded
    assert set(story.head.open_operations) == {"ghost", "b"}


# ---- rule 6: one of each kind ------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rule_6_a_second_of_a_kind_under_the_same_claim_is_corrupted(kind: str) -> None:
    story = begun()
    story.own(accept("a", kind), accept("b", kind))
    assert story.corruption("a") == []
    assert story.corruption("b") == ["second_of_kind"]
    assert set(story.head.open_operations) == {"a", "b"}
    story.own(finished("a"), finished("b"), accept("c", kind))
    assert story.corruption("c") == []


@pytest.mark.parametrize("kind", KINDS)
def test_rule_6_under_a_newer_claim_the_open_one_is_superseded_and_open_no_longer(
    kind: str,
) -> None:
    story = begun()
    story.own(accept("a", kind), parked("a"))
    story.claim("second")
    assert story.head.status == "requires_action"
    position = story.own(accept("b", kind))
    row = story.operation("a")
    assert (row.superseded, row.outcome, row.corruption, row.claim) == (True, None, (), "first")
    assert row.position == position
    assert story.corruption("b") == []
    assert set(story.head.open_operations) == {"b"}
    assert story.head.status == "open"


def test_rule_6_an_operation_that_was_adopted_is_a_second_of_its_kind() -> None:
    story = begun()
    story.own(accept("a"))
    story.claim("second")
    story.own(attempted("at1", "a", "a1"), accept("b"))
    assert not story.operation("a").superseded
    assert story.corruption("b") == ["second_of_kind"]


def test_rule_6_several_of_a_kind_may_be_superseded_at_once() -> None:
    story = begun()
    story.own(accept("a"), accept("b"), accept("k", "compaction"))
    story.claim("second")
    story.own(accept("c"))
    assert [story.operation(id_).superseded for id_ in "abk"] == [True, True, False]
    assert story.corruption("c") == []


def test_rule_6_compaction_and_navigation_may_lie_inside_a_prompt() -> None:
    story = begun()
    story.own(accept("p"), accept("k", "compaction"), finished("k"))
    story.own(accept("n", "navigation"), finished("n"), finished("p"))
    assert [story.corruption(id_) for id_ in "pkn"] == [[], [], []]


def test_rule_6_a_navigation_inside_a_compaction_is_corrupted() -> None:
    story = begun()
    story.own(accept("k", "compaction"), accept("n", "navigation"))
    assert story.corruption("n") == ["inside_compaction"]
    assert story.corruption("k") == []
    story.claim("second")
    story.own(accept("m", "navigation"))
    assert story.corruption("m") == ["inside_compaction"], "the compaction is open whoever began it"
    story.own(finished("k"), finished("m"), accept("l", "navigation"))
    assert story.corruption("l") == []


def test_rule_6_a_compaction_inside_a_navigation_is_not_forbidden() -> None:
    story = begun()
    story.own(accept("n", "navigation"), accept("k", "compaction"))
    assert story.corruption("k") == []


@pytest.mark.parametrize("type_", [name for name in NAMING if name != "operation_finished"])
def test_rule_6_a_record_under_a_newer_claim_adopts_the_operation_it_names(type_: str) -> None:
    story = begun()
    story.own(accept("op"))
    story.claim("second")
    assert story.operation("op").claim == "first", "a claim alone adopts nothing"
    story.own(NAMING[type_])
    assert story.operation("op").claim == "second"
    assert story.corruption() == []


def test_rule_6_a_finish_under_a_newer_claim_adopts_what_it_ends() -> None:
    story = begun()
    story.own(accept("op"))
    story.claim("second")
    story.own(finished("op"))
    assert (story.operation("op").claim, story.operation("op").outcome) == ("second", "completed")


def test_rule_6_nothing_adopts_what_is_not_open() -> None:
    story = begun()
    story.own(accept("done"), finished("done"), accept("old"))
    story.claim("second")
    story.own(accept("new"))
    story.own(used("at1", "done", input=1), used("at2", "old", input=1), attempted("x", "old", "y"))
    assert story.operation("done").claim == "first"
    assert story.operation("old").claim == "first"
    assert story.operation("old").corruption == ()


def test_rule_6_guests_and_fenced_owners_adopt_nothing() -> None:
    story = begun()
    former = story.pen
    story.own(accept("op"))
    story.claim("second")
    story.guest(abort("op"), decided("op", "u1"))
    story.own(attempted("at1", "op", "a1"), **former, seq=9)
    assert story.operation("op").claim == "first"


def test_rule_6_the_open_dispatches_of_a_superseded_operation_stay_and_closing_them_is_fine() -> (
    None
):
    story = Story().called("c1")
    story.claim("second")
    story.own(user("u2", "a1"), accepted("op2", "u2"))
    row = story.operation("op")
    assert (row.superseded, row.open_dispatches) == (True, 1)
    assert story.dispatch("d1").status == "open"
    assert story.head.open_dispatches == {"d1": "op"}
    story.own(finished("op", "interrupted"))
    assert story.operation("op").outcome == "interrupted"
    assert story.corruption() == [], "on a superseded operation it is no corruption"
    story.own(settled("d1", "unknown"))
    assert story.operation("op").open_dispatches == 0
    assert story.corruption() == story.corruption("op2") == []
    assert story.head.open_dispatches == {}


# ---- finishing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["completed", "failed", "aborted", "blocked", "interrupted"])
def test_a_finished_operation_is_closed_with_its_outcome(outcome: str) -> None:
    story = begun()
    story.own(accept("op"))
    position = story.own(finished("op", outcome, error={"why": "x"}, inferred=True))
    row = story.operation("op")
    assert (row.outcome, row.error, row.inferred, row.finished) == (
        outcome,
        {"why": "x"},
        True,
        position,
    )
    assert story.head.open_operations == {}
    assert story.head.status == "idle"


@pytest.mark.parametrize("inferred", [None, False])
def test_a_finish_is_inferred_only_where_it_says_so(inferred: bool | None) -> None:
    story = begun()
    story.own(accept("op"), finished("op", inferred=inferred))
    assert story.operation("op").inferred is False


@pytest.mark.parametrize("again", [lambda new: new, other_id])
def test_rule_1_the_same_finish_again_is_a_duplicate(again: Any) -> None:
    story = begun()
    end = finished("op")
    story.own(accept("op"), end)
    before = story.operation("op")
    story.own(again(end))
    story.claim("second")
    story.own(again(end))
    assert story.operation("op") == before


def test_rule_8_a_finish_with_other_content_corrupts_and_the_first_outcome_stays() -> None:
    story = begun()
    position = story.own(accept("op"), finished("op"))
    story.own(finished("op", "failed"))
    row = story.operation("op")
    assert row.corruption == ("after_finished",)
    assert (row.outcome, row.finished) == ("completed", position)


def test_rule_8_a_finish_with_an_open_dispatch_corrupts_and_the_dispatch_stays_listed() -> None:
    story = Story().called("c1")
    story.own(finished("op"))
    assert story.corruption() == ["open_dispatch"]
    assert story.operation("op").outcome == "completed"
    assert story.head.open_dispatches == {"d1": "op"}
    assert story.dispatch("d1").status == "open"


def test_rule_8_open_dispatches_of_other_operations_do_not_matter() -> None:
    story = Story().called("c1")
    story.own(accept("k", "compaction"), finished("k"))
    assert story.corruption("k") == []


AFTER = {name: new for name, new in NAMING.items() if name != "usage_settled"} | {
    "operation_finished": finished("op", "failed")
}


@pytest.mark.parametrize("type_", AFTER)
def test_rule_8_a_record_after_finished_corrupts(type_: str) -> None:
    story = begun()
    position = story.own(accept("op"), finished("op"))
    story.own(AFTER[type_])
    row = story.operation("op")
    assert row.corruption == ("after_finished",)
    assert (row.outcome, row.finished) == ("completed", position)
    assert story.head.open_operations == {}
    assert story.head.status == "idle"
    assert story.damage() == []


def test_rule_8_a_record_after_finished_has_its_effect_on_its_own_rows() -> None:
    story = begun()
    story.own(accept("op"), finished("op"))
    story.own(attempted("at1", "op", "a1"), t1("d1", "op", "u1", "r1"), decided("op", "u1"))
    assert story.attempt("at1").assistant_entry == "a1"
    assert story.dispatch("d1").status == "open"
    assert story.operation("op").open_dispatches == 1
    assert story.row("approvals", "op", "u1", "c1").decision == "allow"


@pytest.mark.parametrize("type_", ["model_attempted", "approval_decided", "tool_dispatched"])
def test_rule_1_a_duplicate_of_an_earlier_record_never_corrupts(type_: str) -> None:
    story = begun()
    story.own(accept("op"), NAMING[type_], settled("d9", "ok"), finished("op"))
    story.own(NAMING[type_], other_id(NAMING[type_]))
    assert story.corruption() == []


def test_rule_8_another_decision_of_the_owner_after_finished_corrupts() -> None:
    story = begun()
    story.own(accept("op"), decided("op", "u1"), finished("op"))
    story.own(decided("op", "u1", decision="deny"))
    assert story.corruption() == ["after_finished"]
    assert story.row("approvals", "op", "u1", "c1").decision == "allow"


def test_rule_8_nothing_else_stops_when_an_operation_is_corrupted() -> None:
    story = begun()
    story.own(accept("op"), accept("op", trigger="manual"))
    story.own(attempted("at1", "op", "a1"), assistant("a1", "u2", "c1", attempt="at1"))
    story.own(t1("d1", "op", "a1", "r1"), result("r1", "a1", "c1", dispatch="d1"), finished("op"))
    assert story.corruption() == ["accepted_twice"]
    assert story.operation("op").outcome == "completed"
    assert story.leaf == "r1"
    assert story.damage() == []


def test_corruption_reasons_are_kept_in_order_of_appearance_each_once() -> None:
    story = begun()
    story.own(accepted("op", None))
    story.own(attempted("at1", "op", "u1"), accept("op", trigger="x"))
    story.own(attempted("at2", "op", "u1"), finished("op"), parked("op"), parked("op"))
    assert story.corruption() == [
        "input_missing",
        "entry_reused",
        "accepted_twice",
        "after_finished",
    ]


def test_rule_8_only_owner_records_corrupt() -> None:
    story = begun()
    story.own(accept("op"), finished("op"))
    story.guest(abort("op"), decided("op", "u1"), abort("ghost"), decided("ghost", "u1"))
    story.guest(queued("i", "e"))
    assert story.corruption() == []
    assert story.row("operations", "ghost") is None


# ---- parking and aborting ----------------------------------------------------------------------


@pytest.mark.parametrize(("reason", "kept"), [("why", "why"), (None, "parked"), ("", "parked")])
def test_an_open_operation_is_parked_with_its_reason(reason: str | None, kept: str) -> None:
    story = begun()
    story.own(accept("op"), parked("op", reason))
    assert story.operation("op").parked == kept
    assert story.head.open_operations["op"]["parked"]
    assert story.head.status == "requires_action"


def test_a_parked_operation_is_open() -> None:
    story = begun()
    story.own(accept("op"), parked("op"), accept("b"))
    assert story.corruption("b") == ["second_of_kind"]


@pytest.mark.parametrize("goes_on", [attempted("at1", "op", "a1"), t1("d1", "op", "u1", "r1")])
def test_the_next_attempt_or_t1_unparks_an_operation(goes_on: NewEvent) -> None:
    story = begun()
    story.own(accept("op"), parked("op"))
    story.own(goes_on)
    assert story.operation("op").parked is None
    assert not story.head.open_operations["op"]["parked"]
    assert story.head.status == "open"


def test_a_further_try_unparks_an_operation_and_a_duplicate_does_not() -> None:
    story = Story().called("c1", effect="read_only")
    first = story.records[-1]
    story.own(parked("op"))
    story.claim("second")
    again = t1("d1", "op", "a1", "r1", effect="read_only", try_=2)
    story.own(again)
    assert story.operation("op").parked is None
    story.own(parked("op"))
    story.own(again)
    assert story.operation("op").parked == "asks"
    assert first in story.records


@pytest.mark.parametrize("other", [used("at1", "op", input=1), asked("op", "u1"), user("u9", None)])
def test_nothing_else_unparks_an_operation(other: NewEvent) -> None:
    story = begun()
    story.own(accept("op"), parked("op"), other)
    assert story.operation("op").parked == "asks"


def test_what_is_not_open_is_not_parked() -> None:
    story = begun()
    story.own(accept("old"))
    story.claim("second")
    story.own(accept("new"), parked("old"), finished("new"), parked("new"))
    assert (story.operation("old").parked, story.operation("new").parked) == (None, None)
    assert story.head.status == "idle"


def test_work_after_the_finish_of_a_parked_operation_does_not_list_it() -> None:
    story = begun()
    story.own(accept("op"), parked("op"), finished("op", "blocked"))
    story.own(attempted("at1", "op", "a1"), t1("d1", "op", "u1", "r1"))
    assert story.head.open_operations == {}
    assert story.head.status == "idle"


def test_an_abort_marks_an_open_operation_and_never_adopts_it() -> None:
    story = begun()
    story.own(accept("op"))
    story.claim("second")
    story.guest(abort("op"))
    assert (story.operation("op").aborting, story.operation("op").claim) == (True, "first")
    story.own(abort("op"))
    assert story.operation("op").claim == "first"


def test_an_abort_of_anything_else_is_ignored() -> None:
    story = begun()
    story.own(accept("old"))
    story.claim("second")
    story.own(accept("new"), finished("new"))
    story.guest(abort("old"), abort("new"), abort("ghost"))
    assert not story.operation("old").aborting
    assert not story.operation("new").aborting
    assert story.row("operations", "ghost") is None


# ---- reruns ------------------------------------------------------------------------------------


def finished_unknown() -> Story:
    story = Story().called("c1")
    story.own(settled("d1", "unknown"), finished("op", "interrupted", error="e", inferred=True))
    return story


def test_rule_8_a_t1_that_was_allowed_opens_a_finished_operation_again() -> None:
    story = finished_unknown()
    story.claim("second")
    story.guest(rerun_allowed("d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2))
    row = story.operation("op")
    assert (row.outcome, row.error, row.inferred, row.finished) == (None, None, False, 0)
    assert (row.claim, row.corruption, row.open_dispatches) == ("second", (), 1)
    assert story.head.open_operations["op"]["kind"] == "prompt"
    story.own(result("r1b", "a1", "c1", dispatch="d1"), attempted("at2", "op", "a2"))
    story.own(assistant("a2", "r1b", attempt="at2"), finished("op"))
    assert story.corruption() == []
    assert story.operation("op").outcome == "completed"


def test_a_parked_operation_that_was_finished_is_not_parked_when_it_is_open_again() -> None:
    story = Story().called("c1")
    story.own(settled("d1", "unknown"), parked("op"), finished("op", "blocked"))
    story.guest(rerun_allowed("d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2))
    assert story.operation("op").parked is None
    assert story.head.status == "open"


def test_a_superseded_operation_is_not_opened_by_a_rerun() -> None:
    story = Story().called("c1")
    story.own(settled("d1", "unknown"))
    story.claim("second")
    story.own(user("u2", "a1"), accepted("op2", "u2"), finished("op", "interrupted"))
    story.guest(rerun_allowed("d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2))
    row = story.operation("op")
    assert (row.superseded, row.outcome, row.open_dispatches) == (True, None, 1)
    assert row.claim != "second", "it stays under its claim"
    assert set(story.head.open_operations) == {"op2"}
    assert story.corruption() == []


def test_a_turn_with_a_compaction_and_a_navigation_inside_is_clean() -> None:
    """As hosts write it."""
    story = Story().claim("first")
    story.own(created(), user("u1", None), accepted("op", "u1", start_leaf=None))
    story.own(attempted("at1", "op", "a1"))
    story.own(assistant("a1", "u1", "c1", attempt="at1"), used("at1", "op", input=5))
    story.own(t1("d1", "op", "a1", "r1"))
    story.own(result("r1", "a1", "c1", dispatch="d1"))
    story.own(accept("k", "compaction"))
    story.own(summary("sum", "r1", "u1", "r1", operation="k"), finished("k"))
    story.own(accept("n", "navigation"), branch("nav", "u1", "sum", operation="n"), finished("n"))
    story.own(attempted("at2", "op", "a2"))
    story.own(assistant("a2", "nav", attempt="at2"), event("context_set", digest="d"))
    story.own(finished("op"))
    assert [story.corruption(id_) for id_ in ("op", "k", "n")] == [[], [], []]
    assert story.damage() == []
    assert story.head.status == "idle"
