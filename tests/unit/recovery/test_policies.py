"""What recovery does about a session, before anything is written."""

from __future__ import annotations

import asyncio

import pytest

from tests.story import Story
from tests.unit.query.logs import stored
from tests.unit.recovery.crashes import asking, dispatched, world
from turnlog.log.memory import MemoryLog
from turnlog.recovery.policies import DEFAULT, Judgement, Policy, judge, recoveries_in_a_row


def judged(story: Story, policy: Policy = DEFAULT, *, at: int = 0) -> Judgement:
    """Judge a session that was last written to at a time, one minute being now."""
    log = MemoryLog(clock=lambda: at)
    asyncio.run(log.load(story.records))
    head = log.tables.get(("sessions", story.session))
    return judge(log.tables, head, policy, alive=(), ambient=world())


def test_a_session_with_nothing_open() -> None:
    assert judged(Story().begin()) == Judgement([], DEFAULT)
    assert not judged(Story().begin()).has_work


@pytest.mark.parametrize(
    ("after_s", "at", "left"),
    [
        (0, 60_000, False),
        (60, 0, False),
        (61, 0, True),
        (10, 55_000, True),
        (10, 65_000, False),  # the clock was set back: nothing can be said
    ],
)
def test_a_session_is_left_for_a_host_for_a_time(after_s: float, at: int, left: bool) -> None:
    found = judged(asking(), Policy(after_s=after_s), at=at)
    assert found.has_work is not left
    if left:
        assert found.left is not None
        assert found.left.startswith("left for a host: it was written to")
        [report] = found.reports
        assert report.instructions == [{"do": "leave", "operation": "op", "reason": found.left}]


def test_parking_says_why() -> None:
    [report] = judged(dispatched(), Policy(mode="park")).reports
    [step] = report.instructions
    assert step["do"] == "park"
    assert step["reason"] == (
        "parked as recovery was told: indeterminate_tool: 1 dispatched call(s) without an answer"
    )


def test_recoveries_in_a_row() -> None:
    def count(story: Story) -> int:
        log = stored(story)
        return recoveries_in_a_row(log.tables, log.tables.get(("sessions", "s")))

    story = dispatched()
    assert count(story) == 0
    for expected in (1, 2):
        story.claim(reason="recovery")
        assert count(story) == expected
    story.claim("lost", reason="resume", expects=1)
    assert count(story) == 2
    story.claim(reason="takeover")
    assert count(story) == 0
    story.claim(reason="recovery")
    assert count(story) == 1
