"""Hosts on a Kafka log: each with tables of its own, as on two machines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integration.kafka_topics import make_topic, open_log
from turnlog.core.errors import Fenced
from turnlog.host import Tool, ToolCall, open_session, run_turn
from turnlog.owner.ambient import Ambient
from turnlog.recovery.liveness import holder_of, look_around
from turnlog.testing import ScriptedModel, call

SESSIONS = [f"trip-{number}" for number in range(6)]


def tool(done: list[str], session: str) -> Tool:
    async def pay(_: ToolCall) -> str:
        done.append(session)
        return "paid"

    return Tool("pay", pay, effect="opaque")


def model() -> ScriptedModel:
    return ScriptedModel([[call("pay", amount=1)], "Done."])


async def test_sessions_run_move_and_are_fenced(kafka_servers: str, tmp_path: Path) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers, 3)
    done: list[str] = []
    async with open_log(url, tmp_path / "one.db") as one, open_log(url, tmp_path / "two.db") as two:

        async def talk(session: str) -> str:
            async with open_session(one, session, host="h1", tools=[tool(done, session)]) as opened:
                return await run_turn(opened, model(), "Pay.")

        outcomes = await asyncio.gather(*map(talk, SESSIONS))
        assert outcomes == ["completed"] * len(SESSIONS)
        assert sorted(done) == SESSIONS
        first = SESSIONS[0]
        async with open_session(one, first, host="h1", tools=[tool(done, first)]) as left:
            alive = await look_around(one, Ambient())
            held = holder_of(one.tables, one.tables.get(("sessions", first)), alive)
            assert held is not None
            assert held.host == "h1"
            # the other machine has not read a thing yet, and sees all of it by its own claim
            async with open_session(
                two, first, host="h2", tools=[tool(done, first)], reason="takeover"
            ) as taken:
                assert [message["role"] for message in taken.context()][-1] == "assistant"
                assert await run_turn(taken, model(), "Pay again.") == "completed"
            with pytest.raises(Fenced):
                await run_turn(left, model(), "And again.")
        assert done.count(first) == 2
        for log in (one, two):
            for partition in range(3):
                async for _ in log.read(await log.end(partition), partition=partition):
                    pass
            assert list(log.verify()) == []
        heads = [{row.session: row for row in log.tables.scan("sessions")} for log in (one, two)]
        assert heads[0] == heads[1]
