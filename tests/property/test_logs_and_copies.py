"""The same records on every kind of log, and after a copy from each to each.

On each log the tables that grew with the appends are those of a rebuild, of a fold over a dict, and
what the model says, row for row. Two logs with the same records have equal rows but for positions:
a position is where a frame stands in its log, so it is replaced by the frame's ordinal in its
session before rows of two logs are compared. The time beside a record is a label of the log itself
and in no row. Nothing else may differ, and records not in a byte.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import rows_of, sealed
from tests.every_log import KINDS, Places, places
from tests.model.folding import fold_all
from tests.model.model import Model
from tests.model.observable import differences, observable
from tests.model.observe import observe
from tests.unit.query.logs import random_session, woven
from turnlog.core.archive import from_line
from turnlog.core.frames import Frame, Record, decode
from turnlog.core.rows import Key, Row
from turnlog.ingest import Masker, import_files
from turnlog.ingest.samples import write_samples
from turnlog.log import EmbeddedLog, Stored
from turnlog.log.memory import MemoryLog
from turnlog.owner.ambient import Ambient
from turnlog.query.compare import placeless
from turnlog.query.transfer import Moved, confirm, examine, fill, lines_of

__all__ = ["places"]

PROOF = os.environ.get("TURNLOG_PROOF") == "1"
HISTORIES = 25 if PROOF else 6
FRAMES = 120 if PROOF else 60
SEEDS = range(3 if PROOF else 1)
TESTS = Path(__file__).parents[1]
GOLDEN = [
    *sorted(TESTS.glob("golden/*.ndjson")),
    *sorted(TESTS.glob("simulation/golden/*.ndjson"))[:: 1 if PROOF else 4],
]
REFUSED_BY_SOME = {"session_claimed", "tool_dispatched"}
"""An embedded log refuses claims and T1s that lose, so frames with such are loaded as they are."""
pytestmark = pytest.mark.timeout(1_800 if PROOF else 180)


async def samples(folder: Path) -> list[list[Record]]:
    """What an import of session files of other agents writes, by session."""
    write_samples(folder)
    found: dict[str, list[Record]] = {}
    async with MemoryLog(clock=lambda: 0) as log:
        for format_ in ("claude-code", "pi"):
            paths = [folder / format_]
            await import_files(
                log, format_, paths, ambient=Ambient(), host="h", masker=Masker(), progress=ignore
            )
        async for stored in log.read():
            found.setdefault(stored.record.session, []).append(stored.record)
    return list(found.values())


def golden() -> list[list[Record]]:
    """The golden logs."""
    return [
        [from_line(line) for line in path.read_bytes().splitlines(keepends=True)] for path in GOLDEN
    ]


def histories(seed: int) -> list[list[Record]]:
    """Random sessions: fenced and lost frames, gaps, conflicts, guests, what cannot be read."""
    return [random_session(1_000 * seed + n, f"random-{n}", FRAMES) for n in range(HISTORIES)]


async def append(log: EmbeddedLog, records: Sequence[Record], dice: random.Random) -> None:
    """Append single frames, and load others in batches of any size, in this order."""
    start = 0
    while start < len(records):
        frame = decode(records[start])
        size = dice.choice([1, 1, 3, 20, 200])
        if size == 1 and isinstance(frame, Frame) and not types(frame) & REFUSED_BY_SOME:
            await log.append(sealed(records[start]))
        else:
            await log.load(records[start : start + size])
        start += size
    await settle_all(log)


def types(frame: Frame) -> set[str]:
    return {event.type for event in frame.events}


async def settle_all(log: EmbeddedLog) -> None:
    """Return once the tables hold all that was appended."""
    for partition in range(log.partitions):
        await log.tables.wait(await log.end(partition), partition)


async def stored_in(log: EmbeddedLog, session: str) -> list[Stored]:
    partition = log.partition_of(session)
    return [stored async for stored in log.read(session=session, partition=partition)]


Rows = dict[Key, Row]


def all_rows(log: EmbeddedLog, fresh: Rows) -> Rows:
    """The rows of all tables, and of `ids` those that a fold gave."""
    ids = {key: log.tables.get(key) for key in fresh if key[0] == "ids"}
    return {**rows_of(log.tables), **ids}


async def assert_folded(log: EmbeddedLog, sessions: Sequence[Sequence[Record]]) -> None:
    """The log holds these records, its tables are their fold, and the fold is as the model says."""
    expected: Rows = {}
    for records in sessions:
        name = records[0].session
        stored = await stored_in(log, name)
        assert [each.record for each in stored] == list(records)
        frames = [(each.position, decode(each.record)) for each in stored]
        rows = fold_all(frames)
        found = differences(observable(Model(frames)), observe(rows, name))
        assert not found, f"{log.url}, {name}: " + "\n".join(found)
        expected.update(rows)
    assert all_rows(log, expected) == expected
    log.rebuild()
    assert all_rows(log, expected) == expected
    assert list(log.verify()) == []


async def copy(origin: EmbeddedLog, target: EmbeddedLog) -> list[Moved]:
    """What `turnlog copy` does."""
    lines = await lines_of(origin)
    plan = await examine(lines, target, ignore)
    await fill(lines, target, plan, ignore)
    await confirm(target, plan, ignore)
    return plan.moved()


def ignore(*_: Any) -> None:
    pass


async def assert_equal(one: EmbeddedLog, other: EmbeddedLog, session: str) -> None:
    """Records byte for byte, and rows but for positions."""
    here, there = await stored_in(one, session), await stored_in(other, session)
    assert [each.record for each in here] == [each.record for each in there]
    left, right = list(placeless(one.tables, session)), list(placeless(other.tables, session))
    assert left == right


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
async def test_every_log_has_the_rows_of_the_model_and_so_has_every_copy(
    places: Places, tmp_path: Path, kind: str, seed: int
) -> None:
    sessions = [*histories(seed), *golden(), *await samples(tmp_path / "files")]
    names = [records[0].session for records in sessions]
    assert len(set(names)) == len(names)
    dice = random.Random(seed)
    others = random_session(seed + 7, "another")
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(await asyncio.to_thread(places.new, kind))
        await append(origin, woven(*sessions), dice)
        await assert_folded(origin, sessions)
        for target_kind in KINDS:
            async with await asyncio.to_thread(places.new, target_kind) as target:
                # some of it is there already, and something else
                begun = dice.choice(sessions)
                had = dice.randrange(len(begun))
                await append(target, woven(begun[:had] or others[:1], others), dice)
                moved = await copy(origin, target)
                assert {each.session: each.frames - each.added for each in moved} == {
                    **dict.fromkeys(names, 0),
                    begun[0].session: had,
                }
                for name in names:
                    await assert_equal(origin, target, name)
                ends = [await target.end(each) for each in range(target.partitions)]
                assert sum(each.added for each in await copy(origin, target)) == 0
                assert [await target.end(each) for each in range(target.partitions)] == ends
                assert list(target.verify()) == []
