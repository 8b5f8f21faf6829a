"""Short histories on which the fold and the model once differed: each stays right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.model.folding import fold_all
from tests.model.model import Model
from tests.model.observable import differences, observable
from tests.model.observe import observe
from tests.model.writing import SESSION, Script, assistant, event, result, user
from turnlog.core.frames import Header, Record

CALL = {"call_id": "x", "assistant_entry": "a"}
UNKNOWN = result("r", "a", dispatch="d", status="unknown")
cases: list[Callable[[], Script]] = []


def case(make: Callable[[], Script]) -> Callable[[], Script]:
    cases.append(make)
    return make


def owned(*events: Any) -> Script:
    script = Script()
    script.claim("c1")
    if events:
        script.owner("c1", *events)
    return script


def accepted(operation: str = "o", id_: str = "acc") -> Any:
    names = {"operation": operation, "kind": "prompt", "input_entry": "u"}
    return event("operation_accepted", id_, **names)


def finished(operation: str = "o", id_: str = "fin", outcome: str = "failed") -> Any:
    return event("operation_finished", id_, operation=operation, outcome=outcome)


def parked(operation: str = "o") -> Any:
    return event("operation_parked", "parked", operation=operation)


def t1(id_: str = "t1", **data: Any) -> Any:
    call = {"operation": "o", "dispatch": "d", "call_index": 0, "assistant_entry": "a"}
    return event("tool_dispatched", id_, **{**call, "result_entry": "r", "try": 1, **data})


def attempted(id_: str = "m1") -> Any:
    asked = {"operation": "o", "attempt": "t", "assistant_entry": "e", "model": "m"}
    return event("model_attempted", id_, **asked)


def usage(id_: str, **data: Any) -> Any:
    names = {"operation": "o", "attempt": "t", "usage": {"input": 1}}
    return event("usage_settled", id_, **{**names, **data})


def verdict(status: str, id_: str = "verdict") -> Any:
    named = {"dispatch": "d", "status": status, "try": 1, "settled_by": "person"}
    return event("dispatch_settled", id_, **named)


def turn(*events: Any) -> Script:
    return owned(user("u", None), assistant("a", "u", "x"), accepted(), *events)


@case
def a_copy_of_a_lost_claim_loses_after_another_won() -> Script:
    script = Script()
    early = event("session_claimed", "k1", claim="early", expects=1)
    script.guest(early)
    script.claim("c1")
    script.guest(early)
    return script


@case
def a_claim_id_in_force_does_not_claim_again() -> Script:
    script = owned()
    script.guest(event("session_claimed", "again", claim="c1", expects=1))
    return script


@case
def records_of_one_key_that_say_the_same_are_duplicates_whatever_their_ids() -> Script:
    queued = {"input": "i", "entry": "ie", "content": []}
    script = owned(event("session_created", "s1", title="x"))
    script.owner("c1", user("u", None), assistant("a", "u", "x"), accepted(), t1(), attempted())
    script.owner("c1", event("session_created", "s2", title="x"), accepted(id_="acc2"))
    script.owner("c1", t1("t2"), attempted("m2"), usage("u1"), usage("u2"), UNKNOWN)
    script.owner("c1", finished(), finished(id_="fin2"), finished(id_="fin3", outcome="aborted"))
    script.guest(event("input_queued", "q1", **queued))
    script.guest(event("input_queued", "q2", **queued))
    return script


@case
def an_operation_that_is_filled_in_is_not_checked_as_a_new_one() -> Script:
    return owned(parked(), accepted())


@case
def t1_and_attempts_unpark() -> Script:
    script = turn(parked())
    script.owner("c1", t1())
    script.owner("c1", parked(), attempted())
    return script


@case
def a_bad_repeat_of_t1_leaves_everything_as_it_was() -> Script:
    script = turn(t1(call_id="x"), parked(), event("approval_asked", "ask", operation="o", **CALL))
    script.owner("c1", t1("t2", **{"try": 7, "call_id": "x"}))
    return script


@case
def closing_a_superseded_operation_is_no_corruption() -> Script:
    script = turn(t1())
    script.claim("c2")
    script.owner("c2", accepted("o2", "acc2"), finished())
    return script


@case
def a_rerun_of_a_superseded_operation() -> Script:
    script = turn(t1(), UNKNOWN)
    script.claim("c2")
    script.owner("c2", accepted("o2", "acc2"), finished())
    script.guest(event("rerun_allowed", "may", dispatch="d"))
    script.owner("c2", t1("t2", **{"try": 2, "result_entry": "r2"}))
    return script


@case
def a_bill_is_compared_with_the_bill_before_it() -> Script:
    script = turn(attempted(), usage("u1", model="n"), usage("u2", model="n"))
    script.owner("c1", event("usage_settled", "w1", operation="o", attempt="other"))
    script.owner("c1", usage("u3", model=None))
    return script


@case
def a_duplicate_bill_touches_no_operation() -> Script:
    script = turn(attempted(), usage("u1"))
    script.claim("c2")
    script.owner("c2", usage("u2"), usage("u3", operation="elsewhere"))
    return script


@case
def a_duplicate_bill_of_an_unknown_attempt_touches_no_operation() -> Script:
    script = turn(usage("u1"))
    script.claim("c2")
    script.owner("c2", usage("u2"), usage("u3", operation="elsewhere"))
    return script


@case
def three_entries_that_name_one_another_are_flagged() -> Script:
    return owned(user("x", "y"), user("y", "z"), user("z", "x"))


@case
def a_late_entry_that_names_itself_is_flagged() -> Script:
    return owned(user("x", "y"), user("y", "y"))


@case
def a_title_said_before_the_session_was_made_stays() -> Script:
    script = owned()
    script.guest(event("fact", "f", name="title", value="alpha"))
    script.owner("c1", event("session_created", "s1"))
    return script


@case
def two_operations_wait_for_one_call() -> Script:
    asked = [event("approval_asked", f"ask-{o}", operation=o, **CALL) for o in ("o", "o2")]
    script = turn(accepted("o2", "acc2"), *asked)
    decided = {"operation": "o2", "decision": "allow", **CALL}
    script.guest(event("approval_decided", "decided", **decided))
    return script


@case
def a_decision_for_another_operation_ends_no_waiting() -> Script:
    script = turn(event("approval_asked", "ask", operation="o", **CALL))
    decided = {"operation": "elsewhere", "decision": "allow", **CALL}
    script.guest(event("approval_decided", "decided", **decided))
    return script


@case
def a_second_decision_is_a_record_of_its_operation() -> Script:
    decided = {"operation": "o", **CALL}
    script = turn(event("approval_decided", "d1", decision="allow", **decided))
    script.claim("c2")
    script.owner("c2", event("approval_decided", "d2", decision="deny", **decided), finished())
    script.owner("c2", event("approval_decided", "d3", decision="deny", **decided))
    return script


@case
def a_verdict_delivered_twice_is_one() -> Script:
    script = turn(t1(), UNKNOWN)
    script.guest(verdict("ok"))
    script.guest(verdict("ok"))
    return script


@case
def what_cannot_be_read_is_quarantined_in_decoding_wherever_it_stands() -> Script:
    script = turn()
    for claim, epoch, seq in (("c1", 1, 1), ("stranger", 1, 1), ("c1", 2, 1), ("c1", 1, 3)):
        header = Header(SESSION, claim, epoch, seq, None)
        script.append(Record(SESSION, header, b"{"))
    return script


@pytest.mark.parametrize("make", cases, ids=lambda make: make.__name__)
def test_the_fold_is_as_the_model_says(make: Callable[[], Script]) -> None:
    script = make()
    found = differences(observable(Model(script.frames)), observe(fold_all(script.frames), SESSION))
    assert not found, "\n".join(found)
