"""Who is alive, and the pulse that says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, talking
from tests.contract.heartbeats import beat
from turnlog.core.errors import LogUnavailable
from turnlog.log.memory import MemoryLog
from turnlog.log.port import Heartbeat
from turnlog.owner.ambient import Ambient
from turnlog.owner.heartbeat import DEAD_AFTER_S, Pulse, living, pulse_of, system_boot


class Failing(MemoryLog):
    """Beats fail while `fails` is set; `beaten` gets each, and whether it was kept."""

    fails = False

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0)
        self.beaten: asyncio.Queue[tuple[Heartbeat, bool]] = asyncio.Queue()

    async def beat(self, beat: Heartbeat) -> None:
        self.beaten.put_nowait((beat, not self.fails))
        if self.fails:
            raise LogUnavailable("busy", retriable=True)
        await super().beat(beat)


@pytest.fixture
def log() -> Failing:
    return Failing()


def at(uptime: float) -> Ambient:
    return Ambient(clock=lambda: 1_000, uptime=lambda: uptime)


@pytest.mark.parametrize(
    ("age", "boot", "alive"),
    [
        (0.0, "b", True),
        (DEAD_AFTER_S, "b", True),
        (DEAD_AFTER_S + 0.1, "b", False),
        (-0.1, "b", False),
        (0.0, "another", False),
    ],
)
def test_alive_is_who_beat_lately_on_this_boot(age: float, boot: str, alive: bool) -> None:
    assert living([beat(uptime=100.0)], uptime=100.0 + age, boot=boot) == (
        [beat(uptime=100.0)] * alive
    )


def test_how_long_may_be_given() -> None:
    assert living([beat(uptime=0.0)], uptime=50.0, boot="b", dead_after_s=60.0)


def test_this_boot_has_a_name_that_stays() -> None:
    assert system_boot() == system_boot()


def test_a_machine_without_boot_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.owner.heartbeat._BOOT_ID", Path("/nowhere"))
    assert system_boot() == ""


async def test_it_has_beaten_when_it_is_entered_and_forgets_itself(log: Failing) -> None:
    await append_all(log, talking("s", 2))
    async with Pulse(log, "h", ambient=at(7.0), boot="b") as pulse:
        [one] = await log.heartbeats()
        assert one == Heartbeat("h", pulse.instance, 3, "b", 7.0, 1_000)
    assert await log.heartbeats() == []


async def test_it_beats_again_and_again(log: Failing) -> None:
    uptimes = iter(range(1, 1_000))
    ambient = Ambient(uptime=lambda: float(next(uptimes)))
    async with Pulse(log, "h", ambient=ambient, interval_s=0.001):
        assert [(await log.beaten.get())[0].uptime for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


async def test_it_is_shared_by_all_who_are_in_it(log: Failing) -> None:
    one = pulse_of(log, "h", ambient=Ambient())
    assert pulse_of(log, "h", ambient=Ambient()) is one
    assert pulse_of(log, "other", ambient=Ambient()) is not one
    assert pulse_of(Failing(), "h", ambient=Ambient()) is not one
    async with one:
        async with one:
            assert len(await log.heartbeats()) == 1
        assert len(await log.heartbeats()) == 1
    assert await log.heartbeats() == []
    async with one:
        assert len(await log.heartbeats()) == 1


async def test_a_beat_that_fails_is_told_and_tried_again(log: Failing) -> None:
    async with Pulse(log, "h", ambient=Ambient(), interval_s=0.001) as pulse:
        await log.beaten.get()
        log.fails = True
        while (await log.beaten.get())[1]:
            pass
        assert str(pulse.failure) == "busy"
        log.fails = False
        while not (await log.beaten.get())[1]:
            pass
        assert pulse.failure is None


async def test_a_host_that_cannot_beat_is_not_in(log: Failing) -> None:
    log.fails = True
    pulse = Pulse(log, "h", ambient=Ambient())
    with pytest.raises(LogUnavailable):
        await pulse.__aenter__()
    log.fails = False
    async with pulse:
        assert len(await log.heartbeats()) == 1


async def test_leaving_a_closed_log_is_no_error(log: Failing) -> None:
    async with Pulse(log, "h", ambient=Ambient()):
        await log.close()
