"""Pruning: what is trimmed, what is said about it, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    MoodyLog,
    assert_ended,
    assert_sound,
    head_of,
    host,
    rows,
    told,
    types_of,
    view_of,
)
from tests.unit.host.talks import Summariser, answer, assert_nothing_lost, compactions, say
from turnlog.core.errors import UsageError
from turnlog.host import Session, Tool
from turnlog.host.prune import HEAD, MARKER, TAIL


async def results(session: Session, *texts: str) -> list[str]:
    """A question and calls with these results."""
    await say(session, "user", "go")
    await say(session, "assistant", "look", *(f"c{index}" for index in range(len(texts))))
    return [await answer(session, f"c{index}", text) for index, text in enumerate(texts)]


def trimmed(text: str, head: int = HEAD, tail: int = TAIL) -> str:
    marker = MARKER.format(left_out=f"{len(text) - head - tail:,}")
    return text[:head] + marker + text[len(text) - tail :]


async def test_long_results_keep_head_and_tail_and_say_how_much_is_left_out() -> None:
    log, long = MoodyLog(), "".join(chr(65 + index % 26) for index in range(20_000))
    frames: list[list[str]] = []
    async with host(log) as session:
        short, first, exact, second = await results(session, "r", long, "x" * 8192, "y" * 8193)
        await session.flush()
        log.mood = lambda frame: frames.append(types_of(frame))
        made = await session.prune()
        assert frames == [["operation_accepted", "compaction", "compaction", "operation_finished"]]
        context = session.context()
        assert [said["entry"] for said in context[2:]] == [short, made[0], exact, made[1]]
        assert told(session)[3] == f"tool: {trimmed(long)}"
        assert "14,880 characters are left out" in told(session)[3]
        assert told(session)[5] == "tool: " + trimmed("y" * 8193)
        for said, call_id in zip(context[2:], ("c0", "c1", "c2", "c3"), strict=True):
            assert (said["role"], said["tool"], said["call_id"]) == ("tool", "t", call_id)
            assert said["status"] == "ok"
        view = session.view()
        data = view.data(view.entry(view.number(made[0])))
        assert data["replaces"] == {"first": first, "last": first}
        assert data["kind"] == "prune"
        assert second not in [said["entry"] for said in context]
        (operation,) = rows(log, "operations")
        assert (operation.kind, operation.outcome) == ("compaction", "completed")
        assert_ended(log)
        assert_nothing_lost(view)
    assert_sound(log)


async def test_a_second_pass_does_nothing_and_a_harder_one_tells_of_the_whole() -> None:
    log, long = MoodyLog(), "x" * 4_000 + "y" * 16_000
    async with host(log) as session:
        await results(session, long)
        await session.prune()
        await session.flush()
        frames = head_of(log).counts["frames"]
        assert await session.prune() == []
        assert head_of(log).counts["frames"] == frames
        assert len(await session.prune(threshold=500, head=100, tail=50)) == 1
        assert told(session)[-1] == f"tool: {trimmed(long, 100, 50)}"
        assert await session.prune(threshold=500, head=100, tail=50) == []
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_the_newest_stay_whole_as_asked() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await results(session, *("x" * 10_000 for _ in range(3)))
        assert len(await session.prune(keep=2)) == 1
        assert await session.prune(keep=5) == []
        assert len(await session.prune(keep=0)) == 2
    assert_sound(log)


async def test_code_points_are_not_cut_and_parts_that_are_no_text_stay() -> None:
    log, picture = MoodyLog(), {"type": "image", "media_type": "image/png", "data": "AA=="}
    async with host(log) as session:
        await say(session, "user", "go")
        await say(session, "assistant", "look", "c")
        content = [
            {"type": "text", "text": "😀" * 5_000},
            picture,
            {"type": "text", "text": "é" * 5_000},
        ]
        data = {"role": "tool", "content": content, "call_id": "c", "tool": "t", "status": "error"}
        await session.link.add_entry("message", data)
        await session.prune()
        said = session.context()[-1]
        whole = "😀" * 5_000 + "\n" + "é" * 5_000
        assert said["content"] == [{"type": "text", "text": trimmed(whole)}, picture]
        assert said["status"] == "error"
    assert_sound(log)


async def test_text_in_blobs_is_trimmed_as_well() -> None:
    log, long = MoodyLog(), "0123456789" * 60_000

    async def run(call: Any) -> str:
        return long

    async with host(log, Tool("t", run)) as session:
        async with session.turn("go") as turn:
            async with turn.attempt("m") as attempt:
                await attempt.finish([{"type": "tool_call", "call_id": "c", "name": "t"}])
            await turn.call_all()
            assert session.context()[-1]["content"][0]["type"] == "blob"
            assert len(await session.prune()) == 1
            assert told(session)[-1] == f"tool: {trimmed(long)}"
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_more_than_a_frame_holds_is_several_operations() -> None:
    log = MoodyLog()
    async with host(log) as session:
        for start in range(0, 120, 40):
            await say(session, "user", "go")
            await say(session, "assistant", "look", *(f"c{start + n}" for n in range(40)))
            for number in range(40):
                await answer(session, f"c{start + number}", "好" * 9_000)
        assert len(await session.prune()) == 120
        assert len(rows(log, "operations")) > 1
        assert await session.prune() == []
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_what_a_summary_holds_and_what_is_no_result_is_left_alone() -> None:
    log, long = MoodyLog(), "x" * 10_000
    async with host(log) as session:
        await results(session, long)
        await say(session, "assistant", long)
        await say(session, "user", long)
        await session.compact_now(Summariser("y" * 9_000))
        assert await session.prune() == []
        await say(session, "assistant", "look", "c")
        await session.link.add_entry(
            "message",
            {
                "role": "tool",
                "call_id": "c",
                "content": {"sealed": "k", "alg": "a", "nonce": "n", "ct": long},
            },
        )
        assert await session.prune() == []
    assert_sound(log)


async def test_a_prune_of_what_a_meter_finds_no_smaller_is_left() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await results(session, "x" * 10_000)
        assert await session.prune(meter=lambda message: 1) == []
        assert rows(log, "operations") == []


async def test_in_a_fork_its_parents_results_are_out_of_reach() -> None:
    log = MoodyLog()
    async with host(log) as session:
        await results(session, "x" * 10_000)
        child = await session.fork()
    async with host(log, session=child) as session:
        assert await session.prune() == []
        await results(session, "y" * 10_000)
        assert len(await session.prune()) == 1
        assert_nothing_lost(session.view())
    assert_sound(log)


async def test_a_summary_may_take_prunes_in() -> None:
    log = MoodyLog()
    async with host(log, ambient=AMBIENT) as session:
        await results(session, "x" * 10_000, "y" * 10_000)
        await session.prune(keep=1)
        await say(session, "user", "and?")
        entry = await session.compact_now(Summariser())
        assert [said["role"] for said in session.context()] == ["user", "user"]
        assert session.context()[0]["entry"] == entry
        assert len(compactions(view_of(log))) == 2
        assert_nothing_lost(session.view())
    assert_sound(log)


@pytest.mark.parametrize(
    "given", [{"threshold": 5_000}, {"head": -1}, {"tail": -1}, {"keep": -1}, {"head": 8_192}]
)
async def test_lengths_that_cannot_be_are_refused(given: dict[str, int]) -> None:
    log = MoodyLog()
    async with host(log) as session:
        with pytest.raises(UsageError):
            await session.prune(**given)
