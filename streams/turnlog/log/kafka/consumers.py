"""Ending a consumer of aiokafka, whatever it is at.

Its own `stop` cancels the fetches that are under way and waits for them. One that has just failed,
and waits to be tried again, ends as cancelled, and so does `stop`: it looks as if whoever called it
were cancelled, and the connections stay open.
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer


async def end(consumer: AIOKafkaConsumer) -> None:
    """End a consumer and give its connections back. Raises what its `stop` raises, KafkaError."""
    stopping = asyncio.ensure_future(consumer.stop())
    await asyncio.wait([stopping])
    if not stopping.cancelled():
        stopping.result()
        return
    fetcher = consumer._fetcher  # pyright: ignore[reportPrivateUsage]  # there is no other way
    fetches: set[asyncio.Task[bool]] = set(fetcher._pending_tasks)
    for fetch in fetches:
        fetch.cancel()
    if fetches:
        await asyncio.wait(fetches)
    await consumer._client.close()  # pyright: ignore[reportPrivateUsage]  # nor here
