"""The owner over a log that answers as told: what each outcome of an append means to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count

import pytest

from tests.story import accepted, assistant, event, result, settled, t1, user
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
from turnlog.owner.owner import CHECK_S, Owner, claim


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


async def test_a_frame_whose_seq_a_copy_of_this_host_has_used_is_not_saved(log: Paper) -> None:
    owner = await owner_of(log)
    for id_ in ("x", "y"):  # a copy of the host has written on under the same claim
        seq = head(log).seq + 1
        header = Header("s", owner.claim_id, owner.epoch, seq, "h")
        log.add(seal(header, [user(id_, None)]).record)
    with pytest.raises(Fenced):
        await owner.write([user("a", None)])
    assert head(log).counts["entries"] == 2


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


class Late(Rows):
    """Tables that reach a position only when somebody has waited for it: those of a log that lies
    elsewhere. Or never, or they say that they lag for good."""

    def __init__(self, log: Paper) -> None:
        super().__init__(log.rows)
        self._log = log
        self.kind = "late"

    async def wait(self, position: int, partition: int = 0) -> None:
        if self.kind == "lags":
            raise StateError("the tables lag")
        if self.kind == "never":
            await asyncio.Event().wait()
        self.update(self._log.rows)


async def test_tables_that_follow_a_log_elsewhere_are_waited_for(paper: Paper) -> None:
    late = Late(paper)
    owner = await claim(paper, "s", tables=late, host="h", reason="open", ambient=AMBIENT)
    paper.hidden = 100  # nothing to be read
    for id_ in ("a", "b"):
        assert await owner.write([user(id_, None)]) == owner.position == len(paper.records)


@pytest.mark.parametrize("kind", ["never", "lags"])
async def test_where_tables_do_not_come_the_frames_are_read(
    paper: Paper, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.owner.owner.SOON_S", 0.01)
    late = Late(paper)
    owner = await claim(paper, "s", tables=late, host="h", reason="open", ambient=AMBIENT)
    late.kind = kind
    assert await owner.write([user("a", None)]) == owner.position == 2
    paper.hidden = 1
    with pytest.raises(LogError, match="acknowledged"):
        await owner.write([user("b", "a")])


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


# ---- the T1 rule, the shared tail, and evidence


async def dispatching(log: Paper) -> Owner:
    owner = await claim(log, "s", tables=log.rows, host="h", reason="open", ambient=AMBIENT)
    await owner.write([user("u", None), accepted("o", "u"), assistant("m", "u", "c1")])
    return owner


@pytest.fixture
def paper() -> Paper:
    return Paper()


async def test_an_effect_may_start_once_its_start_is_read_back_under_its_own_claim(
    paper: Paper,
) -> None:
    owner = await dispatching(paper)
    position = await owner.write([t1("d", "o", "m", "r")])
    assert await owner.check_start("d", position, AMBIENT.uptime()) == "start"


async def test_a_start_at_another_position_than_the_acknowledged_one_starts_nothing(
    paper: Paper,
) -> None:
    """A copy of this host wrote it, and may have started."""
    owner = await dispatching(paper)
    position = await owner.write([t1("d", "o", "m", "r")])
    await owner.write([user("v", "m")])
    for at in (position - 1, position + 1):
        assert await owner.check_start("d", at, AMBIENT.uptime()) == "unknown"


async def test_a_start_of_another_claim_starts_nothing(paper: Paper) -> None:
    owner = await dispatching(paper)
    other = await claim(paper, "s", tables=paper.rows, host="r", reason="resume", ambient=AMBIENT)
    position = await other.write([t1("d", "o", "m", "r")])
    assert await owner.check_start("d", position, AMBIENT.uptime()) == "unknown"
    assert await other.check_start("d", position, AMBIENT.uptime()) == "start"


@pytest.mark.parametrize("how", ["robbed", "released", "answered", "late"])
async def test_what_happened_since_the_start_keeps_the_effect_from_starting(
    paper: Paper, how: str
) -> None:
    owner = await dispatching(paper)
    began = AMBIENT.uptime()
    position = await owner.write([t1("d", "o", "m", "r")])
    if how == "robbed":
        await claim(paper, "s", tables=paper.rows, host="r", reason="takeover", ambient=AMBIENT)
        await owner.refresh(len(paper.records))
    elif how == "released":
        await owner.release()
    elif how == "answered":
        await owner.write([settled("d")])
    else:
        began -= CHECK_S + 1
    assert await owner.check_start("d", position, began) == "not_started"


async def test_a_second_try_that_came_too_late_says_nothing_of_the_first() -> None:
    log, times = Paper(), iter([0.0, 60.0])
    first = await owner_of(log)
    await first.write([user("u", None), accepted("op", "u"), assistant("a", "u", "c1")])
    await first.write([t1("d", "op", "a", "r", effect="read_only")])
    late = Ambient(clock=lambda: 0, ids=AMBIENT.ids, uptime=lambda: next(times))
    owner = await claim(log, "s", tables=log.rows, host="h2", reason="resume", ambient=late)
    began = late.uptime()
    position = await owner.write([t1("d", "op", "a", "r", effect="read_only", try_=2)])
    assert await owner.check_start("d", position, began) == "unknown"


async def test_a_start_that_no_table_knows_is_our_own_bug(paper: Paper) -> None:
    owner = await dispatching(paper)
    with pytest.raises(StateError, match="verify"):
        await owner.check_start("nobody's", owner.position, AMBIENT.uptime())


async def test_without_tables_nothing_is_dispatched(paper: Paper) -> None:
    owner = await claim(paper, "s", tables=None, host="h", reason="open", ambient=AMBIENT)
    with pytest.raises(StateError, match="tables"):
        await owner.check_start("d", 1, AMBIENT.uptime())


async def test_looking_again_shows_who_owns_the_session_and_never_looks_back(paper: Paper) -> None:
    owner = await dispatching(paper)
    seen = owner.position
    await claim(paper, "s", tables=paper.rows, host="r", reason="takeover", ambient=AMBIENT)
    await owner.refresh(seen)
    assert not owner.is_lost, "up to there it was not"
    await owner.refresh(len(paper.records))
    assert owner.is_lost
    await owner.refresh(1)
    assert owner.is_lost


async def test_evidence_goes_out_once_and_is_kept_with_its_dispatch(paper: Paper) -> None:
    owner = await dispatching(paper)
    await owner.write([t1("d", "o", "m", "r")])
    other = await claim(paper, "s", tables=paper.rows, host="r", reason="resume", ambient=AMBIENT)
    await other.write([settled("d")])
    answer = result("r", "m", "c1", dispatch="d")
    for _ in range(2):
        await owner.testify([answer])
    row = paper.rows[("dispatches", "s", "d")]
    assert row.status == "unknown"
    assert [piece["status"] for piece in row.evidence] == ["ok"]
    assert head(paper).damage == ()


@pytest.mark.parametrize("outcome", ["refused", "lost"])
async def test_evidence_that_the_log_does_not_take_is_an_error(paper: Paper, outcome: str) -> None:
    owner = await dispatching(paper)
    await claim(paper, "s", tables=paper.rows, host="r", reason="resume", ambient=AMBIENT)
    paper.outcomes = [outcome]
    with pytest.raises(LogError):
        await owner.testify([settled("d")])


# ---- frames in doubt


async def test_settling_without_a_frame_in_doubt_does_nothing(log: Paper) -> None:
    owner = await owner_of(log)
    assert not owner.in_doubt
    assert await owner.settle() == 0
    assert len(log.records) == 1


@pytest.mark.parametrize("first", ["lost", "landed"])
@pytest.mark.parametrize("again", ["settle", "write"])
async def test_a_copy_that_is_refused_leaves_the_frame_in_doubt(
    log: Paper, first: str, again: str
) -> None:
    """The first copy may be there, or still arrive."""
    owner = await owner_of(log)
    log.outcomes = [first, "refused"]
    with pytest.raises(AppendUnknown, match="copy"):
        await owner.write([user("a", None)])
    assert owner.in_doubt
    log.outcomes = ["refused"]
    with pytest.raises(AppendUnknown, match="copy"):
        await (owner.settle() if again == "settle" else owner.write([user("b", "a")]))
    await owner.settle()
    await owner.write([user("b", "a")])
    assert not owner.in_doubt
    assert head(log).counts["entries"] == 2
    assert head(log).damage == ()


async def test_a_frame_in_doubt_that_another_claim_overtook_is_fenced(log: Paper) -> None:
    owner = await owner_of(log)
    log.outcomes = ["lost"] * 5
    with pytest.raises(AppendUnknown):
        await owner.write([user("a", None)])
    await owner_of(log)
    with pytest.raises(Fenced) as caught:
        await owner.settle()
    assert [event.id for event in caught.value.unsaved] == ["a"]
    assert not owner.in_doubt
    assert head(log).counts["entries"] == 0


async def test_a_cancelled_copy_is_in_doubt_whatever_the_next_one_is_told(log: Paper) -> None:
    owner = await owner_of(log)
    task = asyncio.create_task(owner.write([user("a", None)]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    log.outcomes = ["refused"]
    with pytest.raises(AppendUnknown):
        await owner.write([user("b", None)])
    await owner.write([user("b", "a")])
    assert head(log).counts["entries"] == 2
    assert head(log).damage == ()


async def test_who_gave_a_session_up_is_told_so(log: Paper) -> None:
    owner = await owner_of(log)
    await owner.release()
    with pytest.raises(Fenced, match="given it up"):
        await owner.write([user("a", None)])


@pytest.mark.parametrize("session", ["", "x" * 513, "half \ud83d", 5, None])
async def test_what_is_no_session_is_refused_before_anything_is_read(
    log: Paper, session: object
) -> None:
    with pytest.raises(SchemaError):
        await owner_of(log, session)  # type: ignore[arg-type]
    assert log.records == []
