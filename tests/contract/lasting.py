"""The contract of logs that last: opened again, and by several at once."""

from __future__ import annotations

from tests.contract.adapter import Adapter, append_all, claiming, talking
from tests.contract.contract import read_all, take


class LastingContract:
    async def test_what_was_appended_is_there_after_reopening(self, adapter: Adapter) -> None:
        frames = talking("s", 5)
        async with adapter.open() as log:
            positions = await append_all(log, frames[:3])
        async with adapter.open() as log:
            positions += await append_all(log, frames[3:])
            stored = await read_all(log)
            assert [item.record for item in stored] == [frame.record for frame in frames]
            assert [item.position for item in stored] == positions
            assert list(log.verify()) == []

    async def test_two_who_have_it_open_see_each_other(self, adapter: Adapter) -> None:
        frames = talking("s", 8)
        async with adapter.open() as one, adapter.open() as other:
            follower = other.follow()
            for index, frame in enumerate(frames):
                await (one, other)[index % 2].append(frame)
            seen = await take(follower, len(frames))
            assert [item.record for item in seen] == [frame.record for frame in frames]
            await one.append(claiming("t"))
            await other.tables.wait(await one.end())
            assert other.tables.get(("sessions", "t")).epoch == 1
            assert list(other.verify()) == []
