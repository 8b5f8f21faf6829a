"""The contract of the log port: every adapter's tests subclass `LogContract`, with an adapter."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.contract.adapter import (
    Adapter,
    append_all,
    beginning,
    claiming,
    dispatching,
    guest,
    large,
    owned,
    talking,
)
from tests.story import claimed, queued, released, result, user
from turnlog.core.errors import ClaimLost, Fenced, LogUnavailable, SchemaError, UsageError
from turnlog.core.frames import Header, Record
from turnlog.log import EmbeddedLog, Stored
from turnlog.tables import frames as sql_frames

ODD_BODIES = [b"", b"{", b"\0" * 10, b"\xff" * 5000, b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd" * 9]


async def read_all(log: EmbeddedLog, after: int = 0, **which: str) -> list[Stored]:
    return [stored async for stored in log.read(after, **which)]


async def settle(log: EmbeddedLog) -> None:
    """Return once the tables hold all that was appended. A log whose tables are folded with the
    append has nothing to wait for; one that reads itself back has."""
    async for _ in log.read(await log.end()):
        pass


async def take(follower: AsyncIterator[Stored], count: int) -> list[Stored]:
    return [await anext(follower) for _ in range(count)]


class LogContract(ABC):
    @abstractmethod
    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter: ...

    @pytest.fixture
    def log(self, adapter: Adapter) -> Iterator[EmbeddedLog]:
        with adapter.open() as log:
            yield log

    # ---- appending and reading -----------------------------------------------------------

    async def test_what_is_appended_is_read_as_it_was(
        self, adapter: Adapter, log: EmbeddedLog
    ) -> None:
        frames = beginning("s")
        positions = [await log.append(frames[0])]
        adapter.now = 2_000
        positions += [await log.append(frame) for frame in frames[1:]]
        assert positions == sorted(set(positions))
        assert positions[0] > 0
        stored = await read_all(log)
        assert [item.record for item in stored] == [frame.record for frame in frames]
        assert [item.position for item in stored] == positions
        times = [item.time for item in stored]
        assert times == ([1_000, 2_000, 2_000] if adapter.has_clock else sorted(times))
        assert await log.end() == positions[-1]

    async def test_an_empty_log_ends_at_0(self, log: EmbeddedLog) -> None:
        assert await log.end() == 0
        assert await read_all(log) == []
        assert log.tables.position() == 0

    async def test_reading_begins_behind_a_position(self, log: EmbeddedLog) -> None:
        positions = await append_all(log, talking("s", 5))
        stored = await read_all(log, after=positions[2])
        assert [item.position for item in stored] == positions[3:]
        assert await read_all(log, after=positions[-1]) == []

    async def test_reading_one_session_leaves_the_others_out(self, log: EmbeddedLog) -> None:
        one, other = talking("one", 4), talking("other", 4)
        for pair in zip(one, other, strict=True):
            await append_all(log, list(pair))
        stored = await read_all(log, session="other")
        assert [item.record for item in stored] == [frame.record for frame in other]
        assert await read_all(log, session="none") == []
        last = await read_all(log, after=stored[2].position, session="other")
        assert last == stored[3:]

    async def test_reading_goes_to_the_end_as_it_was_when_asked(self, log: EmbeddedLog) -> None:
        frames = talking("s", 6)
        await append_all(log, frames[:3])
        seen = 0
        async for _ in log.read():
            seen += 1
            if seen == 1:
                await append_all(log, frames[3:])
        assert seen == 3

    @pytest.mark.parametrize("session", [None, "s"])
    @pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
    async def test_pages_are_joined_without_a_seam(
        self,
        log: EmbeddedLog,
        monkeypatch: pytest.MonkeyPatch,
        count: int,
        session: str | None,
    ) -> None:
        monkeypatch.setattr(sql_frames, "PAGE_ROWS", 3)
        frames = talking("s", count - 1)
        positions = await append_all(log, frames)
        await log.append(claiming("another"))
        stored = [item async for item in log.read(session=session)]
        assert [item.position for item in stored][:count] == positions
        assert [item.position for item in log.tables.records("s")] == positions

    async def test_large_frames_come_back_whole(
        self, log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sql_frames, "PAGE_BYTES", 1_000_000)
        frames = [claiming("s"), *(large("s", seq, 850_000) for seq in range(1, 5))]
        await append_all(log, frames)
        assert [item.record for item in await read_all(log)] == [item.record for item in frames]

    async def test_many_at_once_are_all_there_each_in_its_own_order(self, log: EmbeddedLog) -> None:
        sessions = {f"s{number}": talking(f"s{number}", 12) for number in range(32)}
        found = await asyncio.gather(*(append_all(log, frames) for frames in sessions.values()))
        positions = [position for each in found for position in each]
        assert len(set(positions)) == len(positions)
        for (session, frames), given in zip(sessions.items(), found, strict=True):
            stored = await read_all(log, session=session)
            assert [item.position for item in stored] == given
            assert [item.record for item in stored] == [frame.record for frame in frames]
        assert list(log.verify()) == []

    async def test_there_is_one_partition(self, log: EmbeddedLog) -> None:
        assert log.partitions == 1
        assert log.partition_of("whatever") == 0
        for ask in (
            lambda: log.end(1),
            lambda: anext(log.read(partition=1)),
            lambda: anext(log.follow(partition=1)),
            lambda: log.tables.wait(1, 1),
        ):
            with pytest.raises(UsageError, match="no partition 1"):
                await ask()
        with pytest.raises(UsageError, match="no partition 1"):
            log.tables.position(1)

    # ---- following -----------------------------------------------------------------------

    async def test_following_gives_what_is_there_then_what_comes(self, log: EmbeddedLog) -> None:
        frames = talking("s", 6)
        await append_all(log, frames[:3])
        follower = log.follow()
        seen = await take(follower, 3)
        next_ = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0.05)
        assert not next_.done()
        await append_all(log, frames[3:])
        seen += [await next_, *await take(follower, 3)]
        assert [item.record for item in seen] == [frame.record for frame in frames]
        await follower.aclose()  # type: ignore[attr-defined]  # every adapter's is a generator

    async def test_following_begins_behind_a_position(self, log: EmbeddedLog) -> None:
        positions = await append_all(log, talking("s", 4))
        follower = log.follow(positions[2])
        assert [item.position for item in await take(follower, 2)] == positions[3:]

    async def test_many_may_follow(self, log: EmbeddedLog) -> None:
        frames = talking("s", 9)
        following = asyncio.gather(*(take(log.follow(), len(frames)) for _ in range(5)))
        await append_all(log, frames)
        for seen in await following:
            assert [item.record for item in seen] == [frame.record for frame in frames]

    async def test_a_follower_hears_of_the_end(self, log: EmbeddedLog) -> None:
        waiting = asyncio.ensure_future(anext(log.follow()))
        await asyncio.sleep(0)
        await log.close()
        with pytest.raises(LogUnavailable, match="closed"):
            await waiting

    # ---- what is refused, and what never is ----------------------------------------------

    async def test_a_claim_that_won_may_be_sent_again(self, log: EmbeddedLog) -> None:
        await log.append(claiming("s"))
        await log.append(claiming("s"))
        await settle(log)
        assert log.tables.get(("sessions", "s")).epoch == 1

    async def test_a_t1_of_an_owner_in_force_is_appended_also_twice(self, log: EmbeddedLog) -> None:
        await append_all(log, beginning("s"))
        frame = dispatching("s", 3)
        await log.append(frame)
        await log.append(frame)
        await settle(log)
        assert log.tables.get(("sessions", "s")).counts["duplicates"] == 1

    async def test_a_fenced_frame_that_starts_nothing_is_appended(self, log: EmbeddedLog) -> None:
        await append_all(log, beginning("s"))
        await log.append(dispatching("s", 3))
        await log.append(claiming("s", "c2", expects=1))
        await log.append(owned("s", 4, result("r-d1", "a1", "c1", dispatch="d1")))
        await log.append(owned("s", 5, user("u2", "a1")))
        await settle(log)
        head = log.tables.get(("sessions", "s"))
        assert (head.counts["fenced"], head.counts["evidence"]) == (2, 1)

    async def test_a_frame_that_the_fold_quarantines_is_appended(self, log: EmbeddedLog) -> None:
        await append_all(log, beginning("s"))
        await log.append(guest("s", user("u9", None)))
        await log.append(guest("s", claimed("c2", 1), queued("i", "u2")))
        await log.append(owned("s", 3, claimed("c2", 1)))
        await log.append(owned("s", 9, user("u2", "a1")))
        await log.append(owned("s", 9, user("u3", "a1")))
        await settle(log)
        assert log.tables.get(("sessions", "s")).counts["quarantined"] == 4

    async def test_guests_are_welcome_before_a_session_begins(self, log: EmbeddedLog) -> None:
        await log.append(guest("s", queued("i1", "u1")))
        await append_all(log, beginning("s"))
        await settle(log)
        assert log.tables.get(("inputs", "s", "i1")).status == "placed"

    # ---- loading -------------------------------------------------------------------------

    async def test_records_are_loaded_whatever_they_hold(self, log: EmbeddedLog) -> None:
        header = Header("s", "c1", 1, 1, "w")
        records = [
            *(Record("s", None, body) for body in ODD_BODIES),
            *(Record("s", header, body) for body in ODD_BODIES),
            Record("s", Header("other", "c1", 1, 2, None), b"{}"),
            Record("s", Header("s", "c1", None, 3, None), b"{}"),
            Record("s", Header("s", None, None, None, None), b"[]"),
            Record("", None, b"{}"),
            Record("nul\0 and ✓", Header("nul\0 and ✓", "\0", 2**62 - 1, -1, ""), b"x"),
            *(frame.record for frame in beginning("s")),
        ]
        positions = await log.load(records)
        assert positions == sorted(set(positions))
        stored = await read_all(log)
        assert [item.record for item in stored] == records
        assert [item.position for item in stored] == positions
        assert log.tables.position() == positions[-1]
        assert list(log.verify()) == []

    async def test_loading_refuses_no_claim_and_no_t1(self, log: EmbeddedLog) -> None:
        frames = [claiming("s"), claiming("s", "c2"), dispatching("s", 1, claim="c9")]
        await log.load([frame.record for frame in frames])
        await settle(log)
        assert log.tables.get(("sessions", "s")).counts["lost_claims"] == 1
        assert len(await read_all(log)) == 3

    @pytest.mark.parametrize(
        "bad",
        [
            Record("half \ud800", None, b"{}"),
            Record("s", Header("s", "half \udfff", 1, 1, None), b"{}"),
            Record("s", Header("s", "c", 2**63, 1, None), b"{}"),
        ],
    )
    async def test_all_records_are_loaded_or_none(self, log: EmbeddedLog, bad: Record) -> None:
        with pytest.raises(SchemaError, match="session"):
            await log.load([claiming("s").record, bad])
        assert await read_all(log) == []

    async def test_loading_nothing_is_nothing(self, log: EmbeddedLog) -> None:
        assert await log.load([]) == []
        assert await log.end() == 0

    # ---- ending --------------------------------------------------------------------------

    async def test_closing_finishes_what_was_begun(self, adapter: Adapter) -> None:
        async with adapter.open() as log:
            pending = [
                asyncio.ensure_future(log.append(claiming(f"s{number}"))) for number in range(20)
            ]
            await asyncio.sleep(0)
        assert len(set(await asyncio.gather(*pending))) == 20

    async def test_a_closed_log_says_so(self, adapter: Adapter) -> None:
        log = adapter.open()
        await log.append(claiming("s"))
        await log.close()
        await log.close()
        for ask in (
            lambda: log.append(claiming("t")),
            lambda: log.load([claiming("t").record]),
            log.end,
            lambda: anext(log.read()),
            lambda: anext(log.follow()),
        ):
            with pytest.raises(LogUnavailable, match="closed"):
                await ask()

    async def test_giving_up_on_an_append_harms_no_other(self, log: EmbeddedLog) -> None:
        frames = talking("s", 10)
        await log.append(frames[0])
        tasks = [asyncio.ensure_future(log.append(frame)) for frame in frames[1:]]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(item, int) for item in found[1::2])
        there = {item.record for item in await read_all(log)}
        assert {frame.record for frame in frames[2::2]} <= there
        assert list(log.verify()) == []

    async def test_an_answer_needs_no_event_loop_of_its_own(self, log: EmbeddedLog) -> None:
        def elsewhere() -> int:
            return asyncio.run(log.append(claiming("elsewhere")))

        await log.append(claiming("here"))
        there = await asyncio.to_thread(elsewhere)
        assert await log.end() == there


class EmbeddedContract:
    """What a log keeps besides whose tables are folded in the transaction that appends."""

    async def test_a_claim_that_would_lose_is_not_appended(self, log: EmbeddedLog) -> None:
        await append_all(log, beginning("s"))
        end = await log.end()
        for late in (
            claiming("s", "c2", expects=0),
            claiming("s", "c2", expects=2),
            claiming("s", "c2", expects=1, expects_seq=1),
        ):
            with pytest.raises(ClaimLost, match=r"session 's'.*nothing was appended"):
                await log.append(late)
        assert await log.end() == end
        assert await log.append(claiming("s", "c2", expects=1, expects_seq=2)) > end
        head = log.tables.get(("sessions", "s"))
        assert (head.claim, head.epoch) == ("c2", 2)

    async def test_of_two_racing_claims_one_wins(self, log: EmbeddedLog) -> None:
        found = await asyncio.gather(
            *(log.append(claiming("s", f"c{number}")) for number in range(8)),
            return_exceptions=True,
        )
        assert sum(isinstance(item, int) for item in found) == 1
        assert sum(isinstance(item, ClaimLost) for item in found) == 7

    async def test_a_t1_of_an_owner_not_in_force_is_not_appended(self, log: EmbeddedLog) -> None:
        await append_all(log, beginning("s"))
        await log.append(claiming("s", "c2", expects=1))
        end = await log.end()
        for header in ({}, {"claim": "c2", "epoch": 1}, {"claim": "c3", "epoch": 3}):
            with pytest.raises(Fenced, match=r"'d1' was not started.*nothing was appended"):
                await log.append(dispatching("s", 3, **header))
        with pytest.raises(Fenced, match="nobody has claimed it"):
            await log.append(dispatching("unknown", 1))
        assert await log.end() == end

    async def test_a_t1_after_the_release_is_not_appended(self, log: EmbeddedLog) -> None:
        await append_all(log, beginning("s"))
        await log.append(owned("s", 3, released("c1")))
        with pytest.raises(Fenced, match="released"):
            await log.append(dispatching("s", 4))

    async def test_positions_may_have_holes(self, adapter: Adapter, log: EmbeddedLog) -> None:
        frames = talking("s", 5)
        first = await append_all(log, frames[:3])
        await adapter.skip(log, 1_000)
        later = await append_all(log, frames[3:])
        assert later[0] > first[-1] + 1_000
        stored = await read_all(log)
        assert [item.position for item in stored] == first + later
        assert await read_all(log, after=first[-1] + 500) == stored[3:]
        assert log.tables.record("s", first[-1] + 500) is None
        assert list(log.verify()) == []
