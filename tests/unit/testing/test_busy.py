"""A host that uses everything a session offers, at every crash."""

from __future__ import annotations

import pytest

from tests.unit.testing import busy
from turnlog.owner import places
from turnlog.tables.view import SessionView
from turnlog.testing import World, for_each_crash


def check(world: World) -> None:
    tables = world.log.tables
    world.effects.assert_as_declared()
    world.effects.assert_once_per_key("pay")
    world.effects.assert_once_per_key("book")
    assert not list(tables.scan("quarantine"))
    assert not list(world.log.verify())
    for head in tables.scan("sessions"):
        assert not head.damage
        assert_balanced(SessionView(tables, head.session).context())


def assert_balanced(context: list[dict]) -> None:
    """Each call of an assistant message is answered right behind it, and nothing else answers."""
    waiting: list[str] = []
    for message in context:
        if message["role"] == "tool":
            waiting.remove(message["call_id"])
        else:
            assert not waiting
        if message["role"] == "assistant":
            calls = [part for part in message["content"] if part["type"] == "tool_call"]
            waiting = [part["call_id"] for part in calls]
    assert not waiting


async def test_a_busy_agent_is_cleared_up_after_every_crash() -> None:
    tried = await for_each_crash(busy.work, busy.clear_up, check)
    reached = {path[0].partition(":")[0] for path in tried if path}
    assert places.COMPACTION_STARTED in reached
    assert len(tried) > 120


@pytest.mark.proof
async def test_and_after_every_second_crash_in_clearing_up() -> None:
    await for_each_crash(busy.work, busy.clear_up, check, depth=2)
