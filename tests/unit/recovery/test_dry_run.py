"""Reports on what is open, and on nothing else."""

from typing import Any

import pytest

from tests.story import Story, accepted, assistant, attempted, finished, settled, t1, user
from tests.unit.query.logs import random_session, stored
from turnlog.recovery.dry_run import as_data, dry_run


def reports(*sources: Any, **options: Any) -> list[dict[str, Any]]:
    view = stored(*sources).tables
    found = dry_run(view, view.scan("sessions"), **options)
    return [as_data(report) for report in found]


def begun(session: str = "s") -> Story:
    story = Story(session).begin()
    story.own(user("u", None), accepted("op", "u"), attempted("a", "op", "r"))
    return story


def test_a_model_that_was_asked() -> None:
    assert reports(begun()) == [
        {
            "session": "s",
            "operation": "op",
            "kind": "prompt",
            "verdict": "provider_interrupted",
            "why": "the model was asked and its answer is not in the log",
            "dispatches": [],
            "instructions": [
                {"do": "finish", "operation": "op", "outcome": "interrupted", "inferred": True}
            ],
        }
    ]


def test_a_dispatch_without_an_answer() -> None:
    story = begun()
    story.own(assistant("r", "u", "c1", attempt="a"), t1("d", "op", "r", "t"))
    [report] = reports(story)
    assert report["verdict"] == "indeterminate_tool"
    [dispatch] = report["dispatches"]
    assert dispatch == {
        "dispatch": "d",
        "tool": "bash",
        "effect": "opaque",
        "call_id": "c1",
        "call_index": 0,
        "assistant_entry": "r",
        "result_entry": "t",
        "try": 1,
        "claim": story.claim_id,
        "position": len(story.records),
        "idempotency_key": "key",
    }
    assert [step["do"] for step in report["instructions"]] == ["answer", "finish"]
    [host] = reports(story, executor="host")
    assert [step["do"] for step in host["instructions"]] == ["answer", "continue"]


def test_nothing_is_said_of_what_has_ended() -> None:
    story = begun()
    story.own(assistant("r", "u", attempt="a"), finished("op"))
    assert reports(story, Story("other").begin()) == []


def test_a_superseded_or_finished_operation_is_told_while_a_dispatch_is_open() -> None:
    story = begun()
    story.own(assistant("r", "u", "c1", attempt="a"), t1("d", "op", "r", "t"))
    story.claim()
    story.own(user("v", "r"), accepted("next", "v"), finished("next"))
    [report] = reports(story)
    assert (report["operation"], report["verdict"]) == ("op", "indeterminate_tool")
    story.own(settled("d"))
    assert reports(story) == []


def test_they_come_in_the_order_in_which_they_were_accepted() -> None:
    story = begun()
    story.own(accepted("b", kind="compaction"), accepted("a", kind="navigation"))
    assert [report["operation"] for report in reports(story)] == ["op", "b", "a"]


def test_open_dispatches_beyond_what_the_head_lists() -> None:
    story = begun()
    story.own(assistant("r", "u", *(f"c{number}" for number in range(300)), attempt="a"))
    story.own(
        *(t1(f"d{number}", "op", "r", f"t{number}", call_index=number) for number in range(256))
    )
    story.own(finished("op"))
    story.claim()
    story.own(user("v", "r"), accepted("next", "v"))
    story.own(t1("over", "next", "r", "tover", call_index=299), finished("next"))
    assert [report["operation"] for report in reports(story)] == ["op", "next"]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("executor", ["consumer", "host"])
def test_any_history_is_judged(seed: int, executor: Any) -> None:
    records = random_session(seed, "s")
    tables = stored(records).tables
    head = tables.get(("sessions", "s"))
    told = {report["operation"] for report in reports(records, executor=executor)}
    expected = set(head.open_operations) | set(head.open_dispatches.values())
    if executor == "host":  # which does what persons allowed
        expected |= {row.operation for row in tables.scan("dispatches") if row.rerun}
    assert told == expected
