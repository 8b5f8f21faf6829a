"""What still goes out once a session is lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.story import accepted, event, result, used, user
from tests.unit.host.scene import (
    AMBIENT,
    Errors,
    MoodyLog,
    Script,
    assert_sound,
    head_of,
    host,
    rows,
    told,
    until,
)
from turnlog.core.errors import AppendRefused, AppendUnknown, Fenced
from turnlog.host import evidence, run_turn
from turnlog.owner.owner import claim


async def rob(log: MoodyLog) -> None:
    await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (result("r", None, "c", dispatch="d"), True),
        (result("r", None, "c"), False),
        (user("u", None), False),
        (event("dispatch_settled", dispatch="d", status="ok"), True),
        (used("a", "o", input=1), True),
        (accepted("o", "u"), False),
        (event("fact", name="n", value=1), False),
    ],
)
def test_answers_and_usage_are_evidence(made: Any, counts: bool) -> None:
    assert evidence.is_answer(made) == counts


@pytest.mark.parametrize("number", range(12))
async def test_what_a_user_said_is_offered_again_once_wherever_the_session_was_lost(
    number: int,
) -> None:
    """In the frame that was under way, in the batch, or after the loss was known."""
    log = MoodyLog()
    with suppress(Fenced):
        async with host(log) as session:
            await session.flush()
            task = asyncio.create_task(run_turn(session, Script("well"), "go"))
            for _ in range(number):
                await asyncio.sleep(0)
            await rob(log)
            with suppress(Fenced):
                await task
            await session.link.settle_background()
    async with host(log, name="h2") as other:
        if head_of(log).open_operations or other.pending():
            await run_turn(other, Script("well"))
        assert told(other) == ["user: go", "assistant: well"]
    assert len(rows(log, "inputs")) <= 1
    assert_sound(log)


async def test_two_sayings_of_a_lost_session_are_two_inputs() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await rob(log)
        await until(lambda: session.link.is_lost)
        for text in ("one", "two"):
            with pytest.raises(Fenced):
                async with session.turn(text):
                    raise AssertionError
    assert len(head_of(log).pending_inputs) == 2
    async with host(log, name="h2") as other:
        for _ in range(2):
            await run_turn(other, Script("well"))
        assert told(other)[::2] == ["user: one", "user: two"]
    assert_sound(log)


@pytest.mark.parametrize(
    ("outcome", "error"), [("refused", AppendRefused), ("lost", AppendUnknown)]
)
async def test_what_the_log_does_not_take_is_told(outcome: str, error: type[Exception]) -> None:
    log, errors = MoodyLog(), Errors()
    async with host(log, on_error=errors) as session:
        await rob(log)
        await until(lambda: session.link.is_lost)
        log.mood = lambda frame: outcome
        await evidence.testify(
            session.link, [used("a", "o", input=1), user("u", None), accepted("o", "u")]
        )
        log.mood = None
    assert [type(told) for told in errors] == [error, error]


async def test_one_piece_that_no_log_takes_does_not_hold_up_the_others() -> None:
    log, errors = MoodyLog(), Errors()
    async with host(log, on_error=errors) as session:
        await session.flush()
        await rob(log)
        await until(lambda: session.link.is_lost)
        bad = event("usage_settled", operation="o", attempt="a", usage={"input": 2**70})
        large = user("u", None, "x" * 950_000)
        await evidence.testify(
            session.link, [bad, large, accepted("o", "u"), user("v", None), accepted("p", "v")]
        )
    assert len(errors) == 2
    assert list(head_of(log).pending_inputs) == ["v"]
    assert_sound(log)
