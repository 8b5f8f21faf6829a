"""Waiting for something new without a busy loop and without missing it, from any event loop."""

from __future__ import annotations

import asyncio
import threading


class Signal:
    """Counts what happened and wakes who waits for it. Safe to use from any thread and loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def count(self) -> int:
        """How often something happened. Take it, look, and `wait` for a change of it."""
        return self._count

    def notify(self) -> None:
        """Something happened."""
        with self._lock:
            self._count += 1
            if not self._waiting:
                return
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            try:
                future.get_loop().call_soon_threadsafe(_wake, future)
            except RuntimeError:
                continue  # that loop is closed: nobody waits there any more

    async def wait(self, seen: int, timeout_s: float | None = None) -> None:
        """Return once the count is no longer `seen`, or after a time."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._count != seen:
                return
            self._waiting.append(future)
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            with self._lock:
                if future in self._waiting:
                    self._waiting.remove(future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
