"""The event loop of a Kafka log, in a thread of its own.

aiokafka's clients live in one event loop; the log is used from any, from several, and from none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class LoopThread:
    """See the module's text."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Have some work done there."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run some work there and wait for it."""
        return self.start(work).result()

    async def ask(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run some work there and wait for it in this event loop."""
        return await asyncio.wrap_future(self.start(work))

    def tell(self, function: Callable[..., object], *args: object) -> None:
        """Have something called there."""
        self.loop.call_soon_threadsafe(function, *args)

    @property
    def is_alive(self) -> bool:
        """Whether it was not closed."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread; what still runs there is cancelled. May be called twice."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        pending = asyncio.all_tasks(self.loop)
        for task in pending:
            task.cancel()
        if pending:
            self.loop.run_until_complete(asyncio.wait(pending, timeout=5))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
