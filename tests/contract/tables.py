"""The contract of the tables beside a log: read while it grows, equal to a fold, made anew."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.adapter import (
    Adapter,
    append_all,
    beginning,
    claiming,
    rows_of,
    talking,
)
from tests.contract.contract import settle
from tests.model.histories import seeded_history
from turnlog.core.errors import StateError
from turnlog.core.fold import fold
from turnlog.core.frames import Frame, Record, Unreadable, decode
from turnlog.core.rows import Changes, Tables, key_of
from turnlog.log import EmbeddedLog
from turnlog.tables.store import Difference

SEEDS = range(12)


def history(seed: int, frames: int = 80) -> list[Record]:
    return [item.record for item in seeded_history(seed, frames)]


class FailingFold:
    """The fold, but for a frame at or behind one position, as long as it is `broken`."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.broken = True

    def __call__(self, frame: Frame | Unreadable, position: int, tables: Tables) -> Changes:
        if self.broken and position >= self.position:
            raise ZeroDivisionError("a bug")
        return fold(frame, position, tables)


class TablesContract:
    async def test_rows_are_there_with_the_append(self, log: EmbeddedLog) -> None:
        for frame in beginning("s"):
            position = await log.append(frame)
            await log.tables.wait(position)
            assert log.tables.get(("sessions", "s")).position == position
            assert log.tables.position() == position
        assert log.tables.get(("ids", "s", "a1")) == 2
        assert log.tables.get(("entries", "s", 2)).id == "a1"
        assert log.tables.get(("entries", "s", 3)) is None
        assert log.tables.get(("sessions", "none")) is None
        assert log.tables.get(("ids", "s", "none")) is None

    async def test_a_row_leads_to_its_record(self, log: EmbeddedLog) -> None:
        frames = beginning("s")
        await append_all(log, frames)
        await settle(log)
        entry = log.tables.get(("entries", "s", 2))
        stored = log.tables.record("s", entry.position)
        assert stored is not None
        assert (stored.position, stored.record) == (entry.position, frames[2].record)
        assert log.tables.record("s", entry.position + 999) is None
        assert log.tables.record("another", entry.position) is None

    async def test_a_session_s_records_in_order(self, log: EmbeddedLog) -> None:
        one, other = talking("one", 3), talking("other", 3)
        for pair in zip(one, other, strict=True):
            await append_all(log, list(pair))
        await settle(log)
        stored = list(log.tables.records("one"))
        assert [item.record for item in stored] == [frame.record for frame in one]
        assert list(log.tables.records("one", after=stored[1].position)) == stored[2:]
        assert list(log.tables.records("none")) == []

    async def test_rows_are_scanned_in_key_order(self, log: EmbeddedLog) -> None:
        names = ["b", "a", "ä", "a\0", "B", "𐀀", "\ufb01", "a b"]
        for name in names:
            await append_all(log, talking(name, 12))
        await settle(log)
        scan = log.tables.scan
        assert [row.session for row in scan("sessions")] == sorted(names)
        numbers = [row.number for row in scan("entries", "a")]
        assert numbers == list(range(1, 13))
        assert [row.number for row in scan("entries", "a", reverse=True)] == numbers[::-1]
        assert [row.number for row in scan("entries", "a", limit=5)] == numbers[:5]
        assert list(scan("entries", "a", limit=0)) == []
        key = ("entries", "a", 4)
        assert [row.number for row in scan("entries", "a", after=key)] == numbers[4:]
        assert [row.number for row in scan("entries", "a", after=key, limit=2)] == [5, 6]
        back = scan("entries", "a", after=key, reverse=True)
        assert [row.number for row in back] == [3, 2, 1]
        rows = list(scan("entries"))
        assert rows == sorted(rows, key=lambda row: key_of("entries", row))
        behind = scan("entries", after=("entries", "a", 12))
        assert next(behind).session == "a\0"
        assert list(scan("entries", "none")) == []

    async def test_a_scan_is_as_long_as_the_table(
        self, log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("turnlog.tables.sql.SCAN_ROWS", 4)
        await append_all(log, talking("s", 12))
        await settle(log)
        for limit in (None, 1, 3, 4, 5, 8, 11, 12, 13):
            found = [row.number for row in log.tables.scan("entries", "s", limit=limit)]
            assert found == list(range(1, 13))[:limit]

    async def test_a_snapshot_stays_as_it_is(self, log: EmbeddedLog) -> None:
        frames = talking("s", 4)
        await append_all(log, frames[:3])
        await settle(log)
        with log.tables.snapshot() as view:
            before = rows_of(view)
            position = view.position()
            await append_all(log, frames[3:])
            await settle(log)
            assert rows_of(view) == before
            assert view.position() == position
            assert len(list(view.records("s"))) == 3
            assert view.record("s", await log.end()) is None
        assert rows_of(log.tables) != before

    async def test_waiting_for_a_position(self, log: EmbeddedLog) -> None:
        frames = talking("s", 2)
        position = await log.append(frames[0])
        await log.tables.wait(position)
        waiting = asyncio.ensure_future(log.tables.wait(position + 1))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await log.append(frames[1])
        await waiting

    @pytest.mark.parametrize("seed", SEEDS)
    async def test_rows_are_those_of_the_fold_over_a_dict(
        self, log: EmbeddedLog, seed: int
    ) -> None:
        records = history(seed)
        rows: dict[Any, Any] = {}
        positions: list[int] = []
        for start in range(0, len(records), 7):
            positions += await log.load(records[start : start + 7])
        await settle(log)
        for position, record in zip(positions, records, strict=True):
            for key, row in fold(decode(record), position, rows).items():
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
        ids = {key: row for key, row in rows.items() if key[0] == "ids"}
        assert {key: log.tables.get(key) for key in ids} == ids
        assert rows_of(log.tables) == {key: rows[key] for key in rows.keys() - ids.keys()}
        assert list(log.verify()) == []

    # ---- a fold that fails ---------------------------------------------------------------

    async def test_a_fold_that_raises_costs_no_frame(self, adapter: Adapter) -> None:
        frames = talking("s", 6)
        failing = FailingFold(4)
        async with adapter.open(fold=failing) as log:
            positions = await append_all(log, frames)
            assert positions == list(range(1, 8))
            await settle(log)
            assert log.tables.position() == 3
            assert log.tables.get(("sessions", "s")).position == 3
            assert [item.record async for item in log.read()] == [item.record for item in frames]
            with pytest.raises(StateError, match=r"position 4 of session 's'.*ZeroDivisionError"):
                log.rebuild()
            assert list(log.verify()) == []  # up to where they are folded
            failing.broken = False
            assert log.rebuild() == 7
            assert log.tables.position() == 7
            assert list(log.verify()) == []

    async def test_where_the_tables_lag_nothing_is_refused(self, adapter: Adapter) -> None:
        async with adapter.open(fold=FailingFold(2)) as log:
            await append_all(log, [claiming("s"), claiming("s", "c2", expects=1)])
            await log.append(claiming("s", "c3", expects=1))
            assert await log.end() == 3

    async def test_who_waits_for_lagging_tables_is_told(
        self, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("turnlog.tables.sql.LAG_S", 0.05)
        async with adapter.open(fold=FailingFold(2)) as log:
            await append_all(log, talking("s", 2))
            await log.tables.wait(1)
            with pytest.raises(StateError, match="tables"):
                await log.tables.wait(2)

    # ---- verifying and rebuilding --------------------------------------------------------

    async def test_a_row_that_no_fold_gave_is_found_and_undone(
        self, adapter: Adapter, log: EmbeddedLog
    ) -> None:
        await append_all(log, talking("s", 5))
        await append_all(log, beginning("t"))
        await settle(log)
        assert list(log.verify()) == []
        good = log.tables.get(("entries", "s", 3))
        changed = good._replace(role="assistant")
        surplus = good._replace(number=99, id="other")
        adapter.tamper(log, "entries", changed)
        adapter.tamper(log, "entries", surplus)
        assert list(log.verify()) == [
            Difference("entries", ("entries", "s", 3), changed, good),
            Difference("entries", ("entries", "s", 99), surplus, None),
        ]
        seen: list[tuple[int, int]] = []
        end = await log.end()
        assert log.rebuild(lambda *reached: seen.append(reached)) == end
        assert seen[-1] == (end, end)
        assert list(log.verify()) == []
        assert log.tables.get(("entries", "s", 3)) == good

    async def test_an_empty_log_can_be_rebuilt(self, log: EmbeddedLog) -> None:
        assert log.rebuild() == 0
        assert list(log.verify()) == []
        await append_all(log, beginning("s"))
        assert list(log.verify()) == []

    async def test_appending_goes_on_after_a_rebuild(self, log: EmbeddedLog) -> None:
        frames = talking("s", 8)
        await append_all(log, frames[:4])
        await settle(log)
        assert log.rebuild() == await log.end()
        await append_all(log, frames[4:])
        await settle(log)
        assert log.tables.get(("sessions", "s")).leaf == 8
        assert list(log.verify()) == []
