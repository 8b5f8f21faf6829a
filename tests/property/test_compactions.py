"""Whatever a host does, no compaction of its own is void, and the model sees or is told of every
message on the path (case 1).

The conversations here are made of messages without turns, since what is tested is the surface. Some
calls are never answered, leaves are moved, the session is claimed anew and forked.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.host.scene import MoodyLog, assert_sound, host
from tests.unit.host.talks import Summariser, answer, assert_nothing_lost, say
from turnlog.core.errors import EntryNotFound, UsageError
from turnlog.host import CompactionFailed, Session
from turnlog.host.compaction import KEEP
from turnlog.host.cuts import characters, choose, spots_of

Step = tuple[Any, ...]
NO_SMALLER = suppress(CompactionFailed)
"""A span may hold next to nothing, and no other failure is possible here."""
SMALL = st.integers(0, 5)
WORDS = st.sampled_from([0, 1, 10, 60])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), WORDS),
        st.tuples(st.just("system"), WORDS),
        st.tuples(st.just("assistant"), WORDS, SMALL),
        st.tuples(st.just("assistant"), WORDS, st.just(1)),
        st.tuples(st.just("answer"), WORDS, SMALL),
        st.tuples(st.just("exchange"), WORDS, st.integers(1, 3)),
        st.tuples(st.just("exchange"), st.just(60), st.just(1)),
        st.tuples(st.just("custom"), WORDS),
        st.tuples(st.just("state"), SMALL),
        st.tuples(st.just("compact_now"), WORDS),
        st.tuples(st.just("compact_now"), st.just(0)),
        st.tuples(st.just("compact"), st.integers(0, 30), st.integers(0, 30)),
        st.tuples(st.just("pressure"), st.integers(1, 200)),
        st.tuples(st.just("prune"), st.integers(0, 2)),
        st.tuples(st.just("navigate"), st.integers(0, 60), st.booleans()),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("fork"), st.integers(0, 60)),
    ),
    min_size=15,
    max_size=60,
)


class Run:
    """The steps on one log; a fork goes on in the child."""

    def __init__(self) -> None:
        self.log = MoodyLog()
        self.session_id = "s"
        self.serial = 0
        self.open_calls: list[str] = []

    async def all(self, steps: list[Step]) -> None:
        left = list(steps)
        while left:
            async with host(self.log, session=self.session_id) as session:
                while left:
                    name, *given = left.pop(0)
                    if name == "reopen":
                        break
                    moved = await getattr(self, name)(session, *given)
                    assert_nothing_lost(session.view())
                    if moved:
                        break
        assert_sound(self.log)

    async def user(self, session: Session, words: int) -> None:
        await say(session, "user", "word " * words)

    async def system(self, session: Session, words: int) -> None:
        await say(session, "system", "word " * words)

    async def assistant(self, session: Session, words: int, calls: int) -> None:
        self.open_calls = [f"c{self.serial + index}" for index in range(calls)]
        self.serial += calls
        await say(session, "assistant", "word " * words, *self.open_calls)

    async def answer(self, session: Session, words: int, index: int) -> None:
        if index < len(self.open_calls):
            await answer(session, self.open_calls.pop(index), "word " * words)

    async def exchange(self, session: Session, words: int, calls: int) -> None:
        await self.assistant(session, words, calls)
        for _ in range(calls):
            await self.answer(session, words, -1)

    async def custom(self, session: Session, words: int) -> None:
        await session.set_extension("k", "word " * words, in_context=True)

    async def state(self, session: Session, value: int) -> None:
        await session.set_state({"k": value})

    async def compact_now(self, session: Session, words: int) -> None:
        with NO_SMALLER:
            entry = await session.compact_now(Summariser("so " * words + "."))
            spots = spots_of(session.view())
            assert entry or choose(spots, characters, keep=KEEP, limit=None) is None

    async def compact(self, session: Session, first: int, last: int) -> None:
        ids = [said["entry"] for said in session.context() if said["entry"] is not None]
        if not ids:
            return
        # what it refuses is another test; that it takes nothing void is this one
        with NO_SMALLER, suppress(UsageError, EntryNotFound):
            await session.compact(ids[first % len(ids)], ids[last % len(ids)], Summariser("."))

    async def pressure(self, session: Session, limit: int) -> None:
        with NO_SMALLER:
            await session.compact_if_needed(Summariser("."), limit=limit)

    async def prune(self, session: Session, keep: int) -> None:
        given = {"threshold": 120, "head": 20, "tail": 10}
        await session.prune(keep=keep, **given)
        assert await session.prune(keep=keep, **given) == []

    async def navigate(self, session: Session, place: int, with_summary: bool) -> None:
        view = session.view()
        entries = [row for row in view.rows("entries") if row.void is None]
        if entries:
            target = entries[place % len(entries)].id
            await session.navigate(target, summary="left" if with_summary else None)

    async def fork(self, session: Session, place: int) -> bool:
        view = session.view()
        path = view.path()
        if not path:
            return False
        self.session_id = await session.fork(path[place % len(path)].id)
        return True


@given(steps=STEPS)
def test_nothing_said_is_lost_and_nothing_of_a_host_is_void(steps: list[Step]) -> None:
    asyncio.run(Run().all(steps))
