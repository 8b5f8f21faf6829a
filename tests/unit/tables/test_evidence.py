"""What the tables say about one operation, for recovery to judge."""

from __future__ import annotations

from typing import Any

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
    finished,
    parked,
    person,
    rerun_allowed,
    result,
    settled,
    state,
    summary,
    t1,
    user,
)
from turnlog.core.recovery import Call, Evidence
from turnlog.tables.evidence import evidence_of


def evidence(story: Story, operation: str = "op") -> Evidence:
    return evidence_of(story.view, story.operation(operation))


def call(index: int, call_id: str, **data: Any) -> Call:
    return Call(
        **{
            "assistant_entry": "a1",
            "call_index": index,
            "call_id": call_id,
            "tool": "bash",
            "waiting": False,
            "proven": True,
            **data,
        }
    )


def test_of_a_fresh_prompt_there_is_little_to_say() -> None:
    story = Story().prompt()
    found = evidence(story)
    assert found._replace(damage=(), dispatches=(), calls=()) == Evidence(
        last_message=story.entry("u1")
    )
    assert [*found.damage, *found.dispatches, *found.calls] == []


def test_the_last_attempt_and_its_entry() -> None:
    story = Story().prompt()
    story.own(attempted("at1", "op", "a1"))
    found = evidence(story)
    assert (found.attempt, found.attempt_entry) == (story.attempt("at1"), None)
    story.own(assistant("a1", "u1", attempt="at1"))
    found = evidence(story)
    assert found.attempt_entry == found.last_message == story.entry("a1")
    story.own(attempted("at2", "op", "a2"))
    found = evidence(story)
    assert (found.attempt, found.attempt_entry) == (story.attempt("at2"), None)


def test_the_last_message_is_on_the_path_and_since_the_acceptance() -> None:
    story = Story().begin("first")
    story.own(user("u0", None))
    story.own(accepted("k", kind="compaction"))
    assert evidence(story, "k").last_message is None
    story.own(user("u1", "u0"), state("s", "u1", k=1), result("v", "s", "c", dispatch="nobody"))
    assert evidence(story, "k").last_message == story.entry("u1")
    story.own(branch("n", "u0", "s"))
    assert evidence(story, "k").last_message is None


def test_open_dispatches_are_those_of_the_operation_without_an_answer() -> None:
    story = Story().called("c1", "c2", "c3")
    story.own(t1("d2", "op", "a1", "r2", call_index=1), t1("d3", "op", "a1", "r3", call_index=2))
    story.own(settled("d2", "unknown"), accepted("k", kind="compaction"))
    story.own(t1("d4", "k", "a1", "r4"))
    found = evidence(story)
    assert [row.dispatch for row in found.dispatches] == ["d1", "d3"]
    assert found.on_path == {"d1", "d2", "d3"}
    assert found.calls == []


def test_a_parked_operation_is_answered_by_words_on_all_of_its_calls_since() -> None:
    story = Story().called("c1", "c2")
    story.own(t1("d2", "op", "a1", "r2", call_index=1), settled("d1"), settled("d2"))
    story.guest(person("d1", "ok"))
    assert not evidence(story).answered, "it is not parked"
    story.own(parked("op"))
    assert not evidence(story).answered, "what was said before is what it was parked with"
    story.guest(rerun_allowed("d2"))
    assert evidence(story).answered
    story.own(parked("op", "once more"))
    assert not evidence(story).answered
    story.guest(person("d2", "error"))
    assert evidence(story).answered


def test_a_parked_operation_is_not_answered_while_a_call_is_open_or_unknown() -> None:
    story = Story().called("c1", "c2")
    story.own(t1("d2", "op", "a1", "r2", call_index=1), settled("d1"), parked("op"))
    story.guest(person("d1", "ok"))
    assert not evidence(story).answered
    story.own(settled("d2"))
    assert not evidence(story).answered
    story.guest(person("d2", "unknown"))
    assert not evidence(story).answered
    story.guest(abort("op"))
    assert evidence(story).answered, "ending it is an answer, too"


def test_dispatches_whose_call_is_off_the_leafs_path_are_not_on_it() -> None:
    story = Story().called("c1")
    story.own(branch("n", "u1", "a1"), assistant("a2", "n", "c1"), t1("d2", "op", "a2", "r2"))
    found = evidence(story)
    assert [row.dispatch for row in found.dispatches] == ["d1", "d2"]
    assert found.on_path == {"d2"}


def test_open_calls_have_neither_an_answer_on_the_path_nor_a_t1() -> None:
    story = Story().prompt()
    story.own(assistant("a1", "u1", "c1", "c2", "c3", "c4"))
    assert evidence(story).calls == [call(n, f"c{n + 1}") for n in range(4)]
    story.own(t1("d1", "op", "a1", "r1", call_index=1), settled("d1", "ok"))
    story.own(result("r3", "a1", "c3"))
    assert evidence(story).calls == [call(0, "c1"), call(3, "c4")]
    story.own(branch("n", "a1", "r3"))
    assert evidence(story).calls == [call(0, "c1"), call(2, "c3"), call(3, "c4")]
    story.own(branch("m", "u1", "n"))
    assert evidence(story).calls == []


def test_calls_with_one_id_are_told_apart_by_their_index() -> None:
    story = Story().prompt()
    story.own(assistant("a1", "u1", "same", "same"), result("r1", "a1", "same"))
    assert evidence(story).calls == [call(1, "same")]


def test_calls_from_before_the_acceptance_are_not_this_operations() -> None:
    story = Story().begin("first")
    story.own(user("u0", None), assistant("a0", "u0", "c0"))
    story.own(user("u1", "a0"), accepted("op", "u1"), assistant("a1", "u1", "c1"))
    assert evidence(story).calls == [call(0, "c1")]


def test_a_call_has_the_name_of_its_tool() -> None:
    story = Story().prompt()
    parts = [
        {"type": "text", "text": "x"},
        {"type": "tool_call", "call_id": "c1", "name": "read"},
        {"type": "tool_call", "call_id": "c2", "name": ""},
    ]
    story.own(assistant("a1", "u1", content=parts))
    assert evidence(story).calls == [call(0, "c1", tool="read"), call(1, "c2", tool="")]


def test_a_call_waits_for_approval_until_it_is_decided() -> None:
    story = Story().prompt()
    story.own(assistant("a1", "u1", "c1", "c2"), asked("op", "a1", "c2"), asked("op", "u1", "c1"))
    assert evidence(story).calls == [call(0, "c1"), call(1, "c2", waiting=True)]
    story.guest(decided("op", "a1", "c2"))
    assert not any(item.waiting for item in evidence(story).calls)


def test_a_missing_t1_proves_nothing_for_imported_entries_or_after_a_gap() -> None:
    story = Story().claim("first", reason="import")
    story.own(created(), user("u1", None), accepted("op", "u1"), assistant("a1", "u1", "c1"))
    story.claim("second", reason="resume")
    story.own(assistant("a2", "a1", "c2"))
    assert [(item.call_id, item.proven) for item in evidence(story).calls] == [
        ("c1", False),
        ("c2", True),
    ]
    story.own(user("u2", "a2"), seq=9)
    assert [item.proven for item in evidence(story).calls] == [False, False]


def test_other_damage_than_a_gap_leaves_the_proof() -> None:
    story = Story().prompt()
    story.own(assistant("a1", "u1", "c1"), user("u1", None, "conflict"), user("x", "lost"))
    assert [item.proven for item in evidence(story).calls] == [True]


def test_the_entry_of_a_bracket_is_the_newest_that_names_it_and_is_not_void() -> None:
    story = Story().prompt()
    story.own(summary("k0", "u1", "u1", "u1", operation="k"))
    story.own(accepted("k", kind="compaction"), user("u2", "k0"))
    assert evidence(story, "k").own_entry is None, "what was there before is not its"
    story.own(branch("b", "u2", "u2", operation="k"))
    assert evidence(story, "k").own_entry is None, "a branch is no compaction"
    story.own(summary("k1", "b", "u2", "u2", operation="k"))
    assert evidence(story, "k").own_entry == story.entry("k1")
    story.own(summary("k2", "k1", "k1", "k1", operation="k"), summary("k3", "k2", "k2", "k2"))
    story.own(summary("k4", "k3", "nowhere", "k3", operation="k"))
    assert evidence(story, "k").own_entry == story.entry("k2")
    assert evidence(story, "op").own_entry is None


def test_a_bracket_that_began_before_all_entries_may_have_none() -> None:
    story = Story().begin("first")
    story.own(accepted("k", kind="compaction"))
    assert evidence(story, "k").own_entry is None
    story.own(user("u1", None))
    assert evidence(story, "k").own_entry is None


def test_the_entry_of_a_navigation_is_its_branch() -> None:
    story = Story().prompt()
    story.own(accepted("n", kind="navigation"), summary("k", "u1", "u1", "u1", operation="n"))
    assert evidence(story, "n").own_entry is None
    story.own(branch("b", "u1", "k", operation="n"), branch("c", "b", "b", operation="other"))
    assert evidence(story, "n").own_entry == story.entry("b")


def test_the_damage_is_the_sessions() -> None:
    story = Story().prompt()
    story.own(user("x", "lost"), finished("op"))
    found = evidence(story)
    assert list(found.damage) == story.view.damage()
    assert not found.overflow
    story.forge(*(["no event"] * 300))
    assert evidence(story).overflow


def test_of_what_has_ended_only_damage_and_open_dispatches_are_told() -> None:
    story = Story().called("c1")
    story.own(user("x", "lost"), settled("d1", "unknown"), finished("op", "interrupted"))
    damage = story.view.damage()
    assert damage
    assert evidence(story) == Evidence(damage=damage)
    story = Story().called("c1", "c2")
    story.claim("second")
    story.own(user("u2", "a1"), accepted("op2", "u2"))
    assert [row.dispatch for row in evidence(story).dispatches] == ["d1"]
    story.own(settled("d1", "unknown"))
    assert evidence(story) == Evidence(damage=[])


def test_an_operation_of_unknown_kind_has_evidence_too() -> None:
    story = Story().begin("first")
    story.own(attempted("at1", "ghost", "a1"))
    found = evidence(story, "ghost")
    assert (found.attempt, found.own_entry, found.calls) == (story.attempt("at1"), None, [])


def test_the_calls_beside_a_bracket_are_the_prompts() -> None:
    story = Story().begin("first")
    story.own(accepted("k", kind="compaction"), accepted("n", kind="navigation"))
    story.own(user("u1", None), accepted("op", "u1"), assistant("a1", "u1", "c1"))
    assert [call.call_id for call in evidence(story).calls] == ["c1"]
    assert (evidence(story, "k").calls, evidence(story, "n").calls) == ([], [])


def test_calls_of_another_operation_are_not_its_own_when_a_rerun_opens_it_again() -> None:
    story = Story().called()
    story.own(settled("d1"), finished("op"), user("u2", "a1"), accepted("op2", "u2"))
    story.own(attempted("at2", "op2", "a2"), assistant("a2", "u2", "c2", attempt="at2"))
    story.own(t1("d2", "op2", "a2", "r2", call_id="c2"))
    story.own(result("r2", "a2", "c2", dispatch="d2"), finished("op2"))
    story.own(branch("b", "a2", "r2"))
    story.guest(rerun_allowed("d1"))
    story.own(t1("d1", "op", "a1", "r1b", try_=2))
    story.own(result("r1b", "b", "c1", dispatch="d1"))
    assert story.entry("r1b").void is None  # its call is on the path, and so is that of op2
    assert evidence(story).calls == []
