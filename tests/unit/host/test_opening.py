"""Opening a session and leaving it again."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    Errors,
    Ledger,
    MoodyLog,
    Script,
    assert_sound,
    crashed_turn,
    head_of,
    host,
    rows,
    steps,
    told,
    types_in,
    types_of,
    until,
)
from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    ClaimLost,
    Fenced,
    LogError,
    LogUnavailable,
    StateError,
)
from turnlog.core.fold import fold
from turnlog.core.frames import NewEvent
from turnlog.host import Session, run_turn
from turnlog.owner.guest import queue_input, write_guest
from turnlog.owner.owner import claim


async def test_a_new_session_is_made_with_what_was_given() -> None:
    log = MoodyLog()
    async with host(log, title="t", cwd="/x", agent="a", state={"k": 1}) as session:
        assert session.recovery == []
        assert session.state == {"k": 1}
        assert (session.leaf, session.context()) == (None, [])
    head = head_of(log)
    assert (head.title, head.cwd, head.agent, head.epoch) == ("t", "/x", "a", 1)
    assert types_in(log) == ["session_claimed", "session_created", "session_released"]
    async with host(log, title="other", state={"k": 2}) as again:
        assert again.state == {"k": 1}, "what it was made with stays"
    assert head_of(log).title == "t"
    assert_sound(log)


async def test_what_guests_said_before_there_was_a_session_is_there() -> None:
    log = MoodyLog()
    await write_guest(log, "s", [queue_input("hello", AMBIENT)], writer="p", ambient=AMBIENT)
    async with host(log) as session:
        assert await run_turn(session, Script("well")) == "completed"
        assert told(session) == ["user: hello", "assistant: well"]
    assert_sound(log)


async def test_each_opening_has_a_claim_of_its_own() -> None:
    log = MoodyLog()
    claims = []
    for _ in range(3):
        async with host(log) as session:
            claims.append(session.link.owner.claim_id)
    assert len(set(claims)) == 3
    assert head_of(log).epoch == 3
    assert_sound(log)


@pytest.mark.parametrize("outcome", ["refused", "lost", "landed"])
@pytest.mark.parametrize("at", ["session_claimed", "session_created"])
async def test_opening_over_a_log_that_fails_leaves_a_session_that_opens_later(
    outcome: str, at: str
) -> None:
    log = MoodyLog()
    before = asyncio.all_tasks()
    log.mood = lambda frame: outcome if at in types_of(frame) else None
    with pytest.raises((AppendRefused, AppendUnknown)):
        async with host(log):
            raise AssertionError
    await steps(20)
    assert asyncio.all_tasks() == before, "nothing is left running"
    log.mood = None
    async with host(log, title="t") as session:
        await run_turn(session, Script("well"), "go")
    assert types_in(log).count("session_created") >= 1
    assert_sound(log)


@pytest.mark.parametrize("number", range(12))
async def test_opening_may_be_given_up_at_any_step(number: int) -> None:
    log = MoodyLog()
    before = asyncio.all_tasks()

    async def use() -> None:
        async with host(log) as session:
            await run_turn(session, Script("well"), "go")

    task = asyncio.create_task(use())
    await steps(number)
    task.cancel()
    await asyncio.wait([task])
    await steps(50)
    assert asyncio.all_tasks() == before
    async with host(log) as session:
        if session.recovery:
            await run_turn(session, Script("well"))
        await run_turn(session, Script("well"), "on")
    assert_sound(log)


async def test_a_claim_that_names_the_seq_it_saw_does_not_rob_who_still_writes() -> None:
    log = MoodyLog()
    async with host(log) as session:
        seen = head_of(log).seq
        await run_turn(session, Script("well"), "go")
        with pytest.raises(ClaimLost):
            async with host(log, name="r", expects_seq=seen, reason="recovery"):
                raise AssertionError
        await run_turn(session, Script("well"), "on")
        seen = head_of(log).seq
        async with host(log, name="r", expects_seq=seen, reason="recovery"):
            await until(lambda: session.link.is_lost)
    assert_sound(log)


async def test_a_session_of_a_newer_release_is_not_opened() -> None:
    log = MoodyLog()
    owner = await claim(log, "s", tables=log.tables, host="h", reason="open", ambient=AMBIENT)
    await owner.write([NewEvent("message", "m", None, {"parent": None}, v=9)])
    with pytest.raises(StateError, match="upgrade"):
        async with host(log):
            raise AssertionError


async def test_what_was_open_is_told_and_stays_until_something_is_done_about_it() -> None:
    log = await crashed_turn(Ledger())
    for _ in range(2):
        async with host(log, name="h2") as session:
            (report,) = session.recovery
            assert report.verdict.name == "indeterminate_tool"
            assert len(session.reports()) == 1
    assert_sound(log)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, asyncio.CancelledError])
async def test_leaving_by_an_error_gives_the_session_up_unless_the_process_dies(
    error: type[BaseException],
) -> None:
    log = MoodyLog()

    async def use() -> None:
        async with host(log, window_s=1e9) as session:
            await session.set_state({"k": 1})
            raise error("x")

    with pytest.raises(error):
        await use()
    dies = error is KeyboardInterrupt
    assert head_of(log).released != dies
    async with host(log) as session:
        assert session.state == ({} if dies else {"k": 1})
    assert_sound(log)


async def test_an_error_on_leaving_hides_none_of_the_body() -> None:
    log, errors = MoodyLog(), Errors()

    async def use() -> None:
        async with host(log, on_error=errors) as session:
            await session.flush()
            log.mood = lambda frame: "refused"
            raise ValueError("the body's own")

    with pytest.raises(ValueError, match="own"):
        await use()
    assert [type(error) for error in errors] == [AppendRefused]


async def test_being_robbed_is_told_on_leaving_only_where_something_is_unsaved() -> None:
    log = MoodyLog()

    async def use(state: dict[str, Any]) -> None:
        async with host(log, window_s=1e9) as session:
            await session.set_state(state)
            await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)
            await until(lambda: session.link.is_lost)

    await use({})
    with pytest.raises(Fenced) as caught:
        await use({"k": 1})
    assert [event.type for event in caught.value.unsaved] == ["app_state"]
    assert_sound(log)


async def test_errors_in_the_background_are_logged_by_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = MoodyLog()
    async with host(log, on_error=None) as session:
        await session.flush()
        log.mood = lambda frame: "refused"
        with caplog.at_level(logging.ERROR, "turnlog.host"):
            await session.set_state({"k": 1})
            await until(lambda: caplog.records)
        log.mood = None
    assert [record.getMessage() for record in caplog.records] == ["no room"]


async def test_a_callback_that_fails_harms_nothing() -> None:
    """What it raises is told to the loop; what waits is kept, and who waits is told."""
    told_loop: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: told_loop.append(told))

    def complain(error: Exception) -> None:
        raise ValueError("the callback's own")

    log = MoodyLog()
    async with host(log, on_error=complain) as session:
        await session.flush()
        log.mood = lambda frame: "refused"
        await session.set_state({"k": 1})
        await until(lambda: told_loop)
        log.mood = None
        await session.flush()
        assert session.state == {"k": 1}
        async with host(log, name="h2"):
            await until(lambda: session.link.is_lost)
    assert isinstance(told_loop[0]["exception"], ValueError)
    assert_sound(log)


def test_a_log_that_outlives_its_loop_tells_its_news_in_the_next_one() -> None:
    log = MoodyLog()
    kept: list[Session] = []

    async def abandon() -> None:
        scope = host(log)
        kept.append(await scope.__aenter__())

    asyncio.run(abandon())

    async def again() -> None:
        async with host(log, name="h2") as session:
            await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)
            await until(lambda: session.link.is_lost)

    asyncio.run(again())
    assert len(rows(log, "entries")) == 0


async def test_tables_that_stop_are_told_and_hang_nobody() -> None:
    """A guest's frame cannot be folded: the log goes on, and the tables lag from there."""
    errors = Errors()

    def folding(frame: Any, position: int, tables: Any) -> Any:
        if any(event.type == "input_queued" for event in getattr(frame, "events", ())):
            raise ValueError("it cannot be folded")
        return fold(frame, position, tables)

    log = MoodyLog()
    log._fold = folding
    with suppress(StateError, LogError):
        async with host(log, on_error=errors) as session:
            await session.set_state({"k": 1})
            await session.flush()
            await write_guest(log, "s", [queue_input("x", AMBIENT)], writer="p", ambient=AMBIENT)
            await until(lambda: errors)
            assert session.state == {"k": 1}
    assert isinstance(errors[0], StateError)
    log._fold = fold
    log.rebuild()
    async with host(log) as again:
        assert await run_turn(again, Script("well")) == "completed"
    assert_sound(log)


async def test_a_log_that_is_closed_under_a_session_is_told_and_leaves_no_task() -> None:
    log, before = MoodyLog(), asyncio.all_tasks()

    async def use() -> None:
        async with host(log) as session:
            await session.flush()
            await log.close()
            with pytest.raises(LogUnavailable):
                await run_turn(session, Script("well"), "go")

    with pytest.raises(LogUnavailable):
        await use()
    await steps(20)
    assert asyncio.all_tasks() == before
