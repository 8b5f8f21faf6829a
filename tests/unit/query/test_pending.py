"""What waits for somebody, and the command that ends it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import Story, finished, parked, person, rerun_allowed, result, settled
from tests.unit.query.logs import random_session, stored
from tests.unit.recovery.crashes import (
    answered,
    asking,
    calling,
    corrupted,
    dispatched,
    superseded,
    waiting,
)
from turnlog.query.pending import pending

COLUMNS = {
    *("session", "operation", "kind", "state", "verdict", "why", "is_held", "since", "age_s"),
    *("approvals", "dispatch", "tool", "args", "effect", "idempotency_key", "tries"),
    *("rerun_allowed", "evidence", "next"),
}


def rows(*stories: Any, now: int = 0, held: bool = False) -> list[dict[str, Any]]:
    tables = stored(*stories).tables
    heads = tables.scan("sessions")
    return list(pending(tables, heads, now=now, is_held=lambda _: held))


def row(story: Story, **options: Any) -> dict[str, Any]:
    [one] = rows(story, **options)
    assert set(one) == COLUMNS
    return one


def test_nothing() -> None:
    ended = answered()
    ended.own(finished("op"))
    assert rows(ended, Story("empty").begin()) == []


@pytest.mark.parametrize(
    ("story", "verdict"),
    [(asking(), "provider_interrupted"), (calling(), "ready"), (answered(), "terminal")],
)
def test_an_operation_that_did_not_end(story: Story, verdict: str) -> None:
    one = row(story, now=90_000)
    assert (one["state"], one["verdict"], one["dispatch"]) == ("open", verdict, None)
    assert (one["since"], one["age_s"]) == ("1970-01-01T00:00:00.000Z", 90.0)
    assert one["next"] == ["turnlog recover s"]
    held = row(story, held=True)
    assert (held["is_held"], held["next"]) == (True, [])


def test_a_call_without_an_answer_stands_for_its_operation() -> None:
    one = row(dispatched(tool="pay", args={"sum": 3}, effect="idempotent"))
    assert one["state"] == "open"
    assert (one["dispatch"], one["tool"], one["args"]) == ("d", "pay", {"sum": 3})
    assert (one["effect"], one["idempotency_key"], one["tries"]) == ("idempotent", "key", 1)
    assert one["next"] == ["turnlog recover s"]


def test_a_call_whose_outcome_nobody_knows() -> None:
    story = dispatched()
    story.own(settled("d"), finished("op", "interrupted"))
    one = row(story)
    assert (one["state"], one["why"]) == ("unknown", "settled as unknown by recovery")
    assert one["next"] == ["turnlog settle d --as ok", "turnlog rerun d"]
    story.guest(rerun_allowed("d"))
    one = row(story)
    assert (one["rerun_allowed"], one["next"]) == (True, ["turnlog settle d --as ok"])
    story.own(result("r", "a", "c1", dispatch="d", status="error"))
    one = row(story)
    assert [piece["status"] for piece in one["evidence"]] == ["error"]
    assert (one["rerun_allowed"], one["next"]) == (False, ["turnlog settle d --as error"])


def test_a_call_that_its_host_says_never_started_may_be_allowed_again() -> None:
    story = dispatched()
    before = story.head
    story.claim("second", reason="recovery")
    story.own(settled("d"), finished("op", "interrupted"))
    said = settled("d", "not_started", settled_by="host", **{"try": 1})
    story.own(said, claim=before.claim, epoch=before.epoch, seq=before.seq + 1)
    found = row(story)
    assert [piece["status"] for piece in found["evidence"]] == ["not_started"]
    assert found["next"] == ["turnlog rerun d"]


def test_what_is_parked_and_its_calls() -> None:
    story = dispatched()
    story.own(parked("op", "asks for help"))
    operation, call = rows(story)
    assert (operation["state"], operation["why"]) == ("parked", "asks for help")
    assert (call["state"], call["dispatch"]) == ("open", "d")
    assert operation["next"] == call["next"] == ["turnlog recover s --close"]


def test_of_what_is_parked_and_was_answered_it_is_said_who_goes_on() -> None:
    story = dispatched()
    story.own(settled("d"), parked("op", "ask ann"))
    operation, _ = rows(story)
    assert operation["why"] == "ask ann"
    story.guest(person("d", "ok"))
    operation = row(story)
    assert (operation["state"], operation["why"]) == (
        "parked",
        "ask ann; that was said, and the host that resumes the session goes on",
    )


def test_what_is_corrupted_is_parked_first() -> None:
    one = row(corrupted())
    assert (one["verdict"], one["next"]) == ("corrupted", ["turnlog recover s"])
    story = dispatched()
    story.own(finished("op"))  # with an open dispatch, which corrupts it
    assert row(story)["next"] == ["turnlog recover s --close"]


def test_what_waits_for_an_approval() -> None:
    one = row(waiting())
    assert (one["state"], one["why"]) == ("waiting", "a call waits for approval")
    assert one["approvals"] == [{"assistant_entry": "a", "call_id": "c1"}]
    assert one["next"] == ["turnlog decide s c1 --allow", "turnlog decide s c1 --deny"]


def test_calls_of_operations_that_were_superseded() -> None:
    one = row(superseded())
    assert (one["operation"], one["state"], one["dispatch"]) == ("op", "open", "d")


def test_ids_are_fit_for_a_shell() -> None:
    story = dispatched("it's")
    assert row(story)["next"] == ["""turnlog recover 'it'"'"'s'"""]


def test_a_clock_that_was_set_back_makes_nobody_younger() -> None:
    assert row(asking(), now=-5_000)["age_s"] == 0


@pytest.mark.parametrize("seed", range(40))
def test_any_history(seed: int) -> None:
    records = random_session(seed, "s")
    found = rows(records)
    head = stored(records).tables.get(("sessions", "s"))
    named = {one["operation"] for one in found}
    assert set(head.open_operations) <= named
    told = {one["dispatch"] for one in found if one["state"] == "open" and one["dispatch"]}
    assert set(head.open_dispatches) <= told
    assert all(set(one) == COLUMNS for one in found)
