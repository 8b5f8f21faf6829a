"""Room for a model request: made before it where the context grows too long, and once more after a
model has said that it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from turnlog.host import compaction
from turnlog.host.compaction import Compaction
from turnlog.host.errors import CompactionFailed, ContextOverflow
from turnlog.host.session import Session

_T = TypeVar("_T")


class Room:
    """See the module's text; without a `Compaction` only what others do to the surface counts.

    A compaction that fails is told through the session's `on_error`, and ends no turn.
    """

    def __init__(self, session: Session, how: Compaction | None) -> None:
        self._session = session
        self._how = how
        self._failed = False

    async def make(self) -> None:
        """Compact where the context needs it. A summariser that failed is not asked again in this
        turn before a model overflows."""
        if self._how is not None and not self._failed:
            await self._compact(self._how, "pressure")

    async def within(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Make a request, and once more after an overflow, if the surface generation has moved
        since: the same context would overflow again. Raises ContextOverflow."""
        before = self._generation()
        try:
            return await ask()
        except ContextOverflow:
            if self._how is not None and not await self._compact(self._how, "overflow"):
                await self._session.prune(meter=self._how.meter)
            if self._generation() == before:
                raise
        return await ask()

    async def _compact(self, how: Compaction, reason: compaction.Trigger) -> bool:
        link = self._session.link
        try:
            return await compaction.compact_if_needed(link, how, reason) is not None
        except CompactionFailed as error:
            self._failed = True
            link.settings.on_error(error)
            return False

    def _generation(self) -> int:
        return self._session.view().head.generation
