"""Cases 7, 8, 10, 14, 25 and 26 of the public bug reports, as a host lives through them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    EFFECTS,
    Ledger,
    MoodyLog,
    Script,
    assert_balanced,
    assert_ended,
    assert_honest,
    assert_sound,
    calls,
    crashed_turn,
    dispatch_of,
    head_of,
    host,
    rows,
    statuses,
    told,
    types_in,
    view_of,
)
from turnlog.core.errors import ClaimLost, Fenced
from turnlog.host import Tool, ToolCall, run_turn
from turnlog.owner import places


class Watcher:
    """Takes a copy of the log whenever a place of the protocol is reached: a host that was killed
    there leaves that log, and the effects that there were."""

    def __init__(self, log: MoodyLog, ledger: Ledger) -> None:
        self.taken: list[tuple[str, list[Any], list[tuple[str, str]]]] = []
        self._log = log
        self._ledger = ledger

    def reach(self, place: str) -> None:
        records = [stored.record for stored in self._log.tables.records("s")]
        self.taken.append((place, records, list(self._ledger.effects)))


async def watched(*effects: str) -> list[tuple[str, list[Any], list[tuple[str, str]]]]:
    log, ledger = MoodyLog(), Ledger()
    watcher = Watcher(log, ledger)
    ambient = AMBIENT._replace(reach=watcher.reach)
    async with host(log, *(ledger.tool(name) for name in effects), ambient=ambient) as session:
        assert await run_turn(session, Script(calls(*effects)), "go") == "completed"
    return watcher.taken


@pytest.mark.parametrize("effect", EFFECTS)
async def test_25_killed_at_any_place_an_effect_happens_as_its_class_allows(effect: str) -> None:
    seen = set()
    for place, records, effects in await watched(effect):
        log, ledger = MoodyLog(), Ledger()
        await log.load(records)
        ledger.effects = list(effects)
        seen.add(place)
        if not head_of(log) or not head_of(log).listed:
            continue
        async with host(log, ledger.tool(effect), name="h2") as session:
            if session.recovery:
                assert await run_turn(session, Script(calls(effect))) == "completed"
            assert_ended(log)
            assert_balanced(session.context())
        assert_honest(log, ledger)
        assert ledger.count(effect) <= (1 if effect in ("opaque", "reconcilable") else 2)
        for row in rows(log, "dispatches"):
            may_have_started = effect == "opaque" and dispatches_before(records, len(records))
            assert row.status == "ok" or may_have_started
        assert_sound(log)
    assert {
        places.T1_READY, places.T1_SENT, places.T1_CHECKED, places.EFFECT_DONE, places.T2_SAVED,
    } <= seen  # fmt: skip


async def test_25_four_calls_at_once_killed_at_any_place() -> None:
    for _, records, effects in await watched(*EFFECTS):
        log, ledger = MoodyLog(), Ledger()
        await log.load(records)
        ledger.effects = list(effects)
        if not head_of(log) or not head_of(log).listed:
            continue
        async with host(log, *ledger.tools(), name="h2") as session:
            if session.recovery:
                assert await run_turn(session, Script()) == "completed"
            assert_ended(log)
        assert_honest(log, ledger)
        assert_sound(log)


async def test_26_a_host_that_wakes_up_finds_itself_fenced_and_what_it_did_is_kept() -> None:
    """H1 stalls in the middle of its call; H2 recovers and ends the turn; H1 wakes."""
    doing, wake = asyncio.Event(), asyncio.Event()

    async def slow(call: ToolCall) -> str:
        doing.set()
        with suppress(asyncio.CancelledError):
            await wake.wait()
        await wake.wait()
        return "sent"

    log, ledger = MoodyLog(), Ledger()
    async with host(log, Tool("opaque", slow)) as frozen:
        task = asyncio.create_task(run_turn(frozen, Script(calls("opaque")), "go"))
        await doing.wait()
        async with host(log, ledger.tool("opaque"), name="h1") as other:  # the same name, even
            assert await run_turn(other, Script(last="well")) == "completed"
            before = told(other)
            wake.set()
            with pytest.raises(Fenced):
                await task
            await frozen.link.settle_background()
            row = dispatch_of(log)
            assert row.status == "unknown"
            assert [piece["status"] for piece in row.evidence] == ["ok"]
            assert told(other) == before
            assert head_of(log).epoch == 2
    assert ledger.effects == []
    assert_sound(log)


async def test_7_what_recovery_has_answered_is_not_run_again() -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger)
    async with host(log, name="closer") as session:
        await session.close_open()
    before = types_in(log)
    for name in ("h2", "h3"):
        async with host(log, *ledger.tools(), name=name) as session:
            assert session.recovery == []
            assert await run_turn(session, Script("well"), "on") == "completed"
    assert types_in(log).count("tool_dispatched") == before.count("tool_dispatched")
    assert statuses(log) == {"unknown": 4}
    assert_honest(log, ledger)
    assert_sound(log)


async def test_8_call_ids_that_start_anew_in_each_turn_are_calls_of_their_own() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, ledger.tool("opaque")) as session:
        for number in range(3):
            assert await run_turn(session, Script(calls("opaque")), f"{number}") == "completed"
        assert_balanced(session.context())
    found = rows(log, "dispatches")
    assert len({row.dispatch for row in found}) == len({row.key for row in found}) == 3
    assert {row.call_id for row in found} == {"c0"}
    assert_sound(log)


@pytest.mark.parametrize("number", range(0, 80, 5))
async def test_10_of_two_hosts_at_work_at_once_one_writes_and_nothing_is_lost(number: int) -> None:
    log, ledger = MoodyLog(), Ledger()

    async def work(name: str, turn: str) -> str:
        with suppress(ClaimLost):
            return await open_and_work(name, turn)
        return await open_and_work(name, turn)

    async def open_and_work(name: str, turn: str) -> str:
        with suppress(Fenced):
            async with host(log, *ledger.tools(), name=name) as session:
                if session.recovery:
                    await run_turn(session, Script())
                return await run_turn(session, Script(calls("read_only")), turn)
        return "fenced"

    first = asyncio.create_task(work("h1", "one"))
    for _ in range(number):
        await asyncio.sleep(0)
    ended = await asyncio.gather(first, work("h2", "two"), return_exceptions=True)
    assert all(isinstance(item, (str, Fenced)) for item in ended), ended
    async with host(log, *ledger.tools(), name="h3") as session:
        while session.reports() or session.pending():
            await run_turn(session, Script(calls("read_only")))
        said = [say for say in told(session) if say.startswith("user")]
        assert sorted(said) == ["user: one", "user: two"]
    assert_sound(log)


async def test_14_large_results_are_claim_checks_and_a_session_of_them_opens() -> None:
    text = "x" * 1_000_000
    log = MoodyLog()

    async def run(call: ToolCall) -> str:
        return f"{call.dispatch} {text}"

    async with host(log, Tool("t", run)) as session:
        for _ in range(10):
            assert await run_turn(session, Script(calls("t")), "go") == "completed"
    async with host(log, name="h2") as session:
        context = session.context()
        assert len(str(context)) < 50_000
        parts = [part for said in context for part in said["content"] if part["type"] == "blob"]
        assert len(parts) == 10
        assert all(len(view_of(log).blob(part["digest"]) or b"") > 10**6 for part in parts)
        assert session.whole(parts[0])["text"].endswith(text)
    assert_sound(log)


async def test_14_a_hundred_megabytes_are_told_and_not_kept() -> None:
    log = MoodyLog()
    size = 100_000_000

    async def run(call: ToolCall) -> Any:
        return "x" * size

    async with host(log, Tool("t", run)) as session:
        assert await run_turn(session, Script(calls("t")), "go") == "completed"
        (answer,) = [said for said in session.context() if said["role"] == "tool"]
        (part,) = answer["content"]
        assert (part["truncated"], part["size"]) == (True, size)
    assert sum(len(stored.record.body) for stored in log.tables.records("s")) < 100_000
    assert_sound(log)


async def test_a_crash_and_a_crash_of_its_recovery_at_every_frame() -> None:
    """Whatever part of a resumed turn is in the log, the next host can end it."""
    ledger = Ledger()
    log = await crashed_turn(ledger)
    async with host(log, *ledger.tools(), name="h2") as session:
        assert await run_turn(session, Script(last="well")) == "completed"
    records = [stored.record for stored in log.tables.records("s")]
    for count in range(2, len(records)):
        part, again = MoodyLog(), Ledger()
        await part.load(records[:count])
        if not head_of(part).listed:
            continue
        async with host(part, *again.tools(), name="h3") as session:
            if session.recovery:
                assert await run_turn(session, Script()) == "completed"
            assert_ended(part)
        assert again.count("opaque") == 0 or not dispatches_before(records, count)
        assert_sound(part)


def dispatches_before(records: list[Any], count: int) -> bool:
    return any(b"tool_dispatched" in record.body for record in records[:count])
