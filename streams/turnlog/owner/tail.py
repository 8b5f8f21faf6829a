"""What is new in a log, told to all sessions of this process by one reader for each partition.

A session learns here what others wrote to it: a newer claim, an abort request, a person's decision,
a queued input. An idle session has no task of its own for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from turnlog.core.errors import LogError
from turnlog.log.port import Log, Stored

See = Callable[[Stored], None]
PAUSE_S = 0.01
"""How long news may wait for company, so that what this process writes costs one look for many."""
RETRY_S = 0.5
"""How long to wait before a log that could not be read is read again."""

_tails: dict[tuple[Log, int], Tail] = {}


def watch(log: Log, session: str, see: See, *, after: int) -> Callable[[], None]:
    """Call `see` with each record of a session that is appended from now on, in order.

    `after` is a position that the log had reached before; records from there on may be shown, too.
    Gives the function that ends it.
    """
    key = (log, log.partition_of(session))
    tail = _tails.get(key)
    if tail is None or tail.is_dead:
        tail = _tails[key] = Tail(log, key[1], after)
    tail.add(session, see)

    def leave() -> None:
        if not tail.remove(session, see) and _tails.get(key) is tail:
            del _tails[key]

    return leave


class Tail:
    """The end of one partition, and who watches it."""

    def __init__(self, log: Log, partition: int, after: int) -> None:
        self._log = log
        self._partition = partition
        self._at = after
        self._watching: dict[str, list[See]] = {}
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, or runs in a loop that is not this one."""
        return self._task.done() or self._task.get_loop() is not asyncio.get_running_loop()

    def add(self, session: str, see: See) -> None:
        """Begin to show a session's records."""
        self._watching.setdefault(session, []).append(see)

    def remove(self, session: str, see: See) -> bool:
        """Show them no more; whether anybody still watches."""
        watching = self._watching.get(session, [])
        if see in watching:
            watching.remove(see)
        if not watching:
            self._watching.pop(session, None)
        if not self._watching:
            self._task.cancel()
        return bool(self._watching)

    async def _run(self) -> None:
        while True:
            try:
                async for stored in self._log.follow(
                    self._at, partition=self._partition, pause_s=PAUSE_S
                ):
                    self._at = stored.position
                    for see in tuple(self._watching.get(stored.record.session, ())):
                        see(stored)
            except LogError:
                await asyncio.sleep(RETRY_S)
