"""Power failures and full disks at every call that a log in files makes of the system.

Whatever happens: what was acknowledged is there, whole and once; what was refused is not; and the
next append works.
"""

from __future__ import annotations

import asyncio
import errno
import random
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from tests.contract.adapter import claiming, guest, talking
from tests.contract.contract import read_all
from tests.story import fact
from tests.unit.log.disks import Failing, Recording, Replay, outcomes_of
from turnlog.core.errors import AppendRefused, AppendUnknown, LogUnavailable
from turnlog.core.frames import Frame, Record, SealedFrame, decode
from turnlog.log.file.disk import Disk
from turnlog.log.file.log import FileLog
from turnlog.tables.store import Stored

FORMATS = pytest.mark.parametrize("format_", ["zstd", "jsonl"])
LONG = "long " * 400


def open_log(path: Path, disk: Disk | None = None, format_: str | None = None) -> FileLog:
    path.mkdir(exist_ok=True)
    return FileLog(path, clock=lambda: 0, busy_ms=1_000, format_=format_, disk=disk)


LOADS = [
    [
        guest(session, fact(f"load {load}", f"{number} {LONG}")).record
        for number, session in enumerate(["s", "loaded", "loaded", f"new {load}"])
    ]
    for load in range(2)
]
"""Records of several sessions, loaded together."""


class Work:
    """Everything that an appender does, and what it was told."""

    def __init__(self) -> None:
        self.acknowledged: list[Record] = []
        self.refused: list[Record] = []
        self.unknown: list[Record] = []

    @property
    def handed_over(self) -> set[Record]:
        return {*self.acknowledged, *self.refused, *self.unknown}

    async def run(self, log: FileLog) -> None:
        frames = talking("s", 5)
        for frame in frames[:3]:
            await self.append(log, frame)
        await self.load(log, LOADS[0])
        facts = [guest(f"g{n % 3}", fact(f"f{n}", n)) for n in range(8)]
        await asyncio.gather(*(self.append(log, frame) for frame in facts))
        for frame in frames[3:]:
            await self.append(log, frame)
        await self.load(log, LOADS[1])

    async def append(self, log: FileLog, frame: SealedFrame) -> None:
        try:
            await log.append(frame)
        except AppendRefused:
            self.refused.append(frame.record)
        except AppendUnknown:
            self.unknown.append(frame.record)
        else:
            self.acknowledged.append(frame.record)
            self.note(log, str(len(self.acknowledged)))

    async def load(self, log: FileLog, records: list[Record]) -> None:
        try:
            await log.load(records)
        except AppendRefused:
            self.refused += records
        except AppendUnknown:
            self.unknown += records
        else:
            self.acknowledged += records
            self.note(log, str(len(self.acknowledged)))

    def note(self, log: FileLog, text: str) -> None:
        """Mark in the recording what is acknowledged, and keep the tables as they are then."""
        disk = log._folder.disk
        if isinstance(disk, Recording):
            disk.note(text)
            with sqlite3.connect(log.path) as tables, sqlite3.connect(f"{disk.root}-{text}") as to:
                tables.backup(to)
            tables.close()
            to.close()


def lose_tables(path: Path) -> None:
    for file in path.glob("tables.db*"):
        file.unlink()


def check_loads(there: Counter[Record]) -> None:
    for records in LOADS:
        assert len({there[record] for record in records}) == 1, "a load is wholly there, or not"


async def check_and_go_on(path: Path, acknowledged: list[Record], *, may_be: set[Record]) -> None:
    """Open what is left, check it, append to it, and check again without the tables."""
    for name in ("first", "second"):
        async with open_log(path) as log:
            stored = await read_all(log)
            there = Counter(item.record for item in stored)
            assert set(there.values()) <= {1}, "nothing is there twice"
            assert set(acknowledged) <= there.keys(), "what was acknowledged is there"
            broken = [item for item in stored if not isinstance(decode(item.record), Frame)]
            assert broken == [], "nothing is there in part"
            assert there.keys() <= may_be
            check_loads(there)
            order = [item.record for item in stored if item.record in set(acknowledged)]
            for session in {record.session for record in acknowledged}:
                assert [record for record in order if record.session == session] == [
                    record for record in acknowledged if record.session == session
                ]
            assert log.tables.position() == (stored[-1].position if stored else 0)
            assert list(log.verify()) == []
            more = [guest(session, fact(name, name)) for session in ("s", "g1", "n")]
            positions = [await log.append(frame) for frame in more]
            assert positions == sorted({*positions, await log.end() - 2})
            assert await read_all(log) == stored + [
                Stored(position, 0, frame.record)
                for position, frame in zip(positions, more, strict=True)
            ]
            acknowledged = [*acknowledged, *(frame.record for frame in more)]
            may_be = {*may_be, *acknowledged}
        lose_tables(path)
    with open_log(path) as log:
        assert [item.record for item in await read_all(log)][-6:] == acknowledged[-6:]


@FORMATS
@pytest.mark.parametrize("how", ["present", "absent", "partly", "partly, tables are older"])
async def test_power_fails_behind_any_call(
    tmp_path: Path, format_: str, how: str, proof: bool
) -> None:
    disk = Recording(tmp_path / "log")
    work = Work()
    async with open_log(tmp_path / "log", disk, format_) as log:
        begun = len(disk.calls)
        await work.run(log)
    assert not work.refused
    assert len(disk.calls) > 100
    dice = random.Random(f"{format_} {how}")
    for number in range(begun, len(disk.calls) + 1, 1 if proof else 9):
        for again in range(5 if proof and how.startswith("partly") else 1):
            calls = disk.calls[:number]
            acknowledged = max((int(call.path) for call in calls if call.name == "note"), default=0)
            path = tmp_path / f"{number}-{again}"
            Replay(calls).write_to(path, how.partition(",")[0], dice)
            if "tables" in how and acknowledged:
                notes = [call.path for call in calls if call.name == "note"]
                shutil.copy(f"{disk.root}-{dice.choice(notes)}", path / "tables.db")
            known = work.acknowledged[:acknowledged]
            await check_and_go_on(path, known, may_be=work.handed_over)
            shutil.rmtree(path)


@FORMATS
async def test_several_frames_of_one_file_are_torn_as_one(tmp_path: Path, format_: str) -> None:
    """The second may be whole on the disk where the first is not: that must not look like damage,
    nor may what was never acknowledged come back in part."""
    dice = random.Random(format_)
    disk = Recording(tmp_path / "log")
    claim = claiming("s")
    some = [guest("s", fact(f"f{number}", dice.randbytes(2_000).hex())) for number in range(8)]
    async with open_log(tmp_path / "log", disk, format_) as log:
        await log.append(claim)
        begun = len(disk.calls)
        await asyncio.gather(*map(log.append, some))
    writes = [
        number
        for number, call in enumerate(disk.calls[begun:], begun + 1)
        if call.name == "write" and len(call.data) > 4_000
    ]
    assert writes, "some have waited together"
    may_be = {frame.record for frame in (claim, *some)}
    for number in writes:
        for again in range(10):
            path = tmp_path / f"{number}-{again}"
            Replay(disk.calls[:number]).write_to(path, "partly", dice)
            await check_and_go_on(path, [claim.record], may_be=may_be)
            shutil.rmtree(path)


@FORMATS
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("lasting", [False, True])
async def test_the_disk_fails_at_any_call(
    tmp_path: Path, format_: str, error: int, lasting: bool, proof: bool
) -> None:
    counting = Failing(error)
    async with open_log(tmp_path / "counted", counting, format_) as log:
        opening = counting.count
        await Work().run(log)
    kinds: Counter[str] = Counter()
    for at in range(opening, counting.count, 1 if proof else 11):
        path = tmp_path / str(at)
        disk = Failing(error, at=at, lasting=lasting)
        work = Work()
        async with open_log(path, disk, format_) as log:
            await work.run(log)
            assert disk.failed
            told = work.refused or work.unknown
            assert told or disk.failed[0] in ("unlink", "sync_folder"), "only tidying up may fail"
            disk.heal()
            healed = guest("s", fact("healed", 1))
            end = await log.append(healed)
            assert await log.end() == end
            there = {item.record for item in await read_all(log)}
            assert not there & set(work.refused), "what was refused is not there"
            assert list(log.verify()) == []
            kinds.update(refused=len(work.refused), unknown=len(work.unknown))
        if at % 2:
            lose_tables(path)
        may_be = {*work.acknowledged, *work.unknown, healed.record}
        await check_and_go_on(path, [*work.acknowledged, healed.record], may_be=may_be)
        shutil.rmtree(path)
    assert kinds["refused"]
    assert bool(kinds["unknown"]) is lasting, "unknown only where it could not be cut off again"


async def test_a_full_disk_is_said_so(tmp_path: Path) -> None:
    disk = Failing(errno.ENOSPC)
    async with open_log(tmp_path / "log", disk) as log:
        await log.append(claiming("s"))
        disk.at = disk.count + 1
        found = await asyncio.gather(
            *(log.append(guest("s", fact(f"f{n}", n))) for n in range(3)), return_exceptions=True
        )
        assert outcomes_of(found) == ["AppendRefused"] * 3
        with pytest.raises(AppendRefused, match=r"disk is full; make room.*nothing was appended"):
            raise found[0]  # type: ignore[misc]  # it is an error
        assert len(await read_all(log)) == 1


async def test_a_disk_that_fails_on_opening_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match=r"Input/output error; look at"):
        open_log(tmp_path / "log", Failing(errno.EIO, at=0))
    open_log(tmp_path / "log").__exit__()
