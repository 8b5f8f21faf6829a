"""Asking work to stop: said once by whatever thread, seen by any thread and any event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

from turnlog.tables.signal import Signal

_T = TypeVar("_T")


class Stopped(Exception):
    """Raised where work is broken off that has nothing to finish. Not an error."""


class Stop:
    """See the module's text."""

    def __init__(self) -> None:
        self._signal = Signal()

    def ask(self) -> None:
        """The work is to finish what it is at, and to return."""
        self._signal.notify()

    @property
    def is_asked(self) -> bool:
        """Whether the work is to stop."""
        return self._signal.count > 0

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Return once the work is to stop, or after a time; gives whether it is."""
        await self._signal.wait(0, timeout_s)
        return self.is_asked

    async def until(self, items: AsyncGenerator[_T]) -> AsyncGenerator[_T]:
        """The items until the work is to stop. What is being done with one is finished."""
        asked = asyncio.ensure_future(self.wait())
        try:
            while not self.is_asked:
                coming = asyncio.ensure_future(anext(items))
                try:
                    await asyncio.wait({coming, asked}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not coming.done():
                        coming.cancel()
                        await asyncio.wait({coming})
                if coming.cancelled():
                    return
                try:
                    item = coming.result()
                except StopAsyncIteration:
                    return
                yield item
        finally:
            asked.cancel()
            await items.aclose()
