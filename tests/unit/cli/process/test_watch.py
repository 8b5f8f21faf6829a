"""Who follows a log is looked after: gauges, and readiness by Marten's rule."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.contract.adapter import talking
from tests.unit.cli.process.test_metrics import exposed
from turnlog.cli.process.health import Health
from turnlog.cli.process.lag import LAG_MAX, STILL_S
from turnlog.cli.process.metrics import Metrics
from turnlog.cli.process.stop import Stop
from turnlog.cli.process.watch import OLD_S, Reading, Watch
from turnlog.core.errors import LogUnavailable
from turnlog.log.memory import MemoryLog


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class MoodyLog(MemoryLog):
    """A log in memory whose end cannot always be told."""

    trouble: Exception | None = None

    async def end(self, partition: int = 0) -> int:
        if self.trouble is not None:
            raise self.trouble
        return await super().end(partition)


async def made(stride: int = 1) -> tuple[MoodyLog, Health, Metrics, Watch, Clock]:
    clock = Clock()
    log = MoodyLog(clock=lambda: 0, stride=stride)
    for frame in talking("s", 3):
        await log.append(frame)
    health, metrics = Health(Stop(), clock=clock), Metrics()
    return log, health, metrics, Watch(log, health, metrics, clock=clock), clock


def wrong(health: Health) -> dict[str, str]:
    return {name: said for name, said in health.ready().checks.items() if said and name != "loop"}


async def turn(watch: Watch) -> Any:
    """Let the watch look by itself, once."""
    running = asyncio.create_task(watch.run())
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()


async def test_nothing_is_ready_before_a_look() -> None:
    _, health, _, watch, _ = await made()
    assert wrong(health) == {"log": "not looked at yet"}
    await watch.look()
    assert wrong(health) == {}
    watch.add(Reading("follow", 0, 0))
    said = "partition 0 is not looked at yet"
    assert wrong(health) == {"tables": said, "follow": said}
    await watch.look()
    assert wrong(health) == {}


async def test_gauges() -> None:
    _, _, metrics, watch, _ = await made()
    reading = Reading("follow", 0, 1)
    watch.add(reading)
    await watch.look()
    labels = ("group=follow", "partition=0", "topic=")
    assert exposed(metrics)["turnlog_consumer_lag_records", *labels] == 3
    reading.position = 4
    await watch.look()
    found = exposed(metrics)
    assert found["turnlog_consumer_lag_records", *labels] == 0
    assert found["turnlog_log_end_position", "partition=0"] == 4
    assert found["turnlog_projection_position", "partition=0", "projection=tables"] == 4


async def test_who_lags_and_stands_still_is_not_ready() -> None:
    _, health, _, watch, clock = await made(stride=LAG_MAX)
    reading = Reading("follow", 0, 1)
    watch.add(reading)
    await watch.look()
    clock.now += STILL_S
    await watch.look()
    assert wrong(health) == {
        "follow": f"partition 0 is {4 * LAG_MAX - 1:,} behind, and at position 1 for 60 s"
    }
    reading.position = 2
    await watch.look()
    assert wrong(health) == {}


async def test_a_log_that_does_not_tell_its_end_is_not_ready() -> None:
    log, health, _, watch, _ = await made()
    watch.add(Reading("follow", 0, 4))
    await turn(watch)
    assert wrong(health) == {}
    log.trouble = LogUnavailable("no broker answers", retriable=True)
    await turn(watch)
    assert wrong(health) == {"log": "no broker answers"}
    log.trouble = ValueError("a bug")
    await turn(watch)
    assert wrong(health) == {"log": "ValueError: a bug"}
    log.trouble = None
    await turn(watch)
    assert wrong(health) == {}


async def test_what_was_found_long_ago_says_nothing() -> None:
    _, health, _, watch, clock = await made()
    await watch.look()
    clock.now += OLD_S
    assert wrong(health) == {}
    clock.now += 1
    assert wrong(health) == {"log": f"its end is not known since {OLD_S + 1:.0f} s"}


async def test_it_can_be_ended_at_any_moment() -> None:
    """Also in the very step in which somebody new wakes it."""
    _, _, _, watch, _ = await made()
    for steps in range(30):
        running = asyncio.create_task(watch.run())
        for _ in range(steps):
            await asyncio.sleep(0)
        watch.add(Reading("follow", 0, 4))
        for _ in range(steps % 3):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=30)
        assert running.cancelled()


async def test_somebody_new_is_looked_at_at_once() -> None:
    _, health, _, watch, _ = await made()
    running = asyncio.create_task(watch.run())
    for _ in range(20):
        await asyncio.sleep(0)
    watch.add(Reading("follow", 0, 4))
    for _ in range(20):
        await asyncio.sleep(0)
    assert wrong(health) == {}
    running.cancel()
