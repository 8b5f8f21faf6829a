"""The guest writer: one frame, sent again byte for byte, and the events that guests say."""

from __future__ import annotations

from itertools import count

import pytest

from tests.story import Story, accepted, asked, assistant, attempted, released, settled, t1, user
from tests.unit.owner.test_owner import Paper
from turnlog.core.errors import AppendRefused, AppendUnknown, SchemaError
from turnlog.owner.ambient import Ambient
from turnlog.owner.guest import (
    allow_rerun,
    cancel_input,
    decide_approval,
    queue_input,
    request_abort,
    settle_dispatch,
    write_guest,
)
from turnlog.owner.owner import TRIES
from turnlog.owner.places import FRAME_SENT


def ambient(reached: list[str] | None = None) -> Ambient:
    ids = count()
    places = reached if reached is not None else []
    return Ambient(clock=lambda: 0, ids=lambda: f"id-{next(ids)}", reach=places.append)


async def say(log: Paper, *events: object, reached: list[str] | None = None) -> int:
    return await write_guest(
        log,
        "s",
        list(events),
        writer="cli",
        ambient=ambient(reached),  # type: ignore[arg-type]
    )


async def test_a_guest_frame_is_of_no_claim() -> None:
    log, reached = Paper(), list[str]()
    position = await say(log, queue_input("go on", ambient()), reached=reached)
    [record] = log.records
    assert position == 1
    assert record.header is not None
    assert record.header == ("s", None, None, None, "cli")
    assert reached == [FRAME_SENT]


@pytest.mark.parametrize("outcome", ["lost", "landed"])
async def test_a_refusal_after_an_unknown_outcome_proves_nothing(outcome: str) -> None:
    """What is refused is the copy; the first may have arrived."""
    log = Paper()
    log.outcomes = [outcome, "refused"]
    with pytest.raises(AppendUnknown):
        await say(log, queue_input("go on", ambient()))


async def test_what_is_unknown_is_sent_again_as_it_was() -> None:
    log = Paper()
    log.outcomes = ["landed", "lost", "ok"]
    await say(log, queue_input("go on", ambient(), input_="i", entry="e"))
    assert len(log.records) == 2
    assert len({record.body for record in log.records}) == 1
    assert log.rows["sessions", "s"].pending_inputs == {"i": "e"}


async def test_it_gives_up_in_the_end() -> None:
    log = Paper()
    log.outcomes = ["lost"] * TRIES
    with pytest.raises(AppendUnknown):
        await say(log, cancel_input("i", ambient()))
    assert log.outcomes == []
    log.outcomes = ["refused"]
    with pytest.raises(AppendRefused):
        await say(log, cancel_input("i", ambient()))


async def test_nothing_is_written_of_what_is_wrong() -> None:
    log = Paper()
    with pytest.raises(SchemaError):
        await say(log, cancel_input("", ambient()))
    assert log.records == []


def told() -> Story:
    story = Story().begin()
    story.own(user("u", None), accepted("op", "u"), attempted("a", "op", "r"))
    story.own(assistant("r", "u", "c1", "c2", attempt="a"), t1("d", "op", "r", "t"))
    story.own(asked("op", "r", "c2"))
    return story


def test_each_word_takes_effect() -> None:
    story, world = told(), ambient()
    story.guest(queue_input([{"type": "text", "text": "x"}], world, delivery="steer", input_="i"))
    assert (story.input("i").status, story.input("i").delivery) == ("queued", "steer")
    story.guest(cancel_input("i", world))
    assert story.input("i").status == "cancelled"
    story.guest(request_abort("op", world))
    assert story.operation("op").aborting
    story.guest(
        decide_approval("op", world, assistant_entry="r", call_id="c2", decision="deny", by="ann")
    )
    assert story.row("approvals", "op", "r", "c2").decision == "deny"


def test_a_persons_word_on_a_dispatch() -> None:
    story, world = told(), ambient()
    story.own(settled("d"), released(story.claim_id))
    word = allow_rerun("d", world, by="ann", note="go", try_=1)
    story.guest(word)
    story.guest(word)
    assert story.dispatch("d").rerun
    story.guest(settle_dispatch("d", "ok", world, by="ann", note="I saw it", try_=1))
    row = story.dispatch("d")
    assert (row.status, row.settled_by, row.rerun) == ("ok", "person", False)
    assert [(note["by"], note["note"]) for note in row.notes] == [
        ("ann", "go"),
        ("ann", "I saw it"),
    ]
