"""Conversations for the tests of compaction, and what must hold of any surface (case 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.unit.host.scene import MoodyLog, Script, assert_balanced, rows, view_of
from turnlog.core.rows import Entry, Operation
from turnlog.host import Session, run_turn
from turnlog.host.cuts import Message
from turnlog.tables.view import SessionView


async def say(session: Session, role: str, text: str, *call_ids: str, **data: Any) -> str:
    """Add a message; an assistant's may make calls, all of a tool `t`."""
    calls = [{"type": "tool_call", "call_id": id_, "name": "t", "args": {}} for id_ in call_ids]
    content = [{"type": "text", "text": text}, *calls]
    return await session.link.add_entry("message", {"role": role, "content": content, **data})


async def answer(session: Session, call_id: str, text: str) -> str:
    """Add the result of a call."""
    return await say(session, "tool", text, call_id=call_id, tool="t", status="ok")


async def talk(session: Session, turns: int = 4, words: int = 40) -> list[str]:
    """Turns of four messages each: a question, a call, its result, an answer."""
    ids: list[str] = []
    for turn in range(turns):
        ids.append(await say(session, "user", f"q{turn} " * words))
        ids.append(await say(session, "assistant", f"c{turn} " * words, f"call-{turn}"))
        ids.append(await answer(session, f"call-{turn}", f"r{turn} " * words))
        ids.append(await say(session, "assistant", f"a{turn} " * words))
    return ids


class Summariser:
    """Gives its answers in order, the last one again and again; remembers what it was given."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers or ["in short"])
        self.given: list[list[Message]] = []

    async def __call__(self, messages: list[Message]) -> Any:
        assert_balanced(messages)
        self.given.append(messages)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, BaseException):
            raise found
        return found


def compactions(view: SessionView) -> list[Entry]:
    """All compaction entries, void or not."""
    return [row for row in view.rows("entries") if row.kind == "compaction"]


def covered(view: SessionView, numbers: Iterable[int]) -> set[int]:
    """The entries that these surface nodes stand for, by what was on the surface at the time."""
    found: set[int] = set()
    for number in numbers:
        row = view.entry(number)
        if row.replaces is None:
            found.add(number)
            continue
        surface = view.surface(row.parent)
        first, last = (surface.index(end) for end in row.replaces)
        found |= covered(view, surface[first : last + 1])
    return found


def assert_nothing_lost(view: SessionView) -> None:
    """Every message on the path is on the surface or covered by what is; the newest one of a user
    is on it; no compaction is void, and each shrinks; the context is balanced."""
    surface = view.surface()
    said = [row for row in view.path() if row.kind == "message"]
    wanted = {row.number for row in said}
    assert wanted <= covered(view, surface), "the model no longer sees, or is told of, a message"
    if view.head.fork_at is not None:
        assert 0 in covered(view, surface)
    users = [row.number for row in said if row.role == "user"]
    assert not users or users[-1] in surface
    for row in compactions(view):
        data = view.data(row)
        assert row.void is None, row.void
        assert data["tokens_after"] < data["tokens_before"]
    assert_balanced(view.context())


def operations(log: MoodyLog) -> list[Operation]:
    """The operations of compactions, in the order in which they were accepted."""
    found = [row for row in rows(log, "operations") if row.kind == "compaction"]
    return sorted(found, key=lambda row: row.accepted)


def outcomes(log: MoodyLog) -> list[str | None]:
    """How the operations of compactions ended."""
    return [row.outcome for row in operations(log)]


async def goes_on(session: Session, log: MoodyLog) -> None:
    """The session takes a turn and a compaction, at once."""
    assert await run_turn(session, Script("well"), "and then?") == "completed"
    assert await session.compact_now(Summariser("short")) is not None
    assert_nothing_lost(view_of(log))
