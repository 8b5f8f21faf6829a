"""Queued inputs: pending until cancelled, or until an entry with their preallocated id comes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import Story, cancelled, fact, queued, result, state, user
from turnlog.core.fold.inputs import MAX_PENDING_INPUTS

WRITE = ("guest", "own")


def begun() -> Story:
    story = Story().begin("first")
    story.own(user("u1", None))
    return story


def write(story: Story, by: str, *events: Any) -> int:
    return (story.guest if by == "guest" else story.own)(*events)


@pytest.mark.parametrize("by", WRITE)
@pytest.mark.parametrize("delivery", ["steer", "follow_up", None])
def test_a_queued_input_is_pending(by: str, delivery: str | None) -> None:
    story = begun()
    position = write(story, by, queued("i", "u2", delivery=delivery))
    row = story.input("i")
    assert (row.status, row.delivery, row.entry) == ("queued", delivery, "u2")
    assert (row.queued, row.placed) == (position, 0)
    assert story.head.pending_inputs == {"i": "u2"}


def test_an_entry_with_its_id_places_it() -> None:
    story = begun()
    story.guest(queued("i", "u2"), queued("j", "u3"), queued("k", "u2"))
    position = story.own(user("u2", "u1"))
    assert [story.input(id_).status for id_ in "ijk"] == ["placed", "queued", "placed"]
    assert (story.input("i").placed, story.input("j").placed) == (position, 0)
    assert story.input("i").position == position
    assert story.head.pending_inputs == {"j": "u3"}


@pytest.mark.parametrize(
    "entry",
    [
        state("u2", "u1", k=1),
        result("u2", "u1", "c1", dispatch="ghost"),
        user("u2", "nowhere"),
        user("u2", "u1")._replace(v=2),
    ],
)
def test_any_entry_with_its_id_places_it(entry: Any) -> None:
    story = begun()
    story.guest(queued("i", "u2"))
    story.own(entry)
    assert story.input("i").status == "placed"


def test_a_record_or_a_fenced_entry_of_that_id_does_not_place_it() -> None:
    story = begun()
    former = story.pen
    story.guest(queued("i", "u2"))
    story.own(fact("n", 1, "u2"))
    story.claim("second")
    story.own(user("u2", "u1"), **former, seq=9)
    assert story.input("i").status == "queued"


def test_an_input_whose_entry_is_in_the_log_is_placed_at_once() -> None:
    story = begun()
    story.guest(queued("i", "u1"))
    row = story.input("i")
    assert (row.status, row.placed) == ("placed", story.entry("u1").position)
    assert story.head.pending_inputs == {}


@pytest.mark.parametrize("by", WRITE)
@pytest.mark.parametrize("new_id", [False, True])
def test_rule_1_the_same_input_again_is_a_duplicate(by: str, new_id: bool) -> None:
    story = begun()
    new = queued("i", "u2")
    write(story, by, new)
    before = story.input("i")
    write(story, by, new._replace(id="other") if new_id else new)
    assert story.input("i") == before
    story.guest(cancelled("i"))
    write(story, by, new)
    assert story.input("i").status == "cancelled"
    assert story.quarantine() == []


@pytest.mark.parametrize("by", WRITE)
@pytest.mark.parametrize(
    "other", [queued("i", "u2", "else"), queued("i", "u3"), queued("i", "u2", delivery="steer")]
)
def test_the_same_input_with_other_content_is_quarantined_alone_and_no_damage(
    by: str, other: Any
) -> None:
    story = begun()
    story.guest(queued("i", "u2"))
    before = story.input("i")
    position = write(story, by, fact("a", 1), other, fact("b", 2))
    assert story.quarantined() == [(position, 1, "fold")]
    assert not story.quarantine()[0].damage
    assert story.damage() == []
    assert story.input("i") == before
    assert story.row("facts", "b").value == 2


def test_64_inputs_may_be_pending_and_the_next_is_refused_and_counted() -> None:
    story = begun()
    story.guest(*[queued(f"i{n}", f"e{n}") for n in range(MAX_PENDING_INPUTS)])
    assert MAX_PENDING_INPUTS == 64
    assert story.overflow == {}
    story.guest(queued("over", "x"), queued("there", "u1"))
    assert story.input("over").status == "refused"
    assert story.input("there").status == "placed"
    assert len(story.head.pending_inputs) == 64
    assert story.overflow == {"pending_inputs": 1}
    story.guest(cancelled("i0"), queued("next", "y"))
    assert story.input("next").status == "queued"


def test_what_is_refused_stays_refused() -> None:
    story = begun()
    story.guest(*[queued(f"i{n}", f"e{n}") for n in range(64)], queued("over", "u2"))
    story.guest(cancelled("over"))
    story.own(user("u2", "u1"))
    assert story.input("over").status == "refused"


@pytest.mark.parametrize("by", WRITE)
def test_a_pending_input_may_be_cancelled(by: str) -> None:
    story = begun()
    story.guest(queued("i", "u2"), queued("j", "u3"))
    write(story, by, cancelled("i"))
    assert (story.input("i").status, story.input("j").status) == ("cancelled", "queued")
    assert story.head.pending_inputs == {"j": "u3"}
    story.own(user("u2", "u1"))
    assert (story.input("i").status, story.input("i").placed) == ("cancelled", 0)


def test_rule_7_a_cancelled_input_that_was_placed_stays_placed() -> None:
    story = begun()
    story.guest(queued("i", "u2"))
    story.own(user("u2", "u1"))
    before = story.input("i")
    story.guest(cancelled("i"))
    assert story.input("i") == before


def test_a_cancellation_of_nothing_is_ignored() -> None:
    story = begun()
    story.guest(cancelled("i"))
    assert story.row("inputs", "i") is None
    story.guest(queued("i", "u2"))
    assert story.input("i").status == "queued", "in log order"


def test_inputs_are_kept_for_ever() -> None:
    story = begun()
    story.guest(queued("a", "u2"), queued("b", "u3"))
    story.own(user("u2", "u1"))
    story.guest(cancelled("b"))
    story.claim("second")
    story.own(user("u4", "u2"))
    assert [row.input for row in story.view.rows("inputs")] == ["a", "b"]
