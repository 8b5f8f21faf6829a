"""Model requests and what they cost: counted once each; rule 8, RULES "Operations"."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    accepted,
    assistant,
    attempted,
    event,
    finished,
    parked,
    t1,
    used,
    user,
)
from turnlog.core.rows import NO_USAGE

FIGURES = {"input": 10, "output": 4, "cache_read": 3, "cache_write": 2, "reasoning": 1}


def attempting() -> Story:
    story = Story().prompt()
    story.own(attempted("at1", "op", "a1", model="m", context="digest"))
    return story


def usage(attempt: str = "at1", operation: str = "op", **data: Any) -> Any:
    return event("usage_settled", operation=operation, attempt=attempt, **data)


def total(**figures: Any) -> dict[str, Any]:
    return {**NO_USAGE, **figures}


# ---- model_attempted ---------------------------------------------------------------------------


def test_an_attempt_is_recorded_under_its_claim_and_is_its_operations_last() -> None:
    story = attempting()
    row = story.attempt("at1")
    assert (row.operation, row.assistant_entry, row.model, row.context) == (
        "op",
        "a1",
        "m",
        "digest",
    )
    assert (row.status, row.usage, row.claim) == ("started", None, story.claim_id)
    assert row.position == len(story.records)
    assert story.operation("op").attempt == "at1"
    assert story.head.open_operations["op"]["attempt"] == "at1"
    story.own(attempted("at2", "op", "a2"))
    assert story.operation("op").attempt == "at2"
    assert story.head.open_operations["op"]["attempt"] == "at2"


def test_rule_1_the_same_attempt_again_is_a_duplicate() -> None:
    story = Story().prompt()
    first = attempted("at1", "op", "a1", model="m")
    story.own(first)
    before = story.attempt("at1")
    story.own(attempted("at2", "op", "a2"), parked("op"), first)
    assert story.attempt("at1") == before
    assert (story.operation("op").attempt, story.operation("op").parked) == ("at2", "asks")
    story.own(finished("op"), first)
    assert story.corruption() == []


def test_rule_8_the_same_attempt_with_other_content_is_entry_reused_and_nothing_else() -> None:
    story = attempting()
    before = story.attempt("at1")
    story.own(parked("op"))
    story.own(attempted("at1", "op", "a9", model="m"))
    assert story.corruption() == ["entry_reused"]
    assert story.attempt("at1") == before
    assert story.operation("op").parked == "asks"
    story.own(attempted("at2", "op", "a9"))
    assert story.corruption() == ["entry_reused"], "a9 was not reserved by what was refused"


@pytest.mark.parametrize("taken", ["u1", "a1", "r1", "void"])
def test_rule_8_an_attempt_whose_entry_is_taken_is_recorded_and_corrupts(taken: str) -> None:
    story = attempting()
    story.own(assistant("a1", "u1", "c1"), t1("d1", "op", "a1", "r1"))
    story.own(event("message", "void", parent="a1", role="tool", content=[], dispatch="nobody"))
    story.own(attempted("at2", "op", taken))
    assert story.corruption() == ["entry_reused"]
    assert story.attempt("at2").assistant_entry == taken
    assert story.operation("op").attempt == "at2"


def test_an_attempt_unparks_its_operation() -> None:
    story = attempting()
    story.own(parked("op"))
    assert story.head.status == "requires_action"
    story.own(attempted("at2", "op", "a2"))
    assert story.operation("op").parked is None
    assert story.head.status == "open"


def test_an_attempt_of_a_finished_operation_corrupts_and_opens_nothing() -> None:
    story = attempting()
    story.own(finished("op"), attempted("at2", "op", "a2"))
    assert story.corruption() == ["after_finished"]
    assert story.attempt("at2").operation == "op"
    assert story.operation("op").attempt == "at2"
    assert (story.head.open_operations, story.head.status) == ({}, "idle")


# ---- usage_settled -----------------------------------------------------------------------------


def test_usage_counts_in_the_totals_once_for_each_attempt() -> None:
    story = attempting()
    story.own(used("at1", "op", **FIGURES, cost_usd="0.125"))
    assert story.attempt("at1").usage == {**FIGURES, "cost_usd": "0.125"}
    assert story.head.usage == total(**FIGURES, cost_usd="0.125", attempts=1)
    story.own(attempted("at2", "op", "a2"), used("at2", "op", input=5, cost_usd="0.1"))
    assert story.head.usage == total(**{**FIGURES, "input": 15}, cost_usd="0.225", attempts=2)
    assert story.head.fenced_usage == NO_USAGE


@pytest.mark.parametrize(
    ("data", "counted"),
    [
        ({}, {}),
        ({"usage": None}, {}),
        ({"usage": {}}, {}),
        ({"usage": {"input": None, "cost_usd": None}}, {}),
        ({"usage": {"output": 3}}, {"output": 3}),
        ({"usage": {"further": 7, "input": 1}}, {"input": 1}),
        ({"usage": {"cost_usd": "-0.5"}}, {"cost_usd": "-0.5"}),
    ],
)
def test_what_usage_does_not_say_is_nothing(data: dict[str, Any], counted: dict[str, Any]) -> None:
    story = attempting()
    story.own(usage(**data))
    assert story.head.usage == total(**counted, attempts=1)
    assert not story.attempt("at1").usage_conflict


def test_prices_are_added_exactly() -> None:
    story = Story().prompt()
    tiny, huge = f"0.{'0' * 23}1", f"{'9' * 24}.{'9' * 24}"
    prices = ["0.1", "0.2", tiny, huge, "-" + huge]
    for number, price in enumerate(prices):
        story.own(attempted(f"at{number}", "op", f"a{number}"))
        story.own(used(f"at{number}", "op", cost_usd=price))
    assert story.head.usage["cost_usd"] == "0.300000000000000000000001"


SAME = [
    ({"model": None}, {"model": None}),
    ({"model": "m"}, {"model": "m"}),
    # a provider may answer under another name than was asked for
    ({"model": "m-2026"}, {"model": "m-2026"}),
]


@pytest.mark.parametrize(("first", "second"), SAME)
@pytest.mark.parametrize("known", [True, False])
def test_rule_1_the_same_usage_again_is_a_duplicate(
    first: dict[str, Any], second: dict[str, Any], known: bool
) -> None:
    story = Story().prompt()
    if known:
        story.own(attempted("at1", "op", "a1", model="m"))
    story.own(usage(usage=FIGURES, **first))
    before = story.attempt("at1")
    story.own(usage(usage=dict(reversed(FIGURES.items())), **second))
    assert story.attempt("at1").usage_conflict is not known
    assert story.attempt("at1").usage == before.usage
    assert story.head.usage == total(**FIGURES, attempts=1)


def test_the_same_usage_again_touches_nothing() -> None:
    story = Story().prompt()
    story.own(attempted("at1", "op", "a1"))
    settled = usage(usage=FIGURES, model="m-2026")
    story.own(settled)
    before = story.attempt("at1"), story.operation("op")
    story.own(settled, settled)
    story.claim("newer")
    story.own(settled, usage(operation="ghost", usage=FIGURES, model="m-2026"))
    assert (story.attempt("at1"), story.operation("op")) == before
    assert story.row("operations", "ghost") is None
    assert story.head.usage["attempts"] == 1


@pytest.mark.parametrize(
    "other",
    [
        {"usage": {**FIGURES, "input": 11}},
        {"usage": None},
        {"usage": {**FIGURES, "cost_usd": "0.1"}},
        {"usage": FIGURES, "model": "another"},
    ],
)
def test_rule_8_usage_twice_with_other_figures_is_a_conflict_and_no_damage(
    other: dict[str, Any],
) -> None:
    story = attempting()
    story.own(usage(usage=FIGURES, model="m"))
    story.own(usage(**other), usage(**other))
    row = story.attempt("at1")
    assert row.usage_conflict
    assert row.usage == FIGURES, "the first stands"
    assert story.head.usage == total(**FIGURES, attempts=1)
    assert (story.damage(), story.corruption()) == ([], [])


def test_rule_8_usage_for_an_unknown_attempt_makes_it_counts_and_is_a_conflict() -> None:
    story = Story().prompt()
    story.own(usage("ghost", usage=FIGURES, model="m"))
    row = story.attempt("ghost")
    assert row.usage_conflict
    assert (row.operation, row.model, row.assistant_entry, row.claim) == ("op", "m", None, None)
    assert story.head.usage == total(**FIGURES, attempts=1)
    assert (story.damage(), story.corruption()) == ([], [])
    assert story.operation("op").attempt is None


def test_a_later_attempt_fills_the_row_that_usage_made() -> None:
    story = Story().prompt()
    story.own(usage("at1", usage=FIGURES, model="m"))
    story.own(attempted("at1", "op", "a1", model="n", context="d"))
    row = story.attempt("at1")
    assert (row.assistant_entry, row.model, row.context, row.claim) == (
        "a1",
        "n",
        "d",
        story.claim_id,
    )
    assert row.usage == FIGURES
    assert row.usage_conflict
    assert story.operation("op").attempt == "at1"
    assert story.corruption() == []
    assert story.head.usage["attempts"] == 1
    story.own(assistant("a1", "u1", attempt="at1"))
    assert story.attempt("at1").status == "completed"


def test_usage_may_follow_the_finish() -> None:
    story = attempting()
    story.own(finished("op"), used("at1", "op", **FIGURES))
    assert story.corruption() == []
    assert story.head.usage["attempts"] == 1


def test_usage_that_names_an_unknown_operation_makes_a_corrupted_one() -> None:
    story = Story().prompt()
    story.own(usage("at1", "ghost", usage=FIGURES))
    row = story.operation("ghost")
    assert (row.kind, row.corruption) == (None, ("not_accepted",))
    assert "ghost" in story.head.open_operations


def test_usage_adopts_an_operation_under_a_newer_claim() -> None:
    story = attempting()
    story.claim("newer")
    story.own(used("at1", "op", input=1))
    assert story.operation("op").claim == "newer"


# ---- usage of a fenced owner -------------------------------------------------------------------


def fenced() -> tuple[Story, dict[str, Any]]:
    story = attempting()
    former = story.pen
    story.claim()
    return story, former


def test_usage_of_a_fenced_owner_counts_in_the_fenced_totals_once() -> None:
    story, former = fenced()
    story.own(usage(usage=FIGURES, model="m"), **former, seq=9)
    row = story.attempt("at1")
    assert (row.usage, row.usage_fenced, row.usage_conflict) == (FIGURES, True, False)
    assert story.head.fenced_usage == total(**FIGURES, attempts=1)
    assert story.head.usage == NO_USAGE
    story.own(usage(usage={"input": 99}), **former, seq=10)
    assert story.attempt("at1") == row
    assert story.head.fenced_usage["attempts"] == 1


def test_usage_that_was_fenced_and_is_settled_again_in_force_counts_once() -> None:
    story, former = fenced()
    story.own(usage(usage=FIGURES, model="m-2026"), **former, seq=9)
    story.own(usage(usage=FIGURES, model="m-2026"))
    assert story.head.usage == NO_USAGE
    assert story.head.fenced_usage["attempts"] == 1
    assert not story.attempt("at1").usage_conflict
    story.own(usage(usage={"input": 99}))
    assert story.attempt("at1").usage_conflict
    assert story.head.usage == NO_USAGE


def test_usage_that_is_settled_already_does_not_count_when_it_comes_fenced() -> None:
    story, former = fenced()
    story.own(usage(usage=FIGURES))
    story.own(usage(usage=FIGURES), **former, seq=9)
    assert story.head.fenced_usage == NO_USAGE
    assert not story.attempt("at1").usage_fenced


def test_usage_of_a_fenced_owner_counts_iff_its_attempt_was_applied_under_that_very_claim() -> None:
    story, former = fenced()
    second = story.pen
    story.own(attempted("at2", "op", "a2"), usage("ghost", usage=FIGURES))
    story.claim()
    ghost = story.attempt("ghost")
    story.own(usage("at2", usage=FIGURES), usage("nobody", usage=FIGURES), **former, seq=9)
    story.own(usage("at1", usage=FIGURES), usage("ghost", usage={"input": 5}), **second, seq=9)
    assert story.head.fenced_usage == NO_USAGE
    assert (story.attempt("at1").usage, story.attempt("at2").usage) == (None, None)
    assert story.row("attempts", "nobody") is None
    assert story.attempt("ghost") == ghost
    story.own(usage("at2", usage=FIGURES), **second, seq=10)
    assert story.head.fenced_usage["attempts"] == 1


def test_fenced_usage_touches_no_operation() -> None:
    story, former = fenced()
    story.own(usage(usage=FIGURES), usage("x", "ghost", usage=FIGURES), **former, seq=9)
    assert story.row("operations", "ghost") is None
    assert story.operation("op").claim == former["claim"]


def test_malformed_and_newer_usage_of_a_fenced_owner_is_left() -> None:
    story, former = fenced()
    story.forge(usage(usage={"input": -1}), **former, seq=9)
    story.own(usage(usage=FIGURES)._replace(v=2), **former, seq=10)
    assert story.attempt("at1").usage is None
    assert story.head.fenced_usage == NO_USAGE
    assert story.quarantine() == []


def test_no_usage_is_counted_twice_for_two_operations() -> None:
    story = attempting()
    story.own(finished("op"), user("u2", "u1"), accepted("op2", "u2"))
    story.own(used("at1", "op", input=1), used("at1", "op2", input=1))
    assert story.head.usage == total(input=1, attempts=1)
