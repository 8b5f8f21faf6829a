"""Batching: the window, what is written at once, bounded memory, and a log that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.story import event
from tests.unit.host.scene import (
    AMBIENT,
    EFFECTS,
    Errors,
    Ledger,
    MoodyLog,
    Script,
    assert_sound,
    calls,
    head_of,
    host,
    rows,
    steps,
    told,
    types_in,
    types_of,
    until,
    view_of,
)
from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    Fenced,
    LogUnavailable,
    SchemaError,
    UsageError,
)
from turnlog.core.frames import MAX_EVENTS, NewEvent, SealedFrame
from turnlog.host import Session, run_turn
from turnlog.host import batch as batching
from turnlog.host.batch import Batch
from turnlog.owner.owner import claim

FOREVER = 1e9


class Hand:
    """A loop's clock, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    async def turn(self, seconds: float) -> None:
        self.now += seconds
        await steps(20)


@pytest.fixture
async def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    clock = Hand()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock.now)
    return clock


async def batch_on(log: MoodyLog, errors: Errors, window_s: float = 0.2) -> Batch:
    owner = await claim(log, "s", tables=log.tables, host="h", reason="open", ambient=AMBIENT)
    return Batch(owner, window_s=window_s, on_error=errors, on_less=lambda: None)


def fact(value: Any = 1, name: str = "n") -> NewEvent:
    return event("fact", AMBIENT.ids(), name=name, value=value)


def facts(log: MoodyLog) -> int:
    return types_in(log).count("fact")


async def wait(future: asyncio.Future[int]) -> int:
    return await future


async def test_the_first_event_opens_a_window_that_later_ones_do_not_extend(hand: Hand) -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors)
    batch.put([fact()])
    for _ in range(3):
        await hand.turn(0.06)
        batch.put([fact()])
    assert facts(log) == 0
    await hand.turn(0.03)
    assert facts(log) == 4
    assert head_of(log).seq == 1, "all in one frame"
    batch.put([fact()])
    await hand.turn(0.19)
    assert facts(log) == 4, "and the next one opens a window of its own"
    await hand.turn(0.02)
    assert facts(log) == 5
    assert not errors


async def test_a_flush_writes_now_and_closes_the_window(hand: Hand) -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors)
    batch.put([fact()])
    await batch.send()
    assert facts(log) == 1
    await hand.turn(0.1)
    batch.put([fact()])
    await hand.turn(0.15)
    assert facts(log) == 1, "the first window ended with the flush"
    await hand.turn(0.06)
    assert facts(log) == 2


async def test_a_flush_of_nothing_writes_nothing() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors)
    assert await batch.send() == 0
    assert head_of(log).seq == 0


async def test_who_flushes_while_a_frame_is_under_way_shares_the_next_one() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors)
    log.gate.clear()
    saved = [batch.send([fact(number)]) for number in range(50)]
    await log.held.wait()
    saved += [batch.send([fact(number)]) for number in range(50)]
    log.gate.set()
    positions = await asyncio.gather(*saved)
    assert head_of(log).seq == 2
    assert sorted(set(positions)) == [2, 3]
    assert facts(log) == 100


async def test_units_are_never_split_and_frames_keep_their_limits() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    for number in range(7):
        batch.put([fact(number) for _ in range(300)])
    for _ in range(3):
        batch.put([fact("x" * 400_000)])
    await batch.send()
    frames = [stored for stored in log.tables.records("s") if stored.record.header.seq]
    sizes = [len(view_of(log).frame(stored.position).events) for stored in frames]
    assert sum(sizes) == 2_103
    assert all(size <= MAX_EVENTS and size % 300 in (0, 1, 2) for size in sizes), sizes
    assert_sound(log)


@pytest.mark.parametrize(
    "bad", [{"name": "n", "value": float("nan")}, {"name": "n", "value": 2**64}, {"value": 1}]
)
async def test_an_event_that_no_log_takes_spoils_no_frame(bad: dict[str, Any]) -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    batch.put([fact()])
    for write in (batch.put, batch.send):
        with pytest.raises(SchemaError):
            write([fact(), event("fact", **bad)])
    assert len(batch.waiting) == 1
    await batch.send()
    assert facts(log) == 1


async def test_what_waits_is_what_was_given_then() -> None:
    """Whoever gave it may change it afterwards."""
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    value = {"k": [1]}
    batch.put([fact(value)])
    value["k"].append(2)
    assert batch.waiting[0].data["value"] == {"k": [1]}
    await batch.send()
    (row,) = rows(log, "facts")
    assert row.value == {"k": [1]}


# ---- a log that fails


async def test_a_background_write_that_fails_keeps_its_events_and_tells_once(hand: Hand) -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors)
    tries = 0

    def refuse(frame: SealedFrame) -> str:
        nonlocal tries
        tries += 1
        return "refused"

    log.mood = refuse
    batch.put([fact(1)])
    await hand.turn(0.3)
    assert [type(error) for error in errors] == [AppendRefused]
    batch.put([fact(2)])
    await hand.turn(10)
    assert (tries, len(errors), facts(log)) == (1, 1, 0), "it does not try again by itself"
    with pytest.raises(AppendRefused):
        await batch.send()
    assert tries == 2
    assert len(errors) == 1, "who flushes is told, and nobody twice"
    log.mood = None
    await batch.send()
    assert facts(log) == 2
    batch.put([fact(3)])
    await hand.turn(0.3)
    assert facts(log) == 3, "once it works the windows are back"
    assert_sound(log)


async def test_a_write_that_nobody_waits_for_any_more_is_told_by_the_callback() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    log.gate.clear()
    log.mood = lambda frame: "refused"
    waiting = asyncio.create_task(wait(batch.send([fact()])))
    await log.held.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    log.gate.set()
    await until(lambda: errors)
    log.mood = None
    await batch.send()
    assert facts(log) == 1


async def test_a_background_failure_is_told_to_the_flush_beside_it_too(hand: Hand) -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors)
    log.gate.clear()
    log.mood = lambda frame: "refused"
    batch.put([fact()])
    await hand.turn(0.3)
    await log.held.wait()
    flush = batch.send()
    log.gate.set()
    with pytest.raises(AppendRefused):
        await flush
    assert len(errors) == 1


async def test_what_asked_for_it_is_taken_back_and_the_rest_waits() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    log.mood = lambda frame: "refused"
    batch.put([fact(1)])
    mine = batch.send([fact(2)], withdraw=True)
    theirs = batch.send([fact(3)])
    for future in (mine, theirs):
        with pytest.raises(AppendRefused):
            await future
    assert [waits.data["value"] for waits in batch.waiting] == [1, 3]
    log.mood = None
    await batch.send()
    assert [row.value for row in rows(log, "facts")] == [3]
    assert facts(log) == 2


async def test_entries_behind_what_was_taken_back_hang_where_it_would_have_hung() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)

    def entry(id_: str, parent: str | None, type_: str = "app_state", **data: Any) -> NewEvent:
        return event(type_, id_, parent=parent, **(data or {"value": {id_: 1}}))

    await batch.send([entry("a", None)])
    log.gate.clear()
    futures = [batch.send([entry("b", "a")])]
    await log.held.wait()
    futures.append(batch.send([entry("c", "b"), entry("d", "c")], withdraw=True))
    futures.append(batch.send([entry("e", "d")]))
    futures.append(batch.send([entry("f", "e")], withdraw=True))
    futures.append(batch.send([entry("g", "f", "branch", from_="f")]))
    log.mood = lambda frame: "refused"
    log.gate.set()
    await asyncio.gather(*futures, return_exceptions=True)
    log.mood = None
    await batch.send()
    assert [row.id for row in view_of(log).path()] == ["a", "b", "e", "g"]
    assert_sound(log)


@pytest.mark.parametrize("outcome", ["lost", "landed"])
async def test_a_frame_in_doubt_goes_first_unchanged_and_nothing_of_it_is_taken_back(
    outcome: str,
) -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    log.gate.clear()
    in_doubt = batch.send([fact(1)], withdraw=True)
    await log.held.wait()
    behind = batch.send([fact(2)], withdraw=True)
    kept = batch.send([fact(3)])
    log.mood = lambda frame: outcome
    log.gate.set()
    with pytest.raises(AppendUnknown):
        await in_doubt
    for future in (behind, kept):
        with pytest.raises(AppendRefused, match="in doubt"):
            await future
    assert [waits.data["value"] for waits in batch.waiting] == [1, 3]
    sent: list[SealedFrame] = []
    log.mood = sent.append
    await batch.send([fact(4)])
    assert [[said.data["value"] for said in frame.frame.events] for frame in sent] == [[1], [3, 4]]
    assert_sound(log)
    assert head_of(log).seq == 2
    assert [row.value for row in rows(log, "facts")] == [4]


async def test_a_frame_whose_reading_back_fails_is_in_doubt_and_not_written_anew() -> None:
    """The append came back; what the log held after it could not be read."""
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    owner = batch._owner
    owner.tables = None  # it has to read
    reads, read = 0, log.read

    def failing(*args: Any, **given: Any) -> Any:
        nonlocal reads
        reads += 1
        if reads == 1:
            raise LogUnavailable("not now")
        return read(*args, **given)

    log.read = failing
    with pytest.raises(AppendUnknown):
        await batch.send([fact(1)], withdraw=True)
    assert owner.in_doubt
    await batch.send([fact(2)])
    assert facts(log) == 3, "the copy is a duplicate"
    assert head_of(log).seq == 2
    assert head_of(log).counts["duplicates"] == 1
    assert head_of(log).damage == ()


async def test_what_waits_is_given_back_when_the_session_is_lost() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    batch.put([fact(1)])
    await batch_on(log, Errors())
    flushes = [batch.send([fact(2)], withdraw=True), batch.send()]
    for future in flushes:
        with pytest.raises(Fenced) as caught:
            await future
        assert [lost.data["value"] for lost in caught.value.unsaved] == [1, 2]
    assert batch.waiting == []
    assert [type(error) for error in errors] == [Fenced]


async def test_dropping_while_a_frame_is_under_way_leaves_nobody_waiting() -> None:
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    log.gate.clear()
    under_way = batch.send([fact(1)])
    await log.held.wait()
    behind = batch.send([fact(2)])
    batch.drop(Fenced("gone"))
    for future in (under_way, behind):
        with pytest.raises(Fenced):
            await future
    log.gate.set()
    await steps(20)
    assert batch.waiting == []


async def test_errors_are_not_shared_between_those_who_wait() -> None:
    """One error raised in several places would be its own cause."""
    log, errors = MoodyLog(), Errors()
    batch = await batch_on(log, errors, FOREVER)
    log.mood = lambda frame: "refused"
    ended = await asyncio.gather(*(batch.send([fact()]) for _ in range(3)), return_exceptions=True)
    assert len({id(error) for error in ended}) == 3
    assert all(isinstance(error, AppendRefused) and error.retriable for error in ended)


# ---- bounded


async def test_who_writes_faster_than_the_log_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "MAX_WAITING_BYTES", 50_000)
    log = MoodyLog()
    async with host(log, window_s=FOREVER) as session:
        await session.flush()
        log.gate.clear()
        done = 0

        async def write() -> None:
            nonlocal done
            for number in range(100):
                await session.set_state({"k": number, "text": "x" * 5_000})
                done += 1

        task = asyncio.create_task(write())
        await log.held.wait()
        await steps(100)
        assert done < 12
        assert session.link.batch._size < 60_000
        assert session.state["k"] == done, "and it is shown all the same"
        log.gate.set()
        await task
        assert session.state["k"] == 99
    assert_sound(log)
    assert len(rows(log, "entries")) == 100


async def test_a_log_that_is_down_tells_who_goes_on_writing_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "MAX_WAITING_BYTES", 50_000)
    log = MoodyLog()
    async with host(log, window_s=FOREVER) as session:
        log.mood = lambda frame: "refused"
        refused = 0
        for number in range(20):
            try:
                await session.set_state({"k": number, "text": "x" * 5_000})
            except AppendRefused:
                refused += 1
        assert refused > 8
        assert session.state["k"] == 19
        log.mood = None
        await session.flush()
        assert len(rows(log, "entries")) == 20
    assert_sound(log)


async def test_an_answer_given_while_the_log_is_down_is_not_taken_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "MAX_WAITING_BYTES", 2_000)
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools(), window_s=FOREVER) as session:

        async def ask() -> None:
            async with session.turn("go") as turn, turn.attempt("m") as attempt:
                log.mood = lambda frame: "refused"
                with pytest.raises(AppendRefused):
                    await attempt.finish("x" * 5_000)
                with pytest.raises(UsageError, match="finished already"):
                    await attempt.finish("x" * 5_000)
                raise AppendRefused("enough")

        with pytest.raises(AppendRefused):
            await ask()
        log.mood = None
        assert await run_turn(session, Script()) == "completed"
        assert len(told(session)) == 2
    assert_sound(log)


# ---- what is written at once


async def test_what_others_rely_on_is_in_the_log_when_the_call_returns() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools(), window_s=FOREVER) as session:
        assert types_in(log) == ["session_claimed", "session_created"]
        await session.set_state({"k": 1})
        await session.set_fact("title", "t")
        await session.set_extension("x", 1)
        assert len(types_in(log)) == 2, "these wait"
        async with session.turn("go") as turn:
            assert types_in(log)[2:] == [
                *("app_state", "fact", "custom"),
                *("message", "operation_accepted"),
            ]
            async with turn.attempt("m") as attempt:
                await attempt.finish(calls("opaque"))
            assert types_in(log)[-1] == "operation_accepted", "the model's answer waits"
            seen: list[list[str]] = []
            log.mood = lambda frame: seen.append(types_of(frame))
            await turn.call_all()
            assert seen == [["model_attempted", "message", "tool_dispatched"], ["T2"]]
            await session.set_state({"k": 2})
        assert types_in(log)[-2:] == ["app_state", "operation_finished"]
        writes: list[Callable[[], Any]] = [
            lambda: session.queue_input("more"),
            lambda: session.cancel_input("none"),
            lambda: session.navigate(None),
        ]
        for write in writes:
            before = len(types_in(log))
            await write()
            assert len(types_in(log)) > before
        await session.set_state({"k": 3})
    assert types_in(log)[-2:] == ["app_state", "session_released"]


async def test_reading_shows_what_waits() -> None:
    log, ledger = MoodyLog(), Ledger()
    async with host(log, *ledger.tools(), window_s=FOREVER) as session:
        async with session.turn("go") as turn:
            await session.set_state({"k": 1})
            await session.set_extension("x", {"n": 1})
            async with turn.attempt("m") as attempt:
                await attempt.finish("well")
            assert session.state == {"k": 1}
            assert session.extension("x") == {"n": 1}
            assert session.extension("y") is None
            assert told(session) == ["user: go", "assistant: well"]
            assert session.leaf == attempt.entry
            assert told(log) == ["user: go"]
        assert told(log) == ["user: go", "assistant: well"]
    assert_sound(log)


async def test_batched_writes_of_many_tasks_hang_together_in_order() -> None:
    log = MoodyLog()
    async with host(log, window_s=0) as session:

        async def write(name: str) -> None:
            for number in range(20):
                await session.set_extension(name, number)
                await steps(number % 3)

        await asyncio.gather(*(write(name) for name in EFFECTS))
        await session.flush()
        assert [session.extension(name) for name in EFFECTS] == [19] * 4
        assert len(view_of(log).path()) == 80
    assert_sound(log)


async def test_what_is_unsaved_on_leaving_is_told() -> None:
    log = MoodyLog()

    async def leave(session: Session) -> None:
        await session.set_state({"k": 1})
        log.mood = lambda frame: "refused"

    async def use() -> None:
        async with host(log, window_s=FOREVER) as session:
            await leave(session)

    with pytest.raises(AppendRefused):
        await use()
    log.mood = None
    async with host(log) as again:
        assert again.state == {}
    assert_sound(log)
