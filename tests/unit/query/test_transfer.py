"""Moving frames: into empty logs and into others, twice, after a break, and what is refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.histories import histories
from tests.story import Story, user
from tests.unit.query.logs import empty, load, random_session, records_of, renamed, stored, woven
from turnlog.core.archive import from_line, to_line
from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    LogError,
    LogUnavailable,
    StateError,
    TooLarge,
)
from turnlog.core.frames import Record
from turnlog.log import EmbeddedLog
from turnlog.log.memory import MemoryLog
from turnlog.query import transfer
from turnlog.query.archive import Line, identity
from turnlog.query.compare import differing_rows
from turnlog.query.transfer import Lines, Moved, confirm, examine, fill


def lines(records: Sequence[Record]) -> Lines:
    """An archive of these records: written as lines and read back."""
    written = [to_line(number, record) for number, record in enumerate(records, start=1)]

    async def read() -> AsyncIterator[Line]:
        for number, line in enumerate(written, start=1):
            yield Line(f"file: line {number}", from_line(line))

    return read


def ignore(_records: int, _bytes: int) -> None:
    pass


def move(source: Lines, target: EmbeddedLog) -> list[Moved]:
    async def whole() -> list[Moved]:
        plan = await examine(source, target, ignore)
        await fill(source, target, plan, ignore)
        await confirm(target, plan, ignore)
        return plan.moved()

    return asyncio.run(whole())


def assert_same(one: EmbeddedLog, other: EmbeddedLog, *sessions: str) -> None:
    for session in sessions:
        here, there = records_of(one, session), records_of(other, session)
        assert [identity(record) for record in here] == [identity(record) for record in there]
        assert list(differing_rows(one.tables, other.tables, session)) == []


@given(one=histories(frames_max=25), other=histories(frames_max=10), stride=st.integers(1, 3))
def test_any_history_is_the_same_after_a_round_trip(one: list, other: list, stride: int) -> None:
    """Fenced, lost, damaged, unknown and raw frames among them; into a log of its own and into
    one that holds another session."""
    records = [item.record for item in one]
    others = [renamed(item.record, "other") for item in other]
    origin = stored(woven(records, others))
    for target in (empty(), stored(random_session(1, "third", 10), stride=stride)):
        move(lines(woven(records, others)), target)
        assert_same(origin, target, "s", "other")
        move(lines(records), target)
        assert_same(origin, target, "s", "other")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("have", [0, 1, 30, 60])
def test_a_session_that_is_there_is_continued(seed: int, have: int) -> None:
    records = random_session(seed, "s", 60)
    target = stored(records[:have])
    assert move(lines(records), target) == [Moved("s", 60, 60 - have)]
    assert_same(stored(records), target, "s")


def test_continuing_looks_further_than_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "LOOKAHEAD", 3)
    monkeypatch.setattr(transfer, "BATCH_RECORDS", 4)
    records = random_session(3, "s", 40)
    target = stored(records[:20])
    move(lines(records), target)
    assert_same(stored(records), target, "s")


def refused(records: Sequence[Record], target: EmbeddedLog, said: str) -> None:
    before = [stored.record for stored in target.tables.records("s")]
    with pytest.raises(AppendRefused, match=said):
        move(lines(records), target)
    assert [stored.record for stored in target.tables.records("s")] == before


def test_a_session_that_goes_on_otherwise_is_refused() -> None:
    one, other = Story("s").begin(), Story("s").begin(title="another")
    new = Story("new").begin()
    target = stored(other)
    refused([*new.records, *one.records], target, "file: line 3: session 's' .* frame 1 is another")
    assert list(target.tables.records("new")) == []


def test_an_archive_that_ends_before_the_log_does_is_refused() -> None:
    story = Story("s").begin()
    story.own(user("u", None))
    refused(story.records[:2], stored(story), "goes on in memory: after the 2 frame")


def test_nothing_is_written_before_every_line_was_read() -> None:
    story = Story("s").begin()
    good = lines(story.records)

    async def broken() -> AsyncIterator[Line]:
        async for line in good():
            yield line
        raise ValueError("a broken line")

    target = empty()
    with pytest.raises(ValueError, match="a broken line"):
        move(broken, target)
    assert list(target.tables.records("s")) == []


class Failing(MemoryLog):
    """A log whose disk is full after some batches."""

    def __init__(self, batches: int) -> None:
        super().__init__(clock=lambda: 0)
        self.batches = batches

    async def load(self, records: Sequence[Record]) -> list[int]:
        if not self.batches:
            raise LogUnavailable("the disk is full")
        self.batches -= 1
        return await super().load(records)


def test_a_restore_that_was_broken_off_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "BATCH_RECORDS", 7)
    records = woven(random_session(1, "s", 20), random_session(2, "t", 20))
    target = Failing(3)
    with pytest.raises(LogError, match="the disk is full; 21 of 40 frames were written: the same"):
        move(lines(records), target)
    target.batches = 99
    assert sum(moved.added for moved in move(lines(records), target)) == 19
    assert_same(stored(records), target, "s", "t")


class Uncertain(MemoryLog):
    """A log that sometimes says that it does not know: then the first ones of some sessions have
    arrived, and more of them arrive until somebody looks."""

    def __init__(self, seed: int, *, often: float = 0.5) -> None:
        super().__init__(clock=lambda: 0)
        self.dice = random.Random(seed)
        self.often = often
        self.unknown = 0

    async def load(self, records: Sequence[Record]) -> list[int]:
        if self.dice.random() >= self.often:
            return await super().load(records)
        self.unknown += 1
        by_session: dict[str, list[Record]] = {}
        for record in records:
            by_session.setdefault(record.session, []).append(record)
        for some in by_session.values():
            await super().load(some[: self.dice.randrange(len(some) + 1)])
        raise AppendUnknown("no answer")


@pytest.mark.parametrize("seed", range(20))
def test_what_is_unknown_is_looked_for_and_nothing_is_there_twice(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "SETTLE_S", 0)
    monkeypatch.setattr(transfer, "TRIES", 50)
    monkeypatch.setattr(transfer, "BATCH_RECORDS", 17)
    sessions = [random_session(seed + number, f"s{number}", 40) for number in range(4)]
    target = Uncertain(seed)
    asyncio.run(MemoryLog.load(target, random_session(99, "another", 5)))
    move(lines(woven(*sessions)), target)
    assert target.unknown > 2
    assert_same(stored(*sessions), target, "s0", "s1", "s2", "s3")


def test_what_stays_unknown_is_said_and_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "SETTLE_S", 0)
    monkeypatch.setattr(transfer, "BATCH_RECORDS", 9)
    records = woven(random_session(1, "s", 30), random_session(2, "t", 30))
    target = Uncertain(5, often=1)
    with pytest.raises(LogError, match=r"no answer; 0 of 60 frames were written: the same command"):
        move(lines(records), target)
    assert target.unknown == transfer.TRIES
    target.often = 0
    move(lines(records), target)
    assert_same(stored(records), target, "s", "t")


class Meddled(Uncertain):
    """Somebody else's frame arrives where it is not known what did."""

    async def load(self, records: Sequence[Record]) -> list[int]:
        if not self.unknown:
            await MemoryLog.load(self, Story("s").claim().records)
        return await super().load(records)


def test_somebody_else_s_frames_are_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "SETTLE_S", 0)
    with pytest.raises(StateError, match="frames arrived that are not those that were sent"):
        move(lines(random_session(1, "s", 5)), Meddled(1, often=1))


class Narrow(MemoryLog):
    """A log that does not take everything."""

    def check_record(self, record: Record) -> None:
        if record.body == b"large":
            raise TooLarge("session 's': too large")


def test_what_the_log_does_not_take_is_refused_before_anything_is_written() -> None:
    records = [*random_session(1, "s", 5), Record("s", None, b"large")]
    target = Narrow(clock=lambda: 0)
    with pytest.raises(TooLarge, match="file: line 6: session 's': too large"):
        move(lines(records), target)
    assert asyncio.run(target.end()) == 0


class Shared(MemoryLog):
    """A log into which somebody else writes while frames are loaded."""

    async def load(self, records: Sequence[Record]) -> list[int]:
        positions = await super().load(records)
        await super().load(Story("s").claim().records)
        return positions


def test_somebody_else_who_writes_meanwhile_is_noticed() -> None:
    with pytest.raises(StateError, match="does not hold what the source had"):
        move(lines(random_session(1, "s", 5)), Shared(clock=lambda: 0))


def test_a_source_that_grows_after_it_was_examined_is_read_as_it_was() -> None:
    records = random_session(4, "s", 20)
    reads = iter([lines(records[:10]), lines([*records, *random_session(5, "new", 3)])])

    target = empty()

    def source() -> AsyncIterator[Line]:
        return next(reads)()

    assert move(source, target) == [Moved("s", 10, 10)]
    assert_same(stored(records[:10]), target, "s")


def test_no_target_yet_means_that_all_is_new() -> None:
    records = random_session(4, "s", 20)
    plan = asyncio.run(examine(lines(records), None, ignore))
    assert (plan.frames, plan.added) == (20, 20)
    assert plan.bytes == sum(len(record.body) for record in records)


def test_progress_adds_up() -> None:
    records = random_session(4, "s", 20)
    seen: list[int] = []
    target = empty()
    load(target, records[:5])

    async def whole() -> None:
        def tick(count: int, _size: int) -> None:
            seen[-1] += count

        seen.append(0)
        plan = await examine(lines(records), target, tick)
        seen.append(0)
        await fill(lines(records), target, plan, tick)
        seen.append(0)
        await confirm(target, plan, tick)

    asyncio.run(whole())
    assert seen == [20, 15, 20]
