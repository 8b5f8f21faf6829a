"""Any sequence of calls of the port against a plain list: hypothesis looks for one that differs."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.conftest import PROOF
from tests.contract.adapter import Adapter, claiming, dispatching, guest, owned, rows_of
from tests.contract.contract import ODD_BODIES, settle
from tests.contract.test_file import FileAdapter
from tests.contract.test_kafka import KafkaAdapter
from tests.contract.test_memory import MemoryAdapter
from tests.contract.test_sqlite import SqliteAdapter
from tests.integration.kafka_topics import make_topic
from tests.story import event, fact, user
from turnlog.core.errors import ClaimLost, Fenced
from turnlog.core.fold import fold
from turnlog.core.frames import Header, Record, SealedFrame, decode
from turnlog.core.ownership import Ownership, after_claim, follow
from turnlog.log import EmbeddedLog, Stored

SESSIONS = st.sampled_from(["a", "b", "ü"])
CLAIMS = st.sampled_from(["c1", "c2", "c3"])
SMALL = st.integers(0, 4)
HEADERS = st.one_of(
    st.none(),
    st.builds(Header, SESSIONS, st.none(), st.none(), st.none(), st.none()),
    st.builds(Header, SESSIONS, CLAIMS, SMALL, SMALL, st.text(max_size=3)),
    st.builds(Header, SESSIONS, CLAIMS, st.none(), SMALL, st.none()),
)
RECORDS = st.builds(Record, SESSIONS, HEADERS, st.sampled_from(ODD_BODIES) | st.binary())


class LogMachine(RuleBasedStateMachine):
    """Appends, loads, reads and follows; `stored` is what must be there."""

    adapter_class: ClassVar[Any]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        self.adapter: Adapter = self.make_adapter()
        self.stored: list[Stored] = []
        self.log: EmbeddedLog = self.adapter.open()
        self.others: list[EmbeddedLog] = []
        self.follower: AsyncIterator[Stored] | None = None
        self.followed = 0

    def make_adapter(self) -> Adapter:
        raise NotImplementedError

    def teardown(self) -> None:
        self.check_tables()
        self.stop_following()
        for log in [self.log, *self.others]:
            self.runner.run(log.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def check_tables(self) -> None:
        self.runner.run(settle(self.log))
        assert list(self.log.verify()) == []
        rows: dict[Any, Any] = {}
        for stored in self.stored:
            for key, row in fold(decode(stored.record), stored.position, rows).items():
                rows[key] = row
                if row is None:
                    del rows[key]
        assert rows_of(self.log.tables) == {k: row for k, row in rows.items() if k[0] != "ids"}

    # ---- the model -----------------------------------------------------------------------

    @property
    def end(self) -> int:
        return self.stored[-1].position if self.stored else 0

    @property
    def time(self) -> int:
        return self.adapter.now if self.adapter.has_clock else 0

    def seen(self, stored: list[Stored]) -> list[Stored]:
        """What was read, without the times of a log that has its own."""
        return stored if self.adapter.has_clock else [item._replace(time=0) for item in stored]

    def ownership(self, session: str) -> Ownership:
        own = Ownership()
        for stored in self.stored:
            if stored.record.session == session:
                own = follow(own, decode(stored.record))[1]
        return own

    def note(self, positions: list[int], records: list[Record]) -> None:
        for position, record in zip(positions, records, strict=True):
            assert position > self.end
            self.stored.append(Stored(position, self.time, record))

    def append(self, frame: SealedFrame, refused: type[Exception] | None = None) -> None:
        if refused is None:
            self.note([self.runner.run(self.log.append(frame))], [frame.record])
            return
        with pytest.raises(refused):
            self.runner.run(self.log.append(frame))

    # ---- appending -----------------------------------------------------------------------

    @initialize(session=SESSIONS)
    def begin(self, session: str) -> None:
        self.append(claiming(session))

    @rule(session=SESSIONS, claim=CLAIMS, expects=SMALL, expects_seq=st.none() | SMALL)
    def claim(self, session: str, claim: str, expects: int, expects_seq: int | None) -> None:
        frame = claiming(session, claim, expects, expects_seq=expects_seq)
        own = self.ownership(session)
        won, _ = after_claim(own, frame.frame.events[0].data)
        self.append(frame, None if won or claim == own.claim else ClaimLost)

    @rule(session=SESSIONS, parent=st.sampled_from([None, "m1", "m2", "m9"]), ahead=SMALL)
    def write(self, session: str, parent: str | None, ahead: int) -> None:
        own = self.ownership(session)
        seq = own.seq + ahead if own.seq + ahead else 1
        message = user(f"m{len(self.stored)}", parent)
        self.append(owned(session, seq, message, claim=own.claim or "c0", epoch=own.epoch or 1))

    @rule(session=SESSIONS, claim=CLAIMS, epoch=st.integers(1, 3), seq=st.integers(1, 4))
    def start_tool(self, session: str, claim: str, epoch: int, seq: int) -> None:
        own = self.ownership(session)
        in_force = (claim, epoch) == (own.claim, own.epoch) and not own.released
        frame = dispatching(session, seq, claim=claim, epoch=epoch)
        self.append(frame, None if in_force else Fenced)

    @rule(session=SESSIONS)
    def release(self, session: str) -> None:
        own = self.ownership(session)
        if own.claim is not None:
            data = event("session_released", claim=own.claim)
            self.append(owned(session, own.seq + 1, data, claim=own.claim, epoch=own.epoch))

    @rule(session=SESSIONS, value=st.integers() | st.text(max_size=5))
    def write_as_guest(self, session: str, value: Any) -> None:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = str(value)
        self.append(guest(session, fact("title", value)))

    @rule(records=st.lists(RECORDS, max_size=5))
    def load(self, records: list[Record]) -> None:
        self.note(self.runner.run(self.log.load(records)), records)

    @rule(session=SESSIONS, count=st.integers(2, 6))
    def write_at_once(self, session: str, count: int) -> None:
        frames = [guest(session, fact(f"f{number}", number)) for number in range(count)]

        async def append() -> list[int]:
            return await asyncio.gather(*map(self.log.append, frames))

        self.note(self.runner.run(append()), [frame.record for frame in frames])

    @rule(positions=st.integers(1, 1_000))
    def skip(self, positions: int) -> None:
        self.runner.run(self.adapter.skip(self.log, positions))

    @rule(seconds=SMALL)
    def let_time_pass(self, seconds: int) -> None:
        self.adapter.now += 1_000 * seconds

    # ---- reading -------------------------------------------------------------------------

    @rule(after=st.integers(0, 60), session=st.none() | SESSIONS)
    def read(self, after: int, session: str | None) -> None:
        async def read() -> list[Stored]:
            return [stored async for stored in self.log.read(after, session=session)]

        assert self.seen(self.runner.run(read())) == [
            stored
            for stored in self.stored
            if stored.position > after and session in (None, stored.record.session)
        ]

    @rule()
    @precondition(lambda self: self.follower is None)
    def begin_to_follow(self) -> None:
        self.follower, self.followed = self.log.follow(), 0

    @rule(count=st.integers(1, 5))
    @precondition(lambda self: self.follower is not None)
    def keep_following(self, count: int) -> None:
        async def take() -> list[Stored]:
            assert self.follower is not None
            return [await anext(self.follower) for _ in due]

        due = self.stored[self.followed : self.followed + count]
        assert self.seen(self.runner.run(take())) == due
        self.followed += len(due)

    @rule()
    def rebuild(self) -> None:
        self.log.rebuild()

    def stop_following(self) -> None:
        if self.follower is not None:
            self.runner.run(self.follower.aclose())  # type: ignore[attr-defined]  # a generator
            self.follower = None

    @invariant()
    def it_ends_where_the_list_ends(self) -> None:
        assert self.runner.run(self.log.end()) == self.end

    @invariant()
    def the_tables_are_up_to_date(self) -> None:
        self.runner.run(settle(self.log))
        assert self.log.tables.position() >= self.end


class MemoryMachine(LogMachine):
    def make_adapter(self) -> Adapter:
        return MemoryAdapter()


class LastingMachine(LogMachine):
    """Also closed and opened again, and used through another connection, as a process would."""

    @rule()
    def reopen(self) -> None:
        self.stop_following()
        self.runner.run(self.log.close())
        self.log = self.adapter.open()

    @rule()
    @precondition(lambda self: len(self.others) < 2)
    def open_another(self) -> None:
        self.others.append(self.log)
        self.log = self.adapter.open()

    @rule()
    @precondition(lambda self: self.others)
    def change_sides(self) -> None:
        self.others.append(self.log)
        self.log = self.others.pop(0)


class SqliteMachine(LastingMachine):
    def make_adapter(self) -> Adapter:
        return SqliteAdapter(self.folder / "log.db")


class FileMachine(LastingMachine):
    """Also without its tables, which are then made again."""

    format = "zstd"

    def make_adapter(self) -> Adapter:
        return FileAdapter(self.folder / "log", self.format)

    @rule()
    @precondition(lambda self: not self.others)
    def lose_the_tables(self) -> None:
        self.stop_following()
        self.runner.run(self.log.close())
        (self.folder / "log" / "tables.db").unlink()
        self.log = self.adapter.open()


class JsonlMachine(FileMachine):
    format = "jsonl"


class KafkaMachine(LastingMachine):
    """The others share the tables, as processes of one machine do. Nothing is refused."""

    servers: ClassVar[str]

    def make_adapter(self) -> Adapter:
        return KafkaAdapter(make_topic(self.servers), self.folder / "tables.db")

    def append(self, frame: SealedFrame, refused: type[Exception] | None = None) -> None:
        super().append(frame, None)

    def skip(self) -> None:
        """Only a foreign transaction leaves a hole there; no rule, then."""


few = settings(
    max_examples=400 if PROOF else 15,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = few
TestSqliteMachine = SqliteMachine.TestCase
TestSqliteMachine.settings = few
TestFileMachine = FileMachine.TestCase
TestFileMachine.settings = few
TestJsonlMachine = JsonlMachine.TestCase
TestJsonlMachine.settings = few


def test_kafka_machine(kafka_servers: str) -> None:
    KafkaMachine.servers = kafka_servers
    run_state_machine_as_test(
        KafkaMachine, settings=settings(few, max_examples=60 if PROOF else 12)
    )
