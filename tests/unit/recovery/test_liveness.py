"""Whose session it is: a name may be used again, a claim is not."""

from __future__ import annotations

import pytest

from tests.contract.heartbeats import beat
from tests.story import Story, queued, released, user
from tests.unit.query.logs import stored
from tests.unit.recovery.crashes import dispatched, world
from turnlog.core.frames import Record
from turnlog.log import EmbeddedLog, Heartbeat
from turnlog.owner.heartbeat import claim_by, system_boot
from turnlog.recovery.liveness import holder_of, look_around


def holder(story: Story, *beats: Heartbeat) -> str | None:
    log: EmbeddedLog = stored(story)
    found = holder_of(log.tables, log.tables.get(("sessions", "s")), beats)
    return None if found is None else found.instance


def test_nobody_is_alive() -> None:
    assert holder(dispatched()) is None
    assert holder(dispatched(), beat("i", host="another")) is None


@pytest.mark.parametrize(
    ("since", "held"),
    [
        (0, True),  # it began, then claimed at position 1
        (1, False),  # the claim was there when it began
        (3, False),
        (99, False),
    ],
)
def test_a_claim_is_of_the_instance_that_was_there_before_it(since: int, held: bool) -> None:
    assert holder(dispatched(), beat("i", since=since)) == ("i" if held else None)


def test_of_two_processes_with_one_name_the_one_that_claimed_holds_it() -> None:
    story = Story().claim(claim_by("instance-of-one", "random"))
    one, two = beat("instance-of-one"), beat("another-process")
    assert holder(story, two, one) == "instance-of-one"
    assert holder(story, two) is None  # the other one is dead, whatever its name


def test_a_later_claim_of_the_same_name_is_the_later_instances() -> None:
    story = dispatched()
    since = len(story.records)
    story.claim()
    assert holder(story, beat("i", since=since)) == "i"
    story.own(user("v", "a"))
    assert holder(story, beat("i", since=since)) == "i"
    assert holder(story, beat("i", since=since + 1)) is None


def test_what_others_wrote_in_between_says_nothing() -> None:
    story = dispatched()
    since = len(story.records)
    former = {**story.pen, "seq": story.seq}
    story.guest(queued("i", "e"))
    story.put(Record("s", None, b"nonsense"))
    story.claim("lost", expects=9)
    story.claim("won")
    story.own(user("late", "a"), **former)
    assert holder(story, beat("i", since=since)) == "i"


def test_of_two_instances_the_first_counts() -> None:
    assert holder(dispatched(), beat("new", since=50), beat("old", since=0)) == "old"


def test_a_released_session_is_nobodys() -> None:
    story = dispatched()
    story.own(released(story.claim_id))
    assert holder(story, beat("i")) is None


async def test_looking_around_judges_by_this_boot_and_the_clock_that_is_given() -> None:
    log = stored()
    for instance, boot, uptime in (
        ("alive", system_boot(), 95.0),
        ("dead", system_boot(), 80.0),
        ("of another boot", "x", 100.0),
    ):
        await log.beat(beat(instance, boot=boot, uptime=uptime))
    found = await look_around(log, world(uptime=100.0))
    assert [one.instance for one in found] == ["alive"]
    found = await look_around(log, world(uptime=100.0), dead_after_s=20.0)
    assert [one.instance for one in found] == ["alive", "dead"]
