"""Histories that a crash cut off, each at another place, and recovering them in memory."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from tests.story import (
    Story,
    accepted,
    asked,
    assistant,
    attempted,
    branch,
    finished,
    result,
    summary,
    t1,
    user,
)
from tests.unit.query.logs import stored
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.recovery.executor import Done, recover_all

_numbers = count()


class Killed(BaseException):
    """The process is gone, and nothing in it goes on."""


def world(reached: list[str] | None = None, *, uptime: float = 100.0) -> Ambient:
    places = reached if reached is not None else []
    return Ambient(
        clock=lambda: 60_000,
        ids=lambda: f"id-{next(_numbers)}",
        uptime=lambda: uptime,
        reach=places.append,
    )


def asking(session: str = "s") -> Story:
    """The model was asked, and nothing came."""
    story = Story(session).begin()
    story.own(user("u", None), accepted("op", "u"), attempted("at", "op", "a"))
    return story


def calling(session: str = "s", *calls: str) -> Story:
    """The model's calls are in the log, and no T1 is."""
    story = asking(session)
    story.own(assistant("a", "u", *(calls or ("c1", "c2")), attempt="at"))
    return story


def dispatched(session: str = "s", **t1_data: Any) -> Story:
    """Two calls, and the first has a T1."""
    story = calling(session)
    story.own(t1("d", "op", "a", "r", **t1_data))
    return story


def answered(session: str = "s") -> Story:
    """The last answer is there, and the finish is not."""
    story = asking(session)
    story.own(assistant("a", "u", attempt="at"))
    return story


def off_path(session: str = "s") -> Story:
    """A dispatch whose call was left behind by a rewind."""
    story = dispatched(session)
    story.own(branch("b", "u", "a"), user("v", "b"))
    return story


def corrupted(session: str = "s") -> Story:
    """A T1 that came again as no rule allows."""
    story = dispatched(session)
    story.own(t1("d", "op", "a", "other", try_=2))
    return story


def waiting(session: str = "s") -> Story:
    """A call that waits for a person."""
    story = calling(session)
    story.own(asked("op", "a", "c1"))
    return story


def superseded(session: str = "s") -> Story:
    """A dispatch of an operation that a later host has superseded and finished its own."""
    story = dispatched(session)
    story.claim()
    story.own(user("v", "a"), accepted("next", "v"))
    story.own(assistant("w", "v", attempt=None), finished("next"))
    return story


def compacting(session: str = "s") -> Story:
    """A compaction inside a prompt whose entry is there and whose finish is not."""
    story = Story(session).begin()
    story.own(user("u", None), accepted("op", "u"), attempted("at", "op", "a"))
    story.own(assistant("a", "u", "c1", attempt="at"), result("t", "a", "c1"))
    story.own(accepted("comp", kind="compaction"))
    story.own(summary("sum", "t", "u", "t", operation="comp"))
    return story


def recovered(log: EmbeddedLog, **options: Any) -> list[Done]:
    options.setdefault("ambient", world())
    return asyncio.run(recover_all(log, **options))


def log_of(*stories: Story) -> EmbeddedLog:
    return stored(*stories)
