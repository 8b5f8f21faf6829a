"""Live is the loop's turning alone; ready is every check, and nothing but checks."""

from __future__ import annotations

import asyncio
import logging

import pytest

from turnlog.cli.process.health import BLOCKED_S, Health
from turnlog.cli.process.stop import Stop


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def made() -> tuple[Health, Stop, Clock]:
    stop, clock = Stop(), Clock()
    return Health(stop, clock=clock), stop, clock


async def test_a_loop_that_does_not_turn_does_not_live() -> None:
    health, _, clock = made()
    clock.now += BLOCKED_S
    assert health.live().is_good
    clock.now += 1
    assert not health.live().is_good
    assert health.live().checks == {"loop": "the event loop has not turned for 31 s"}
    turning = asyncio.create_task(health.turn())
    await asyncio.sleep(0)
    assert health.live().is_good
    turning.cancel()


def test_failing_checks_do_not_touch_life() -> None:
    health, stop, _ = made()
    health.add("log", lambda: "away")
    stop.ask()
    assert health.live().is_good
    assert not health.ready().is_good


def test_ready_is_every_check() -> None:
    health, _, clock = made()
    assert health.ready().checks == {"loop": None, "running": "starting"}
    said: dict[str, str | None] = {"log": None, "tables": "behind"}
    health.add("log", lambda: said["log"])
    health.add("tables", lambda: said["tables"])
    assert health.ready().checks == {"loop": None, "log": None, "tables": "behind"}
    assert not health.ready().is_good
    said["tables"] = None
    assert health.ready().is_good
    clock.now += BLOCKED_S + 1
    assert not health.ready().is_good


def test_a_check_that_raises_is_a_check_that_fails() -> None:
    health, _, _ = made()
    health.add("log", lambda: str(1 / 0))
    assert health.ready().checks["log"] == "the check failed: ZeroDivisionError: division by zero"


def test_stopping_is_not_ready() -> None:
    health, stop, _ = made()
    health.add("log", lambda: None)
    stop.ask()
    assert health.ready().checks == {"loop": None, "running": "stopping", "log": None}
    assert not health.ready().is_good


async def test_changes_are_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("turnlog.cli.process.health.TURN_S", 0)
    health, _, _ = made()
    said: list[str | None] = ["away"]
    turning = asyncio.create_task(health.turn())

    async def turn() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    with caplog.at_level(logging.INFO, "turnlog"):
        await turn()
        health.add("log", lambda: said[0])
        await turn()
        said[0] = None
        await turn()
        said[0] = "gone"
        await turn()
    turning.cancel()
    assert caplog.messages == ["not ready: log: away", "ready", "not ready: log: gone"]
