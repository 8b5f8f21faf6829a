"""Sessions that come from one: forks, and the sessions of sub-agents."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    Hang,
    Ledger,
    MoodyLog,
    Script,
    after_crash,
    assert_sound,
    calls,
    dispatch_of,
    head_of,
    host,
    told,
    types_in,
    until,
)
from turnlog.core.errors import AppendRefused, EntryNotFound, SchemaError, UsageError
from turnlog.host import OperationOpen, Tool, ToolCall, run_turn
from turnlog.owner.owner import claim


async def test_a_fork_goes_on_from_where_it_was_made_and_copies_nothing() -> None:
    log = MoodyLog()
    async with host(log, title="t", cwd="/x", agent="a") as session:
        await session.set_state({"k": 1})
        await run_turn(session, Script("one"), "first")
        middle = session.leaf
        await session.set_state({"k": 2})
        await run_turn(session, Script("two"), "second")
        child, early = await session.fork(), await session.fork(middle)
        await run_turn(session, Script("three"), "third")
    async with host(log, session=child) as forked:
        assert told(forked) == ["user: first", "assistant: one", "user: second", "assistant: two"]
        assert forked.state == {"k": 2}
        await run_turn(forked, Script("other"), "else")
        grandchild = await forked.fork()
    async with host(log, session=early) as forked:
        assert told(forked) == ["user: first", "assistant: one"]
        assert forked.state == {"k": 1}
    async with host(log, session=grandchild) as forked:
        assert len(told(forked)) == 6
        assert told(forked)[-1] == "assistant: other"
        await forked.set_state({"k": 3})
        await run_turn(forked, Script("last"), "more")
        assert len(told(forked)) == 8
    assert len(told(log)) == 6
    assert head_of(log, child).cwd == "/x"
    assert len(types_in(log, early)) < 6
    assert_sound(log)


async def test_a_fork_of_a_fork_that_has_nothing_of_its_own_shows_all_of_it() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await run_turn(session, Script("one"), "first")
        name = await session.fork()
    async with host(log, session=name) as forked:
        shown = forked.context()
        again = await forked.fork()
    async with host(log, session=again) as other:
        assert other.context() == shown
        assert other.view().head.parent_session == "s"
    assert_sound(log)


async def test_no_fork_inside_an_open_operation() -> None:
    ledger = Ledger()
    log, hang = MoodyLog(), Hang(ledger, "opaque")
    async with host(log, *hang.tools) as session:
        task = asyncio.create_task(run_turn(session, Script(calls("opaque")), "go"))
        await until(lambda: hang.started)
        with pytest.raises(OperationOpen, match="forked"):
            await session.fork()
        crashed = await after_crash(log)
        await session.abort()
        assert await task == "aborted"
        await session.fork()
    async with host(crashed, name="h2") as other:
        with pytest.raises(OperationOpen):
            await other.fork()
        await other.close_open()
        await other.fork()
    assert_sound(log)
    assert_sound(crashed)


@pytest.mark.parametrize("name", ["s", "taken", "x" * 513, "half \ud83d"])
async def test_a_fork_has_a_name_of_its_own(name: str) -> None:
    log = MoodyLog()
    async with host(log, session="taken"):
        pass
    async with host(log) as session:
        await run_turn(session, Script("one"), "first")
        with pytest.raises((UsageError, SchemaError)):
            await session.fork(session=name)
        assert await session.fork(session="free") == "free"
        with pytest.raises(UsageError):
            await session.fork(session="free")
    assert_sound(log)


async def test_there_is_nothing_to_fork_in_an_empty_session() -> None:
    log = MoodyLog()
    async with host(log) as session:
        for at in (None, "nowhere"):
            with pytest.raises(EntryNotFound):
                await session.fork(at)
    assert_sound(log)


async def test_a_fork_refused_by_the_log_can_be_made_again() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await run_turn(session, Script("one"), "first")
        log.mood = lambda frame: "refused" if frame.frame.header.session == "child" else None
        with pytest.raises(AppendRefused):
            await session.fork(session="child")
        created = False

        def second(frame: Any) -> str | None:
            return "refused" if "session_created" in str(frame.record.body) else None

        log.mood = second
        with pytest.raises(AppendRefused):
            await session.fork(session="child")
        log.mood = None
        created = await session.fork(session="child") == "child"
        assert created
    async with host(log, session="child") as forked:
        assert told(forked) == ["user: first", "assistant: one"]
    assert_sound(log)


async def spawning(log: MoodyLog, times: int) -> list[str]:
    """A tool that spawns several times at once."""
    made: list[str] = []

    async def run(call: ToolCall) -> str:
        made.extend(await asyncio.gather(*(sessions[0].spawn(call.dispatch) for _ in range(times))))
        return "done"

    sessions: list[Any] = []
    async with host(log, Tool("t", run)) as session:
        sessions.append(session)
        assert await run_turn(session, Script(calls("t")), "go") == "completed"
    return made


async def test_a_sub_agents_session_is_made_once_however_often_and_at_once() -> None:
    log = MoodyLog()
    made = await spawning(log, 8)
    assert len(made) == 8
    (child,) = set(made)
    assert types_in(log, child).count("session_created") == 1
    async with host(log, session=child) as session:
        await run_turn(session, Script("well"), "work")
    assert_sound(log)


async def test_a_call_that_runs_again_finds_the_session_of_its_first_try() -> None:
    made: list[str] = []
    started = asyncio.Event()

    async def run(call: ToolCall) -> str:
        child = await sessions[-1].spawn(call.dispatch, title="sub")
        made.append(child)
        async with host(sessions[-1].link.owner.log, session=child) as sub:
            if not sub.context():
                await run_turn(sub, Script("half"), "work")
                started.set()
                await asyncio.Event().wait()
            return f"{len(sub.context())} messages"

    sessions: list[Any] = []
    log = MoodyLog()
    tool = Tool("t", run, effect="idempotent")
    async with host(log, tool) as session:
        sessions.append(session)
        task = asyncio.create_task(run_turn(session, Script(calls("t")), "go"))
        await started.wait()
        fresh = MoodyLog()
        await fresh.load([stored.record async for stored in log.read()])
        task.cancel()
        await asyncio.wait([task])
    async with host(fresh, tool, name="h2") as session:
        sessions.append(session)
        assert await run_turn(session, Script()) == "completed"
        assert "tool: 2 messages" in told(session)
    assert len(set(made)) == 1
    head = head_of(fresh, made[0])
    assert (head.parent_session, head.title) == ("s", "sub")
    assert_sound(fresh)


async def test_a_session_that_is_in_use_is_not_taken_by_a_spawn() -> None:
    log = MoodyLog()
    (child,) = await spawning(log, 1)
    async with host(log, session=child, name="sub") as sub:
        async with host(log) as session:
            assert await session.spawn(dispatch_of(log).dispatch) == child
        await run_turn(sub, Script("well"), "still mine")
    assert_sound(log)


async def test_nothing_is_spawned_by_what_is_no_dispatch() -> None:
    log = MoodyLog()
    async with host(log) as session:
        for dispatch in ("nobody's", "", "\0"):
            with pytest.raises(UsageError):
                await session.spawn(dispatch)
    assert len(list(log.tables.scan("sessions"))) == 1


async def test_ids_too_long_to_be_put_together_are_hashed() -> None:
    log = MoodyLog()
    name = "x" * 512
    made: list[str] = []

    async def run(call: ToolCall) -> str:
        made.append(await sessions[0].spawn(call.dispatch))
        return "done"

    sessions: list[Any] = []
    async with host(log, Tool("t", run), session=name) as session:
        sessions.append(session)
        assert await run_turn(session, Script(calls("t")), "go") == "completed"
        child = await session.fork()
    assert made[0].startswith("sub-")
    assert head_of(log, child).parent_session == name
    assert_sound(log)


async def test_a_child_claimed_and_left_by_a_dead_maker_is_made_by_the_next() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await run_turn(session, Script("one"), "first")
        await claim(log, "child", tables=log.tables, host="x", reason="open", ambient=AMBIENT)
        with suppress(UsageError):
            await session.fork(session="child")
    assert head_of(log, "child").parent_session == "s"
    assert_sound(log)
