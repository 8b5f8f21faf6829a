"""Leaving a turn at any step and in any way: cancelled, aborted, robbed, or with a failing log.

Most tests run a whole turn with four parallel calls, one of each effect class, and do their
mischief after n turns of the event loop, or at the n-th append, for every n that the turn has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

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
    assert_honest,
    assert_sound,
    calls,
    head_of,
    host,
    rows,
    statuses,
    steps,
    told,
    tool,
    types_of,
    until,
    view_of,
)
from turnlog.core.errors import AppendRefused, AppendUnknown, Fenced, LogError, UsageError
from turnlog.core.frames import SealedFrame
from turnlog.host import Aborted, OperationOpen, Session, Turn, run_turn
from turnlog.owner.guest import request_abort, write_guest
from turnlog.owner.owner import claim

MOST = 400
"""No turn here takes so many steps; one that does hangs."""
Mischief = Callable[[MoodyLog, Session, "asyncio.Task[str]"], Awaitable[None]]


async def settled(task: asyncio.Task[str]) -> str | BaseException:
    """How a turn ended."""
    (ended,) = await asyncio.gather(task, return_exceptions=True)
    return ended


async def finish_here(session: Session, log: MoodyLog) -> None:
    """The same session goes on: it ends what is open, and takes another turn."""
    model = Script()
    if session.view().head.open_operations:
        assert await run_turn(session, model) in ("completed", "aborted")
    assert_balanced(session.context())
    assert_ended(log)
    assert await run_turn(session, Script("well"), "and then?") == "completed"
    assert told(session)[-2:] == ["user: and then?", "assistant: well"]


async def finish_elsewhere(log: MoodyLog, ledger: Ledger) -> None:
    """Another host takes the session over, ends what is open, and takes another turn."""
    async with host(log, *ledger.tools(), name="h2") as session:
        await finish_here(session, log)


async def cancel(log: MoodyLog, session: Session, task: asyncio.Task[str]) -> None:
    task.cancel()


async def abort(log: MoodyLog, session: Session, task: asyncio.Task[str]) -> None:
    await session.abort()


async def abort_from_outside(log: MoodyLog, session: Session, task: asyncio.Task[str]) -> None:
    for operation in session.view().head.open_operations:
        await write_guest(
            log, "s", [request_abort(operation, AMBIENT)], writer="p", ambient=AMBIENT
        )


async def mischief_at(
    number: int, mischief: Mischief, stack: AsyncExitStack
) -> tuple[MoodyLog, Ledger, Session, asyncio.Task[str], bool]:
    """A turn in which something happens after some steps; whether it came that far."""
    log, ledger = MoodyLog(), Ledger()
    session = await stack.enter_async_context(host(log, *ledger.tools()))
    task = asyncio.create_task(run_turn(session, Script(), "go"))
    await steps(number)
    is_late = task.done()
    if not is_late:
        await mischief(log, session, task)
    return log, ledger, session, task, is_late


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_turn_cancelled_at_any_step_can_go_on(where: str) -> None:
    for number in range(MOST):
        async with AsyncExitStack() as stack:
            log, ledger, session, task, is_late = await mischief_at(number, cancel, stack)
            ended = await settled(task)
            if is_late:
                assert ended == "completed"
                return
            assert isinstance(ended, asyncio.CancelledError), (number, ended)
            assert_balanced(session.context())
            if where == "here":
                await session.link.settle_background()
                await finish_here(session, log)
            else:
                await finish_elsewhere(log, ledger)
            assert_honest(log, ledger)
        assert_sound(log)
        assert_ended(log)
    raise AssertionError("it never ended")


@pytest.mark.parametrize("mischief", [abort, abort_from_outside])
async def test_a_turn_aborted_at_any_step_ends_as_aborted(mischief: Mischief) -> None:
    aborted = 0
    for number in range(MOST):
        async with AsyncExitStack() as stack:
            log, ledger, session, task, is_late = await mischief_at(number, mischief, stack)
            ended = await settled(task)
            assert ended in ("completed", "aborted"), (number, ended)
            (operation,) = rows(log, "operations") or [None]
            if operation is not None:
                assert operation.outcome == ended
                aborted += ended == "aborted"
            assert_ended(log)
            await finish_here(session, log)
            assert_honest(log, ledger)
        assert_sound(log)
        if is_late:
            assert aborted > number // 2, "nearly everywhere it can still be stopped"
            return
    raise AssertionError("it never ended")


async def test_a_session_lost_at_any_step_is_told_at_once_and_goes_on_elsewhere() -> None:
    async def rob(log: MoodyLog, session: Session, task: asyncio.Task[str]) -> None:
        await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)

    for number in range(MOST):
        async with AsyncExitStack() as stack:
            stack.enter_context(
                suppress(Fenced)
            )  # told again on leaving, where something is unsaved
            log, ledger, session, task, is_late = await mischief_at(number, rob, stack)
            ended = await settled(task)
            if is_late:
                assert ended == "completed"
                return
            assert isinstance(ended, Fenced) or ended == "completed", (number, ended)
            with pytest.raises(Fenced):
                await session.flush()
            with pytest.raises(Fenced):
                await session.set_state({"k": number})
            await session.link.settle_background()
            head = head_of(log)
            if not head.open_operations:  # it was not accepted, so it is offered again, once
                wanted = 0 if any(row.input_entry for row in rows(log, "operations")) else 1
                assert len(head.pending_inputs) == wanted
            async with host(log, *ledger.tools(), name="h2") as other:
                if head.open_operations or head.pending_inputs:
                    assert await run_turn(other, Script()) == "completed"
                assert [say for say in told(other) if say == "user: go"] == ["user: go"]
                assert_ended(log)
            assert_honest(log, ledger)
            effects = {id_ for _, id_ in ledger.effects}
            for row in rows(log, "dispatches"):
                assert row.dispatch not in effects or row.status in ("ok", "unknown", "error")
        assert_sound(log)
    raise AssertionError("it never ended")


@pytest.mark.parametrize("outcome", ["refused", "lost", "landed"])
@pytest.mark.parametrize("times", [1, 5, 6])
async def test_an_append_that_fails_at_any_place_loses_and_repeats_nothing(
    outcome: str, times: int
) -> None:
    failed = 0
    for number in range(MOST):
        seen = 0

        def mood(frame: SealedFrame) -> str | None:
            nonlocal seen
            if frame.frame.header.is_guest:
                return None
            seen += 1
            return outcome if number < seen <= number + times else None  # noqa: B023

        log, ledger, errors = MoodyLog(), Ledger(), Errors()
        async with host(log, *ledger.tools(), on_error=errors) as session:
            await session.flush()
            log.mood = mood
            task = asyncio.create_task(run_turn(session, Script(), "go"))
            ended = await settled(task)
            assert isinstance(ended, LogError) or ended == "completed", (number, ended)
            failed += isinstance(ended, LogError)
            is_late = seen <= number
            log.mood = None
            assert_balanced(session.context())
            await session.link.settle_background()
            await session.flush()
            assert_balanced(session.context())
            if not rows(log, "entries"):
                assert ended != "completed"
                assert not ledger.effects
                assert await run_turn(session, Script(), "go") == "completed"
            await finish_here(session, log)
            assert [say for say in told(session) if say == "user: go"] == ["user: go"]
            assert_honest(log, ledger)
        assert_sound(log)
        if is_late:
            assert failed or times == 1
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("outcome", ["lost", "landed"])
async def test_after_an_unknown_outcome_a_refusal_is_no_proof_of_absence(outcome: str) -> None:
    """The first copy may have arrived: what is refused is the second."""
    moods = iter([outcome, "refused"])
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools()) as session:
        await session.flush()
        log.mood = lambda frame: next(moods, None)
        with pytest.raises(AppendUnknown):
            await run_turn(session, Script(), "go")
        await session.flush()
        await finish_here(session, log)
        assert [say for say in told(session) if say == "user: go"] == ["user: go"]
    assert_sound(log)


async def test_the_body_ends_while_an_abort_is_on_its_way() -> None:
    """Its last statement is the abort: no cancellation may leak out of the turn."""
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            await session.abort()
        assert turn.outcome == "aborted"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        await finish_here(session, log)
    assert_sound(log)


async def test_an_abort_that_the_body_swallows_still_ends_the_turn_as_aborted() -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            try:
                await session.abort()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        assert turn.outcome == "aborted"

        async def complain() -> None:
            async with session.turn("go"):
                try:
                    await session.abort()
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise KeyError("k") from None

        with pytest.raises(KeyError):
            await complain()
        assert [row.outcome for row in rows(log, "operations")] == ["aborted", "aborted"]
        await asyncio.sleep(0)
        await finish_here(session, log)
    assert_sound(log)


async def test_whoever_cancels_while_an_abort_stops_the_turn_is_heard() -> None:
    """Both at once: the turn's own cancellation is taken back, the other one is not."""
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools()) as session:
        entered = asyncio.Event()

        async def work() -> None:
            async with session.turn("go"):
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await entered.wait()
        await session.abort()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await finish_here(session, log)
    assert_sound(log)


async def test_an_abort_heard_before_the_body_begins_stops_it() -> None:
    log = MoodyLog()

    def mood(frame: SealedFrame) -> str | None:
        if "operation_accepted" in types_of(frame):
            accepted = frame.frame.events[-1].data["operation"]
            told = write_guest(
                log, "s", [request_abort(accepted, AMBIENT)], writer="p", ambient=AMBIENT
            )
            tasks.append(asyncio.create_task(told))
        return None

    tasks: list[asyncio.Task[int]] = []
    async with host(log) as session:
        await session.flush()
        log.mood = mood
        async with session.turn("go") as turn:
            await tasks[0]
            await asyncio.wait_for(asyncio.Event().wait(), 20)
        assert turn.outcome == "aborted"
    assert_sound(log)


@pytest.mark.parametrize("message", ["x" * 2_000_000, "half \ud83d a character", "\0", ""], ids=len)
async def test_whatever_a_body_raises_ends_the_turn_as_failed(message: str) -> None:
    log = MoodyLog()
    async with host(log) as session:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is compared below
            async with session.turn("go"):
                raise ValueError(message)
        assert str(caught.value) == message
        (operation,) = rows(log, "operations")
        assert operation.outcome == "failed"
        await finish_here(session, log)
    assert_sound(log)


async def test_an_error_that_cannot_be_told_ends_the_turn_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    log = MoodyLog()
    async with host(log) as session:
        with pytest.raises(Mute):
            async with session.turn("go"):
                raise Mute
        assert rows(log, "operations")[0].outcome == "failed"
    assert_sound(log)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_a_dying_process_writes_nothing_more(error: type[BaseException]) -> None:
    log = MoodyLog()
    async with host(log) as session:
        with pytest.raises(error):
            async with session.turn("go"):
                raise error
        assert rows(log, "operations")[0].outcome is None
        await finish_here(session, log)
    assert_sound(log)


async def test_raising_aborted_ends_the_turn_so() -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("go") as turn:
            raise Aborted("enough")
        assert turn.outcome == "aborted"
    assert_sound(log)


async def test_one_turn_at_a_time() -> None:
    log = MoodyLog()
    async with host(log) as session:
        async with session.turn("one"):
            for scope in (session.turn("two"), session.resume()):
                with pytest.raises((OperationOpen, UsageError)):
                    async with scope:
                        raise AssertionError
            with pytest.raises(OperationOpen):
                await session.close_open()
            with pytest.raises(OperationOpen):
                await session.fork()
        assert [row.outcome for row in rows(log, "operations")] == ["completed"]
    assert_sound(log)


async def test_of_turns_entered_at_once_one_is_entered() -> None:
    log = MoodyLog()
    async with host(log) as session:
        ended = await asyncio.gather(
            *(run_turn(session, Script("well"), f"go {number}") for number in range(5)),
            return_exceptions=True,
        )
        assert [item for item in ended if item == "completed"] == ["completed"]
        assert sum(isinstance(item, OperationOpen) for item in ended) == 4
    assert_sound(log)


async def test_of_resumes_entered_at_once_one_is_entered() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools()) as session:
        task = asyncio.create_task(run_turn(session, Script(), "go"))
        await until(lambda: ledger.effects)
        task.cancel()
        await asyncio.wait([task])
        await session.link.settle_background()
        ended = await asyncio.gather(
            *(run_turn(session, Script()) for _ in range(3)), return_exceptions=True
        )
        assert sum(item == "completed" for item in ended) == 1, ended
        assert_honest(log, ledger)
    assert_sound(log)


async def test_a_turn_refused_by_the_log_never_was() -> None:
    """And what others wrote meanwhile does not hang under the message that was taken back."""
    log = MoodyLog()
    async with host(log) as session:
        await session.set_state({"k": 1})
        await session.flush()
        log.gate.clear()
        turn = asyncio.create_task(run_turn(session, Script("well"), "go"))
        await log.held.wait()
        await session.set_state({"k": 2})
        log.mood = lambda frame: "refused"
        log.gate.set()
        with pytest.raises(AppendRefused):
            await turn
        log.mood = None
        await session.flush()
        assert session.state == {"k": 2}
        assert told(session) == []
        assert await run_turn(session, Script("well"), "go") == "completed"
        assert told(session) == ["user: go", "assistant: well"]
    assert_sound(log)


async def test_a_cancelled_turn_whose_start_was_under_way_is_open() -> None:
    log = MoodyLog()
    async with host(log) as session:
        log.gate.clear()
        task = asyncio.create_task(run_turn(session, Script("well"), "go"))
        await log.held.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        log.gate.set()
        assert await run_turn(session, Script("well")) == "completed"
        assert told(session) == ["user: go", "assistant: well"]
    assert_sound(log)


async def test_a_lost_session_is_fenced_and_not_busy() -> None:
    """The new owner has a turn open; the old host is told that it is fenced, and what its user
    said is offered again."""
    log = MoodyLog()
    async with host(log) as old, host(log, name="h2") as new, new.turn("theirs"):
        await until(lambda: old.link.is_lost)
        for scope in (old.turn("mine"), old.resume()):
            with pytest.raises(Fenced):
                async with scope:
                    raise AssertionError
        assert len(head_of(log).pending_inputs) == 1
    assert_sound(log)


async def test_results_of_a_turn_that_is_cut_short_are_told_with_their_status() -> None:
    started = asyncio.Event()

    async def hang(call: object) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    log, ledger = MoodyLog(), Ledger()
    hanging = tool(lambda call: None, "opaque")
    hanging = type(hanging)("opaque", hang)
    async with host(log, *ledger.tools()[:3], hanging) as session:
        task = asyncio.create_task(run_turn(session, Script(), "go"))
        await started.wait()
        await until(lambda: statuses(log)["ok"] == 3)
        await session.abort()
        assert await task == "aborted"
        assert statuses(log) == {"ok": 3, "unknown": 1}
        assert len(told(session)) == 6
    assert_sound(log)


async def test_turns_do_not_share_what_is_theirs() -> None:
    log = MoodyLog()
    async with host(log, Ledger().tool("opaque")) as session:
        async with session.turn("one") as first, first.attempt("m") as attempt:
            await attempt.finish(calls("opaque"))
        async with session.turn("two") as second:
            with pytest.raises(UsageError):
                await second.call(calls("opaque")["content"][0])
            assert await second.call_all() == []
        use_after: list[Callable[[Turn], Awaitable[object]]] = [
            lambda turn: turn.finish(),
            lambda turn: turn.call_all(),
            lambda turn: turn.carry_out([]),
            lambda turn: turn.attempt("m").__aenter__(),
        ]
        for use in use_after:
            with pytest.raises(UsageError):
                await use(first)
    assert view_of(log).head.counts["quarantined"] == 0
    assert_sound(log)


def test_effects_are_all_tried() -> None:
    assert len(EFFECTS) == 4
