"""Closers: their ids, their order, and how many frames they need."""

from __future__ import annotations

from tests.story import Story, event, user
from tests.unit.query.logs import stored
from tests.unit.recovery.crashes import dispatched, off_path, world
from turnlog.core.frames import Header, NewEvent, seal
from turnlog.core.recovery import closing_entry
from turnlog.owner.closing import closers, in_frames
from turnlog.recovery.dry_run import dry_run
from turnlog.tables.view import SessionView


def closed(story: Story, *, times: int = 1) -> list[NewEvent]:
    tables = stored(story).tables
    reports = list(dry_run(tables, tables.scan("sessions")))
    steps = [step for report in reports for step in report.instructions]
    return closers(SessionView(tables, "s"), steps * times, by="recovery", ambient=world()).events


def test_results_hang_one_under_the_other() -> None:
    first, second, finish = closed(dispatched())
    assert (first.id, first.data["parent"]) == ("r", "a")
    assert (second.id, second.data["parent"]) == (closing_entry("a", 1), "r")
    assert (first.data["dispatch"], second.data["dispatch"]) == ("d", None)
    assert [one.data["call_id"] for one in (first, second)] == ["c1", "c2"]
    assert finish.data == {"operation": "op", "outcome": "interrupted", "inferred": True}


def test_a_call_that_two_operations_list_is_answered_once() -> None:
    found = closed(dispatched(), times=2)
    assert [one.type for one in found].count("message") == 2


def test_where_the_promised_id_is_taken_a_record_settles() -> None:
    story = dispatched()
    story.own(user("r", "a"))
    found = closed(story)
    assert [one.type for one in found] == ["dispatch_settled", "message", "operation_finished"]


def test_what_is_off_the_path_is_settled_for_its_last_try() -> None:
    settled, _ = closed(off_path())
    assert settled.data["try"] == 1
    assert settled.data["settled_by"] == "recovery"


def test_frames_are_as_few_as_the_limits_allow() -> None:
    assert in_frames([]) == [[]]
    small = [user(f"u{number}", None) for number in range(2_000)]
    assert [len(frame) for frame in in_frames(small)] == [1024, 976]
    large = [event("fact", name="n", value="ä" * 100_000) for _ in range(9)]
    frames = in_frames(large)
    assert [len(frame) for frame in frames] == [3, 3, 3]
    for frame in frames:
        seal(Header("s", "c", 1, 1, "w"), frame)
    assert [one for frame in frames for one in frame] == large
