"""T1, its answers, people's verdicts and evidence: rules 7 and 9; RULES, "Settling"."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import (
    Story,
    accepted,
    asked,
    assistant,
    attempted,
    branch,
    decided,
    finished,
    parked,
    person,
    released,
    rerun_allowed,
    result,
    settled,
    state,
    t1,
    user,
)
from turnlog.core.fold.dispatches import MAX_EVIDENCE, MAX_OPEN_DISPATCHES
from turnlog.core.frames import NewEvent


def open_one(**data: Any) -> Story:
    """Dispatch d1 of call c1 in a1, result entry r1, under claim `first`."""
    story = Story().begin("first")
    story.own(user("u1", None), accepted("op", "u1"), attempted("at1", "op", "a1"))
    story.own(assistant("a1", "u1", "c1", "c2", attempt="at1"))
    story.own(t1("d1", "op", "a1", "r1", **data))
    return story


def unknown(**data: Any) -> Story:
    story = open_one(**data)
    story.own(settled("d1", "unknown"))
    return story


def fenced(**data: Any) -> tuple[Story, dict[str, Any]]:
    """An open dispatch whose owner was fenced by claim `second`."""
    story = open_one(**data)
    former = story.pen
    story.claim("second")
    return story, former


def pieces(story: Story, dispatch: str = "d1") -> list[tuple[str, str, bool]]:
    """Evidence: event, status, from a fenced frame."""
    return [
        (item["event"], item["status"], item["fenced"])
        for item in story.dispatch(dispatch).evidence
    ]


def notes(story: Story) -> list[tuple[str, bool]]:
    """What persons said: event, and whether it was applied."""
    return [(item["event"], item["applied"]) for item in story.dispatch("d1").notes]


# ---- the first T1 ------------------------------------------------------------------------------


def test_a_t1_opens_its_dispatch() -> None:
    story = open_one(call_no=4, tool="bash", effect="reconcilable")
    position = len(story.records)
    row = story.dispatch("d1")
    assert (row.operation, row.call_no, row.call_id, row.call_index) == ("op", 4, "c1", 0)
    assert (row.tool, row.effect, row.key, row.args_hash) == ("bash", "reconcilable", "key", "hash")
    assert (row.assistant_entry, row.result_entry) == ("a1", "r1")
    assert (row.status, row.settled_by, row.answer, row.rerun) == ("open", None, None, False)
    assert (row.evidence, row.notes) == ((), ())
    [first] = row.tries
    assert (first["try"], first["claim"], first["position"], first["index"]) == (
        1,
        "first",
        position,
        0,
    )
    assert first["result_entry"] == "r1"
    assert story.head.open_dispatches == {"d1": "op"}
    assert story.operation("op").open_dispatches == 1
    assert story.corruption() == []


def test_what_a_t1_leaves_out_has_its_default() -> None:
    nothing = dict.fromkeys(("effect", "try", "call_id", "tool", "args_hash", "idempotency_key"))
    story = open_one(**nothing)
    row = story.dispatch("d1")
    assert (row.effect, row.tries[0]["try"], row.call_no) == ("opaque", 1, None)


def test_rule_8_a_t1_whose_assistant_entry_is_not_yet_in_the_log_corrupts_and_opens() -> None:
    story = open_one()
    story.own(t1("d2", "op", "a2", "r2"), assistant("a2", "a1", "c1"))
    assert story.corruption() == ["assistant_missing"]
    assert story.dispatch("d2").status == "open"
    assert story.operation("op").open_dispatches == 2


@pytest.mark.parametrize("taken", ["u1", "a1", "a7", "r1", "r1-done"])
def test_rule_8_a_t1_whose_result_entry_is_taken_corrupts_and_opens(taken: str) -> None:
    story = open_one()
    story.own(attempted("at7", "op", "a7"))
    story.own(t1("d9", "op", "a1", "r1-done"))
    story.own(result("r1-done", "a1", "c1", dispatch="d9"))
    story.own(t1("d2", "op", "a1", taken, call_index=1))
    assert story.corruption() == ["entry_reused"]
    assert story.dispatch("d2").status == "open"
    assert story.dispatch("d2").result_entry == taken
    held = story.row("reservations", taken)
    assert held is None or held.holder in ("at1", "at7", "d1", "d9"), "the first stays its holder"


def test_a_t1_reserves_its_result_entry() -> None:
    story = open_one()
    story.own(attempted("at2", "op", "r1"))
    assert story.corruption() == ["entry_reused"]


def test_both_reasons_are_named() -> None:
    story = open_one()
    story.own(t1("d2", "op", "nowhere", "r1"))
    assert story.corruption() == ["assistant_missing", "entry_reused"]


def test_a_dispatch_beyond_256_open_ones_is_kept_and_counted_and_not_listed() -> None:
    story = open_one()
    more = [t1(f"m{n}", "op", "a1", f"rm{n}", call_index=1) for n in range(MAX_OPEN_DISPATCHES)]
    story.own(*more)
    assert MAX_OPEN_DISPATCHES == 256
    assert len(story.head.open_dispatches) == 256
    assert story.overflow == {"open_dispatches": 1}
    assert story.operation("op").open_dispatches == 257
    beyond = f"m{MAX_OPEN_DISPATCHES - 1}"
    assert beyond not in story.head.open_dispatches
    assert story.dispatch(beyond).status == "open"
    assert len(story.verdict().why) > 0
    assert "257" in story.verdict().why
    story.own(settled(beyond, "ok"))
    assert story.operation("op").open_dispatches == 256
    assert len(story.head.open_dispatches) == 256


# ---- rule 9: T1 again --------------------------------------------------------------------------

RETRIED = {"effect": "idempotent"}


def retry(**data: Any) -> NewEvent:
    return t1("d1", "op", "a1", data.pop("result", "r1"), **{**RETRIED, "try_": 2, **data})


@pytest.mark.parametrize("new_id", [False, True])
def test_rule_1_the_same_t1_again_is_a_duplicate(new_id: bool) -> None:
    story = open_one()
    first = t1("d2", "op", "a1", "r2", call_index=1)
    story.own(first)
    before = story.dispatch("d2")
    story.own(first._replace(id="other") if new_id else first)
    story.claim("second")
    story.own(first)
    story.own(settled("d2", "ok"), settled("d1", "ok"), finished("op"), first)
    assert story.dispatch("d2").tries == before.tries
    assert story.dispatch("d2").status == "ok"
    assert story.corruption() == []


@pytest.mark.parametrize("effect", ["read_only", "idempotent", "reconcilable"])
def test_rule_9_a_t1_may_repeat_an_open_dispatch_under_a_newer_claim(effect: str) -> None:
    story, _ = fenced(effect=effect)
    position = story.own(retry(effect=effect))
    row = story.dispatch("d1")
    assert [(item["try"], item["claim"]) for item in row.tries] == [(1, "first"), (2, "second")]
    assert row.tries[-1]["position"] == position
    assert (row.status, row.result_entry) == ("open", "r1")
    assert story.operation("op").open_dispatches == 1
    assert story.head.open_dispatches == {"d1": "op"}
    assert story.corruption() == []
    assert story.operation("op").claim == "second"
    story.claim("third")
    story.own(retry(effect=effect, try_=3))
    assert len(story.dispatch("d1").tries) == 3
    assert story.corruption() == []


@pytest.mark.parametrize(
    "other",
    [
        {"try_": 1, "tool": "else"},
        {"try_": 3},
        {"try_": None},
        {"result": "r1b"},
        {"args_hash": "else"},
        {"args_hash": None},
        {"idempotency_key": "else"},
        {"idempotency_key": None},
        {"call_index": 1},
    ],
)
def test_rule_9_a_repeat_keeps_entry_arguments_key_and_call_and_has_the_next_try(
    other: dict[str, Any],
) -> None:
    story, _ = fenced(**RETRIED)
    before = story.dispatch("d1")
    story.own(retry(**other))
    assert story.corruption() == ["t1_repeated"]
    assert story.dispatch("d1") == before
    assert story.operation("op").open_dispatches == 1


@pytest.mark.parametrize("rerun", [False, True])
@pytest.mark.parametrize(("operation", "entry"), [("op", "u1"), ("k", "a1")])
def test_rule_9_a_repeat_keeps_its_assistant_entry_and_operation(
    rerun: bool, operation: str, entry: str
) -> None:
    story, _ = fenced(**RETRIED)
    story.own(accepted("k", kind="compaction"))
    if rerun:
        story.own(settled("d1", "unknown"))
        story.guest(rerun_allowed("d1"))
    before = story.dispatch("d1")
    story.own(t1("d1", operation, entry, "new" if rerun else "r1", **RETRIED, try_=2))
    assert story.corruption(operation) == ["t1_repeated"]
    assert story.dispatch("d1") == before


def test_rule_9_a_t1_that_is_repeated_otherwise_leaves_parked_and_waiting_as_they_are() -> None:
    story = open_one()
    story.own(asked("op", "a1", "c1"), parked("op"))
    story.own(retry())
    assert story.corruption() == ["t1_repeated"]
    assert story.operation("op").parked == "asks"
    assert len(story.head.waiting) == 1


def test_rule_9_the_same_claim_may_not_repeat_it() -> None:
    story = open_one(**RETRIED)
    story.own(retry())
    assert story.corruption() == ["t1_repeated"]
    assert len(story.dispatch("d1").tries) == 1


@pytest.mark.parametrize("declared", ["opaque", None])
def test_rule_9_an_opaque_dispatch_may_not_be_repeated_whatever_the_repeat_declares(
    declared: str | None,
) -> None:
    story, _ = fenced(effect=declared)
    story.own(retry(effect="read_only"))
    assert story.corruption() == ["t1_repeated"]
    assert story.dispatch("d1").effect == "opaque"


def test_rule_9_the_effect_as_first_declared_counts() -> None:
    story, _ = fenced(effect="read_only")
    story.own(retry(effect="opaque"))
    assert story.corruption() == []
    assert story.dispatch("d1").effect == "read_only"


@pytest.mark.parametrize("status", ["ok", "error", "unknown", "not_started"])
def test_rule_9_what_is_answered_may_not_be_repeated(status: str) -> None:
    story, _ = fenced(**RETRIED)
    story.own(settled("d1", status))
    story.own(retry())
    assert story.corruption() == ["t1_repeated"]
    assert story.dispatch("d1").status == status
    assert story.operation("op").open_dispatches == 0


@pytest.mark.parametrize("effect", ["opaque", "idempotent"])
@pytest.mark.parametrize("newer_claim", [False, True])
def test_rule_9_after_rerun_allowed_a_t1_with_a_new_result_entry_is_good(
    effect: str, newer_claim: bool
) -> None:
    story = unknown(effect=effect)
    if newer_claim:
        story.claim("second")
    story.guest(rerun_allowed("d1"))
    assert story.dispatch("d1").rerun
    story.own(retry(effect=effect, result="r1b"))
    row = story.dispatch("d1")
    assert (row.status, row.result_entry, row.rerun) == ("open", "r1b", False)
    assert (row.answer, row.settled_by) == (None, None)
    assert [item["result_entry"] for item in row.tries] == ["r1", "r1b"]
    assert story.head.open_dispatches == {"d1": "op"}
    assert story.operation("op").open_dispatches == 1
    assert story.corruption() == []
    story.own(result("r1b", "a1", "c1", dispatch="d1"))
    assert story.dispatch("d1").status == "ok", "its answer then stands"
    assert story.leaf == "r1b"


def test_rule_9_a_rerun_reserves_its_new_result_entry() -> None:
    story = unknown()
    story.guest(rerun_allowed("d1"))
    story.own(retry(result="r1b", effect="opaque"), attempted("at2", "op", "r1b"))
    assert story.corruption() == ["entry_reused"]


@pytest.mark.parametrize(
    "other",
    [
        {"result": "r1"},
        {"result": "u1"},
        {"result": "a7"},
        {"result": "r9", "try_": 3},
        {"result": "r9", "try_": 1},
        {"result": "r9", "args_hash": "else"},
        {"result": "r9", "idempotency_key": None},
        {"result": "r9", "call_index": 1},
    ],
)
def test_rule_9_a_rerun_needs_a_new_entry_the_next_try_and_all_else_as_before(
    other: dict[str, Any],
) -> None:
    story = unknown()
    story.own(attempted("at7", "op", "a7"))
    story.guest(rerun_allowed("d1"))
    before = story.dispatch("d1")
    story.own(retry(**other))
    assert story.corruption() == ["t1_repeated"]
    assert story.dispatch("d1") == before


def test_rule_9_a_rerun_is_allowed_once() -> None:
    story = unknown()
    story.guest(rerun_allowed("d1"))
    story.own(retry(result="r2"), settled("d1", "unknown"))
    story.own(retry(result="r3", try_=3))
    assert story.corruption() == ["t1_repeated"]
    story.guest(rerun_allowed("d1", try_=2))
    story.own(retry(result="r4", try_=3))
    assert [item["try"] for item in story.dispatch("d1").tries] == [1, 2, 3]


def test_rule_9_a_rerun_allowed_and_then_judged_is_no_rerun() -> None:
    story = unknown()
    story.guest(rerun_allowed("d1"), person("d1", "ok"))
    before = story.dispatch("d1")
    story.own(retry(result="r1b"))  # planned before the person spoke: ignored, and nobody's fault
    assert story.corruption() == []
    assert story.dispatch("d1") == before
    story.own(retry(result="r1b", args_hash="other"))
    assert story.corruption() == ["t1_repeated"]


def test_rule_9_without_permission_an_unknown_dispatch_is_not_repeated() -> None:
    story = unknown()
    story.own(retry(result="r1b"))
    assert story.corruption() == ["t1_repeated"]


# ---- settling by hosts and recoveries ----------------------------------------------------------


@pytest.mark.parametrize("status", ["ok", "error", "unknown", "not_started"])
@pytest.mark.parametrize(
    ("by", "kept"), [("host", "host"), ("recovery", "recovery"), (None, "host")]
)
@pytest.mark.parametrize("try_", [None, 1])
def test_a_settlement_answers_an_open_dispatch(
    status: str, by: str | None, kept: str, try_: int | None
) -> None:
    story = open_one()
    leaf = story.leaf
    position = story.own(settled("d1", status, settled_by=by, try_=try_))
    row = story.dispatch("d1")
    assert (row.status, row.settled_by) == (status, kept)
    assert (row.answer["type"], row.answer["position"]) == ("dispatch_settled", position)
    assert story.head.open_dispatches == {}
    assert story.operation("op").open_dispatches == 0
    assert story.leaf == leaf, "closing does not move the leaf"


def test_a_settlement_of_an_unknown_dispatch_is_ignored() -> None:
    story = open_one()
    story.own(settled("ghost", "ok"))
    story.guest(person("ghost", "ok"), rerun_allowed("ghost"))
    assert story.row("dispatches", "ghost") is None
    assert story.damage() == story.corruption() == []


def test_a_settlement_of_another_try_is_evidence() -> None:
    story, _ = fenced(**RETRIED)
    story.own(retry())
    settlement = settled("d1", "ok", try_=1)
    story.own(settlement)
    assert story.dispatch("d1").status == "open"
    assert pieces(story) == [(settlement.id, "ok", False)]
    assert story.dispatch("d1").evidence[0]["claim"] == "second"


def test_the_first_terminal_answer_stands_and_later_ones_are_evidence() -> None:
    story = open_one()
    first, second = settled("d1", "unknown"), settled("d1", "ok")
    story.own(first)
    story.own(second)
    story.own(result("r1", "a1", "c1", dispatch="d1", status="error"))
    assert story.dispatch("d1").status == "unknown"
    assert pieces(story) == [(second.id, "ok", False), ("r1", "error", False)]
    assert story.counts["evidence"] == 2


def test_a_copy_of_the_answer_that_stands_or_of_evidence_is_no_evidence() -> None:
    story = open_one()
    first, second = settled("d1", "unknown"), settled("d1", "ok")
    story.own(first)
    story.own(first, second)
    story.own(second, first)
    assert pieces(story) == [(second.id, "ok", False)]
    assert story.counts["evidence"] == 1


def test_the_same_event_id_with_other_content_is_a_piece_of_its_own() -> None:
    story = open_one()
    story.own(settled("d1", "unknown"))
    one = settled("d1", "ok")
    story.own(one, one._replace(data={**one.data, "note": "else"}))
    assert len(pieces(story)) == 2


def test_64_pieces_of_evidence_are_kept_and_the_rest_counted() -> None:
    story = unknown()
    story.own(*[settled("d1", "ok") for _ in range(MAX_EVIDENCE + 3)])
    assert len(pieces(story)) == MAX_EVIDENCE == 64
    assert story.overflow == {"evidence": 3}
    assert story.counts["evidence"] == 64


@pytest.mark.parametrize("status", ["ok", "error"])
def test_beyond_64_the_first_piece_that_says_it_happened_is_kept_in_any_case(status: str) -> None:
    story = unknown()
    story.own(*[settled("d1", "unknown") for _ in range(MAX_EVIDENCE + 1)])
    assert story.overflow == {"evidence": 1}
    story.own(settled("d1", status), settled("d1", "ok"))
    assert [item[1] for item in pieces(story)][63:] == ["unknown", status]
    assert story.overflow == {"evidence": 2}
    story.guest(person("d1", "not_started"), rerun_allowed("d1"))
    assert (story.dispatch("d1").status, story.dispatch("d1").rerun) == ("unknown", False)


# ---- a person's verdict: rule 7 ----------------------------------------------------------------


@pytest.mark.parametrize("status", ["ok", "error", "not_started"])
@pytest.mark.parametrize("try_", [None, 1])
@pytest.mark.parametrize("guest", [True, False])
def test_rule_7_a_person_replaces_an_unknown_outcome(
    status: str, try_: int | None, guest: bool
) -> None:
    story = unknown()
    verdict = person("d1", status, try_=try_)
    (story.guest if guest else story.own)(verdict)
    row = story.dispatch("d1")
    assert (row.status, row.settled_by) == (status, "person")
    assert row.answer["event"] == verdict.id
    assert row.evidence == ()
    assert notes(story) == [(verdict.id, True)]


def test_rule_7_a_persons_unknown_is_not_applied() -> None:
    story = unknown()
    verdict = person("d1", "unknown", note="cannot tell")
    story.guest(verdict)
    row = story.dispatch("d1")
    assert (row.status, row.settled_by) == ("unknown", "recovery")
    [note] = row.notes
    assert (note["event"], note["status"], note["by"]) == (verdict.id, "unknown", "ann")
    assert (note["type"], note["note"]) == ("dispatch_settled", "cannot tell")
    assert (note["applied"], note["position"]) == (False, len(story.records))


@pytest.mark.parametrize("status", ["ok", "error", "not_started"])
@pytest.mark.parametrize("answered", ["ok", "error", "not_started", None])
def test_rule_7_on_any_other_dispatch_it_is_not_applied(status: str, answered: str | None) -> None:
    story = open_one()
    if answered is not None:
        story.own(settled("d1", answered))
    before = story.dispatch("d1")
    verdict = person("d1", status)
    story.guest(verdict)
    row = story.dispatch("d1")
    assert (row.status, row.settled_by, row.answer) == (
        before.status,
        before.settled_by,
        before.answer,
    )
    assert notes(story) == [(verdict.id, False)]
    assert story.operation("op").open_dispatches == (1 if answered is None else 0)


def test_rule_7_a_verdict_on_another_try_than_the_last_is_not_applied() -> None:
    story, _ = fenced(**RETRIED)
    story.own(retry(), settled("d1", "unknown"))
    first, future = person("d1", "ok", try_=1), person("d1", "ok", try_=3)
    story.guest(first, future)
    assert story.dispatch("d1").status == "unknown"
    assert notes(story) == [(first.id, False), (future.id, False)]
    story.guest(person("d1", "ok", try_=2))
    assert story.dispatch("d1").status == "ok"


def test_rule_7_a_verdict_stands_and_a_second_one_is_not_applied() -> None:
    story = unknown()
    first, second = person("d1", "error"), person("d1", "ok")
    story.guest(first)
    story.guest(second)
    assert story.dispatch("d1").status == "error"
    assert notes(story) == [(first.id, True), (second.id, False)]


@pytest.mark.parametrize("evidence", ["ok", "error"])
def test_rule_7_not_started_is_refused_where_evidence_says_it_started(evidence: str) -> None:
    story = unknown()
    story.own(settled("d1", evidence))
    verdict = person("d1", "not_started")
    story.guest(verdict)
    assert story.dispatch("d1").status == "unknown"
    assert notes(story) == [(verdict.id, False)]
    story.guest(person("d1", "ok"))
    assert story.dispatch("d1").status == "ok"


@pytest.mark.parametrize("evidence", ["unknown", "not_started"])
def test_rule_7_not_started_is_taken_where_evidence_does_not_say_so(evidence: str) -> None:
    story = unknown()
    story.own(settled("d1", evidence))
    story.guest(person("d1", "not_started"))
    assert story.dispatch("d1").status == "not_started"


@pytest.mark.parametrize(
    ("evidence", "falls"),
    [("ok", True), ("error", True), ("unknown", False), ("not_started", False)],
)
def test_rule_7_not_started_falls_back_to_unknown_when_evidence_comes_later(
    evidence: str, falls: bool
) -> None:
    story, former = fenced()
    story.own(settled("d1", "unknown"))
    story.guest(person("d1", "not_started"))
    story.own(settled("d1", evidence), **former, seq=9)
    row = story.dispatch("d1")
    assert (row.status, row.settled_by) == (
        ("unknown", "recovery") if falls else ("not_started", "person")
    )
    assert story.operation("op").open_dispatches == 0


@pytest.mark.parametrize("status", ["ok", "error"])
@pytest.mark.parametrize("evidence", ["ok", "error", "unknown"])
def test_rule_7_any_other_verdict_of_a_person_stands(status: str, evidence: str) -> None:
    story, former = fenced()
    story.own(settled("d1", "unknown"))
    story.guest(person("d1", status))
    story.own(settled("d1", evidence), **former, seq=9)
    assert (story.dispatch("d1").status, story.dispatch("d1").settled_by) == (status, "person")
    assert len(pieces(story)) == 1


@pytest.mark.parametrize("by", ["host", "recovery"])
def test_rule_7_only_a_persons_not_started_falls_back(by: str) -> None:
    story = open_one()
    story.own(settled("d1", "not_started", settled_by=by))
    story.own(settled("d1", "ok"))
    assert (story.dispatch("d1").status, story.dispatch("d1").settled_by) == ("not_started", by)


def test_what_a_person_says_counts_once_however_often_it_is_delivered() -> None:
    """A verdict that was taken back by evidence is not taken again when its copy comes."""
    story, former = fenced()
    story.own(settled("d1", "unknown"))
    verdict = person("d1", "not_started")
    story.guest(verdict)
    story.own(settled("d1", "ok"), **former, seq=9)
    judged = person("d1", "error")
    story.guest(verdict, judged, verdict)
    story.guest(judged, verdict._replace(data={**verdict.data, "status": "ok"}))
    assert story.dispatch("d1").status == "error"
    assert notes(story) == [(verdict.id, True), (judged.id, True)]


def test_where_64_words_of_persons_are_kept_nothing_more_is_taken() -> None:
    story = open_one()
    verdicts = [person("d1", "ok") for _ in range(MAX_EVIDENCE)]
    story.guest(verdicts[0], verdicts[0])
    assert len(notes(story)) == 1
    story.guest(*verdicts)
    assert len(notes(story)) == 64
    assert story.overflow == {}
    story.own(settled("d1", "unknown"))
    story.guest(person("d1", "ok"), rerun_allowed("d1"), verdicts[0])
    assert story.dispatch("d1").status == "unknown"
    assert not story.dispatch("d1").rerun
    assert len(notes(story)) == 64
    assert story.overflow == {"notes": 2}


# ---- allowing a rerun --------------------------------------------------------------------------


@pytest.mark.parametrize("guest", [True, False])
@pytest.mark.parametrize("try_", [None, 1])
def test_a_rerun_of_an_unknown_dispatch_is_allowed(guest: bool, try_: int | None) -> None:
    story = unknown()
    allowed = rerun_allowed("d1", try_=try_, by="ann")
    (story.guest if guest else story.own)(allowed)
    assert story.dispatch("d1").rerun
    assert notes(story) == [(allowed.id, True)]


@pytest.mark.parametrize("status", ["ok", "error", "not_started", None])
def test_a_rerun_of_any_other_dispatch_is_not_applied(status: str | None) -> None:
    story = open_one()
    if status is not None:
        story.own(settled("d1", status))
    allowed = rerun_allowed("d1", by="ann", note="please")
    story.guest(allowed)
    assert not story.dispatch("d1").rerun
    [note] = story.dispatch("d1").notes
    assert (note["event"], note["type"], note["by"]) == (allowed.id, "rerun_allowed", "ann")
    assert (note["status"], note["note"], note["applied"]) == (None, "please", False)


def test_a_rerun_of_another_try_than_the_last_is_not_applied() -> None:
    story = unknown()
    allowed = rerun_allowed("d1", try_=2)
    story.guest(allowed)
    assert not story.dispatch("d1").rerun
    assert notes(story) == [(allowed.id, False)]


def test_a_rerun_that_was_allowed_stays_allowed_by_one_that_is_not_applied() -> None:
    story = unknown()
    story.guest(rerun_allowed("d1"), rerun_allowed("d1", try_=7))
    assert story.dispatch("d1").rerun


@pytest.mark.parametrize(("evidence", "void"), [("ok", True), ("error", True), ("unknown", False)])
def test_a_rerun_is_void_where_evidence_says_it_happened(evidence: str, void: bool) -> None:
    story = unknown()
    story.own(settled("d1", evidence))
    story.guest(rerun_allowed("d1"))
    assert story.dispatch("d1").rerun is not void
    assert [applied for _, applied in notes(story)] == [not void]


@pytest.mark.parametrize(("evidence", "taken"), [("ok", True), ("error", True), ("unknown", False)])
def test_evidence_that_comes_later_takes_the_permission_back(evidence: str, taken: bool) -> None:
    story, former = fenced()
    story.own(settled("d1", "unknown"))
    story.guest(rerun_allowed("d1"))
    story.own(result("r1", "a1", "c1", dispatch="d1", status=evidence), **former, seq=9)
    assert story.dispatch("d1").rerun is not taken
    story.own(retry(result="r1b"))
    assert story.corruption() == []
    assert len(story.dispatch("d1").tries) == (1 if taken else 2)


# ---- evidence of fenced owners: design, 4 ------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        result("r1", "a1", "c1", dispatch="d1"),
        result("any id", "a1", "c1", dispatch="d1"),
        settled("d1", "ok", settled_by="host"),
        settled("d1", "ok", settled_by=None, try_=7),
    ],
)
def test_an_answer_of_a_fenced_owner_is_evidence_on_its_dispatch(answer: NewEvent) -> None:
    story, former = fenced()
    story.own(user("u2", "a1"))
    surface, leaf = story.surface(), story.leaf
    position = story.own(state("s", "a1", k=1), answer, user("u3", "u2"), **former, seq=9)
    [piece] = story.dispatch("d1").evidence
    assert (piece["event"], piece["type"], piece["status"]) == (answer.id, answer.type, "ok")
    assert (piece["claim"], piece["fenced"]) == ("first", True)
    assert (piece["position"], piece["index"]) == (position, 1)
    assert story.dispatch("d1").status == "open", "evidence settles nothing"
    assert (story.surface(), story.leaf, story.state) == (surface, leaf, {})
    assert not story.has(answer.id)
    assert not story.has("u3")
    assert story.counts["fenced"] == story.counts["evidence"] == 1


def test_evidence_counts_iff_a_t1_was_applied_under_that_very_claim() -> None:
    story, first = fenced(**RETRIED)
    second = story.pen
    story.claim("third")
    third = story.pen
    story.own(retry())
    story.claim("fourth")
    story.own(settled("d1", "ok", note="2"), **second, seq=9)
    assert pieces(story) == [], "the second owner made no T1"
    one, other = settled("d1", "ok", note="1"), settled("d1", "error", note="3")
    story.own(one, **first, seq=9)
    story.own(other, **third, seq=9)
    assert pieces(story) == [(one.id, "ok", True), (other.id, "error", True)]


def test_evidence_of_a_released_owner_counts() -> None:
    story = open_one()
    story.own(released("first"))
    answer = settled("d1", "ok")
    story.own(answer)
    assert pieces(story) == [(answer.id, "ok", True)]
    assert story.dispatch("d1").status == "open"


def test_the_same_evidence_is_kept_once() -> None:
    story, former = fenced()
    answer = settled("d1", "ok")
    story.own(answer, **former, seq=9)
    story.own(answer, answer, **former, seq=10)
    assert pieces(story) == [(answer.id, "ok", True)]


def test_a_fenced_copy_of_the_answer_that_stands_is_no_evidence() -> None:
    story = open_one()
    former = story.pen
    answer = settled("d1", "ok")
    story.own(answer)
    story.claim("second")
    story.own(answer, **former, seq=9)
    assert pieces(story) == []
    story.own(answer._replace(id="other"), **former, seq=10)
    assert pieces(story) == [("other", "ok", True)]


def test_what_was_evidence_may_become_the_answer() -> None:
    """The same T2 arrives fenced first, and is written again by the new owner."""
    story, former = fenced()
    answer = result("r1", "a1", "c1", dispatch="d1")
    story.own(answer, **former, seq=9)
    story.own(answer)
    assert story.dispatch("d1").status == "ok"
    assert story.leaf == "r1"
    assert pieces(story) == [("r1", "ok", True)]


@pytest.mark.parametrize(
    "other",
    [
        result("r1", "a1", "c1"),
        result("r1", "a1", "c1", dispatch="ghost"),
        user("r1", "a1", dispatch="d1"),
        assistant("r1", "a1", dispatch="d1"),
        settled("ghost", "ok"),
        rerun_allowed("d1"),
        settled("d1", "ok")._replace(v=2),
        result("r1", "a1", "c1", dispatch="d1")._replace(v=2),
        settled("d1", "perhaps"),
        result("r1", "a1", "c1", dispatch="d1", status="perhaps"),
    ],
)
def test_nothing_else_of_a_fenced_frame_is_taken(other: NewEvent) -> None:
    story, former = fenced()
    before = story.dispatch("d1")
    story.forge(other, **former, seq=9)
    assert story.dispatch("d1") == before
    assert story.quarantine() == []
    assert story.damage() == []


def test_fenced_t1s_open_nothing() -> None:
    story, former = fenced(**RETRIED)
    story.own(t1("d2", "op", "a1", "r2"), retry(), **former, seq=9)
    assert story.row("dispatches", "d2") is None
    assert len(story.dispatch("d1").tries) == 1
    story.own(settled("d2", "ok"), **former, seq=10)
    assert story.row("dispatches", "d2") is None


def test_evidence_never_adopts_or_corrupts_and_is_listed_by_the_verdict_of_a_person() -> None:
    story, former = fenced()
    story.own(settled("d1", "unknown"), finished("op", "interrupted"))
    story.own(settled("d1", "ok"), **former, seq=9)
    row = story.operation("op")
    assert (row.claim, row.corruption, row.outcome) == ("second", (), "interrupted")


def test_a_settlement_off_the_path_answers_without_an_entry() -> None:
    story = open_one()
    story.own(branch("n", "u1", "a1"), settled("d1", "ok"))
    assert story.leaf == "n"
    assert story.dispatch("d1").status == "ok"


# ---- approvals end with the T1 -----------------------------------------------------------------


def test_a_t1_ends_the_waiting_of_its_call_only() -> None:
    story = open_one()
    story.own(asked("op", "a1", "c2"), asked("op", "u1", "c2"))
    assert len(story.head.waiting) == 2
    story.own(t1("d2", "op", "a1", "r2", call_index=1, call_id="c2"))
    assert list(story.head.waiting.values()) == ["op"]
    assert story.head.status == "requires_action"
    story.own(decided("op", "u1", "c2"))
    assert story.head.waiting == {}
    assert story.head.status == "open"
