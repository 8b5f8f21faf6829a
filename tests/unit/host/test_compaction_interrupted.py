"""Whatever comes between the start and the end of a compaction, at every step of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    Errors,
    MoodyLog,
    Script,
    assert_ended,
    assert_sound,
    host,
    steps,
    types_in,
)
from tests.unit.host.talks import (
    assert_nothing_lost,
    compactions,
    goes_on,
    outcomes,
    say,
    talk,
)
from turnlog.core.errors import Fenced, LogError
from turnlog.core.frames import SealedFrame
from turnlog.host import OperationOpen, Session, run_turn
from turnlog.owner import places
from turnlog.owner.owner import claim

MOST = 400
"""No compaction here takes so many steps; one that does hangs."""


class Killed(BaseException):
    """The process dies here."""


async def slow(messages: list[dict[str, Any]]) -> str:
    await asyncio.sleep(0)
    return "in short"


@pytest.mark.parametrize("kind", ["summary", "prune"])
async def test_cancelled_at_any_step_the_same_host_goes_on_at_once(kind: str) -> None:
    aborted = 0
    for number in range(MOST):
        log = MoodyLog()
        async with host(log) as session:
            await talk(session, 4)
            await session.flush()
            begin = _beginning(session, kind)
            task: asyncio.Task[Any] = asyncio.create_task(begin())
            await steps(number)
            is_late = task.done()
            task.cancel()
            await asyncio.wait([task])
            await say(session, "user", "x" * 200)
            await session.compact_now(slow)
            assert "open" not in outcomes(log)
            aborted += "aborted" in outcomes(log)
            assert_nothing_lost(session.view())
            await goes_on(session, log)
            assert_ended(log)
        assert_sound(log)
        if is_late:
            assert aborted or kind == "prune"
            return
    raise AssertionError("it never ended")


def _beginning(session: Session, kind: str) -> Callable[[], Any]:
    if kind == "summary":
        return lambda: session.compact_now(slow)
    return lambda: session.prune(threshold=110, head=20, tail=10)


async def test_killed_at_any_place_another_host_finds_all_of_it_or_a_start() -> None:
    opened = 0
    for number in range(1, MOST):
        log, places_left, is_killed = MoodyLog(), -1, False

        def reach(place: str) -> None:
            nonlocal places_left
            places_left -= 1
            if places_left == 0:
                raise Killed(place)

        try:
            async with host(log, ambient=AMBIENT._replace(reach=reach)) as session:
                await talk(session)
                await session.flush()
                before, places_left = session.context(), number
                await session.compact_now(slow)
                places_left = -1
        except Killed:
            is_killed = True
        async with host(log, name="h2") as session:
            if compactions(session.view()):
                assert len(session.context()) < len(before)
            else:
                assert session.context() == before
            if session.recovery:
                opened += 1
                (report,) = session.recovery
                assert report.operation.kind == "compaction"
                assert report.verdict.name == "ready"
                await (session.close_open() if number % 2 else session.compact_now(slow))
                assert outcomes(log)[0] == "interrupted"
            assert_ended(log)
            assert_nothing_lost(session.view())
            await goes_on(session, log)
        assert_sound(log)
        if not is_killed:
            assert opened >= 3, "after the start was sent, saved, and told"
            return
    raise AssertionError("it never ended")


async def die_in(log: MoodyLog, work: Callable[[Session], Awaitable[Any]]) -> None:
    """A host that is killed while it makes a summary."""

    def reach(place: str) -> None:
        if place == places.COMPACTION_STARTED:
            raise Killed

    try:
        async with host(log, ambient=AMBIENT._replace(reach=reach)) as session:
            await talk(session)
            await work(session)
    except Killed:
        return
    raise AssertionError("it was not killed")


async def test_killed_inside_a_turn_a_resume_ends_it_and_goes_on_with_the_turn() -> None:
    async def compact(session: Session) -> None:
        async with session.turn("go"):
            await session.compact_now(slow)

    log = MoodyLog()
    await die_in(log, compact)
    assert types_in(log)[-1] == "operation_accepted"
    async with host(log, name="h2") as session:
        assert [report.operation.kind for report in session.recovery] == ["prompt", "compaction"]
        assert await run_turn(session, Script("well")) == "completed"
        assert outcomes(log) == ["interrupted"]
        assert_ended(log)
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_robbed_at_any_step_it_raises_and_the_new_owner_can_compact() -> None:
    for number in range(MOST):
        log = MoodyLog()
        with suppress(Fenced):  # leaving it tells of what was not saved
            async with host(log) as session:
                await talk(session)
                await session.flush()
                task = asyncio.create_task(session.compact_now(slow))
                await steps(number)
                is_late = task.done()
                await claim(
                    log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT
                )
                (ended,) = await asyncio.gather(task, return_exceptions=True)
                assert isinstance(ended, (Fenced, str)), ended
        async with host(log, name="h2") as session:
            await session.compact_now(slow)
            assert compactions(session.view())
            assert_ended(log)
            assert_nothing_lost(session.view())
        assert_sound(log)
        if is_late:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("outcome", ["refused", "lost", "landed"])
@pytest.mark.parametrize("times", [1, 6])
async def test_an_append_that_fails_loses_nothing(outcome: str, times: int) -> None:
    failed = 0
    for number in range(MOST):
        seen = 0

        def mood(frame: SealedFrame) -> str | None:
            nonlocal seen
            seen += 1
            return outcome if number < seen <= number + times else None  # noqa: B023

        log = MoodyLog()
        async with host(log, on_error=Errors()) as session:
            await talk(session)
            await session.flush()
            log.mood = mood
            (ended,) = await asyncio.gather(session.compact_now(slow), return_exceptions=True)
            assert isinstance(ended, (LogError, str)), ended
            failed += isinstance(ended, LogError)
            is_late = seen <= number
            log.mood = None
            assert_nothing_lost(session.view())
            await session.flush()
            assert_ended(log)
            await goes_on(session, log)
        assert_sound(log)
        if is_late:
            assert failed or (times == 1 and outcome != "refused")
            return
    raise AssertionError("it never ended")


async def test_many_at_once_and_a_former_hosts_left_one_is_open_at_a_time() -> None:
    log = MoodyLog()
    await die_in(log, lambda session: session.compact_now(slow))
    async with host(log, name="h2") as session:
        ended = await asyncio.gather(
            *(session.compact_now(slow) for _ in range(4)), return_exceptions=True
        )
        assert sum(isinstance(item, str) for item in ended) == 1, ended
        assert sum(isinstance(item, OperationOpen) for item in ended) == 3, ended
    assert_sound(log)


@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("message", [None, "go"])
async def test_what_was_cut_short_holds_no_turn_up(message: str | None, queued: bool) -> None:
    log = MoodyLog()
    await die_in(log, lambda session: session.compact_now(slow))
    async with host(log, name="h2") as session:
        if queued:
            await session.queue_input("later")
        ended = await run_turn(session, Script("well"), message)
        assert ended == ("completed" if message or queued else "interrupted")
        assert outcomes(log) == ["interrupted"]
        assert_ended(log)
        await goes_on(session, log)
    assert_sound(log)
