"""The owner over a log that answers as told: what each outcome of an append means to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count

import pytest

from tests.story import event, user
from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    ClaimLost,
    Fenced,
    LogError,
    SchemaError,
    StateError,
)
from turnlog.core.fold import fold
from turnlog.core.frames import Header, NewEvent, Record, SealedFrame, decode, seal
from turnlog.core.rows import Head
from turnlog.log.port import Stored
from turnlog.owner.ambient import Ambient
from turnlog.owner.owner import Owner, claim


class Rows(dict):
    """Tables that always follow."""

    async def wait(self, position: int, partition: int = 0) -> None:
        return None


class Paper:
    """A log in a list. `outcomes` says what each append does: ok, lost, refused, landed."""

    url = "paper:"
    partitions = 1

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.rows = Rows()
        self.outcomes: list[str] = []
        self.hidden = 0
        self.follows = True

    def partition_of(self, session: str) -> int:
        return 0

    async def append(self, frame: SealedFrame) -> int:
        outcome = self.outcomes.pop(0) if self.outcomes else "ok"
        await asyncio.sleep(0)
        if outcome == "refused":
            raise AppendRefused("no room", retriable=True)
        if outcome in ("ok", "landed"):
            self.add(frame.record)
        if outcome != "ok":
            raise AppendUnknown("no answer")
        return len(self.records)

    def add(self, record: Record) -> None:
        self.records.append(record)
        self.rows.update(fold(decode(record), len(self.records), self.rows))

    async def load(self, records: Sequence[Record]) -> list[int]:
        raise NotImplementedError

    async def read(
        self, after: int = 0, *, session: str | None = None, partition: int = 0
    ) -> AsyncIterator[Stored]:
        end = len(self.records) - self.hidden
        for position, record in enumerate(self.records[:end], 1):
            if position > after and session in (None, record.session):
                yield Stored(position, 0, record)

    def follow(self, after: int = 0, *, partition: int = 0) -> AsyncIterator[Stored]:
        raise NotImplementedError

    async def end(self, partition: int = 0) -> int:
        return len(self.records)

    async def close(self) -> None:
        return None


_serial = count()
AMBIENT = Ambient(clock=lambda: 0, ids=lambda: f"id-{next(_serial)}")


@pytest.fixture(params=["tables follow", "tables stand still"])
def log(request: pytest.FixtureRequest) -> Paper:
    paper = Paper()
    paper.follows = request.param == "tables follow"
    return paper


async def owner_of(log: Paper, session: str = "s") -> Owner:
    tables = log.rows if log.follows else Rows(log.rows)
    return await claim(log, session, tables=tables, host="h", reason="open", ambient=AMBIENT)


def head(log: Paper, session: str = "s") -> Head:
    return log.rows[("sessions", session)]


async def test_a_claim_is_read_back_before_it_counts(log: Paper) -> None:
    owner = await owner_of(log)
    assert (owner.epoch, owner.position) == (1, 1)
    assert head(log).claim == owner.claim_id


async def test_frames_are_numbered_from_one_without_holes(log: Paper) -> None:
    owner = await owner_of(log)
    for id_ in ("a", "b", "c"):
        await owner.write([user(id_, None)])
    headers = [record.header for record in log.records[1:]]
    assert [header.seq for header in headers if header] == [1, 2, 3]
    assert head(log).damage == ()


async def test_writers_in_one_process_wait_for_each_other(log: Paper) -> None:
    owner = await owner_of(log)
    await asyncio.gather(*(owner.write([user(f"m{n}", None)]) for n in range(20)))
    assert head(log).seq == 20
    assert head(log).damage == ()


@pytest.mark.parametrize("outcome", ["lost", "landed"])
async def test_after_an_unknown_outcome_the_same_bytes_are_sent_again(
    log: Paper, outcome: str
) -> None:
    owner = await owner_of(log)
    log.outcomes = [outcome, outcome]
    await owner.write([user("a", None)])
    await owner.write([user("b", "a")])
    sent = [record for record in log.records if record.header and record.header.seq == 1]
    assert len(set(sent)) == 1
    assert head(log).seq == 2
    assert head(log).damage == ()
    assert head(log).counts["entries"] == 2


@pytest.mark.parametrize("outcome", ["lost", "landed"])
async def test_a_frame_in_doubt_goes_before_any_other(log: Paper, outcome: str) -> None:
    owner = await owner_of(log)
    log.outcomes = [outcome] * 5
    with pytest.raises(AppendUnknown):
        await owner.write([user("a", None)])
    await owner.write([user("b", "a")])
    assert head(log).counts["entries"] == 2
    assert head(log).damage == ()


async def test_a_cancelled_write_is_settled_by_the_next_one(log: Paper) -> None:
    owner = await owner_of(log)
    task = asyncio.create_task(owner.write([user("a", None)]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await owner.write([user("b", None)])
    assert head(log).counts["entries"] == 2
    assert head(log).damage == ()


async def test_a_refused_frame_is_not_there_and_its_seq_is_used_again(log: Paper) -> None:
    owner = await owner_of(log)
    log.outcomes = ["refused"]
    with pytest.raises(AppendRefused):
        await owner.write([user("a", None)])
    await owner.write([user("a", None)])
    assert head(log).counts["entries"] == 1
    assert head(log).damage == ()


async def test_events_that_break_the_vocabulary_use_no_seq(log: Paper) -> None:
    owner = await owner_of(log)
    with pytest.raises(SchemaError):
        await owner.write([NewEvent("message", "a", None, {"role": "user"})])
    await owner.write([user("a", None)])
    assert head(log).seq == 1


async def test_of_two_claims_one_wins_and_both_know(log: Paper) -> None:
    first, second = (Owner(log, "s", host="h", ambient=AMBIENT) for _ in range(2))
    await first.claim("open", None)
    with pytest.raises(ClaimLost, match="epoch 1"):
        await second.claim("open", None)


async def test_a_claim_that_expects_a_seq_loses_to_a_host_that_still_writes(log: Paper) -> None:
    owner = await owner_of(log)
    late = Owner(log, "s", host="r", ambient=AMBIENT, tables=Rows(log.rows))
    await owner.write([user("a", None)])
    with pytest.raises(ClaimLost):
        await late.claim("recovery", 0)
    await owner.write([user("b", "a")])


async def test_a_fenced_owner_gets_its_events_back(log: Paper) -> None:
    owner = await owner_of(log)
    await owner_of(log)
    events = [user("a", None)]
    with pytest.raises(Fenced) as caught:
        await owner.write(events)
    assert [lost.id for lost in caught.value.unsaved] == ["a"]
    with pytest.raises(Fenced):
        await owner.write(events)
    assert head(log).counts["entries"] == 0


async def test_a_fenced_owner_says_nothing_twice(log: Paper) -> None:
    owner = await owner_of(log)
    await owner_of(log)
    events = [user("a", None), user("b", "a")]
    with pytest.raises(Fenced):
        await owner.write(events)  # in the log now, although it is not applied
    end = len(log.records)
    await owner.testify(events)
    assert len(log.records) == end
    await owner.testify([*events, user("c", "b")])
    assert len(log.records) == end + 1


async def test_a_frame_that_landed_before_the_claim_is_saved(log: Paper) -> None:
    owner = await owner_of(log)
    log.outcomes = ["landed"] * 5
    with pytest.raises(AppendUnknown):
        await owner.write([user("a", None)])
    await owner_of(log)
    with pytest.raises(Fenced):
        await owner.write([user("b", "a")])
    assert head(log).counts["entries"] == 1


async def test_a_released_session_takes_nothing_more(log: Paper) -> None:
    owner = await owner_of(log)
    await owner.release()
    assert head(log).released
    with pytest.raises(Fenced):
        await owner.write([user("a", None)])
    again = await owner_of(log)
    assert again.epoch == 2


async def test_a_log_that_forgets_what_it_acknowledged_is_a_loud_error(log: Paper) -> None:
    owner = await claim(log, "s", tables=None, host="h", reason="open", ambient=AMBIENT)
    log.hidden = 1
    with pytest.raises(LogError, match="acknowledged"):
        await owner.write([user("a", None)])


async def test_without_tables_the_log_is_read_from_its_beginning(log: Paper) -> None:
    first = await owner_of(log)
    await first.write([user("a", None)])
    second = await claim(log, "s", tables=None, host="h", reason="open", ambient=AMBIENT)
    assert second.epoch == 2
    await second.write([user("b", "a")])
    assert head(log).leaf == 2


async def test_other_sessions_and_guests_in_between_do_not_matter(log: Paper) -> None:
    owner = await owner_of(log)
    other = await owner_of(log, "t")
    await other.write([user("x", None)])
    guest = event("input_queued", input="i", entry="e", content=[])
    log.add(seal(Header("s", None, None, None, "guest"), [guest]).record)
    await owner.write([user("a", None)])
    assert head(log).pending_inputs == {"i": "e"}


async def test_a_session_of_a_newer_release_is_read_only(log: Paper) -> None:
    owner = await owner_of(log)
    await owner.write([NewEvent("message", "a", None, {"parent": None}, v=2)])
    with pytest.raises(StateError, match="upgrade"):
        await owner_of(log)
