"""How a tool's run ends, whatever the tool does about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.host.scene import steps
from turnlog.core.context import TELL
from turnlog.host import OutcomeUnknown, Tool, ToolCall, effects
from turnlog.host.effects import STOPPED, finished, not_known, run_tool, stopped, tell
from turnlog.host.tools import STRICTNESS, Never

CALL = ToolCall("s", "o", "t", "c", {}, "d", 1, "key")


async def _probe(call: ToolCall) -> Never:
    return Never()


def tool(run: Callable[[ToolCall], Awaitable[Any]], **given: Any) -> Tool:
    return Tool("t", run, probe=_probe, **given)


async def hang(call: ToolCall) -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize("effect", STRICTNESS)
async def test_only_of_a_run_that_reads_it_is_known_that_it_did_nothing(effect: Any) -> None:
    made = tool(hang, effect=effect)
    work = asyncio.create_task(run_tool(made, CALL))
    await asyncio.sleep(0)
    outcome = await stopped(made, work, "why")
    assert outcome.status == ("error" if effect == "read_only" else "unknown")
    if outcome.status == "error":
        assert outcome.content == tell("why")
    else:
        assert outcome == not_known("why")


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("no answer"), OutcomeUnknown(), TimeoutError(), ConnectionError("cut")]
)
async def test_the_model_is_told_that_nobody_knows_whether_it_took_effect(error: Exception) -> None:
    async def run(call: ToolCall) -> str:
        raise error

    made = tool(run)
    outcome = await finished(made, asyncio.create_task(run_tool(made, CALL)))
    assert outcome.status == "unknown"
    [part] = outcome.content.parts
    assert str(error) in part["text"]
    assert part["text"].endswith(TELL["unknown"])


async def test_what_a_plain_function_gives_is_its_result() -> None:
    def run(call: ToolCall) -> Any:
        return f"did {call.tool}"

    made = tool(run)
    outcome = await finished(made, asyncio.create_task(run_tool(made, CALL)))
    assert (outcome.status, outcome.content) == ("ok", tell("did t"))


async def test_a_run_stopped_before_its_first_step_is_told_as_stopped() -> None:
    made = tool(hang)
    work = asyncio.create_task(run_tool(made, CALL))
    assert (await stopped(made, work, "why")).status == "unknown"


async def test_cancelling_the_waiting_leaves_the_run_alone() -> None:
    release = asyncio.Event()

    async def slow(call: ToolCall) -> str:
        await release.wait()
        return "done"

    made = tool(slow)
    work = asyncio.create_task(run_tool(made, CALL))
    waiting = asyncio.create_task(finished(made, work))
    await steps(3)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not work.done()
    release.set()
    assert (await finished(made, work)).status == "ok"


async def test_a_run_that_will_not_end_is_waited_for_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effects, "GRACE_S", 0.001)
    release = asyncio.Event()

    async def stubborn(call: ToolCall) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    made = tool(stubborn)
    work = asyncio.create_task(run_tool(made, CALL))
    await asyncio.sleep(0)
    assert (await stopped(made, work, STOPPED)).status == "unknown"
    release.set()
    await work


async def test_a_run_that_ends_while_it_is_stopped_says_what_it_did() -> None:
    async def tidy(call: ToolCall) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("it was half done")
        return "never"

    made = tool(tidy)
    work = asyncio.create_task(run_tool(made, CALL))
    await asyncio.sleep(0)
    outcome = await stopped(made, work, STOPPED)
    assert (outcome.status, outcome.content) == ("error", tell("ValueError: it was half done"))


async def test_what_a_tool_needs_to_know_is_what_it_gets() -> None:
    seen: list[ToolCall] = []

    async def run(call: ToolCall) -> None:
        seen.append(call)

    outcome = await finished(tool(run), asyncio.create_task(run_tool(tool(run), CALL)))
    assert outcome.status == "ok"
    assert seen == [CALL]
