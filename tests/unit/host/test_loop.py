"""The plain agent loop: models that fail, never stop, or answer nonsense."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    Ledger,
    MoodyLog,
    Script,
    assert_balanced,
    assert_ended,
    assert_sound,
    calls,
    head_of,
    host,
    rows,
    told,
    types_of,
)
from turnlog.core.errors import AppendRefused, Fenced, StateError
from turnlog.host import OperationOpen, Reply, run_turn
from turnlog.owner.owner import claim


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def failing(*errors: BaseException) -> Any:
    """A model that raises these, then is done."""
    left = list(errors)

    async def model(context: list[dict[str, Any]]) -> Reply:
        assert_balanced(context)
        if left:
            raise left.pop(0)
        return Reply("done")

    return model


@pytest.mark.parametrize(
    "error",
    [ValueError("v"), TimeoutError(), Mute(), ValueError("x" * 2_000_000), ValueError("\ud83d"),
     ExceptionGroup("g", [ValueError("v")])],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
async def test_a_model_that_fails_is_asked_again_and_not_for_ever(error: Exception) -> None:
    log = MoodyLog()
    async with host(log) as session:
        assert await run_turn(session, failing(error, error), "go") == "completed"
        assert await run_turn(session, failing(error, error, error), "go") == "failed"
        first, second = sorted(rows(log, "operations"), key=lambda row: row.accepted)
        assert (first.outcome, second.outcome) == ("completed", "failed")
        assert len(rows(log, "attempts")) == 6
        assert await run_turn(session, failing(), "on") == "completed"
    assert_sound(log)


@pytest.mark.parametrize(
    "answer",
    [None, 5, "plain text", {"content": "x"}, [], Reply(5), Reply([1]), Reply({"content": 5}),
     Reply("x", usage={"input": "many"}), Reply("x", usage=5), Reply([{"type": "tool_call"}]),
     Reply({"content": [{"type": "x", "n": float("nan")}]})],
    ids=repr,
)  # fmt: skip
async def test_a_model_that_answers_nonsense_ends_the_turn_as_failed(answer: Any) -> None:
    log, asked = MoodyLog(), 0

    async def model(context: list[dict[str, Any]]) -> Any:
        nonlocal asked
        asked += 1
        return answer

    async with host(log) as session:
        assert await run_turn(session, model, "go") == "failed"
        assert asked == 3
        assert told(session) == ["user: go"]
        assert_ended(log)
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


async def test_a_model_that_never_stops_is_stopped() -> None:
    log, ledger = MoodyLog(), Ledger()

    async def model(context: list[dict[str, Any]]) -> Reply:
        return Reply(calls("read_only"))

    async with host(log, *ledger.tools()) as session:
        assert await run_turn(session, model, "go", steps=5) == "blocked"
        assert ledger.count("read_only") == 5
        assert_balanced(session.context())
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert_sound(log)


@pytest.mark.parametrize("stop", ["length", "content_filter", "error", "aborted", "stop"])
async def test_a_terminal_answer_that_still_calls_tools_has_them_run_or_answered(stop: str) -> None:
    """The calls of a message that was cut off are calls like any others."""
    log, ledger = MoodyLog(), Ledger()
    first = {**calls("read_only"), "stop_reason": stop}
    async with host(log, *ledger.tools()) as session:
        assert await run_turn(session, Script(first), "go") == "completed"
        assert_balanced(session.context())
    assert_sound(log)


@pytest.mark.parametrize("answer", ["", None, [], {"content": []}])
async def test_an_empty_answer_ends_the_turn(answer: Any) -> None:
    log = MoodyLog()

    async def model(context: list[dict[str, Any]]) -> Reply:
        return Reply(answer)

    async with host(log) as session:
        assert await run_turn(session, model, "go") == "completed"
        assert [said["role"] for said in session.context()] == ["user", "assistant"]
    assert_sound(log)


async def test_errors_of_the_log_are_no_failures_of_the_model() -> None:
    """The turn stays open and goes on once the log works again."""
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools()) as session:
        model = Script()
        log.mood = lambda frame: "refused" if "tool_dispatched" in types_of(frame) else None
        with pytest.raises(AppendRefused):
            await run_turn(session, model, "go")
        assert rows(log, "operations")[0].outcome is None
        with pytest.raises(OperationOpen):
            await run_turn(session, model, "another")
        log.mood = None
        assert await run_turn(session, model) == "completed"
    assert_sound(log)


@pytest.mark.parametrize("error", [StateError("our own bug"), KeyError("theirs")])
async def test_what_a_model_raises_of_ours_is_not_swallowed(error: Exception) -> None:
    log = MoodyLog()
    async with host(log) as session:
        if isinstance(error, StateError):
            with pytest.raises(StateError):
                await run_turn(session, failing(error), "go")
            assert rows(log, "operations")[0].outcome == "failed"
        else:
            assert await run_turn(session, failing(error), "go") == "completed"
    assert_sound(log)


async def test_a_session_lost_while_the_model_thinks_is_fenced_at_once() -> None:
    thinking = asyncio.Event()

    async def model(context: list[dict[str, Any]]) -> Reply:
        thinking.set()
        await asyncio.Event().wait()
        raise AssertionError

    log = MoodyLog()
    with suppress(Fenced):  # told again on leaving, since the attempt is not saved
        async with host(log) as session:
            task = asyncio.create_task(run_turn(session, model, "go"))
            await thinking.wait()
            await claim(log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT)
            with pytest.raises(Fenced):
                await task
    async with host(log, name="h2") as other:
        assert await run_turn(other, Script("well")) == "completed"
        assert told(other) == ["user: go", "assistant: well"]
    assert_sound(log)


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit])
async def test_a_model_that_raises_what_stops_tasks_leaves_a_turn_to_go_on_with(
    error: type[BaseException],
) -> None:
    log = MoodyLog()
    async with host(log) as session:
        with pytest.raises(error):
            await run_turn(session, failing(error()), "go")
        assert len(head_of(log).open_operations) == 1
        assert await run_turn(session, failing()) == "completed"
    assert_sound(log)
