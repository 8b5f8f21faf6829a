"""Closers: their ids, their order, and how many frames they need."""

from __future__ import annotations

from tests.story import event, user
from tests.unit.query.logs import stored
from tests.unit.recovery.crashes import dispatched, off_path, world
from turnlog.core.frames import Header, seal
from turnlog.core.recovery import closing_entry
from turnlog.recovery.closing import closers, in_frames
from turnlog.recovery.dry_run import Report, dry_run


def reports(story: object) -> list[Report]:
    view = stored(story).tables  # type: ignore[arg-type]
    return list(dry_run(view, view.scan("sessions")))


def test_results_hang_one_under_the_other() -> None:
    first, second, finish = closers(reports(dispatched()), "a", world())
    assert (first.id, first.data["parent"]) == ("r", "a")
    assert (second.id, second.data["parent"]) == (closing_entry("a", 1), "r")
    assert (first.data["dispatch"], second.data["dispatch"]) == ("d", None)
    assert [one.data["call_id"] for one in (first, second)] == ["c1", "c2"]
    assert finish.data == {"operation": "op", "outcome": "interrupted", "inferred": True}


def test_a_call_that_two_operations_list_is_answered_once() -> None:
    told = reports(dispatched())
    found = closers([*told, *told], None, world())
    assert [one.type for one in found].count("message") == 2


def test_what_is_off_the_path_is_settled_for_its_last_try() -> None:
    settled, _ = closers(reports(off_path()), "v", world())
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
