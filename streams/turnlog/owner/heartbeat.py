"""Signs of life: a host beats while it runs, and whoever would recover its sessions looks first.

Liveness is advice. Being wrong about it is safe, since only a claim in the log takes a session, so
nothing here is waited for and no rule of the fold reads it. It is judged by a clock that counts
suspend and is never set back, not by the time of day.

A claim cannot be judged by that clock, because what a log keeps beside a record is a time of day.
So a host beats before it claims: a `Pulse` is entered first, and has beaten when it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

from turnlog.core.errors import LogError, TurnlogError
from turnlog.log.port import EmbeddedLog, Heartbeat
from turnlog.owner.ambient import Ambient

INTERVAL_S = 5.0
DEAD_AFTER_S = 15.0
"""Two beats may be late or lost before anybody thinks the worse of it."""

MARK = 12
"""How many characters of a process' own id its claims begin with."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def claim_by(instance: str, id_: str) -> str:
    """The id of a claim that a beating process makes: it tells that process from others which work
    under the same host name."""
    return f"{instance[:MARK]}.{id_}"


def is_marked(claim: str) -> bool:
    """Whether a claim tells which process has made it."""
    return claim[MARK : MARK + 1] == "."


def has_made(beat: Heartbeat, claim: str) -> bool:
    """Whether the process behind a beat has made a claim."""
    return claim.startswith(f"{beat.instance[:MARK]}.")


def system_boot() -> str:
    """What tells this boot of the machine from any other; empty where nothing does."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def living(
    beats: Iterable[Heartbeat], *, uptime: float, boot: str, dead_after_s: float = DEAD_AFTER_S
) -> list[Heartbeat]:
    """The beats of those that are alive at an uptime of a boot. Take the uptime after the beats:
    one from the future is of another boot that could not be told from this one."""
    return [
        beat for beat in beats if beat.boot == boot and 0 <= uptime - beat.uptime <= dead_after_s
    ]


class Pulse:
    """Beats for one host on one log while anybody is in it; see `pulse_of`.

        async with pulse:
            owner = await claim(...)

    Entering the first time raises LogError where the first beat cannot be written. Later beats that
    fail are tried again with the next one; `failure` is the last one's.
    """

    def __init__(
        self,
        log: EmbeddedLog,
        host: str,
        *,
        ambient: Ambient,
        interval_s: float = INTERVAL_S,
        boot: str | None = None,
    ) -> None:
        self.host = host
        self.instance = ambient.ids()
        self.failure: TurnlogError | None = None
        self._log = log
        self._ambient = ambient
        self._interval_s = interval_s
        self._boot = system_boot() if boot is None else boot
        self._since: tuple[int, ...] = (0,)
        self._users = 0
        self._task: asyncio.Task[None] | None = None
        self._entering = asyncio.Lock()

    async def __aenter__(self) -> Self:
        async with self._entering:
            if not self._users:
                ends = [await self._log.end(each) for each in range(self._log.partitions)]
                self._since = tuple(ends)
                await self._beat()
                self._task = asyncio.create_task(self._go_on(), name=f"pulse of {self.host}")
            self._users += 1
        return self

    async def __aexit__(self, *exc: object) -> None:
        async with self._entering:
            self._users -= 1
            if self._users or self._task is None:
                return
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
            with suppress(LogError):  # it is forgotten by itself, only later
                await self._log.end_beating(self.instance)

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self._beat()
            except TurnlogError as error:
                self.failure = error
            else:
                self.failure = None

    async def _beat(self) -> None:
        uptime, time = self._ambient.uptime(), self._ambient.clock()
        since, *others = self._since
        await self._log.beat(
            Heartbeat(self.host, self.instance, since, self._boot, uptime, time, tuple(others))
        )


_pulses: WeakValueDictionary[tuple[int, str], Pulse] = WeakValueDictionary()
"""By the log's identity, which no other log can have while a pulse holds the log."""


def pulse_of(log: EmbeddedLog, host: str, *, ambient: Ambient) -> Pulse:
    """The one pulse of a host on a log, for all of its sessions while any of them holds it."""
    pulse = _pulses.get((id(log), host))
    if pulse is None:
        pulse = _pulses[id(log), host] = Pulse(log, host, ambient=ambient)
    return pulse
