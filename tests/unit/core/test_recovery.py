"""Recovery (design, 6): each row of both tables, in their order, for both executors.

The first half judges and plans over evidence made by hand, the second over whole histories.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from itertools import product
from typing import Any, NamedTuple

import pytest

from tests.story import (
    Story,
    accepted,
    asked,
    assistant,
    attempted,
    branch,
    created,
    decided,
    fact,
    finished,
    parked,
    person,
    queued,
    rerun_allowed,
    result,
    settled,
    state,
    summary,
    t1,
    user,
)
from turnlog.core.fold.entries import ROOT
from turnlog.core.recovery import (
    Call,
    Evidence,
    Verdict,
    closing_entry,
    idempotency_key,
    plan,
    recover,
)
from turnlog.core.rows import Attempt, Dispatch, Entry, Operation

OPERATION = Operation("s", "op", kind="prompt", claim="c", accepted=10)
ANSWER = ROOT._replace(number=7, id="a1", kind="message", role="assistant", stop_reason="stop")
ATTEMPT = Attempt("s", "at1", "op", assistant_entry="a1", claim="c")
DISPATCH = Dispatch(
    session="s",
    dispatch="d1",
    operation="op",
    call_no=0,
    call_id="c1",
    call_index=0,
    tool="bash",
    effect="opaque",
    key="key",
    args_hash="hash",
    assistant_entry="a1",
    result_entry="r1",
    tries=({"try": 1, "claim": "c", "position": 11},),
    answer=None,
    status="open",
    settled_by=None,
    evidence=(),
    notes=(),
    rerun=False,
    position=11,
)
CALL = Call("a1", 0, "c1", "bash", waiting=False, proven=True)


# ---- the order of the verdicts -----------------------------------------------------------------


class Case(NamedTuple):
    """One row of the table: what makes it true, and what then is the verdict."""

    verdict: str
    outcome: str | None
    why: str
    make: Callable[[Operation, Evidence], tuple[Operation, Evidence]]


def attempt(operation: Operation, evidence: Evidence, entry: Entry | None) -> Any:
    return operation, evidence._replace(attempt=ATTEMPT, attempt_entry=entry, last_message=entry)


ROWS: list[Case] = [
    Case(
        "corrupted",
        None,
        "corrupted: accepted_twice, entry_reused",
        lambda op, ev: (op._replace(corruption=("accepted_twice", "entry_reused")), ev),
    ),
    Case(
        "corrupted",
        None,
        "damage at position 12: conflict (which)",
        lambda op, ev: (op, ev._replace(damage=[("conflict", 12, "which")])),
    ),
    Case(
        "indeterminate_tool",
        None,
        "2 dispatched call(s) without an answer",
        lambda op, ev: (op, ev._replace(dispatches=[DISPATCH, DISPATCH])),
    ),
    Case(
        "terminal",
        None,
        "finished: failed",
        lambda op, ev: (op._replace(outcome="failed", finished=20), ev),
    ),
    Case(
        "terminal",
        None,
        "superseded by a newer operation",
        lambda op, ev: (op._replace(superseded=True), ev),
    ),
    Case(
        "provider_interrupted",
        None,
        "the model was asked and its answer is not in the log",
        lambda op, ev: attempt(op, ev, None),
    ),
    Case(
        "terminal",
        "completed",
        "its work is done (completed), only the finish is missing",
        lambda op, ev: attempt(op, ev, ANSWER),
    ),
    Case("ready", None, "everything that began has ended", lambda op, ev: (op, ev)),
]


@pytest.mark.parametrize("chosen", list(product([False, True], repeat=len(ROWS) - 1)))
def test_the_first_row_that_holds_gives_the_verdict(chosen: tuple[bool, ...]) -> None:
    rows = [row for row, is_true in zip(ROWS, [*chosen, True], strict=True) if is_true]
    operation, evidence = OPERATION, Evidence()
    for row in reversed(rows):
        operation, evidence = row.make(operation, evidence)
    assert recover(operation, evidence) == Verdict(rows[0].verdict, rows[0].why, rows[0].outcome)


# ---- corrupted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "position", "finished_at", "corrupted"),
    [
        ("conflict", 9, 0, False),
        ("conflict", 10, 0, True),
        ("conflict", 11, 0, True),
        ("conflict", 10**9, 0, True),
        ("dangling_parent", 10, 0, True),
        ("overflow", 10, 0, True),
        ("conflict", 20, 20, True),
        ("conflict", 21, 20, False),
        ("conflict", 9, 20, False),
        ("conflict", 15, 20, True),
        # a gap lies before the frame that shows it
        ("gap", 9, 0, False),
        ("gap", 10, 0, False),
        ("gap", 11, 0, True),
        ("gap", 20, 20, True),
        ("gap", 21, 20, False),
    ],
)
def test_damage_between_acceptance_and_finish_corrupts(
    kind: str, position: int, finished_at: int, corrupted: bool
) -> None:
    operation = OPERATION._replace(
        finished=finished_at, outcome="completed" if finished_at else None
    )
    verdict = recover(operation, Evidence(damage=[("gap", 1, "before"), (kind, position, "x")]))
    assert (verdict.name == "corrupted") is corrupted
    if corrupted:
        assert verdict.why == f"damage at position {position}: {kind} (x)"


def test_more_damage_than_is_kept_corrupts() -> None:
    assert recover(OPERATION, Evidence(overflow=True)).name == "corrupted"


@pytest.mark.parametrize("executor", ["host", "consumer"])
def test_what_is_corrupted_is_parked_once_and_never_run(executor: Any) -> None:
    operation = OPERATION._replace(corruption=("entry_reused",))
    evidence = Evidence(dispatches=[DISPATCH._replace(effect="read_only")], calls=[CALL])
    verdict = recover(operation, evidence)
    park = {"do": "park", "operation": "op", "reason": "corrupted: entry_reused"}
    assert plan(operation, verdict, evidence, executor) == [park]
    assert plan(operation, verdict, Evidence(), executor) == [park]
    leave = {**park, "do": "leave"}
    assert plan(operation._replace(parked="why"), verdict, evidence, executor) == [leave]


@pytest.mark.parametrize("executor", ["host", "consumer"])
@pytest.mark.parametrize("closed", [{"outcome": "completed"}, {"superseded": True}])
def test_what_is_corrupted_and_open_no_longer_is_not_parked(executor: Any, closed: Any) -> None:
    operation = OPERATION._replace(corruption=("open_dispatch",), **closed)
    verdict = recover(operation, Evidence())
    assert plan(operation, verdict, Evidence(), executor) == []
    [step] = plan(operation, verdict, Evidence(dispatches=[DISPATCH]), executor)
    assert step["do"] == "leave"


# ---- terminal and inferred ---------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["host", "consumer"])
def test_for_what_has_ended_nothing_is_done(executor: Any) -> None:
    for operation in (
        OPERATION._replace(outcome="completed"),
        OPERATION._replace(superseded=True),
        OPERATION._replace(outcome="completed", parked="why"),
    ):
        verdict = recover(operation, Evidence(calls=[CALL]))
        assert plan(operation, verdict, Evidence(calls=[CALL]), executor) == []


@pytest.mark.parametrize("executor", ["host", "consumer"])
@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        ("stop", "completed"),
        ("length", "completed"),
        ("content_filter", "completed"),
        ("error", "failed"),
        ("aborted", "aborted"),
        ("tool_use", None),
        ("pause", None),
        ("", None),
        (None, None),
    ],
)
def test_a_terminal_last_message_infers_the_finish(
    executor: Any, stop: str | None, outcome: str | None
) -> None:
    entry = ANSWER._replace(stop_reason=stop)
    evidence = Evidence(attempt=ATTEMPT, attempt_entry=entry, last_message=entry)
    verdict = recover(OPERATION, evidence)
    assert (verdict.name, verdict.outcome) == ("terminal" if outcome else "ready", outcome)
    if outcome:
        assert plan(OPERATION._replace(parked="why"), verdict, evidence, executor) == [
            {"do": "finish", "operation": "op", "outcome": outcome, "inferred": True}
        ]


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(attempt=ATTEMPT, attempt_entry=ANSWER, last_message=ROOT._replace(number=8)),
        Evidence(attempt=ATTEMPT, attempt_entry=ANSWER, last_message=None),
        Evidence(attempt=None, attempt_entry=None, last_message=ANSWER),
        Evidence(
            attempt=ATTEMPT,
            attempt_entry=ANSWER._replace(calls=("c1",)),
            last_message=ANSWER._replace(calls=("c1",)),
        ),
    ],
)
def test_nothing_is_inferred_from_anything_less(evidence: Evidence) -> None:
    assert recover(OPERATION, evidence).name == "ready"


@pytest.mark.parametrize("kind", ["compaction", "navigation"])
def test_a_bracket_whose_entry_is_there_and_not_void_has_ended(kind: str) -> None:
    operation = OPERATION._replace(kind=kind)
    entry = ROOT._replace(number=8)
    verdict = recover(operation, Evidence(own_entry=entry))
    assert (verdict.name, verdict.outcome) == ("terminal", "completed")
    assert recover(operation, Evidence(own_entry=entry._replace(void="late"))).name == "ready"
    assert recover(operation, Evidence()).name == "ready"
    told = Evidence(attempt=ATTEMPT, attempt_entry=ANSWER, last_message=ANSWER)
    assert recover(operation, told).name == "ready", "its answer alone is not its entry"


def test_a_prompt_has_no_entry_of_its_own() -> None:
    assert recover(OPERATION, Evidence(own_entry=ROOT)).name == "ready"


# ---- plans: the model --------------------------------------------------------------------------


def planned(executor: Any, evidence: Evidence, operation: Operation = OPERATION) -> list[Any]:
    return plan(operation, recover(operation, evidence), evidence, executor)


FINISH = {"do": "finish", "operation": "op", "outcome": "interrupted", "inferred": True}


def test_a_host_asks_an_interrupted_model_again_and_the_consumer_closes() -> None:
    evidence = Evidence(attempt=ATTEMPT)
    assert planned("host", evidence) == [{"do": "ask_model", "operation": "op"}]
    assert planned("consumer", evidence) == [FINISH]


def test_a_host_goes_on_from_what_is_ready_and_the_consumer_closes() -> None:
    assert planned("host", Evidence()) == [{"do": "continue", "operation": "op"}]
    assert planned("consumer", Evidence()) == [FINISH]


@pytest.mark.parametrize("executor", ["host", "consumer"])
@pytest.mark.parametrize(
    "evidence", [Evidence(), Evidence(attempt=ATTEMPT), Evidence(dispatches=[DISPATCH])]
)
def test_what_is_parked_is_left_to_its_person(executor: Any, evidence: Evidence) -> None:
    operation = OPERATION._replace(parked="asks for a key")
    assert planned(executor, evidence, operation) == [
        {"do": "leave", "operation": "op", "reason": "asks for a key"}
    ]


def test_what_a_person_has_answered_is_gone_on_with_by_a_host_alone() -> None:
    operation = OPERATION._replace(parked="asks for a key")
    evidence = Evidence(answered=True)
    assert planned("host", evidence, operation) == [{"do": "continue", "operation": "op"}]
    assert [step["do"] for step in planned("consumer", evidence, operation)] == ["leave"]


# ---- plans: calls without T1 -------------------------------------------------------------------

NAMED = {"assistant_entry": "a1", "call_index": 0, "call_id": "c1", "tool": "bash"}


def test_a_call_without_t1_was_not_started() -> None:
    evidence = Evidence(calls=[CALL])
    assert planned("host", evidence) == [
        {"do": "permit_and_run", **NAMED},
        {"do": "continue", "operation": "op"},
    ]
    assert planned("consumer", evidence) == [
        {
            "do": "answer",
            **NAMED,
            "status": "not_started",
            "result_entry": closing_entry("a1", 0),
        },
        FINISH,
    ]


def test_a_call_without_t1_after_an_import_or_a_gap_is_unknown_and_never_run() -> None:
    evidence = Evidence(calls=[CALL._replace(proven=False)])
    answer = {
        "do": "answer",
        **NAMED,
        "status": "unknown",
        "result_entry": closing_entry("a1", 0),
    }
    assert planned("host", evidence) == [answer, {"do": "continue", "operation": "op"}]
    assert planned("consumer", evidence) == [answer, FINISH]


@pytest.mark.parametrize("proven", [True, False])
def test_a_call_that_waits_for_approval_is_left(proven: bool) -> None:
    other = CALL._replace(call_index=1, call_id="c2")
    evidence = Evidence(calls=[CALL._replace(waiting=True, proven=proven), other])
    assert planned("host", evidence) == [
        {"do": "leave", **NAMED, "reason": "it waits for approval"},
        {"do": "permit_and_run", **{**NAMED, "call_index": 1, "call_id": "c2"}},
    ]
    [step] = planned("consumer", evidence)
    assert (step["do"], step["operation"]) == ("leave", "op")
    assert "waits for approval" in step["reason"]


# ---- plans: dispatches without an answer -------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "do"),
    [("read_only", "run_again"), ("idempotent", "run_again"), ("reconcilable", "probe")],
)
def test_a_host_runs_again_or_probes_by_effect(effect: str, do: str) -> None:
    tries = ({"try": 1}, {"try": 4})
    evidence = Evidence(dispatches=[DISPATCH._replace(effect=effect, tries=tries)])
    assert planned("host", evidence) == [
        {
            "do": do,
            "dispatch": "d1",
            "tool": "bash",
            "effect": effect,
            "try": 5,
            "idempotency_key": "key",
        },
        {"do": "continue", "operation": "op"},
    ]


CLOSE = {"dispatch": "d1", "tool": "bash", "effect": "opaque", "status": "unknown"}


@pytest.mark.parametrize("executor", ["host", "consumer"])
def test_an_opaque_effect_is_never_run_again(executor: Any) -> None:
    last = FINISH if executor == "consumer" else {"do": "continue", "operation": "op"}
    off = Evidence(dispatches=[DISPATCH])
    assert planned(executor, off) == [{"do": "settle", **CLOSE}, last]
    on = off._replace(on_path=frozenset({"d1"}))
    assert planned(executor, on) == [{"do": "answer", **CLOSE, "result_entry": "r1"}, last]


@pytest.mark.parametrize("effect", ["read_only", "idempotent", "reconcilable", "opaque"])
@pytest.mark.parametrize("on_path", [True, False])
def test_the_consumer_has_no_tools_and_closes_every_effect_as_unknown(
    effect: str, on_path: bool
) -> None:
    row = DISPATCH._replace(effect=effect)
    evidence = Evidence(
        dispatches=[row], on_path=frozenset({"d1"} if on_path else {"other"}), calls=[CALL]
    )
    close, call, finish = planned("consumer", evidence)
    assert close["do"] == ("answer" if on_path else "settle"), "closing must not move the leaf"
    assert (close["status"], close["effect"]) == ("unknown", effect)
    assert ("result_entry" in close) is on_path
    assert call["status"] == "not_started"
    assert finish == FINISH


def test_an_unknown_effect_is_treated_as_opaque() -> None:
    [step, _] = planned("host", Evidence(dispatches=[DISPATCH._replace(effect="invented")]))
    assert step["do"] == "settle"


@pytest.mark.parametrize("executor", ["host", "consumer"])
def test_of_a_superseded_operation_only_its_dispatches_are_looked_after(executor: Any) -> None:
    operation = OPERATION._replace(superseded=True)
    evidence = Evidence(dispatches=[DISPATCH], calls=[CALL], attempt=ATTEMPT)
    assert recover(operation, evidence).name == "indeterminate_tool"
    assert planned(executor, evidence, operation) == [{"do": "settle", **CLOSE}]


def test_all_open_dispatches_and_calls_are_in_the_plan() -> None:
    rows = [DISPATCH._replace(dispatch=f"d{n}") for n in range(3)]
    calls = [CALL._replace(call_index=n) for n in range(2)]
    evidence = Evidence(dispatches=rows, calls=calls)
    for executor in ("host", "consumer"):
        steps = planned(executor, evidence)
        assert [step.get("dispatch") for step in steps[:3]] == ["d0", "d1", "d2"]
        assert [step.get("call_index") for step in steps[3:5]] == [0, 1]
        assert len(steps) == 6


# ---- keys --------------------------------------------------------------------------------------


def test_an_idempotency_key_is_stable_and_length_prefixed() -> None:
    parts = (b"s", b"op", b"12")
    expected = sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()
    assert idempotency_key("s", "op", 12) == expected
    keys = [
        idempotency_key("s", "op", 1),
        idempotency_key("so", "p", 1),
        idempotency_key("s", "op1", 1),
        idempotency_key("", "sop", 1),
        idempotency_key("s", "op", 11),
        idempotency_key("ü", "op", 1),
    ]
    assert len(set(keys)) == len(keys)


def test_a_closers_entry_is_derived_from_its_call_and_always_the_same() -> None:
    assert closing_entry("a1", 0) == closing_entry("a1", 0)
    ids = {closing_entry(*call) for call in (("a1", 0), ("a1", 1), ("a10", 0), ("1:a", 1))}
    assert len(ids) == 4
    assert closing_entry("1:a", 1) != closing_entry("a", 11)
    assert all(id_.startswith("close-") and len(id_) == 38 for id_ in ids)


# ---- whole histories: the crash windows of design, 10 ------------------------------------------


def crashed(*calls: str) -> Story:
    """A prompt whose model was asked, and nothing more."""
    story = Story().prompt()
    story.own(attempted("at1", "op", "a1"))
    if calls:
        story.own(assistant("a1", "u1", *calls, attempt="at1"))
    return story


def do(story: Story, executor: Any, operation: str = "op") -> list[str]:
    return [step["do"] for step in story.plan(executor, operation)]


def test_after_t1_without_t2_it_is_indeterminate() -> None:
    story = crashed("c1", "c2")
    story.own(t1("d1", "op", "a1", "r1"))
    assert story.verdict().name == "indeterminate_tool"
    assert do(story, "host") == ["answer", "permit_and_run", "continue"]
    assert do(story, "consumer") == ["answer", "answer", "finish"]
    assert [step.get("status") for step in story.plan("consumer")] == [
        "unknown",
        "not_started",
        None,
    ]


def test_after_the_assistant_message_before_any_t1_it_is_ready_with_calls_not_started() -> None:
    story = crashed("c1", "c2")
    assert story.verdict().name == "ready"
    assert do(story, "host") == ["permit_and_run", "permit_and_run", "continue"]
    assert [step.get("status") for step in story.plan("consumer")][:2] == ["not_started"] * 2


def test_while_the_model_streams_it_is_interrupted() -> None:
    story = crashed()
    assert story.verdict().name == "provider_interrupted"
    assert (do(story, "host"), do(story, "consumer")) == (["ask_model"], ["finish"])


def test_after_a_final_message_without_finish_it_is_terminal_and_inferred() -> None:
    story = crashed()
    story.own(assistant("a1", "u1", attempt="at1"))
    verdict = story.verdict()
    assert (verdict.name, verdict.outcome) == ("terminal", "completed")
    for executor in ("host", "consumer"):
        [step] = story.plan(executor)
        assert (step["do"], step["outcome"]) == ("finish", "completed")


# ---- whole histories: further windows ----------------------------------------------------------


def test_before_the_model_was_asked_it_is_ready() -> None:
    story = Story().prompt()
    assert story.verdict().name == "ready"
    assert do(story, "host") == ["continue"]


def test_after_all_results_it_is_ready() -> None:
    story = crashed("c1")
    story.own(t1("d1", "op", "a1", "r1"), result("r1", "a1", "c1", dispatch="d1"))
    assert story.verdict().name == "ready"
    assert (do(story, "host"), do(story, "consumer")) == (["continue"], ["finish"])


def test_after_a_refusal_without_t1_it_is_ready() -> None:
    story = crashed("c1")
    story.own(result("r1", "a1", "c1", status="error"))
    assert do(story, "host") == ["continue"]


def test_the_last_attempt_counts() -> None:
    story = crashed("c1")
    story.own(t1("d1", "op", "a1", "r1"), result("r1", "a1", "c1", dispatch="d1"))
    story.own(attempted("at2", "op", "a2"))
    assert story.verdict().name == "provider_interrupted"
    story.own(assistant("a2", "r1", attempt="at2", stop_reason="error"))
    assert (story.verdict().name, story.verdict().outcome) == ("terminal", "failed")


def test_a_message_after_the_final_one_means_that_it_goes_on() -> None:
    story = crashed()
    story.own(assistant("a1", "u1", attempt="at1"), user("steer", "a1"))
    assert story.verdict().name == "ready"


def test_entries_that_are_no_messages_do_not_matter() -> None:
    story = crashed()
    story.own(assistant("a1", "u1", attempt="at1"), state("s", "a1", k=1))
    assert story.verdict().name == "terminal"


def test_a_final_message_off_the_path_infers_nothing() -> None:
    story = crashed()
    story.own(assistant("a1", "u1", attempt="at1"), branch("n", "u1", "a1"))
    assert story.verdict().name == "ready"


def test_what_is_finished_is_terminal_whatever_follows() -> None:
    story = crashed("c1")
    story.own(finished("op", "aborted"), user("u2", "a1"), accepted("op2", "u2"))
    assert story.verdict().name == "terminal"
    assert story.plan("host") == story.plan("consumer") == []


def test_damage_after_the_finish_does_not_touch_it_and_touches_what_is_open() -> None:
    story = crashed()
    story.own(assistant("a1", "u1", attempt="at1"), finished("op"))
    story.own(user("u2", "a1"), accepted("op2", "u2"))
    story.own(fact("x", 1), seq=9)
    assert story.verdict("op").name == "terminal"
    assert story.verdict("op2").name == "corrupted"
    assert do(story, "host", "op2") == ["park"]


def test_a_gap_before_the_acceptance_makes_a_missing_t1_prove_nothing() -> None:
    story = Story().begin("first")
    story.own(user("u1", None), accepted("op", "u1"), seq=5)
    story.seq = 5
    story.own(assistant("a1", "u1", "c1"))
    assert story.verdict().name == "ready"
    [call, last] = story.plan("host")
    assert (call["do"], call["status"], last["do"]) == ("answer", "unknown", "continue")


def test_a_dangling_parent_in_the_turn_corrupts_until_it_arrives() -> None:
    story = crashed()
    story.own(user("x", "lost"))
    assert story.verdict().name == "corrupted"
    story.own(user("lost", "u1"))
    assert story.verdict().name == "provider_interrupted"


def test_imported_calls_without_results_are_unknown() -> None:
    story = Story().claim("first", reason="import")
    story.own(created(), user("u1", None), accepted("op", "u1"), assistant("a1", "u1", "c1"))
    story.claim("second", reason="resume")
    assert [step.get("status") for step in story.plan("host")] == ["unknown", None]
    assert [step["do"] for step in story.plan("host")] == ["answer", "continue"]


def test_waiting_for_a_person_is_no_crash() -> None:
    story = crashed("c1")
    story.own(asked("op", "a1"))
    assert story.verdict().name == "ready"
    assert (do(story, "host"), do(story, "consumer")) == (["leave"], ["leave"])
    story.guest(decided("op", "a1"))
    assert do(story, "host") == ["permit_and_run", "continue"]


def test_a_parked_operation_is_left() -> None:
    story = crashed("c1")
    story.own(parked("op", "needs a key"))
    assert (do(story, "host"), do(story, "consumer")) == (["leave"], ["leave"])


def test_a_dispatch_off_the_path_is_settled_without_moving_the_leaf() -> None:
    story = crashed("c1")
    story.own(t1("d1", "op", "a1", "r1"), branch("n", "u1", "a1"))
    assert story.verdict().name == "indeterminate_tool"
    step = story.plan("consumer")[0]
    assert (step["do"], step["dispatch"]) == ("settle", "d1")


def test_dispatches_of_other_operations_are_not_listed() -> None:
    story = crashed("c1")
    story.own(accepted("k", kind="compaction"))
    story.own(t1("d9", "k", "a1", "r9"))
    assert story.verdict("op").name == "ready"
    assert story.verdict("k").name == "indeterminate_tool"


def test_a_superseded_operation_is_indeterminate_until_its_dispatches_are_answered() -> None:
    story = crashed("c1")
    story.own(t1("d1", "op", "a1", "r1", effect="read_only"))
    story.claim()
    story.own(user("u2", "a1"), accepted("op2", "u2"), assistant("a2", "u2", "c9"))
    assert story.verdict().name == "indeterminate_tool"
    assert do(story, "host") == ["run_again"], "and none of the newer operation's calls"
    assert do(story, "consumer") == ["answer"]
    story.own(settled("d1", "unknown"))
    assert story.verdict().name == "terminal"
    assert story.plan("host") == []


@pytest.mark.parametrize(("kind", "type_"), [("compaction", "k"), ("navigation", "n")])
def test_brackets_are_inferred_from_their_own_entry(kind: str, type_: str) -> None:
    story = Story().prompt()
    story.own(accepted("b", kind=kind))
    assert story.verdict("b").name == "ready"
    other = {"k": summary("x", "u1", "u1", "u1"), "n": branch("x", "u1", "u1")}[type_]
    story.own(other)
    assert story.verdict("b").name == "ready", "it names no operation"
    mine = {
        "k": summary("y", "x", "x", "x", operation="b"),
        "n": branch("y", "u1", "x", operation="b"),
    }[type_]
    story.own(mine)
    assert (story.verdict("b").name, story.verdict("b").outcome) == ("terminal", "completed")


def test_a_void_compaction_does_not_end_its_bracket_but_a_valid_one_beside_it_does() -> None:
    story = Story().prompt()
    story.own(accepted("k", kind="compaction"))
    story.own(summary("void", "u1", "nowhere", "u1", operation="k"))
    assert story.verdict("k").name == "ready"
    story.own(summary("good", "u1", "u1", "u1", operation="k"))
    story.own(summary("void2", "u1", "nowhere", "u1", operation="k"))
    assert story.verdict("k").name == "terminal"


def test_a_rerun_makes_a_finished_operation_indeterminate_again() -> None:
    story = crashed("c1")
    story.own(t1("d1", "op", "a1", "r1"), settled("d1", "unknown"), finished("op", "interrupted"))
    assert story.verdict().name == "terminal"
    story.guest(rerun_allowed("d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2))
    assert story.verdict().name == "indeterminate_tool"


# ---- recovery ends, and repeating it adds nothing ----------------------------------------------


def close(story: Story) -> None:
    """Do what the plan of a consumer says, as events in one frame under its own claim."""
    events: list[Any] = []
    leaf = story.leaf
    for step in story.plan("consumer"):
        if step["do"] == "answer":
            told = {"status": step["status"], "settled_by": "recovery"}
            id_, call_id = step["result_entry"], step.get("call_id", "c1")
            events.append(result(id_, leaf, call_id, dispatch=step.get("dispatch"), **told))
            leaf = id_
        elif step["do"] == "settle":
            events.append(settled(step["dispatch"], step["status"]))
        elif step["do"] == "park":
            events.append(parked(step["operation"], step["reason"]))
        elif step["do"] == "finish":
            events.append(finished(step["operation"], step["outcome"], inferred=step["inferred"]))
    if events:
        story.claim(reason="recovery")
        story.own(*events)


@pytest.mark.parametrize("off_path", [False, True])
@pytest.mark.parametrize("dispatched", [0, 1, 2])
@pytest.mark.parametrize("corrupt", [False, True])
def test_after_the_consumers_closers_nothing_is_left_to_do(
    off_path: bool, dispatched: int, corrupt: bool
) -> None:
    story = crashed("c1", "c2")
    for index in range(dispatched):
        story.own(
            t1(f"d{index}", "op", "a1", f"r{index}", call_index=index, call_id=f"c{index + 1}")
        )
    if off_path:
        story.own(branch("n", "u1", "a1"))
    if corrupt:
        story.own(accepted("op", "u1", trigger="again"))
    close(story)
    if corrupt:
        assert story.corruption() == ["accepted_twice"]
        assert story.operation("op").parked is not None
        assert do(story, "consumer") == ["leave"]
    else:
        assert story.corruption() == []
        assert story.operation("op").outcome == "interrupted"
        assert story.verdict().name == "terminal"
        assert story.head.open_dispatches == {}
        if not off_path:
            roles = [item["role"] for item in story.view.context()]
            assert roles == ["user", "assistant", "tool", "tool"]
    assert story.damage() == []
    before = len(story.records)
    close(story)
    assert len(story.records) == before


def test_a_persons_verdict_and_pending_inputs_do_not_change_a_verdict() -> None:
    story = crashed("c1")
    story.own(t1("d1", "op", "a1", "r1"))
    story.guest(person("d1", "ok"), queued("i", "u2"))
    assert story.verdict().name == "indeterminate_tool"
