"""One call, whatever the model asks for, the tool does, the person says or the log answers."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    EFFECTS,
    Errors,
    Ledger,
    MoodyLog,
    Script,
    assert_balanced,
    assert_ended,
    assert_sound,
    calls,
    crashed_turn,
    dispatch_of,
    head_of,
    host,
    rows,
    statuses,
    steps,
    told,
    tool,
    types_in,
    types_of,
    until,
    view_of,
)
from turnlog.core.errors import AppendRefused, AppendUnknown, Fenced, UsageError
from turnlog.host import (
    Ask,
    Denied,
    Failed,
    OutcomeUnknown,
    Result,
    Session,
    Tool,
    ToolCall,
    effects,
    run_turn,
)
from turnlog.host import calls as calling
from turnlog.owner.guest import decide_approval, write_guest
from turnlog.owner.owner import claim


async def one_call(log: MoodyLog, made: Tool, message: Any = None, **given: Any) -> Result:
    """A turn in which the model calls one tool; the turn ends, and another one can follow."""
    async with host(log, made, **given) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                await attempt.finish(message or calls(made.name))
            (found,) = await turn.call_all()
            assert_balanced(session.context())
        assert_ended(log)
        assert await run_turn(session, Script("well"), "and then?") == "completed"
    assert_sound(log)
    return found


# ---- what tools give


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def generator() -> Iterator[int]:
    yield 1


async def agenerator() -> AsyncIterator[int]:
    yield 1


class Bad:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, ""),
        ("text", "text"),
        ("", ""),
        ("nul \0", "nul \0"),
        (7, "7"),
        (True, "true"),
        (1.5, "1.5"),
        ({}, "{}"),
        ([], "[]"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([{"type": "text", "text": "a"}], "a"),
        (
            [{"type": "text", "text": "a"}, {"no": "type"}],
            '[{"type":"text","text":"a"},{"no":"type"}]',
        ),
        ("half \ud83d", "half \ufffd"),
        ({"half": "\ud83d"}, '{"half":"\ufffd"}'),
        ([{"type": "text", "text": "half \ud83d"}], "half \ufffd"),
        ((1, 2), "[1,2]"),
        (datetime.date(2026, 1, 1), '"2026-01-01"'),
    ],
    ids=repr,
)
async def test_what_a_tool_gives_is_told(value: Any, said: str) -> None:
    log = MoodyLog()
    found = await one_call(log, tool(lambda call: value))
    assert found.status == "ok"
    assert [part.get("text") for part in found.content] == [said]
    assert dispatch_of(log).status == "ok"


@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        {1, 2},
        object(),
        Bad(),
        generator(),
        2**64,
        {"n": -(2**63) - 1},
        float("nan"),
        {"n": [float("inf")]},
        {1: 2},
        cyclic(),
        deep(300),
        [{"type": "text", "text": "x", "score": float("nan")}],
        [{"type": "text", "text": 5}],
        [{"type": "tool_call"}],
        [{"type": "text", "text": "x"}] * 30_000,
        ValueError("returned"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_is_no_result_settles_the_call_as_error(value: Any) -> None:
    log = MoodyLog()
    found = await one_call(log, tool(lambda call: value))
    assert (found.status, dispatch_of(log).status) == ("error", "error")
    assert found.content[0]["text"]


async def test_a_generator_that_is_never_asked_is_no_result() -> None:
    made = agenerator()
    found = await one_call(MoodyLog(), tool(lambda call: made))
    assert found.status == "error"
    await made.aclose()


@pytest.mark.parametrize("levels", [150, 195, 230])
async def test_parts_nested_too_deep_are_left_out_and_said_so(levels: int) -> None:
    found = await one_call(MoodyLog(), tool(lambda call: [{"type": "x", "value": deep(levels)}]))
    assert found.status == "ok"
    assert (found.content[0]["type"] == "x") == (levels == 150)


@pytest.mark.parametrize("size", [200_000, 300_000, 10_000_000, 20_000_000])
async def test_large_results_become_blobs(size: int) -> None:
    log = MoodyLog()
    found = await one_call(log, tool(lambda call: "é" * (size // 2)))
    assert found.status == "ok"
    (part,) = found.content
    if size < 250_000:
        assert part["type"] == "text"
    else:
        assert (part["type"], part["size"]) == ("blob", size)
        blob = view_of(log).blob(part["digest"])
        if size > 16 * 1024 * 1024:
            assert part["truncated"] is True
        else:
            assert blob == ("é" * (size // 2)).encode()


class Custom(BaseException):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("v"), "error"),
        (Failed("known"), "error"),
        (OutcomeUnknown("who knows"), "unknown"),
        (TimeoutError("late"), "unknown"),
        (ConnectionResetError("gone"), "unknown"),
        (SystemExit(3), "error"),
        (GeneratorExit(), "error"),
        (StopIteration(1), "error"),
        (StopAsyncIteration(1), "error"),
        (asyncio.CancelledError("its own"), "unknown"),
        (ExceptionGroup("many", [ValueError("v"), TypeError("t")]), "error"),
        (BaseExceptionGroup("many", [SystemExit(1)]), "error"),
        (RecursionError("deep"), "error"),
        (MemoryError(), "error"),
        (Custom("mine"), "error"),
        (Mute(), "error"),
        (ValueError("half \ud83d"), "error"),
        (ValueError("x" * 1_000_000), "error"),
        (AppendRefused("of another log"), "error"),
        (Fenced("of another session"), "error"),
        (UsageError("mine"), "error"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_whatever_a_tool_raises_settles_the_call(error: BaseException, status: str) -> None:
    def fail(call: ToolCall) -> None:
        raise error

    log = MoodyLog()
    found = await one_call(log, tool(fail))
    assert found.status == status
    assert dispatch_of(log).status == status


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError, asyncio.CancelledError])
async def test_of_what_only_reads_a_broken_run_is_an_error(error: type[BaseException]) -> None:
    def fail(call: ToolCall) -> None:
        raise error

    found = await one_call(MoodyLog(), tool(fail, effect="read_only"))
    assert found.status == "error"


def test_an_interrupt_in_a_tool_stops_the_process_and_leaves_a_log_to_recover() -> None:
    log = MoodyLog()

    def interrupt(call: ToolCall) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(one_call(log, tool(interrupt)))
    assert dispatch_of(log).status == "unknown"

    async def again() -> None:
        async with host(log, tool(interrupt), name="h2") as session:
            assert await run_turn(session, Script("sorry")) == "completed"

    asyncio.run(again())
    assert_sound(log)


async def test_a_time_limit_leaves_the_outcome_unknown() -> None:
    async def hang(call: ToolCall) -> None:
        await asyncio.Event().wait()

    for effect, status in (("opaque", "unknown"), ("read_only", "error")):
        log = MoodyLog()
        found = await one_call(log, Tool("t", hang, effect=effect, timeout_s=0.001))
        assert found.status == status
        assert "limit of 0.001 s" in found.content[0]["text"]


async def test_a_tool_that_is_stopped_may_still_say_what_it_did() -> None:
    async def slow(call: ToolCall) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "it was half done"
        return "never"

    found = await one_call(MoodyLog(), Tool("t", slow, timeout_s=0.001))
    assert (found.status, found.content[0]["text"]) == ("ok", "it was half done")


@pytest.mark.parametrize("timeout_s", [0.001, None])
async def test_a_tool_that_will_not_stop_is_left_behind_and_never_told_as_not_started(
    monkeypatch: pytest.MonkeyPatch, timeout_s: float | None
) -> None:
    monkeypatch.setattr(effects, "GRACE_S", 0.001)
    started, release = asyncio.Event(), asyncio.Event()

    async def stubborn(call: ToolCall) -> str:
        started.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        return "at last"

    log = MoodyLog()
    async with host(log, Tool("stubborn", stubborn, timeout_s=timeout_s)) as session:
        model = Script(calls("stubborn"))
        task = asyncio.create_task(run_turn(session, model, "go"))
        await started.wait()
        await session.abort()
        assert await task == "aborted"
        assert statuses(log) == {"unknown": 1}
        release.set()
        await steps(3)
    assert_sound(log)


async def test_cancelled_while_a_time_limit_is_being_kept_it_is_still_told_as_unknown() -> None:
    """The limit has passed, the tool takes its time to end, and then the caller is cancelled."""
    stopping, release = asyncio.Event(), asyncio.Event()

    async def slow(call: ToolCall) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await release.wait()
        return "never"

    log = MoodyLog()
    async with host(log, Tool("slow", slow, timeout_s=0.001)) as session:
        task = asyncio.create_task(run_turn(session, Script(calls("slow")), "go"))
        await stopping.wait()
        task.cancel()
        await steps(5)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.link.settle_background()
        assert statuses(log) == {"unknown": 1}
        assert await run_turn(session, Script()) == "completed"
    assert_sound(log)


# ---- what models ask for


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ({"name": "nobody"}, "error"),
        ({"name": ""}, "error"),
        ({"args": "text"}, "error"),
        ({"args": '{"a": 1}'}, "error"),
        ({"args": [1]}, "error"),
        ({"args": 5}, "error"),
        ({"args": None}, "ok"),
        ({"args": {}}, "ok"),
        ({"args": {"type": "blob", "digest": "00"}}, "error"),
    ],
    ids=repr,
)
async def test_nonsense_in_a_call_is_told_to_the_model(part: dict[str, Any], status: str) -> None:
    log = MoodyLog()
    made = {"type": "tool_call", "call_id": "c", "name": "t", **part}
    found = await one_call(log, tool(lambda call: "ran"), {"content": [made]})
    assert found.status == status
    assert len(rows(log, "dispatches")) == (status == "ok")


async def test_calls_without_ids_get_some() -> None:
    log = MoodyLog()
    parts = [
        {"type": "tool_call", "name": "t"},
        {"type": "tool_call", "name": "t", "call_id": "call-0"},
        {"type": "tool_call", "name": "t", "call_id": ""},
        {"type": "tool_call", "name": "t", "call_id": None},
    ]
    async with host(log, tool(lambda call: call.call_id)) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            said = await attempt.finish(parts)
        ids = [call.call_id for call in said.calls]
        assert len(set(ids)) == 4
        assert ids[1] == "call-0"
        results = await turn.call_all()
        assert [found.content[0]["text"] for found in results] == ids
        assert_balanced(session.context())
    assert_sound(log)


async def test_one_id_for_several_calls_mixes_nothing_up() -> None:
    """Some servers give every call the same id, within a message and across turns."""
    log, ran = MoodyLog(), []

    def run(call: ToolCall) -> str:
        ran.append(call.args["n"])
        return f"result {call.args['n']}"

    def said(turn: int, names: list[str]) -> list[dict[str, Any]]:
        return [
            {"type": "tool_call", "call_id": "call_0", "name": name, "args": {"n": f"{turn}.{i}"}}
            for i, name in enumerate(names)
        ]

    async with host(log, tool(run)) as session:
        for number in range(2):
            async with session.turn("go") as turn:
                async with turn.attempt("m") as attempt:
                    await attempt.finish(said(number, ["t", "nobody", "t", "nobody", "t"]))
                results = await turn.call_all()
                assert [found.status for found in results] == ["ok", "error", "ok", "error", "ok"]
                texts = [found.content[0]["text"] for found in results]
                assert texts[::2] == [f"result {number}.{i}" for i in (0, 2, 4)]
                context = session.context()
                assert_balanced(context)
                shown = [item["content"][0]["text"] for item in context if item["role"] == "tool"]
                assert shown[-5:] == texts
    assert sorted(ran) == [f"{turn}.{i}" for turn in range(2) for i in (0, 2, 4)]
    keys = {row.key for row in rows(log, "dispatches")}
    assert len(keys) == 6
    assert_sound(log)


async def test_three_hundred_calls_in_one_message_run_a_few_at_a_time() -> None:
    running = most = 0

    async def run(call: ToolCall) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return call.call_id

    log = MoodyLog()
    async with host(log, Tool("t", run)) as session:
        model = Script(calls(*["t"] * 300))
        assert await run_turn(session, model, "go") == "completed"
        answers = [said for said in session.context() if said["role"] == "tool"]
        assert [said["content"][0]["text"] for said in answers] == [f"c{n}" for n in range(300)]
        assert [row.call_no for row in rows(log, "dispatches")].sort() is None
    assert most <= 64
    assert statuses(log) == {"ok": 300}
    assert_sound(log)


async def test_beyond_the_bound_of_open_dispatches_nothing_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "MAX_OPEN", 3)
    release = asyncio.Event()

    async def hang(call: ToolCall) -> str:
        await release.wait()
        return "done"

    log = MoodyLog()
    async with host(log, Tool("t", hang)) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            await attempt.finish(calls(*["t"] * 5))
        task = asyncio.create_task(turn.call_all())
        await until(lambda: statuses(log)["open"] == 3)
        await steps(50)
        release.set()
        assert [found.status for found in await task] == ["ok"] * 3 + ["not_started"] * 2
        async with turn.attempt("m") as attempt:
            await attempt.finish(calls(*["t"] * 3))
        assert [found.status for found in await turn.call_all()] == ["ok"] * 3
    assert_sound(log)


async def test_a_call_is_made_once_whoever_asks() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, ledger.tool("opaque")) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            said = await attempt.finish(calls("opaque", "opaque"))
        plan = turn.plan()
        part = calls("opaque")["content"][0]
        await turn.call(part)
        for again in (part, said.calls[0]):
            with pytest.raises(UsageError):
                await turn.call(again)
        await turn.carry_out(plan)
        await turn.carry_out(plan)
        await turn.carry_out(turn.plan())
        with pytest.raises(UsageError):
            await turn.call(said.calls[1])
    assert ledger.count("opaque") == 2
    assert_sound(log)


async def test_calls_that_the_answer_does_not_make_are_refused() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, ledger.tool("opaque")) as session, session.turn("go") as turn:
        with pytest.raises(UsageError):
            await turn.call(calls("opaque")["content"][0])
        assert await turn.call_all() == []
        async with turn.attempt("m") as attempt:
            await attempt.finish(calls("opaque", n=1))
        for wrong in (calls("opaque", n=2)["content"][0], {}, {"call_id": "c0"}):
            with pytest.raises(UsageError):
                await turn.call(wrong)
    assert ledger.effects == []
    assert_sound(log)


async def test_large_arguments_reach_the_tool_here_and_after_a_crash() -> None:
    text = "x" * 400_000
    got: list[str] = []
    log = MoodyLog()

    async def run(call: ToolCall) -> str:
        got.append(call.args["text"])
        if len(got) == 1:
            await asyncio.Event().wait()
        return "done"

    made = Tool("t", run, effect="read_only")
    async with host(log, made) as session:
        task = asyncio.create_task(run_turn(session, Script(calls("t", text=text)), "go"))
        await until(lambda: got)
        async with host(log, made, name="h2") as other:
            with pytest.raises(Fenced):
                await task
            assert await run_turn(other, Script()) == "completed"
    assert got == [text, text]
    assert_sound(log)


@pytest.mark.parametrize("who", ["validate", "permit", "run"])
async def test_changing_the_arguments_in_place_changes_no_message(who: str) -> None:
    """What the tool ran with is in T1 where it is not what the model said."""
    got: list[dict[str, Any]] = []

    def change(args: dict[str, Any]) -> dict[str, Any]:
        args["n"] += 1
        return args

    async def permit(call: ToolCall) -> bool:
        if who == "permit":
            change(call.args)
        return True

    async def run(call: ToolCall) -> str:
        got.append(dict(call.args))
        change(call.args)
        return "done"

    log = MoodyLog()
    made = Tool("t", run, permit=permit, validate=change if who == "validate" else None)
    await one_call(log, made, calls("t", n=1))
    view = view_of(log)
    (said,) = [row for row in view.path() if row.calls]
    assert view.data(said)["content"][0]["args"] == {"n": 1}
    t1 = view.event_data(dispatch_of(log).tries[0]["position"], dispatch_of(log).tries[0]["index"])
    ran_with = {"n": 1 if who == "run" else 2}
    assert got == [ran_with]
    assert (t1.get("args") or {"n": 1}) == ran_with


@pytest.mark.parametrize(
    "check",
    [
        lambda args: None,
        lambda args: "text",
        lambda args: [1],
        lambda args: {1: 2},
        lambda args: {"n": 2**70},
        lambda args: {"n": float("nan")},
        lambda args: {"half": "\ud83d"},
        lambda args: {"text": "x" * 950_000},
        lambda args: {"deep": deep(240)},
        lambda args: cyclic(),
        lambda args: 1 / 0,
        lambda args: (_ for _ in ()).throw(Mute()),
        lambda args: (_ for _ in ()).throw(SystemExit(1)),
    ],
)
async def test_a_check_that_gives_nonsense_refuses_the_call(check: Any) -> None:
    log = MoodyLog()
    found = await one_call(log, tool(lambda call: "ran", validate=check))
    assert found.status == "error"
    assert rows(log, "dispatches") == []


# ---- permission


def asking(answer: Any, ran: list[str] | None = None) -> Tool:
    async def permit(call: ToolCall) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    seen = [] if ran is None else ran
    return tool(lambda call: seen.append(call.call_id) or "ran", permit=permit)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (True, "ok"),
        (False, "not_started"),
        (None, "not_started"),
        ("yes", "not_started"),
        (1, "not_started"),
        (Denied("because"), "not_started"),
        (ValueError("v"), "not_started"),
        (Mute(), "not_started"),
        (SystemExit(1), "not_started"),
        (asyncio.CancelledError(), "not_started"),
    ],
    ids=repr,
)
async def test_only_true_permits(answer: Any, status: str) -> None:
    log = MoodyLog()
    found = await one_call(log, asking(answer))
    assert found.status == status
    assert len(rows(log, "dispatches")) == (status == "ok")


@pytest.mark.parametrize(("answer", "status"), [(True, "ok"), (ValueError("v"), "not_started")])
async def test_a_plain_function_may_permit(answer: Any, status: str) -> None:
    def permit(call: ToolCall) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    found = await one_call(MoodyLog(), tool(lambda call: "ran", permit=permit))
    assert found.status == status


async def test_permission_is_asked_for_what_was_checked_and_before_t1() -> None:
    seen: list[Any] = []
    log = MoodyLog()

    async def permit(call: ToolCall) -> bool:
        seen.append((call.args, call.dispatch, call.try_number, "tool_dispatched" in types_in(log)))
        return True

    made = tool(lambda call: "ran", permit=permit, validate=lambda args: {**args, "checked": True})
    await one_call(log, made, calls("t", n=1))
    assert seen == [({"n": 1, "checked": True}, "", 0, False)]


async def waiting_turn(log: MoodyLog, session: Session, message: Any = None) -> asyncio.Task[str]:
    """A turn whose call waits for a person."""
    task = asyncio.create_task(run_turn(session, Script(message or calls("t")), "go"))
    await until(lambda: head_of(log) and head_of(log).waiting)
    return task


def approval(log: MoodyLog) -> tuple[str, str, str]:
    row = rows(log, "approvals")[0]
    return row.operation, row.assistant_entry, row.call_id


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize("who", ["host", "guest"])
async def test_a_person_decides(allow: bool, who: str) -> None:
    log, ran = MoodyLog(), []
    async with host(log, asking(Ask(), ran)) as session:
        task = await waiting_turn(log, session)
        assert head_of(log).status == "requires_action"
        assert not ran
        operation, entry, call_id = approval(log)
        if who == "host":
            await session.decide(operation, entry, call_id, allow=allow, by="me")
            await session.decide(operation, entry, call_id, allow=not allow, by="too late")
        else:
            said = decide_approval(
                operation,
                AMBIENT,
                assistant_entry=entry,
                call_id=call_id,
                decision="allow" if allow else "deny",
            )
            await write_guest(log, "s", [said, said], writer="p", ambient=AMBIENT)
        assert await task == "completed"
        assert len(ran) == allow
        assert_ended(log)
    assert_sound(log)


async def test_decided_before_it_is_asked_it_does_not_wait() -> None:
    log, ran = MoodyLog(), []
    async with host(log, asking(Ask(), ran)) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            said = await attempt.finish(calls("t"))
        await session.decide(turn.operation, said.entry, "c0", allow=True, by="me")
        assert [found.status for found in await turn.call_all()] == ["ok"]
    assert ran == ["c0"]
    assert_sound(log)


@pytest.mark.parametrize("allow", [True, False, None])
@pytest.mark.parametrize("permit", ["asks", "permits", "gone"])
async def test_an_approval_outlives_the_host_that_asked(allow: bool | None, permit: str) -> None:
    """Who was asked decides, whatever the next host's tool would have said."""
    log, ran = MoodyLog(), []
    async with host(log, asking(Ask(), ran)) as session:
        task = await waiting_turn(log, session)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    operation, entry, call_id = approval(log)
    said = decide_approval(
        operation, AMBIENT, assistant_entry=entry, call_id=call_id,
        decision="allow" if allow else "deny",
    )  # fmt: skip
    if allow is not None:
        await write_guest(log, "s", [said], writer="p", ambient=AMBIENT)
    made = {
        "asks": asking(Ask(), ran),
        "permits": asking(True, ran),
        "gone": tool(lambda call: ran.append(call.call_id) or "ran"),
    }[permit]
    async with host(log, made, name="h2") as other:
        task = asyncio.create_task(run_turn(other, Script()))
        if allow is None:
            await steps(200)
            assert not task.done()
            assert not ran
            assert head_of(log).status == "requires_action"
            await write_guest(log, "s", [said], writer="p", ambient=AMBIENT)
        assert await task == "completed"
    assert len(ran) == (allow is True)
    assert_sound(log)


async def test_one_decision_cannot_be_taken_for_two_calls_with_one_id() -> None:
    """A decision names a call by its id, so nobody is asked about calls that share one."""
    log, ran = MoodyLog(), []
    parts = [
        {"type": "tool_call", "call_id": "c", "name": name, "args": {}} for name in ("t", "t", "u")
    ]
    async with host(log, asking(Ask(), ran), tool(lambda call: "ran", "u")) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                said = await attempt.finish(parts)
            await session.decide(turn.operation, said.entry, "c", allow=True, by="me")
            results = await turn.call_all()
        assert [found.status for found in results] == ["not_started", "not_started", "ok"]
    assert ran == []
    assert_sound(log)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_decision_that_comes_at_the_wrong_time_harms_nothing(when: str) -> None:
    log = MoodyLog()
    async with host(log, asking(Ask())) as session:
        if when == "before":
            with pytest.raises(UsageError):
                await session.decide("nobody's", "e", "c", allow=True, by="me")
        else:
            task = await waiting_turn(log, session)
            await session.abort()
            assert await task == "aborted"
            await session.decide(*approval(log), allow=True, by="me")
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_an_abort_ends_the_waiting_for_a_person() -> None:
    log, ran = MoodyLog(), []
    async with host(log, asking(Ask(), ran)) as session:
        task = await waiting_turn(log, session)
        await session.abort()
        assert await task == "aborted"
        assert not head_of(log).waiting
        assert not ran
    assert_sound(log)


# ---- the log


@pytest.mark.parametrize("outcome", ["refused", "lost", "landed"])
async def test_nothing_runs_whose_start_is_not_in_the_log(outcome: str) -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, ledger.tool("opaque")) as session:
        log.mood = lambda frame: outcome if "tool_dispatched" in types_of(frame) else None
        error = AppendRefused if outcome == "refused" else AppendUnknown
        with pytest.raises(error):
            await run_turn(session, Script(calls("opaque")), "go")
        assert not ledger.effects
        log.mood = None
        assert await run_turn(session, Script()) == "completed"
        assert ledger.count("opaque") == (outcome == "refused")
    assert_sound(log)


@pytest.mark.parametrize("outcome", ["refused", "lost", "landed"])
async def test_an_answer_that_the_log_does_not_take_is_kept(outcome: str) -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, ledger.tool("opaque")) as session:
        log.mood = lambda frame: outcome if "T2" in types_of(frame) else None
        with pytest.raises((AppendRefused, AppendUnknown)):
            await run_turn(session, Script(calls("opaque")), "go")
        assert_balanced(session.context())
        log.mood = None
        assert await run_turn(session, Script()) == "completed"
        assert statuses(log) == {"ok": 1}
        assert "tool: opaque done" in told(session)
    assert ledger.count("opaque") == 1
    assert_sound(log)


async def test_a_large_answer_that_the_log_does_not_take_is_kept_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from turnlog.host import batch

    monkeypatch.setattr(batch, "MAX_WAITING_BYTES", 100_000)
    log = MoodyLog()
    text = "x" * 1_000_000
    async with host(log, tool(lambda call: text)) as session:

        def mood(frame: Any) -> str | None:
            return "refused" if {"blob_part", "T2"} & set(types_of(frame)) else None

        log.mood = mood
        with pytest.raises(AppendRefused):
            await run_turn(session, Script(calls("t")), "go")
        log.mood = None
        assert await run_turn(session, Script()) == "completed"
        assert statuses(log) == {"ok": 1}
        blob = next(
            part for said in session.context() for part in said["content"] if "digest" in part
        )
        assert view_of(log).blob(blob["digest"]) == text.encode()
    assert_sound(log)


async def test_a_check_that_took_too_long_starts_nothing() -> None:
    times = iter([0.0, 11.0])
    log, ledger = MoodyLog(), Ledger()
    slow = AMBIENT._replace(uptime=lambda: next(times, 11.0))
    async with host(log, ledger.tool("opaque"), ambient=slow) as session:
        times = iter([0.0, 11.0])
        assert await run_turn(session, Script(calls("opaque")), "go") == "completed"
    assert not ledger.effects
    assert statuses(log) == {"not_started": 1}
    assert_sound(log)


async def test_a_start_that_came_too_late_after_its_check_is_none() -> None:
    """The tool of another call may block the event loop."""
    log, ledger, now = MoodyLog(), Ledger(), 0.0

    def block(call: ToolCall) -> str:
        nonlocal now
        now += 20.0
        return "at last"

    names = ["opaque", "t", "idempotent"]
    tools = [*ledger.tools(), tool(block)]
    ambient = AMBIENT._replace(uptime=lambda: now)
    async with host(log, *tools, ambient=ambient) as session:
        assert await run_turn(session, Script(calls(*names)), "go") == "completed"
    assert [name for name, _ in ledger.effects] == ["opaque"]
    assert dispatch_of(log, "t").status == "ok"
    assert dispatch_of(log, "idempotent").status == "not_started"
    assert_sound(log)


async def test_of_a_second_try_that_came_too_late_nothing_is_known() -> None:
    now, tries = 0.0, list[str]()

    def block(call: ToolCall) -> str:
        nonlocal now
        now += 20.0
        tries.append(call.tool)
        return "at last"

    log = await crashed_turn(Ledger(), "read_only", "idempotent")
    tools = [tool(block, name, effect=name) for name in ("read_only", "idempotent")]
    async with host(log, *tools, ambient=AMBIENT._replace(uptime=lambda: now)) as session:
        assert await run_turn(session, Script()) == "completed"
    assert tries == ["read_only"]
    assert dispatch_of(log, "idempotent").status == "unknown"
    assert_sound(log)


# ---- calls beside the turn's own body


async def test_a_call_that_its_caller_gave_up_is_settled_by_what_became_of_it() -> None:
    started = asyncio.Event()

    async def hang(call: ToolCall) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
        return "never"

    log = MoodyLog()
    async with host(log, Tool("t", hang)) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            await attempt.finish(calls("t"))
        task = asyncio.create_task(turn.call_all())
        await started.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await turn.finish()  # at once: what became of it comes later, as evidence
        assert statuses(log) == {"unknown": 1}
    assert_sound(log)
    assert_ended(log)


@pytest.mark.parametrize("how", ["finish", "leave", "abort"])
async def test_calls_left_running_in_other_tasks_end_with_the_turn(how: str) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def hang(call: ToolCall) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    log = MoodyLog()
    async with host(log, Tool("t", hang)) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls("t", "t"))
            stray = asyncio.create_task(turn.call_all())
            await started.wait()
            if how == "finish":
                await turn.finish()
            elif how == "abort":
                await session.abort()
        await ended.wait()
        await asyncio.wait([stray])
        assert stray.cancelled()
        assert statuses(log) == {"unknown": 2}
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_results_that_come_after_the_turn_are_evidence() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def slow(call: ToolCall) -> str:
        started.set()
        await release.wait()
        return "it happened"

    log = MoodyLog()
    async with host(log, Tool("t", slow)) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls("t"))
            late = asyncio.create_task(turn.call_all())
            await started.wait()
            await turn.finish()
            leaf = session.leaf
            release.set()
            (found,) = await late
            assert found.status == "ok"
            assert session.leaf == leaf
        row = dispatch_of(log)
        assert row.status == "unknown"
        assert [piece["status"] for piece in row.evidence] == ["ok"]
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_nothing_starts_once_the_turn_has_ended() -> None:
    """A call is still being permitted while the turn is finished."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def permit(call: ToolCall) -> bool:
        asked.set()
        await release.wait()
        return call.call_id == "c0"

    log, ran = MoodyLog(), []
    made = tool(lambda call: ran.append(1) or "ran", permit=permit)
    async with host(log, made) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls("t", "t"))
            late = asyncio.create_task(turn.call_all())
            await asked.wait()
            await turn.finish()
            release.set()
            with pytest.raises(UsageError):
                await late
        assert not ran
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_failing_calls_leave_no_error_unseen() -> None:
    """Each of many calls fails with the log; one is told, and none complains to the loop."""
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools()) as session:
        log.mood = lambda frame: "refused" if "tool_dispatched" in types_of(frame) else None
        with pytest.raises(AppendRefused):
            await run_turn(session, Script(), "go")
        log.mood = None
        assert await run_turn(session, Script()) == "completed"
    import gc

    gc.collect()
    await steps(5)
    assert unseen == []


# ---- lost


async def test_what_is_known_of_running_tools_goes_out_as_evidence_when_the_session_is_lost() -> (
    None
):
    started, stopped = asyncio.Event(), asyncio.Event()

    async def run(call: ToolCall) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            return "it was sent"
        return "never"

    log, errors = MoodyLog(), Errors()
    async with host(log, Tool("t", run), on_error=errors) as session:
        task = asyncio.create_task(run_turn(session, Script(calls("t")), "go"))
        await started.wait()
        await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)
        await stopped.wait()
        with pytest.raises(Fenced):
            await task
        await session.link.settle_background()
        row = dispatch_of(log)
        assert row.status == "open"
        assert [piece["status"] for piece in row.evidence] == ["ok"]
    assert [error for error in errors if not isinstance(error, Fenced)] == []
    async with host(log, name="h2") as other:
        await other.close_open()
    assert dispatch_of(log).status == "unknown"
    assert_sound(log)


async def test_that_the_session_is_lost_is_told_once_however_many_calls_were_starting() -> None:
    log, ledger, errors = MoodyLog(), Ledger(), Errors()
    with suppress(Fenced):
        async with (
            host(log, *ledger.tools(), on_error=errors) as session,
            session.turn("go") as turn,
        ):
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls(*EFFECTS))
            log.gate.clear()
            task = asyncio.create_task(turn.call_all())
            await log.held.wait()
            await claim(log, "s", tables=log.tables, host="r", reason="open", ambient=AMBIENT)
            log.gate.set()
            await task
    assert task.done()
    assert ledger.effects == []
    assert len(errors) <= 1
    assert_sound(log)


async def test_many_large_answers_of_a_lost_session_all_go_out() -> None:
    release = asyncio.Event()

    async def run(call: ToolCall) -> str:
        await release.wait()
        return "x" * 200_000

    log = MoodyLog()
    with suppress(Fenced):
        async with host(log, Tool("t", run)) as session:
            task = asyncio.create_task(run_turn(session, Script(calls(*["t"] * 8)), "go"))
            await until(lambda: statuses(log)["open"] == 8)
            log.gate.clear()
            release.set()
            await log.held.wait()
            await steps(20)
            gate, log.gate = log.gate, asyncio.Event()
            log.gate.set()
            await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)
            gate.set()
            with pytest.raises(Fenced):
                await task
            await session.link.settle_background()
    evidence = [piece["status"] for row in rows(log, "dispatches") for piece in row.evidence]
    assert evidence == ["ok"] * 8
    assert_sound(log)


async def test_a_session_navigated_under_running_tools_keeps_their_results_off_the_path() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def run(call: ToolCall) -> str:
        started.set()
        await release.wait()
        return "done"

    log = MoodyLog()
    async with host(log, Tool("t", run)) as session:
        await run_turn(session, Script("well"), "first")
        target = session.leaf
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls("t", "t"))
            late = asyncio.create_task(turn.call_all())
            await started.wait()
            branch = await session.navigate(target, summary="it went elsewhere")
            release.set()
            assert [found.status for found in await late] == ["ok", "ok"]
            assert session.leaf == branch
            await session.set_state({"k": 1})
            assert view_of(log).path()[-1].id == branch
        assert told(session)[:2] == ["user: first", "assistant: well"]
        assert statuses(log) == {"ok": 2}
        assert [row.void for row in rows(log, "entries") if row.role == "tool"] == [
            "not_placed"
        ] * 2
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_a_refused_call_is_refused_again_where_the_leaf_went_back_to_before_it() -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                said = await attempt.finish(calls("gone", "lost"))
            first = await turn.call_all()
            await session.navigate(said.entry)
            again = await turn.carry_out(turn.plan())
            assert [one.status for one in first] == [one.status for one in again] == ["error"] * 2
        assert turn.outcome == "completed"
    assert_sound(log)


async def test_a_tool_may_use_the_session() -> None:
    """It writes state, queues input, and spawns; it may even abort its own turn."""
    log = MoodyLog()
    sessions: list[Session] = []

    async def run(call: ToolCall) -> str:
        (session,) = sessions
        await session.set_state({"by": call.call_id})
        await session.queue_input("later")
        child = await session.spawn(call.dispatch)
        assert child == await session.spawn(call.dispatch)
        await session.flush()
        if call.args.get("abort"):
            await session.abort()
            await asyncio.Event().wait()
        return child

    async with host(log, Tool("t", run)) as session:
        sessions.append(session)
        assert await run_turn(session, Script(calls("t")), "go") == "completed"
        assert session.state == {"by": "c0"}
        assert await run_turn(session, Script(calls("t", abort=True)), "go") == "aborted"
        assert len(session.pending()) == 2
    assert_sound(log)


def test_effect_classes_are_the_four() -> None:
    assert set(EFFECTS) == {"read_only", "idempotent", "reconcilable", "opaque"}
