"""A session as its host uses it: state, the tree, many at once, and giving it up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    Errors,
    Ledger,
    MoodyLog,
    Script,
    assert_honest,
    assert_sound,
    calls,
    head_of,
    host,
    rows,
    steps,
    told,
    types_in,
    until,
    view_of,
)
from turnlog import log as logs
from turnlog.core.errors import ClaimLost, EntryNotFound, Fenced, SchemaError, UsageError
from turnlog.core.frames import NewEvent
from turnlog.host import OperationOpen, Session, Tool, ToolCall, run_turn
from turnlog.host.opening import open_session
from turnlog.owner.owner import claim


async def test_state_that_has_not_changed_is_not_written() -> None:
    log = MoodyLog()
    async with host(log, state={"k": 1}) as session:
        size = len(types_in(log))
        for value in ({"k": 1}, {"k": 1}):
            await session.set_state(value)
        await session.flush()
        assert len(types_in(log)) == size
        await session.set_state({"b": 1, "a": [1, {"x": None}]})
        await session.set_state({"a": [1, {"x": None}], "b": 1})
        await session.flush()
        assert types_in(log)[size:] == ["app_state"]
    async with host(log) as again:
        assert again.state == {"b": 1, "a": [1, {"x": None}]}
        await again.set_state(again.state)
        await again.flush()
    assert types_in(log).count("app_state") == 1
    assert_sound(log)


async def test_a_state_changed_in_place_is_a_change() -> None:
    log = MoodyLog()
    async with host(log, window_s=1e9) as session:
        state: dict[str, Any] = {"k": []}
        for number in range(3):
            state["k"].append(number)
            await session.set_state(state)
        session.state["k"].append("a reader's own")
        assert session.state == {"k": [0, 1, 2]}
    values = [row.value for row in rows(log, "entries")]
    assert values == [{"k": [0]}, {"k": [0, 1]}, {"k": [0, 1, 2]}]
    assert_sound(log)


@pytest.mark.parametrize(
    "value",
    [None, 5, [], "x", {1: 2}, {"n": float("nan")}, {"b": b"x"}, {"n": 2**70}, {"half": "\ud83d"}],
)
async def test_a_state_that_is_none_is_refused(value: Any) -> None:
    log = MoodyLog()
    async with host(log) as session:
        await session.set_state({"k": 1})
        leaf = session.leaf
        with pytest.raises(SchemaError):
            await session.set_state(value)
        with pytest.raises(SchemaError):
            await session.set_extension(5, value)  # type: ignore[arg-type]
        assert (session.state, session.leaf) == ({"k": 1}, leaf)
    assert_sound(log)


async def test_extensions_ride_on_the_tree() -> None:
    log = MoodyLog()
    async with host(log) as session:
        first = await session.set_extension("todo", ["a"])
        await session.set_extension("other", 1)
        await session.set_extension("todo", ["a", "b"], in_context=True)
        assert session.extension("todo") == ["a", "b"]
        await session.navigate(first)
        assert session.extension("todo") == ["a"]
        assert session.extension("other") is None
        await session.navigate(None)
        assert session.extension("todo") is None
        assert session.context() == []
    assert_sound(log)


async def test_a_fork_has_the_extensions_of_where_it_began() -> None:
    log = MoodyLog()
    async with host(log) as session:
        at = await session.set_extension("todo", ["a"])
        await session.set_extension("todo", ["a", "later"])
        child = await session.fork(at=at)
    async with host(log, session=child) as session:
        assert session.extension("todo") == ["a"]
        assert session.extension("other") is None
        first = await session.set_extension("other", 1)
        await session.set_extension("todo", ["a", "b"])
        assert session.extension("todo") == ["a", "b"]
        await session.navigate(first)
        assert session.extension("todo") == ["a"]
        grandchild = await session.fork()
    async with host(log, session=grandchild) as session:
        assert (session.extension("todo"), session.extension("other")) == (["a"], 1)
    assert_sound(log)


@pytest.mark.parametrize("parent", ["s", "elsewhere"])
async def test_a_fork_whose_parent_cannot_be_followed_has_its_own_extensions(parent: str) -> None:
    log = MoodyLog()
    owner = await claim(log, "s", tables=log.tables, host="h", reason="open", ambient=AMBIENT)
    point = {"entry": "e", "epoch": 1, "seq": 2}
    created = {"parent_session": parent, "fork_at": point}
    await owner.write([NewEvent("session_created", "c", AMBIENT.now(), created)])
    entry = {"parent": None, "kind": "k", "value": 1}
    await owner.write([NewEvent("custom", "e", AMBIENT.now(), entry)])
    async with host(log) as session:
        assert (session.extension("k"), session.extension("other")) == (1, None)


async def test_a_session_goes_back_and_returns() -> None:
    """The design's own example."""
    log = MoodyLog()
    async with host(log) as session:
        await session.set_state({"k": 1})
        await run_turn(session, Script("one"), "first")
        answer = session.leaf
        await run_turn(session, Script("two"), "second")
        await session.set_state({"k": 2})
        end = session.leaf
        await session.navigate(answer)
        assert (session.state, len(session.context())) == ({"k": 1}, 2)
        await run_turn(session, Script("three"), "third")
        assert told(session)[-2:] == ["user: third", "assistant: three"]
        await session.navigate(end)
        assert (session.state, len(session.context())) == ({"k": 2}, 4)
        with pytest.raises(EntryNotFound):
            await session.navigate("nowhere")
    assert_sound(log)


ODD = [
    "a", "with space", "ümlaut ☃ 🐍", "a/b/../c", "nul \0 inside", "'; drop table sessions; --",
    "%", "line\nbreak", "x" * 512, " ", "None",
]  # fmt: skip


@pytest.mark.parametrize("id_", ODD)
@pytest.mark.parametrize("where", ["memory", "sqlite"])
async def test_odd_ids_of_sessions_work(id_: str, where: str, tmp_path: Path) -> None:
    url = "memory:" if where == "memory" else f"sqlite:{tmp_path / 'log.db'}"
    async with logs.open(url, clock=lambda: 0) as log:
        async with open_session(log, id_, host=id_, ambient=AMBIENT) as session:
            assert session.id == id_
            await run_turn(session, Script("well"), "go")
            child = await session.fork()
        assert told(log, id_) == ["user: go", "assistant: well"]
        async with open_session(log, child, host="h", ambient=AMBIENT) as session:
            assert told(session) == ["user: go", "assistant: well"]
        assert list(log.verify()) == []


@pytest.mark.parametrize("id_", ["", "x" * 513, "half \ud83d", 5, None, b"x"], ids=repr)
@pytest.mark.parametrize("where", ["memory", "sqlite"])
async def test_ids_that_cannot_be_are_refused_before_anything_is_written(
    id_: Any, where: str, tmp_path: Path
) -> None:
    url = "memory:" if where == "memory" else f"sqlite:{tmp_path / 'log.db'}"
    async with logs.open(url, clock=lambda: 0) as log:
        with pytest.raises(SchemaError):
            async with open_session(log, id_, host="h", ambient=AMBIENT):
                raise AssertionError
        assert await log.end() == 0


async def test_a_session_given_up_twice_is_given_up_once() -> None:
    log, errors = MoodyLog(), Errors()
    with suppress(Fenced):  # told again on leaving, since something is unsaved
        async with host(log, on_error=errors) as session:
            await session.set_state({"k": 1})
            await session.close()
            await session.close()
            await session.flush()
            await session.abort()
            await session.set_state({"k": 2})
            with pytest.raises(Fenced, match="given it up"):
                await session.flush()
    assert types_in(log).count("session_released") == 1
    assert_sound(log)


async def test_a_thousand_idle_sessions_have_no_task_of_their_own() -> None:
    log = MoodyLog()
    open_: list[open_session] = []
    before = len(asyncio.all_tasks())
    sessions: list[Session] = []
    for number in range(1_000):
        scope = host(log, session=f"s{number}")
        sessions.append(await scope.__aenter__())
        open_.append(scope)
    await steps(50)
    assert len(asyncio.all_tasks()) <= before + 2, "one tail, one pulse"
    await sessions[500].set_state({"k": 1})
    await sessions[500].flush()
    await steps(50)
    assert len(asyncio.all_tasks()) <= before + 2
    for scope in open_:
        await scope.__aexit__(None, None, None)
    await steps(50)
    assert len(asyncio.all_tasks()) == before
    assert len(list(log.tables.scan("sessions"))) == 1_000


async def test_sessions_of_one_process_do_not_disturb_each_other() -> None:
    log, ledgers = MoodyLog(), [Ledger() for _ in range(20)]

    async def work(number: int) -> None:
        ledger = ledgers[number]
        async with host(log, *ledger.tools(), session=f"s{number}") as session:
            for turn in range(2):
                task = asyncio.create_task(run_turn(session, Script(), f"go {turn}"))
                if number % 3 == 1:
                    await steps(10 + number)
                    await session.abort()
                    assert await task in ("aborted", "completed")
                else:
                    assert await task == "completed"

    await asyncio.gather(*(work(number) for number in range(20)))
    for number in range(0, 20, 3):
        assert ledgers[number].count("opaque") == 2
    assert_sound(log)


async def test_of_two_hosts_that_open_at_once_the_later_claim_is_in_force() -> None:
    log = MoodyLog()
    scopes = [host(log, name=f"h{number}") for number in range(2)]
    opened = await asyncio.gather(*(scope.__aenter__() for scope in scopes), return_exceptions=True)
    working = 0
    for scope, session in zip(scopes, opened, strict=True):
        if isinstance(session, BaseException):
            assert isinstance(session, (ClaimLost, Fenced))
            continue
        with suppress(Fenced):
            await session.set_state({"by": scope._host})
            await session.flush()
            working += 1
        with suppress(Fenced):
            await scope.__aexit__(None, None, None)
    assert working == 1
    assert_sound(log)


async def test_over_a_real_file_a_turn_is_cancelled_at_many_steps(tmp_path: Path) -> None:
    for number in range(0, 60, 4):
        ledger = Ledger()
        url = f"sqlite:{tmp_path / f'{number}.db'}"
        async with logs.open(url, clock=lambda: 0) as log:
            async with host(log, *ledger.tools()) as session:
                task = asyncio.create_task(run_turn(session, Script(), "go"))
                await steps(number)
                task.cancel()
                await asyncio.wait([task])
                await session.link.settle_background()
                if session.view().head.open_operations:
                    assert await run_turn(session, Script()) == "completed"
                assert_honest(log, ledger)
                await run_turn(session, Script("well"), "on")
            assert list(log.verify()) == []
            head = head_of(log)
            assert (head.damage, head.open_operations) == ((), {})
            assert all(row.corruption == () for row in rows(log, "operations"))


async def test_over_a_real_file_a_session_is_taken_from_another_process(tmp_path: Path) -> None:
    """Two logs on one file: what one appends the other learns by looking."""
    url = f"sqlite:{tmp_path / 'log.db'}"
    started = asyncio.Event()

    async def hang(call: ToolCall) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    ledger = Ledger()
    async with (
        logs.open(url, clock=lambda: 0) as here,
        logs.open(url, clock=lambda: 0) as there,
        host(here, Tool("opaque", hang)) as session,
    ):
        task = asyncio.create_task(run_turn(session, Script(calls("opaque")), "go"))
        await started.wait()
        async with host(there, ledger.tool("opaque"), name="h2") as other:
            with pytest.raises(Fenced):
                await task
            assert await run_turn(other, Script(last="well")) == "completed"
            assert told(other)[-1] == "assistant: well"
        await session.link.settle_background()
        await here.tables.wait(await here.end())
        (row,) = rows(here, "dispatches")
        assert row.status == "unknown"
        assert [piece["status"] for piece in row.evidence] == ["unknown"]
        assert list(there.verify()) == []
    assert ledger.effects == []


async def test_facts_labels_and_title_are_set() -> None:
    log = MoodyLog()
    async with host(log, title="t", cwd="/x", agent="a") as session:
        await session.set_fact("title", "better")
        await session.set_fact("score:x", {"n": 1})
        with pytest.raises(SchemaError):
            await session.set_fact("x", float("inf"))
    head = head_of(log)
    assert (head.title, head.cwd, head.agent) == ("better", "/x", "a")
    assert_sound(log)


async def test_everything_is_refused_once_the_session_is_lost() -> None:
    log, errors = MoodyLog(), Errors()
    async with host(log, on_error=errors) as session:
        await run_turn(session, Script("well"), "go")
        async with host(log, name="h2"):
            await until(lambda: session.link.is_lost)
            for write in (
                lambda: session.set_state({"k": 1}),
                lambda: session.set_extension("x", 1),
                lambda: session.set_fact("x", 1),
                lambda: session.navigate(None),
                session.fork,
                lambda: session.queue_input("x"),
                lambda: session.cancel_input("x"),
                lambda: session.decide("o", "e", "c", allow=True, by="me"),
                session.flush,
                session.close_open,
                lambda: run_turn(session, Script("well")),
            ):
                with pytest.raises(Fenced):
                    await write()
            assert told(session) == ["user: go", "assistant: well"], "it can still be read"
    assert errors == []
    assert_sound(log)


async def test_closing_what_is_open_is_not_for_ones_own_turn() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await session.close_open()
        async with session.turn("go"):
            with pytest.raises(OperationOpen):
                await session.close_open()
        with pytest.raises(UsageError):
            async with session.resume():
                raise AssertionError
    assert_sound(log)


async def test_what_one_reads_is_ones_own() -> None:
    """Changing what was given changes neither the session nor what is given next."""
    log = MoodyLog()
    async with host(log, state={"k": {"n": 1}}) as session:
        await session.set_extension("x", {"n": 1})
        await run_turn(session, Script("well"), "go")
        for _ in range(2):
            assert session.state == {"k": {"n": 1}}
            assert session.extension("x") == {"n": 1}
            assert told(session) == ["user: go", "assistant: well"]
            session.state["k"]["n"] = 2
            session.extension("x")["n"] = 2
            session.context()[0]["content"][0]["text"] = "changed"
    assert list(log.verify()) == []
    assert view_of(log).state() == {"k": {"n": 1}}
