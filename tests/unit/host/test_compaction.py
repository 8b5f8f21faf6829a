"""Compaction as a host asks for it, and what goes wrong in it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    MoodyLog,
    Script,
    after_crash,
    assert_ended,
    assert_sound,
    calls,
    dispatch_of,
    head_of,
    host,
    told,
    tool,
    types_of,
)
from tests.unit.host.talks import (
    Summariser,
    answer,
    assert_nothing_lost,
    compactions,
    goes_on,
    operations,
    outcomes,
    say,
    talk,
)
from turnlog.core.errors import EntryNotFound, SchemaError, UsageError
from turnlog.host import Compaction, CompactionFailed, OperationOpen, OutcomeUnknown, run_turn
from turnlog.host.cuts import characters
from turnlog.owner.guest import request_abort, write_guest

# ---- what it does


async def test_what_is_old_is_summarised_and_the_tail_is_kept() -> None:
    log, summarise = MoodyLog(), Summariser(("in short", {"input": 7, "output": 2}))
    async with host(log) as session:
        ids = await talk(session)
        before = session.context()
        entry = await session.compact_now(summarise)
        assert entry is not None
        assert told(session)[0] == "user: in short"
        assert session.context()[1:] == before[12:]
        assert summarise.given == [before[:12]]
        view = session.view()
        data = view.data(view.entry(view.number(entry)))
        assert data["replaces"] == {"first": ids[0], "last": ids[11]}
        assert data["prepared_at"] == ids[-1]
        assert data["usage"] == {"input": 7, "output": 2}
        assert data["tokens_before"] == sum(map(characters, before[:12]))
        assert data["tokens_after"] == 2
        (operation,) = operations(log)
        assert data["operation"] == operation.operation
        assert (operation.trigger, operation.start_leaf) == ("manual", ids[-1])
        assert_nothing_lost(view)
        assert_ended(log)
    assert_sound(log)


async def test_the_start_is_saved_before_a_summary_is_asked_for_and_its_end_is_one_frame() -> None:
    log = MoodyLog()

    async def summarise(messages: list[dict[str, Any]]) -> str:
        assert [row.outcome for row in operations(log)] == [None]
        assert head_of(log).status == "open"
        return "in short"

    frames: list[list[str]] = []
    async with host(log) as session:
        await talk(session)
        await session.flush()
        log.mood = lambda frame: frames.append(types_of(frame))
        await session.compact_now(summarise)
        assert frames == [["operation_accepted"], ["compaction", "operation_finished"]]
    assert_sound(log)


async def test_pressure_counts_from_its_share_of_the_limit_on() -> None:
    log, summarise = MoodyLog(), Summariser()
    async with host(log) as session:
        await talk(session)
        total = sum(map(characters, session.context()))
        limit = int(total / 0.8)
        assert await session.compact_if_needed(summarise, limit=limit + 2) is None
        assert operations(log) == []
        assert await session.compact_if_needed(summarise, limit=limit) is not None
        assert [row.trigger for row in operations(log)] == ["pressure"]
        assert (
            len(session.context()) == 1 + 4
        )  # 96 tokens are kept, so the newest user's message too
        assert await session.compact_if_needed(summarise, limit=600) is None
    assert_sound(log)


async def test_shares_and_meter_are_the_hosts() -> None:
    log, summarise = MoodyLog(), Summariser()
    async with host(log) as session:
        await talk(session)
        count = await session.compact_if_needed(
            summarise, limit=32, pressure=0.5, keep=0.25, meter=lambda message: 1
        )
        assert count is not None
        assert len(session.context()) == 1 + 4
    assert_sound(log)


async def test_an_overflow_counts_nothing_and_cuts_by_what_is_there() -> None:
    log, summarise = MoodyLog(), Summariser()
    async with host(log) as session:
        await talk(session)
        entry = await session.compact_if_needed(summarise, limit=10**9, reason="overflow")
        assert entry is not None
        assert [row.trigger for row in operations(log)] == ["overflow"]
    assert_sound(log)


async def test_the_second_one_keeps_what_the_first_one_kept() -> None:
    """Case 1: the former summary and its kept tail are what the next one summarises."""
    log, summarise = MoodyLog(), Summariser("first", "second")
    async with host(log) as session:
        await talk(session, 3)
        await session.compact_now(summarise)
        await talk(session, 3)
        await session.compact_now(summarise)
        given = summarise.given[1]
        assert [part["text"] for part in given[0]["content"]] == ["first"]
        view = session.view()
        assert_nothing_lost(view)
        assert told(session)[0] == "user: second"
        assert len(given) == 1 + 4 + 8
    assert_sound(log)


async def test_one_long_turn_is_summarised_behind_its_question() -> None:
    log = MoodyLog()
    async with host(log) as session:
        question = await say(session, "user", "find it")
        for number in range(10):
            await say(session, "assistant", "look " * 20, f"c{number}")
            await answer(session, f"c{number}", "found " * 20)
        assert await session.compact_now(Summariser("it was looked for")) is not None
        context = session.context()
        assert context[0]["entry"] == question
        assert told(session)[1] == "user: it was looked for"
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_calls_that_wait_are_left_and_so_is_everything_where_nothing_else_is() -> None:
    log = MoodyLog()
    async with host(log) as session:
        assert await session.compact_now(Summariser()) is None, "an empty session"
        await say(session, "system", "be brief " * 20)
        await say(session, "user", "q " * 20)
        await say(session, "assistant", "both " * 20, "one", "two")
        await answer(session, "one", "r " * 20)
        assert await session.compact_now(Summariser()) is None
        assert operations(log) == []
        await answer(session, "two", "r " * 20)
        await say(session, "assistant", "a " * 20)
        assert await session.compact_now(Summariser()) is not None
        assert [said["role"] for said in session.context()] == [
            "system",
            "user",
            "user",
            "assistant",
        ]
    assert_sound(log)


async def test_a_summary_alone_is_not_summarised_again() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await talk(session, 1)
        await say(session, "user", "x" * 400)
        assert await session.compact_now(Summariser()) is not None
        assert await session.compact_now(Summariser()) is None
    assert_sound(log)


async def test_under_pressure_a_span_that_is_not_worth_it_is_left() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await say(session, "user", "x" * 40)
        await say(session, "assistant", "x" * 40)
        await say(session, "user", "y" * 3_600)
        assert await session.compact_if_needed(Summariser(), limit=1_000) is None
        assert await session.compact_if_needed(Summariser(), limit=1_000, reason="overflow")
    assert_sound(log)


async def test_a_span_by_its_ends() -> None:
    log = MoodyLog()
    async with host(log) as session:
        ids = await talk(session)
        await session.compact(ids[4], ids[7], Summariser("the second turn"))
        assert told(session)[4] == "user: the second turn"
        assert len(session.context()) == 13
        for first, last in [(ids[1], ids[1]), (ids[0], ids[1]), (ids[2], ids[3])]:
            with pytest.raises(UsageError, match="cannot be summarised: a call in it"):
                await session.compact(first, last, Summariser())
        with pytest.raises(UsageError, match="newest message of a user"):
            await session.compact(ids[8], ids[12], Summariser())
        with pytest.raises(UsageError, match="behind"):
            await session.compact(ids[3], ids[0], Summariser())
        for unknown in (ids[5], "nowhere"):
            with pytest.raises(EntryNotFound):
                await session.compact(ids[0], unknown, Summariser())
        assert outcomes(log) == ["completed"], "what cannot be is refused before it begins"
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_in_a_fork_the_parents_surface_is_one_node() -> None:
    log, summarise = MoodyLog(), Summariser("what was before")
    async with host(log) as session:
        await talk(session, 3)
        child = await session.fork()
        before = session.context()
    async with host(log, session=child) as session:
        assert await session.compact_now(summarise) is None, "it holds the newest user's message"
        await say(session, "user", "go on")
        await say(session, "assistant", "well")
        assert await session.compact_now(summarise) is not None
        assert summarise.given == [before]
        assert told(session) == ["user: what was before", "user: go on", "assistant: well"]
        assert_nothing_lost(session.view())
        grandchild = await session.fork()
    async with host(log, session=grandchild) as session:
        await say(session, "user", "and on")
        fork_at = session.view().head.fork_at["entry"]
        await session.compact(fork_at, fork_at, Summariser("."))
        assert told(session) == ["user: .", "user: and on"]
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_a_summary_too_long_for_an_event_is_a_blob_and_measured_whole() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await talk(session, 2, 80_000)
        long = "s" * 300_000
        entry = await session.compact_now(Summariser(long))
        assert entry is not None
        view = session.view()
        data = view.data(view.entry(view.number(entry)))
        assert data["tokens_after"] == 75_000
        assert data["content"][0]["type"] == "blob"
        assert view.blob(data["content"][0]["digest"]) == long.encode()
    assert_sound(log)


@pytest.mark.parametrize(("limit", "pressure", "keep"), [(0, 0.8, 0.1), (9, 0.1, 0.1), (9, 1, -1)])
async def test_shares_that_leave_nothing_to_do_are_refused(
    limit: int, pressure: float, keep: float
) -> None:
    with pytest.raises(UsageError):
        Compaction(Summariser(), limit, pressure=pressure, keep=keep)


# ---- what goes wrong in it


@pytest.mark.parametrize(
    "bad",
    [
        ValueError("x" * 1_000_000),
        ValueError("half \ud83d"),
        TimeoutError(),
        "",
        " \n",
        None,
        7,
        ("a", {}, "b"),
        "longer " * 10_000,
        "x" * 500,
    ],
    ids=lambda bad: repr(bad)[:20],
)
async def test_without_a_summary_that_may_stand_the_session_is_as_it_was(bad: Any) -> None:
    log = MoodyLog()
    async with host(log) as session:
        await talk(session, 2)  # 4 messages of 30 tokens before the newest user's
        before = session.context()
        with pytest.raises(CompactionFailed):
            await session.compact_now(Summariser(bad))
        assert session.context() == before
        (operation,) = operations(log)
        assert operation.outcome == "failed"
        assert operation.error["type"] == "CompactionFailed"
        assert_ended(log)
        await goes_on(session, log)
    assert_sound(log)


async def test_what_it_cost_must_be_what_the_log_takes() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await talk(session)
        with pytest.raises(SchemaError):
            await session.compact_now(Summariser(("short", {"input": "many"})))
        assert outcomes(log) == ["failed"]
        await goes_on(session, log)
    assert_sound(log)


async def test_a_meter_that_fails_ends_it() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await talk(session)

        def meter(message: dict[str, Any]) -> int:
            if message["content"][0]["text"] == "in short":
                raise KeyError("no such token")
            return 9

        with pytest.raises(KeyError):
            await session.compact_now(Summariser(), meter=meter)
        assert outcomes(log) == ["failed"]
        await goes_on(session, log)
    assert_sound(log)


async def test_the_conversation_may_go_on_while_the_summary_is_made() -> None:
    log = MoodyLog()

    async def summarise(messages: list[dict[str, Any]]) -> str:
        await say(session, "user", "meanwhile")
        await session.set_state({"k": 1})
        return "in short"

    async with host(log) as session:
        await talk(session)
        assert await session.compact_now(summarise) is not None
        assert told(session)[0] == "user: in short"
        assert told(session)[-1] == "user: meanwhile"
        assert session.state == {"k": 1}
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_one_at_a_time_and_nobody_moves_the_leaf_meanwhile() -> None:
    log = MoodyLog()

    async def summarise(messages: list[dict[str, Any]]) -> str:
        with pytest.raises(OperationOpen):
            await session.compact_now(Summariser())
        with pytest.raises(OperationOpen):
            await session.compact(ids[0], ids[0], Summariser())
        with pytest.raises(OperationOpen):
            await session.prune()
        with pytest.raises(OperationOpen):
            await session.navigate(ids[0])
        with pytest.raises(OperationOpen):
            await session.compact_if_needed(Summariser(), limit=1, reason="overflow")
        assert await session.compact_if_needed(Summariser(), limit=1) is None
        return "in short"

    async with host(log) as session:
        ids = await talk(session)
        assert await session.compact_now(summarise) is not None
        assert outcomes(log) == ["completed"]
    assert_sound(log)


async def test_a_span_that_has_moved_meanwhile_is_not_replaced() -> None:
    """No public method moves it; what does it here is an entry written below the session."""
    log = MoodyLog()

    async def summarise(messages: list[dict[str, Any]]) -> str:
        link = session.link
        data = {"parent": ids[1], "from": link.leaf}
        await link.write_now([link.event("branch", data, "elsewhere")], leaf="elsewhere")
        return "in short"

    async with host(log) as session:
        ids = await talk(session)
        with pytest.raises(CompactionFailed, match="has changed meanwhile"):
            await session.compact_now(summarise)
        assert compactions(session.view()) == []
        assert outcomes(log) == ["failed"]
    assert_sound(log)


async def test_somebody_may_ask_it_to_stop() -> None:
    log = MoodyLog()

    async def summarise(messages: list[dict[str, Any]]) -> str:
        (row,) = operations(log)
        asked = [request_abort(row.operation, AMBIENT)]
        await write_guest(log, "s", asked, writer="p", ambient=AMBIENT)
        return "in short"

    async with host(log) as session:
        await talk(session)
        with pytest.raises(CompactionFailed, match="asked to stop"):
            await session.compact_now(summarise)
        await goes_on(session, log)
    assert_sound(log)


@pytest.mark.parametrize("how", ["turn", "input", "nothing", "resume", "close"])
async def test_beside_a_compaction_the_conversation_goes_on_and_nobody_ends_it(how: str) -> None:
    log, asked, release = MoodyLog(), asyncio.Event(), asyncio.Event()

    async def summarise(messages: list[dict[str, Any]]) -> str:
        asked.set()
        await release.wait()
        return "in short"

    async with host(log) as session:
        await talk(session)
        task = asyncio.create_task(session.compact_now(summarise))
        await asked.wait()
        if how == "turn":
            assert await run_turn(session, Script("well"), "on") == "completed"
        elif how == "input":
            await session.queue_input("on")
            assert await run_turn(session, Script("well")) == "completed"
        elif how == "nothing":
            with pytest.raises(UsageError, match="nothing is queued"):
                await run_turn(session, Script("well"))
        elif how == "resume":
            with pytest.raises(UsageError, match="no turn is open"):
                async with session.resume():
                    raise AssertionError
        else:
            with pytest.raises(OperationOpen):
                await session.close_open()
        release.set()
        made = await task
        assert [row.id for row in compactions(session.view())] == [made]
        assert compactions(session.view())[0].void is None
        assert set(outcomes(log)) == {"completed"}
        assert_nothing_lost(session.view())
    assert_ended(log)
    assert_sound(log)


async def test_a_crash_in_a_turn_beside_a_compaction_leaves_both_to_the_next_host() -> None:
    log, asked = MoodyLog(), asyncio.Event()

    async def hang(messages: list[dict[str, Any]]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    async with host(log) as session:
        await talk(session)
        task = asyncio.create_task(session.compact_now(hang))
        await asked.wait()
        async with session.turn("on") as turn:
            crashed = await after_crash(log)
            await turn.finish("aborted")
        task.cancel()
        await asyncio.wait([task])
    async with host(crashed, name="h2") as session:
        assert [item.operation.kind for item in session.recovery] == ["compaction", "prompt"]
        assert await run_turn(session, Script("well")) == "completed"
        assert_nothing_lost(session.view())
    assert_ended(crashed)
    assert_sound(crashed)


async def test_what_turnlog_itself_raises_in_a_summariser_is_raised_as_it_is() -> None:
    log = MoodyLog()

    async def summarise(messages: list[dict[str, Any]]) -> str:
        await session.compact("nowhere", "nowhere", Summariser())
        raise AssertionError

    async with host(log) as session:
        await talk(session)
        with pytest.raises(OperationOpen):
            await session.compact_now(summarise)
        assert outcomes(log) == ["failed"]
        await goes_on(session, log)
    assert_sound(log)


async def test_a_later_answer_of_a_call_that_is_summarised_stays_on_the_surface() -> None:
    """A person allowed a second start after the summary: rule 4 lets no span hold its result."""

    def run(call: Any) -> None:
        raise OutcomeUnknown("lost")

    log = MoodyLog()
    async with host(log, tool(run)) as session:
        assert await run_turn(session, Script(calls("t")), "go") == "completed"
        await say(session, "user", "and?")
        assert await session.compact_now(Summariser(".")) is not None
        row, link = dispatch_of(log), session.link
        first = session.view().event_data(row.tries[-1]["position"], row.tries[-1]["index"])
        allowed = {"dispatch": row.dispatch, "try": 1, "by": "p"}
        again = {**first, "try": 2, "result_entry": "again"}
        await link.write_now([link.event("rerun_allowed", allowed)])
        await link.write_now([link.event("tool_dispatched", again)])
        said = {"call_id": row.call_id, "tool": "t", "dispatch": row.dispatch, "status": "ok"}
        data = {"parent": link.leaf, "role": "tool", "content": [], **said}
        await link.write_now([link.event("message", data, "again")], leaf="again")
        finished = {"operation": row.operation, "outcome": "completed"}
        await link.write_now([link.event("operation_finished", finished)])
        await talk(session, 1)
        surface = session.view().surface()
        answer_ = session.view().number("again")
        assert answer_ in surface
        await session.compact_now(Summariser("."))
        assert answer_ in session.view().surface()
        with pytest.raises(UsageError, match="cannot be summarised"):
            await session.compact("again", "again", Summariser("."))
        assert_nothing_lost(session.view())
    assert_sound(log)
