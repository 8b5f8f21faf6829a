"""A turn: what can be done in it now, queued inputs, and attempts at the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    Ledger,
    MoodyLog,
    Script,
    assert_balanced,
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
from turnlog.core.errors import Fenced, SchemaError, UsageError
from turnlog.host import Reply, Session, Turn, open_session, run_turn
from turnlog.host import session as sessions
from turnlog.owner.guest import cancel_input, queue_input, request_abort, write_guest
from turnlog.owner.owner import claim

FOREVER = 1e9


async def guest(log: MoodyLog, *events: Any) -> None:
    await write_guest(log, "s", events, writer="p", ambient=AMBIENT)


@asynccontextmanager
async def leaving(scope: open_session) -> AsyncIterator[Session]:
    """A session that is lost: on leaving one is told again, where something is unsaved."""
    with suppress(Fenced):
        async with scope as session:
            yield session


# ---- the plan


async def test_the_plan_follows_the_turn_from_its_beginning_to_its_end() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools()) as session, session.turn("go") as turn:

        def planned() -> list[str]:
            return [step["do"] for step in turn.plan()]

        assert planned() == ["continue"]
        async with turn.attempt("m") as attempt:
            assert planned() == ["ask_model"]
            await attempt.finish(calls("opaque", "read_only"))
        assert planned() == ["permit_and_run", "permit_and_run", "continue"]
        running = asyncio.create_task(turn.call_all())
        await asyncio.sleep(0)
        assert planned() == ["continue"], "what is being worked on is not in it"
        await running
        assert planned() == ["continue"]
        async with turn.attempt("m") as attempt:
            await attempt.finish("done")
        assert planned() == ["finish"]
        await turn.carry_out(turn.plan())
        assert turn.outcome == "completed"
        assert planned() == []
    assert_sound(log)


@pytest.mark.parametrize("number", range(60))
async def test_the_context_is_balanced_at_every_step_with_what_is_not_flushed(number: int) -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools(), window_s=FOREVER) as session:
        task = asyncio.create_task(run_turn(session, Script(), "go"))
        for _ in range(number):
            await asyncio.sleep(0)
            assert_balanced(session.context())
            assert session.leaf == view_leaf(session)
        await task
    assert_sound(log)


def view_leaf(session: Session) -> str | None:
    view = session.view()
    return view.entry(view.head.leaf).id if view.head.leaf else None


# ---- attempts


@pytest.mark.parametrize(
    "message",
    [5, 1.5, True, [1], ["text"], [{"text": "no type"}], {"content": 5}, {"stop_reason": 7},
     {"content": "x", "stop_reason": {}}, ..., {"content": [{"type": "text", "text": 5}]},
     [{"type": "tool_call", "call_id": "c"}], [{"type": "tool_call", "name": 5}],
     [{"type": "tool_call", "call_id": 5, "name": "t"}], [{"type": "x", "n": 2**64}],
     [{"type": "x", "n": float("nan")}], [{"type": "x", "b": b"bytes"}]],
    ids=repr,
)  # fmt: skip
async def test_nonsense_of_a_model_is_refused_and_writes_nothing(message: Any) -> None:
    log = MoodyLog()
    async with host(log) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            leaf = session.leaf
            with pytest.raises(SchemaError):
                await attempt.finish(message)
            assert session.leaf == leaf
            said = await attempt.finish("well")
        assert said.calls == []
        assert told(session) == ["user: go", "assistant: well"]
    assert_sound(log)


@pytest.mark.parametrize(
    "message",
    ["", "text", None, [], {}, {"content": None}, {"role": "banana", "content": "x"},
     [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "x"}],
     [{"type": "who knows", "what": [1, 2]}], {"content": "x", "stop_reason": "sunspots"},
     "half \ud83d", "x" * 600_000],
    ids=lambda message: repr(message)[:40],
)  # fmt: skip
async def test_odd_answers_are_answers(message: Any) -> None:
    log = MoodyLog()
    async with host(log) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            said = await attempt.finish(message)
        assert said.entry == session.leaf
        assert_balanced(session.context())
    assert_sound(log)


@pytest.mark.parametrize(
    "usage", [{"input": "many"}, {"input": -1.5}, {"cost_usd": 0.5}, [], "free", {"input": 2**70}]
)
async def test_usage_that_is_none_is_refused_with_its_answer(usage: Any) -> None:
    log = MoodyLog()
    async with host(log) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            with pytest.raises(SchemaError):
                await attempt.finish("well", usage=usage)
            with pytest.raises(SchemaError):
                await attempt.fail(usage)
            await attempt.finish("well", usage={"input": 3, "cost_usd": "0.5"})
        assert told(session) == ["user: go", "assistant: well"]
    assert head_of(log).usage["input"] == 3
    assert_sound(log)


async def test_an_attempt_is_settled_once() -> None:
    log = MoodyLog()
    async with host(log) as session, session.turn("go") as turn:
        async with turn.attempt("m") as attempt:
            await attempt.finish("well", usage={"input": 1})
            with pytest.raises(UsageError):
                await attempt.finish("again")
            await attempt.fail({"input": 5})
        async with turn.attempt("m") as other:
            await other.fail({"input": 2})
            with pytest.raises(UsageError):
                await other.finish("after all")
    assert head_of(log).usage["input"] == 3
    assert_sound(log)


async def test_what_a_model_is_asked_with_is_written_when_it_changes() -> None:
    log = MoodyLog()
    async with host(log) as session, session.turn("go") as turn:
        for system in ("be nice", "be nice", "be brief", "be nice"):
            async with turn.attempt("m", system=system) as attempt:
                await attempt.fail()
    assert types_in(log).count("context_set") == 3
    assert_sound(log)


@pytest.mark.parametrize("system", ["x" * 1_000_000, object(), {1: 2}, "half \ud83d"])
async def test_what_no_log_takes_is_refused_each_time_a_model_is_asked_with_it(system: Any) -> None:
    log = MoodyLog()
    async with host(log) as session, session.turn("go") as turn:
        for _ in range(2):
            with pytest.raises(SchemaError):
                await turn.attempt("m", system=system).__aenter__()
    assert "model_attempted" not in types_in(log)
    assert_sound(log)


@pytest.mark.parametrize("how", ["finish", "leave"])
async def test_nothing_is_asked_or_said_in_a_turn_that_has_ended(how: str) -> None:
    """It would corrupt the operation."""
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            attempt = await turn.attempt("m").__aenter__()
            if how == "finish":
                await turn.finish("blocked")
        uses: list[Callable[[Turn], Awaitable[Any]]] = [
            lambda turn: turn.attempt("m").__aenter__(),
            lambda turn: attempt.finish("too late"),
            lambda turn: turn.finish(),
            lambda turn: turn.carry_out([{"do": "continue"}]),
        ]
        for use in uses:
            with pytest.raises(UsageError):
                await use(turn)
        await attempt.fail({"input": 1})
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


@pytest.mark.parametrize("outcome", ["nonsense", "", None, 5])
async def test_an_outcome_that_is_none_ends_nothing(outcome: Any) -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            with pytest.raises((SchemaError, UsageError)):
                await turn.finish(outcome)
            assert not turn.has_ended
        assert turn.outcome == "completed"
    assert_sound(log)


@pytest.mark.parametrize("error", [{"n": float("nan")}, {"text": "x" * 1_000_000}, ...])
async def test_an_error_that_no_log_takes_ends_nothing(error: Any) -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            with pytest.raises(SchemaError):
                await turn.finish("failed", error)
            assert not turn.has_ended
        assert turn.outcome == "completed"
    assert_sound(log)


# ---- messages


@pytest.mark.parametrize(
    "message", ["", "text", [], {}, 5, "half \ud83d", {"json": [1]}, "x" * 10**6]
)
async def test_whatever_a_user_says_is_taken(message: Any) -> None:
    log = MoodyLog()
    async with host(log) as session:
        assert await run_turn(session, Script("well"), message) == "completed"
        assert [said["role"] for said in session.context()] == ["user", "assistant"]
    assert_sound(log)


@pytest.mark.parametrize(
    "message", [b"bytes", ..., float("nan"), {1: 2}, 2**64, [{"type": "x", "n": 2**64}]],
    ids=repr,
)  # fmt: skip
async def test_what_is_no_message_begins_no_turn(message: Any) -> None:
    log = MoodyLog()
    async with host(log) as session:
        with pytest.raises(SchemaError):
            async with session.turn(message):
                raise AssertionError
        assert rows(log, "operations") == []
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_without_a_message_and_a_queue_there_is_no_turn() -> None:
    log = MoodyLog()
    async with host(log) as session:
        with pytest.raises(UsageError, match="nothing is queued"):
            async with session.turn():
                raise AssertionError
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


# ---- queued inputs


async def test_follow_ups_are_turns_of_their_own_in_the_order_they_came() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await session.queue_input("one")
        await guest(log, queue_input("two", AMBIENT))
        await session.queue_input([{"type": "text", "text": "three"}])
        assert len(session.pending()) == 3
        for _ in range(3):
            assert await run_turn(session, Script("well")) == "completed"
        assert [say for say in told(session) if say.startswith("user")] == [
            *("user: one", "user: two", "user: three")
        ]
        assert [row.trigger for row in rows(log, "operations")] == ["queue"] * 3
        assert {row.status for row in rows(log, "inputs")} == {"placed"}
        with pytest.raises(UsageError):
            await run_turn(session, Script("well"))
    assert_sound(log)


@pytest.mark.parametrize("by", ["host", "guest"])
async def test_steering_is_read_before_the_next_request(by: str) -> None:
    log, ledger = MoodyLog(), Ledger()
    asked: list[list[str]] = []
    async with host(log, *ledger.tools()) as session:

        async def model(context: list[dict[str, Any]]) -> Reply:
            asked.append([said["role"] for said in context])
            if len(asked) == 1:
                if by == "host":
                    await session.queue_input("hurry", delivery="steer")
                else:
                    await guest(log, queue_input("hurry", AMBIENT, delivery="steer"))
                return Reply(calls("opaque"))
            return Reply("done")

        assert await run_turn(session, model, "go") == "completed"
    assert asked == [["user"], ["user", "assistant", "tool", "user"]]
    assert_sound(log)


async def test_steering_that_comes_with_the_last_word_is_still_read() -> None:
    log = MoodyLog()
    asked = 0
    async with host(log) as session:

        async def model(context: list[dict[str, Any]]) -> Reply:
            nonlocal asked
            asked += 1
            if asked == 1:
                await session.queue_input("one more thing", delivery="steer")
            return Reply(f"answer {asked}")

        assert await run_turn(session, model, "go") == "completed"
        assert told(session)[1:] == [
            "assistant: answer 1",
            "user: one more thing",
            "assistant: answer 2",
        ]
    assert_sound(log)


async def test_an_input_is_taken_back_unless_it_was_read() -> None:
    log = MoodyLog()
    async with host(log) as session:
        first, second = await session.queue_input("one"), await session.queue_input("two")
        await session.cancel_input(first)
        await guest(log, cancel_input(first, AMBIENT))
        assert await run_turn(session, Script("well")) == "completed"
        await session.cancel_input(second)
        await session.cancel_input("nobody's")
        assert told(session) == ["user: two", "assistant: well"]
        assert session.pending() == []
    assert_sound(log)


async def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MoodyLog()
    async with host(log) as session:
        for number in range(sessions.MAX_PENDING):
            await session.queue_input(f"{number}")
        with pytest.raises(UsageError, match="64"):
            await session.queue_input("too much")
        await guest(log, queue_input("too much", AMBIENT))
        assert len(session.pending()) == 64
        await run_turn(session, Script("well"))
        await session.queue_input("again")
        assert len(session.pending()) == 64
    head = head_of(log)
    assert head.overflow == {"pending_inputs": 1}, "the guest's was refused"


async def test_steering_is_refused_once_an_abort_was_asked_for() -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            await guest(log, request_abort(turn.operation, AMBIENT))
            with pytest.raises(UsageError, match="steered"):
                await session.queue_input("hurry", delivery="steer")
            await session.queue_input("and then")
            await asyncio.Event().wait()
        assert turn.outcome == "aborted"
        await session.queue_input("hurry", delivery="steer")
        assert len(session.pending()) == 2
    assert_sound(log)


async def test_inputs_that_fill_a_frame_are_read_one_by_one() -> None:
    """Each of them fits a frame, but together, or beside what a turn adds to them, they do not."""
    log = MoodyLog()
    parts = [{"type": "text", "text": "x" * 224_700} for _ in range(4)]
    async with host(log) as session:
        await guest(log, queue_input(parts, AMBIENT))
        for _ in range(3):
            await guest(log, queue_input(parts, AMBIENT, delivery="steer"))
        await session.queue_input("y" * 400_000, delivery="steer")
        assert await run_turn(session, Script("well")) == "completed"
        assert session.pending() == []
        assert [said["role"] for said in session.context()] == ["user"] * 5 + ["assistant"]
    assert_sound(log)


async def test_a_queued_input_whose_turn_is_lost_is_read_by_the_next_owner_once() -> None:
    log = MoodyLog()

    async with leaving(host(log)) as session:
        await session.queue_input("one")
        log.gate.clear()
        task = asyncio.create_task(run_turn(session, Script("well")))
        await log.held.wait()
        held, log.gate = log.gate, asyncio.Event()
        log.gate.set()
        await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)
        held.set()
        with pytest.raises(Fenced):
            await task
        await session.link.settle_background()
        assert len(head_of(log).pending_inputs) == 1
        with pytest.raises(Fenced):
            await session.queue_input("two")
    async with host(log, name="h2") as other:
        assert await run_turn(other, Script("well")) == "completed"
        assert told(other) == ["user: one", "assistant: well"]
    assert_sound(log)


async def test_an_input_that_was_being_queued_when_the_session_was_lost_is_queued_once() -> None:
    log = MoodyLog()
    async with leaving(host(log)) as session:
        log.gate.clear()
        task = asyncio.create_task(session.queue_input("one"))
        await log.held.wait()
        held, log.gate = log.gate, asyncio.Event()
        log.gate.set()
        await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)
        held.set()
        with pytest.raises(Fenced):
            await task
        await session.link.settle_background()
    async with host(log, name="h2") as other:
        assert len(other.pending()) == 1
        assert await run_turn(other, Script("well")) == "completed"
        assert told(other) == ["user: one", "assistant: well"]
    assert_sound(log)


# ---- aborts


async def test_an_abort_from_outside_is_heard_while_something_waits_in_the_window() -> None:
    log = MoodyLog()
    async with host(log, window_s=FOREVER) as session:
        entered = asyncio.Event()

        async def work() -> str | None:
            async with session.turn("go") as turn:
                async with turn.attempt("m") as attempt:
                    await attempt.finish("well")
                assert_balanced(session.context())
                entered.set()
                await asyncio.Event().wait()
            return turn.outcome

        task = asyncio.create_task(work())
        await entered.wait()
        (operation,) = head_of(log).open_operations
        await guest(log, request_abort(operation, AMBIENT))
        assert await task == "aborted"
    assert_sound(log)


async def test_an_abort_without_a_turn_does_nothing() -> None:
    log = MoodyLog()
    async with host(log) as session:
        size = len(types_in(log))
        await session.abort()
        await guest(log, request_abort("nobody's", AMBIENT))
        await steps(10)
        assert len(types_in(log)) == size + 1
        assert await run_turn(session, Script("well"), "go") == "completed"
    assert_sound(log)


async def test_a_second_abort_and_one_of_another_turn_change_nothing() -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("one") as first:
            await asyncio.gather(session.abort(), session.abort())
        assert first.outcome == "aborted"
        async with session.turn("two") as second:
            await guest(log, request_abort(first.operation, AMBIENT))
            await until(lambda: len(types_in(log)) and types_in(log)[-1] == "abort_requested")
            await steps(20)
        assert second.outcome == "completed"
    assert_sound(log)


async def test_moving_inside_a_turn_is_a_bracket_of_its_own() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools()) as session:
        await run_turn(session, Script("well"), "one")
        target = session.leaf
        await run_turn(session, Script("well"), "two")
        async with session.turn("three") as turn:
            await session.navigate(target, label="back")
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls("opaque"))
            await turn.call_all()
            async with turn.attempt("m") as attempt:
                await attempt.finish("done")
        assert told(session)[:2] == ["user: one", "assistant: well"]
        assert told(session)[-1] == "assistant: done"
        assert turn.outcome == "completed"
    assert [row.kind for row in rows(log, "operations")].count("navigation") == 1
    assert view_of(log).path()[2].kind == "branch"
    assert_sound(log)


async def test_what_is_left_of_a_very_large_turn_is_ended_in_several_frames() -> None:
    """More calls without an answer than a frame holds events."""
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls(*["t"] * 1_500))
            await session.abort()
        assert turn.outcome == "aborted"
        assert_balanced(session.context())
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_a_request_is_known_by_its_digest() -> None:
    log = MoodyLog()
    async with (
        host(log) as session,
        session.turn("go") as turn,
        turn.attempt("m", request_digest="d" * 64) as attempt,
    ):
        await attempt.finish("well")
    assert b'"request_digest":"dddd' in b"".join(
        stored.record.body for stored in log.tables.records("s")
    )
