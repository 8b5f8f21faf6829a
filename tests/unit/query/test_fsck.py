"""Each kind of finding, from a log that has it; and what is damage."""

from collections.abc import Callable

import pytest

from tests.story import (
    Story,
    accepted,
    assistant,
    attempted,
    branch,
    event,
    finished,
    prune,
    result,
    summary,
    t1,
    used,
    user,
)
from tests.unit.query.logs import random_session, stored
from turnlog.core.frames import Record
from turnlog.query.fsck import KINDS, Finding, check


def found(*stories: Story) -> list[Finding]:
    return list(check(stored(*stories).tables))


def kinds(story: Story) -> list[str]:
    return [finding.kind for finding in found(story)]


def begun() -> Story:
    story = Story("s").begin()
    story.own(user("u", None))
    return story


def dangling(story: Story) -> None:
    story.own(user("v", "nowhere"))


def gap(story: Story) -> None:
    story.own(user("v", "u"), seq=9)


def conflict(story: Story) -> None:
    story.own(user("u", None, "other"))


def seq_conflict(story: Story) -> None:
    story.own(user("v", "u"), seq=2)


def unreadable(story: Story) -> None:
    header = story.records[-1].header
    assert header is not None
    story.put(Record("s", header._replace(seq=3), b"{"))


def no_header(story: Story) -> None:
    story.put(Record("s", None, b"{"))


def misplaced_claim(story: Story) -> None:
    story.own(event("session_claimed", claim="c", expects=1))


def late_created(story: Story) -> None:
    story.own(event("session_created", title="again"))


def malformed(story: Story) -> None:
    story.own(event("session_released", claim="another"))


def cycle(story: Story) -> None:
    story.own(user("v", "w"))
    story.own(user("w", "v"))


def fenced(story: Story) -> None:
    old = story.claim_id
    story.claim()
    story.own(user("late", "u"), claim=old, epoch=1, seq=3)


def lost_claim(story: Story) -> None:
    story.guest(event("session_claimed", claim="c", expects=0))


def void_compaction(story: Story) -> None:
    story.own(summary("x", "u", "nowhere", "u"))


def void_result(story: Story) -> None:
    story.own(result("r", "u", "c", dispatch="nowhere"))


def quarantine(story: Story) -> None:
    story.guest(user("v", "u"))


def jump(story: Story) -> None:
    story.own(user("v", "u"), user("w", "u"))


def newer(story: Story) -> None:
    story.own(user("v", "u")._replace(v=2))


def orphan_result(story: Story) -> None:
    story.own(result("r", "u", "c"))


def double_answer_of_an_import(story: Story) -> None:
    story.own(assistant("a", "u", "c"), result("r1", "a", "c"), result("r2", "r1", "c"))


def corrupted_operation(story: Story) -> None:
    story.own(finished("never accepted"))


def usage_conflict(story: Story) -> None:
    story.own(accepted("op", "u"), attempted("a", "op", "r"))
    story.own(used("a", "op", input=1), used("a", "op", input=2), finished("op"))


@pytest.mark.parametrize(
    ("write", "kind", "is_damage"),
    [
        (dangling, "dangling_parent", True),
        (gap, "gap", True),
        (conflict, "conflict", True),
        (seq_conflict, "seq_conflict", True),
        (unreadable, "unreadable", True),
        (no_header, "no_header", True),
        (misplaced_claim, "misplaced_claim", True),
        (late_created, "late_created", True),
        (malformed, "malformed", True),
        (cycle, "cycle", True),
        (fenced, "fenced", False),
        (lost_claim, "lost_claim", False),
        (void_compaction, "void_compaction", False),
        (void_result, "void_result", False),
        (quarantine, "quarantine", False),
        (jump, "jump", False),
        (newer, "newer", False),
        (orphan_result, "orphan_result", False),
        (double_answer_of_an_import, "double_answer", False),
        (corrupted_operation, "corrupted_operation", False),
        (usage_conflict, "usage_conflict", False),
    ],
)
def test_a_log_with_one_fault_has_one_finding(
    write: Callable[[Story], None], kind: str, is_damage: bool
) -> None:
    story = begun()
    assert kinds(story) == []
    write(story)
    [finding] = found(story)
    assert (finding.session, finding.kind, finding.is_damage) == ("s", kind, is_damage)
    assert finding.detail
    assert finding.position in (None, *range(3, len(story.records) + 1))


def dispatched() -> Story:
    story = begun()
    story.own(accepted("op", "u"), assistant("a", "u", "c1"), t1("d", "op", "a", "r"))
    return story


def test_a_second_answer_of_a_dispatch_is_told_beside_the_first() -> None:
    story = dispatched()
    story.own(result("r", "a", "c1", dispatch="d"))
    story.own(result("other", "a", "c1", dispatch="d", status="error"))
    [finding] = found(story)
    assert finding.kind == "double_answer"
    assert finding.detail == "dispatch 'd' (bash): error by an owner, beside ok by host"


def test_what_a_fenced_owner_says_of_an_open_call_is_evidence() -> None:
    story = dispatched()
    old = story.claim_id
    story.claim()
    story.own(result("r", "a", "c1", dispatch="d"), claim=old, epoch=1, seq=4)
    assert kinds(story) == ["fenced", "evidence"]


def test_a_session_without_creation_or_without_a_frame() -> None:
    claimed = Story("claimed").claim()
    bare = Story("bare").claim()
    bare.own(user("u", None))
    assert [(f.session, f.kind) for f in found(claimed, bare)] == [
        ("bare", "not_created"),
        ("claimed", "not_listed"),
    ]


def test_many_of_one_kind_are_counted_with_their_positions() -> None:
    story = begun()
    for number in range(20):
        story.guest(event("session_claimed", claim=f"c{number}", expects=0))
    [finding] = found(story)
    assert finding.detail.startswith("20 claim(s) at 4, 5, 6")
    assert finding.detail.endswith(", …")


def test_an_entry_that_comes_late_is_no_jump() -> None:
    story = begun()
    story.own(user("v", "w"))
    story.own(user("w", "u"))
    story.own(user("x", "v"))
    assert kinds(story) == []


def test_a_branch_event_is_no_jump_and_a_prune_is_fine() -> None:
    story = begun()
    story.own(assistant("a", "u", "c"), result("r", "a", "c"), prune("p", "r", "r"))
    story.own(branch("b", "u", "p"), user("v", "b"))
    assert kinds(story) == []


def test_damage_beyond_what_is_kept_is_told_from_the_quarantine() -> None:
    story = begun()
    for number in range(300):
        story.own(user("u", None, f"other {number}"))
    findings = found(story)
    assert sum(finding.kind == "conflict" for finding in findings) == 256
    assert sum(finding.kind == "overflow" for finding in findings) == 45
    assert all(finding.is_damage for finding in findings)


def test_limits_that_were_passed_are_noted_once() -> None:
    story = begun()
    story.own(*(user(f"v{number}", f"gone{number}") for number in range(300)))
    findings = found(story)
    assert sum(finding.kind == "dangling_parent" for finding in findings) == 256
    assert [finding.detail for finding in findings if finding.kind == "overflow"] == [
        "over 256 missing parents"
    ]


def test_sessions_can_be_chosen() -> None:
    one, other = begun(), Story("other").begin()
    dangling(one)
    dangling(other)
    log = stored(one, other)
    assert [finding.session for finding in check(log.tables, ["other"])] == ["other"]


@pytest.mark.parametrize("seed", range(40))
def test_every_damage_of_the_fold_is_found_and_every_kind_is_known(seed: int) -> None:
    view = stored(random_session(seed, "s")).tables
    head = view.get(("sessions", "s"))
    findings = list(check(view))
    assert {finding.kind for finding in findings} <= set(KINDS)
    damage = [(f.kind, f.position) for f in findings if f.is_damage and f.kind != "overflow"]
    told = [(kind, position) for kind, position, _ in head.damage]
    told += [("dangling_parent", position) for position in head.missing_parents.values()]
    assert sorted(damage) == sorted(told)
    positions = [finding.position or 0 for finding in findings]
    assert positions == sorted(positions)


@pytest.mark.parametrize("seed", range(40))
def test_jumps_are_found_where_the_fold_counts_them(seed: int) -> None:
    view = stored(random_session(seed, "s")).tables
    counts = view.get(("sessions", "s")).counts
    [jumps] = [f for f in check(view) if f.kind == "jump"] or [None]
    assert (int(jumps.detail.split()[0]) if jumps else 0) == counts["jumps"]


def fork(session: str, parent: str, at: str = "u") -> Story:
    story = Story(session).begin(parent_session=parent, fork_at={"entry": at})
    story.own(user("u", None))
    return story


def test_a_fork_of_what_is_not_there_is_a_note() -> None:
    assert found(begun(), fork("f", "s")) == []
    for parent, at, kind in (
        ("nowhere", "u", "missing_parent_session"),
        ("s", "nowhere", "missing_fork_point"),
    ):
        [finding] = found(begun(), fork("f", parent, at))
        assert (finding.session, finding.kind, finding.is_damage) == ("f", kind, False)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_forks_in_a_circle_are_damage_of_each_that_is_part_of_it(count: int) -> None:
    circle = [fork(f"c{number}", f"c{(number + 1) % count}") for number in range(count)]
    findings = found(*circle, fork("beside", "c0"))
    assert [(f.session, f.kind, f.is_damage) for f in findings] == [
        (f"c{number}", "circular_fork", True) for number in range(count)
    ]
