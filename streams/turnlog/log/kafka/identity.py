"""Whether the topic is still the one that was opened, and whole.

Both reading and appending go by its name, and one that was deleted and made again has the same name
and answers all the same. Its id tells, and where its partitions begin.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future

from turnlog.core.errors import LogError, LogUnavailable, StateError
from turnlog.log.kafka.cluster import BEGINNING, Cluster
from turnlog.log.kafka.loop import LoopThread
from turnlog.log.kafka.topic import Found

LOOK_S = 1.0
"""How old an answer may be before it is asked again."""


class Identity:
    """See the module's text. `found` is the topic as it was opened."""

    def __init__(self, cluster: Cluster, found: Found, thread: LoopThread) -> None:
        self._cluster = cluster
        self._topic = found.topic
        self._begins = found.begins
        self._thread = thread
        self._begins_at: dict[int, float] = {}
        """When it was last seen where a partition begins."""
        self._failure: StateError | None = None
        self._last: Future[None] | None = None
        self._last_at = 0.0

    async def confirm(self, partition: int) -> None:
        """Raise StateError where it is another topic, or a partition has lost its first records,
        and LogUnavailable where nobody answers, or there is none. For the log's event loop."""
        name, opened = self._topic.name, len(self._topic.partitions)
        topic = await self._cluster.topic(name)
        if topic is None:
            raise LogUnavailable(f"there is no topic {name!r} any more")
        if (topic.id, len(topic.partitions)) != (self._topic.id, opened):
            raise StateError(
                f"topic {name!r} is not the one that was opened: its id is {topic.id}, with"
                f" {len(topic.partitions)} partitions, and was {self._topic.id}, with {opened};"
                " run turnlog topics check"
            )
        if time.monotonic() - self._begins_at.get(partition, -LOOK_S) < LOOK_S:
            return
        (begin,) = await self._cluster.offsets(name, BEGINNING, [partition])
        if begin > self._begins[partition]:
            raise StateError(
                f"topic {name!r}, partition {partition}: begins at position {begin + 1};"
                " what was before has been deleted; run turnlog topics check"
            )
        self._begins_at[partition] = time.monotonic()

    def check(self) -> None:
        """Raise StateError where a look has found another topic."""
        if self._failure is not None:
            raise StateError(str(self._failure))

    def look(self) -> Future[None]:
        """A look at the topic, under way or at most a second old. From any thread."""
        look = self._last
        if look is None or (look.done() and time.monotonic() - self._last_at > LOOK_S):
            self._last_at = time.monotonic()
            look = self._last = self._thread.start(self._look())
        return look

    async def see(self, look: Future[None]) -> None:
        """Wait for what a look finds. Raises StateError where it is another topic."""
        if not look.done():
            await asyncio.shield(asyncio.wrap_future(look))
        self.check()

    async def _look(self) -> None:
        """That nobody answers says nothing of the topic."""
        try:
            await self.confirm(0)
        except StateError as error:
            self._failure = error
        except LogError:
            pass
