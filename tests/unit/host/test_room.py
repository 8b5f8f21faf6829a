"""Room for a model's request: `run_turn` with a compaction, and a model that overflows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.host.scene import (
    Errors,
    MoodyLog,
    assert_balanced,
    assert_ended,
    assert_sound,
    calls,
    host,
    rows,
    told,
    tool,
)
from tests.unit.host.talks import Summariser, assert_nothing_lost, say, talk
from turnlog.host import Compaction, CompactionFailed, ContextOverflow, Reply, run_turn
from turnlog.host.cuts import characters

Answer = str | dict[str, Any] | Exception | Callable[[], Awaitable[Any]]


class Model:
    """Gives its answers in order; a context above `limit` tokens overflows and uses none up."""

    def __init__(self, *answers: Answer, limit: int = 10**9) -> None:
        self.answers = list(answers)
        self.limit = limit
        self.asked: list[int] = []

    async def __call__(self, context: list[dict[str, Any]]) -> Reply:
        assert_balanced(context)
        size = sum(map(characters, context))
        self.asked.append(size)
        if size > self.limit:
            raise ContextOverflow(f"{size} tokens are too many")
        answer = self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer)


def triggers(log: MoodyLog) -> list[str | None]:
    found = [row for row in rows(log, "operations") if row.kind == "compaction"]
    return [row.trigger for row in sorted(found, key=lambda row: row.accepted)]


async def test_room_is_made_before_each_request_that_needs_it() -> None:
    """A turn of many calls never comes near the limit."""
    log, limit = MoodyLog(), 1_000
    model = Model(*(calls("t") for _ in range(40)), "done")
    summarise = Summariser("in short")
    async with host(log, tool(lambda call: "x" * 400)) as session:
        how = Compaction(summarise, limit)
        assert await run_turn(session, model, "go " * 20, compaction=how) == "completed"
        assert max(model.asked) < 0.8 * limit + 200
        assert 4 <= len(summarise.given) <= 10
        assert set(triggers(log)) == {"pressure"}
        assert_nothing_lost(session.view())
        assert_ended(log)
    assert_sound(log)


async def test_a_model_that_overflows_is_asked_once_more_after_a_compaction() -> None:
    log, model = MoodyLog(), Model("done", limit=200)
    async with host(log) as session:
        await talk(session)
        how = Compaction(Summariser(), 10**6)
        assert await run_turn(session, model, "go", compaction=how) == "completed"
        assert len(model.asked) == 2
        assert triggers(log) == ["overflow"]
        assert [row.status for row in rows(log, "attempts")].count("completed") == 1
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_no_second_retry() -> None:
    log, model = MoodyLog(), Model("done", limit=1)
    async with host(log) as session:
        await talk(session)
        how = Compaction(Summariser(), 10**6)
        assert await run_turn(session, model, "go", compaction=how) == "failed"
        assert len(model.asked) == 2
        (turn,) = [row for row in rows(log, "operations") if row.kind == "prompt"]
        assert turn.error["type"] == "ContextOverflow"
        assert_ended(log)
    assert_sound(log)


async def test_no_retry_where_the_surface_is_what_it_was() -> None:
    log = MoodyLog()
    async with host(log, on_error=(errors := Errors())) as session:
        model = Model("done", limit=0)
        assert await run_turn(session, model, "go") == "failed"
        assert len(model.asked) == 1
        await talk(session)
        model = Model("done", limit=1)
        how = Compaction(Summariser(ValueError("no")), 10**6)
        assert await run_turn(session, model, "go", compaction=how) == "failed"
        assert len(model.asked) == 1
        assert [type(error) for error in errors] == [CompactionFailed]
    assert_sound(log)


async def test_whoever_makes_room_gets_the_retry() -> None:
    log = MoodyLog()

    async def make_room() -> Exception:
        await session.compact_now(Summariser())
        return ContextOverflow("I have made some myself")

    async with host(log) as session:
        await talk(session)
        assert await run_turn(session, Model(make_room, "done"), "go") == "completed"
    assert_sound(log)


async def test_where_nothing_can_be_cut_long_results_are_trimmed() -> None:
    log, model = MoodyLog(), Model(calls("t"), "done", limit=2_000)
    async with host(log, tool(lambda call: "x" * 50_000)) as session:
        how = Compaction(Summariser(), 10**6)
        assert await run_turn(session, model, "go", compaction=how) == "completed"
        assert len(model.asked) == 3
        assert "characters are left out" in told(session)[2]
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_a_summariser_that_fails_under_pressure_is_asked_once_in_a_turn() -> None:
    log, errors = MoodyLog(), Errors()
    model = Model(calls("t"), calls("t"), "done")
    async with host(log, tool(lambda call: "r"), on_error=errors) as session:
        await talk(session)
        summarise = Summariser(ValueError("no"))
        how = Compaction(summarise, 100)
        assert await run_turn(session, model, "go", compaction=how) == "completed"
        assert len(summarise.given) == 1
        assert [type(error) for error in errors] == [CompactionFailed]
        assert_ended(log)
    assert_sound(log)


async def test_an_abort_stops_a_summary_too() -> None:
    log = MoodyLog()

    async def hang(messages: list[dict[str, Any]]) -> str:
        await session.abort()
        await asyncio.Event().wait()
        raise AssertionError

    async with host(log) as session:
        await talk(session)
        how = Compaction(hang, 100)
        assert await run_turn(session, Model("done"), "go", compaction=how) == "aborted"
        found = {row.kind: row.outcome for row in rows(log, "operations")}
        assert found == {"prompt": "aborted", "compaction": "aborted"}
        assert_ended(log)
        await say(session, "user", "x")
        assert await session.compact_now(Summariser()) is not None
    assert_sound(log)
