"""Nobody who waits misses what happened, from whichever thread."""

from __future__ import annotations

import asyncio
import threading
import time

from turnlog.tables.signal import Signal


async def test_what_happened_before_the_wait_is_not_missed() -> None:
    signal = Signal()
    seen = signal.count
    signal.notify()
    await signal.wait(seen)


async def test_one_waits_until_something_happens() -> None:
    signal = Signal()
    waiting = asyncio.ensure_future(signal.wait(signal.count))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    threading.Thread(target=signal.notify).start()
    await waiting


async def test_one_waits_no_longer_than_told_and_leaves_nothing() -> None:
    signal = Signal()
    await signal.wait(signal.count, 0.001)
    assert signal._waiting == []


async def test_who_is_cancelled_leaves_nothing() -> None:
    signal = Signal()
    waiting = asyncio.ensure_future(signal.wait(signal.count))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert signal._waiting == []


def test_all_are_woken_in_every_loop() -> None:
    signal = Signal()
    seen = signal.count
    begun = threading.Semaphore(0)

    async def wait() -> None:
        asyncio.get_running_loop().call_soon(begun.release)
        await signal.wait(seen)

    threads = [threading.Thread(target=lambda: asyncio.run(wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in threads:
        begun.acquire()
    while len(signal._waiting) < len(threads):
        time.sleep(0.001)
    signal.notify()
    for thread in threads:
        thread.join()


def test_a_loop_that_is_gone_hinders_nobody() -> None:
    signal = Signal()
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    signal._waiting.append(future)
    loop.close()
    signal.notify()
    assert signal.count == 1
