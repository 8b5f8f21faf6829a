"""Recovering sessions: one claim and one frame for what is open, and nothing for what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.heartbeats import beat
from tests.story import (
    Story,
    accepted,
    assert_balanced,
    assistant,
    attempted,
    finished,
    parked,
    rerun_allowed,
    result,
    t1,
    user,
)
from tests.unit.query.logs import load, random_session, records_of, stored
from tests.unit.recovery.crashes import (
    Killed,
    answered,
    asking,
    calling,
    compacting,
    corrupted,
    dispatched,
    log_of,
    off_path,
    recovered,
    superseded,
    waiting,
    world,
)
from turnlog.core.errors import AppendRefused, SessionNotFound
from turnlog.core.frames import Frame, SealedFrame, decode
from turnlog.log import EmbeddedLog
from turnlog.log.memory import MemoryLog
from turnlog.owner.heartbeat import system_boot
from turnlog.owner.places import RECOVERY_READY
from turnlog.recovery.executor import count, recover_all, recover_session
from turnlog.recovery.policies import Policy, judge
from turnlog.tables.view import SessionView


def frames_since(log: EmbeddedLog, story: Story) -> list[Frame]:
    records = records_of(log, story.session)[len(story.records) :]
    return [decode(record) for record in records]  # type: ignore[misc]  # all are readable


def types(log: EmbeddedLog, story: Story) -> list[list[str]]:
    return [[event.type for event in frame.events] for frame in frames_since(log, story)]


def operation(log: EmbeddedLog, id_: str = "op", session: str = "s") -> Any:
    return log.tables.get(("operations", session, id_))


def dispatch(log: EmbeddedLog, id_: str = "d", session: str = "s") -> Any:
    return log.tables.get(("dispatches", session, id_))


def check_whole(log: EmbeddedLog, session: str = "s") -> SessionView:
    """What holds of a session that was recovered, and that recovering again adds nothing."""
    view = SessionView(log.tables, session)
    assert view.head.released
    assert not view.damage()
    assert_balanced(view.context())
    before = len(records_of(log, session))
    assert all(done.did == "left" for done in recovered(log))
    assert len(records_of(log, session)) == before
    assert list(log.verify()) == []
    return view


def test_a_model_that_was_asked() -> None:
    story = asking()
    log = log_of(story)
    [done] = recovered(log)
    assert (done.verdict, done.did) == ("provider_interrupted", "closed")
    assert types(log, story) == [["session_claimed"], ["operation_finished", "session_released"]]
    claim = frames_since(log, story)[0].events[0].data
    assert claim["reason"] == "recovery"
    assert claim["expects_seq"] == story.seq
    row = operation(log)
    assert (row.outcome, row.inferred, row.corruption) == ("interrupted", True, ())
    assert check_whole(log).head.status == "idle"


def test_calls_on_the_path_are_answered_in_one_frame() -> None:
    story = dispatched()
    log = log_of(story)
    [done] = recovered(log)
    assert (done.verdict, done.did) == ("indeterminate_tool", "closed")
    assert [row["dispatch"] for row in done.dispatches] == ["d"]
    assert [step["do"] for step in done.instructions] == ["answer", "answer", "finish"]
    said = ["message", "message", "operation_finished", "session_released"]
    assert types(log, story) == [["session_claimed"], said]
    row = dispatch(log)
    assert (row.status, row.settled_by, row.answer["event"]) == ("unknown", "recovery", "r")
    view = check_whole(log)
    messages = {message["call_id"]: message for message in view.context() if "call_id" in message}
    assert messages["c1"]["status"] == "unknown"
    assert "may have taken effect" in messages["c1"]["content"][0]["text"]
    assert messages["c2"]["status"] == "not_started"
    assert all(message["entry"] is not None for message in messages.values())
    for entry in view.path()[-2:]:
        assert view.data(entry)["settled_by"] == "recovery"
    assert not operation(log).corruption


def test_every_call_that_a_head_can_list_is_closed_in_one_frame() -> None:
    names = [f"{'n' * 500}{number}" for number in range(256)]
    story = calling("s", *names)
    for number, name in enumerate(names):
        story.own(t1(f"d{name}", "op", "a", f"r{name}", call_index=number, call_id=name))
    log = log_of(story)
    [done] = recovered(log)
    assert (done.did, len(done.dispatches)) == ("closed", 256)
    assert len(frames_since(log, story)) == 2
    assert not check_whole(log).head.open_dispatches


def test_more_than_a_frame_holds_comes_in_several_and_ends_in_the_last() -> None:
    story = calling("s", *(f"c{number}" for number in range(1100)))
    log = log_of(story)
    assert [done.did for done in recovered(log)] == ["closed"]
    _, first, last = types(log, story)
    assert (len(first), set(first)) == (1024, {"message"})
    assert last[-2:] == ["operation_finished", "session_released"]
    assert len(last) == 1100 - 1024 + 2
    check_whole(log)


def test_a_call_off_the_path_is_settled_without_moving_the_leaf() -> None:
    story = off_path()
    leaf = story.leaf
    log = log_of(story)
    [done] = recovered(log)
    assert [step["do"] for step in done.instructions] == ["settle", "finish"]
    view = check_whole(log)
    assert view.entry(view.head.leaf).id == leaf
    assert (dispatch(log).status, dispatch(log).settled_by) == ("unknown", "recovery")


def test_an_answer_without_a_finish_is_finished_as_it_ended() -> None:
    log = log_of(answered())
    [done] = recovered(log)
    assert (done.verdict, done.did) == ("terminal", "closed")
    assert (operation(log).outcome, operation(log).inferred) == ("completed", True)
    check_whole(log)


def test_calls_that_were_not_started_are_said_so() -> None:
    log = log_of(calling())
    [done] = recovered(log)
    assert (done.verdict, done.did) == ("ready", "closed")
    statuses = [step.get("status") for step in done.instructions]
    assert statuses == ["not_started", "not_started", None]
    check_whole(log)


def test_a_compaction_in_a_prompt() -> None:
    log = log_of(compacting())
    told = {done.operation: (done.verdict, done.did) for done in recovered(log)}
    assert told == {"op": ("ready", "closed"), "comp": ("terminal", "closed")}
    assert operation(log, "comp").outcome == "completed"
    assert operation(log, "op").outcome == "interrupted"
    check_whole(log)


def test_what_was_superseded_is_answered_and_stays_superseded() -> None:
    log = log_of(superseded())
    [done] = recovered(log)
    assert (done.operation, done.did) == ("op", "closed")
    assert dispatch(log).status == "unknown"
    assert (operation(log).superseded, operation(log).outcome) == (True, None)
    assert not operation(log, "next").corruption
    check_whole(log)


def test_what_is_corrupted_is_parked_once_and_never_closed() -> None:
    story = corrupted()
    log = log_of(story)
    [done] = recovered(log)
    assert (done.verdict, done.did) == ("corrupted", "parked")
    assert types(log, story)[1] == ["operation_parked", "session_released"]
    assert "t1_repeated" in operation(log).parked
    assert check_whole(log).head.status == "requires_action"
    assert dispatch(log).status == "open"


@pytest.mark.parametrize("make", [corrupted, dispatched, waiting])
def test_a_person_may_insist_on_closing(make: Callable[[], Story]) -> None:
    log = log_of(make())
    recovered(log, policy=Policy(mode="park"))
    assert [done.did for done in recovered(log)] == ["left"]
    [done] = recovered(log, policy=Policy(insist=True))
    assert done.did == "closed"
    assert dispatch(log) is None or dispatch(log).status == "unknown"
    assert operation(log).outcome == "interrupted"
    check_whole(log)


def test_waiting_for_a_person_is_no_crash() -> None:
    story = waiting()
    log = log_of(story)
    for policy in (Policy(), Policy(mode="park"), Policy(mode="park", insist=True)):
        [done] = recovered(log, policy=policy)
        assert done.did == "left"
        assert "waits for approval" in done.why
    assert types(log, story) == []


def test_parking_keeps_it_as_it_is_for_a_host() -> None:
    story = dispatched()
    log = log_of(story)
    [done] = recovered(log, policy=Policy(mode="park"))
    assert done.did == "parked"
    assert done.why == operation(log).parked
    assert "indeterminate_tool" in done.why
    assert dispatch(log).status == "open"
    assert types(log, story)[1:] == [["operation_parked", "session_released"]]
    check_whole(log)


def test_parking_finishes_what_is_done_and_leaves_what_has_ended() -> None:
    log = log_of(answered("one"), superseded("two"))
    told = {done.session: done.did for done in recovered(log, policy=Policy(mode="park"))}
    assert told == {"one": "closed", "two": "left"}


def test_a_session_without_anything_open_is_not_claimed() -> None:
    story = answered()
    story.own(finished("op"))
    log = log_of(story)
    assert recovered(log) == []
    assert recovered(log, sessions=["s", "s"]) == []
    assert types(log, story) == []


def test_recovering_again_after_a_rerun_was_started() -> None:
    story = dispatched()
    log = log_of(story)
    recovered(log)
    later = Story("s", records_of(log, "s"))
    later.guest(rerun_allowed("d"))
    later.claim()
    later.own(t1("d", "op", "a", "again", try_=2))
    load(log, later.records[len(records_of(log, "s")) :])
    assert operation(log).outcome is None
    [done] = recovered(log)
    assert done.did == "closed"
    assert dispatch(log).answer["event"] == "again"
    check_whole(log)


# ---- hosts that live ----------------------------------------------------------------------


async def alive_and(log: EmbeddedLog, story: Story, since: int) -> list[Any]:
    one = beat(host="h", since=since, boot=system_boot(), uptime=98.0)
    await log.beat(one)
    return await recover_all(log, ambient=world())


def test_the_session_of_a_living_host_is_left_alone() -> None:
    story = dispatched()
    log = log_of(story)
    [done] = asyncio.run(alive_and(log, story, 0))
    assert (done.did, done.verdict) == ("left", "indeterminate_tool")
    assert done.why.startswith("its host 'h' gave a sign of life 2 s ago")
    assert types(log, story) == []


def test_a_host_that_was_started_again_does_not_hold_what_it_held() -> None:
    story = dispatched()
    log = log_of(story)
    [done] = asyncio.run(alive_and(log, story, 1))
    assert done.did == "closed"


class Meddled(MemoryLog):
    """Just before the first claim, somebody else's frames arrive."""

    def __init__(self, *frames: Any) -> None:
        super().__init__(clock=lambda: 0)
        self.frames = list(frames)

    async def append(self, frame: SealedFrame) -> int:
        frames, self.frames = self.frames, []
        await self.load(frames)
        return await super().append(frame)


def test_a_host_that_still_writes_is_not_robbed() -> None:
    story = dispatched()
    held = len(story.records)
    story.own(result("r", "a", "c1", dispatch="d"))
    log = Meddled(story.records[held])
    load(log, story.records[:held])
    [done] = recovered(log)
    assert (done.did, [step["do"] for step in done.instructions]) == ("left", ["leave"])
    assert "somebody else" in done.why
    assert SessionView(log.tables, "s").head.claim == story.claim_id


def test_a_claim_between_judging_and_claiming_is_not_robbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = dispatched()
    story.claim(reason="takeover")  # nothing is written under it
    log = log_of(story)

    def judge_slowly(*args: Any, **options: Any) -> Any:
        judged = judge(*args, **options)
        before = len(story.records)
        story.claim(reason="takeover")  # at the very seq that was seen
        with pytest.raises(StopIteration):
            log.load(story.records[before:]).send(None)  # type: ignore[attr-defined]
        return judged

    monkeypatch.setattr("turnlog.recovery.executor.judge", judge_slowly)
    [done] = recovered(log)
    assert done.did == "left"
    assert SessionView(log.tables, "s").head.claim == story.claim_id


def test_a_claim_in_between_fences_the_closers() -> None:
    story = dispatched()
    log = log_of(story)

    def take_over(place: str) -> None:
        assert place in ("claim.sent", "claim.saved", RECOVERY_READY, "frame.sent")
        if place == RECOVERY_READY:
            other = Story("s", records_of(log, "s"))
            other.claim()
            # the memory log appends in one step, so its coroutine needs no loop
            with pytest.raises(StopIteration):
                log.load(other.records[-1:]).send(None)  # type: ignore[attr-defined]

    [done] = recovered(log, ambient=world()._replace(reach=take_over))
    assert done.did == "left"
    assert dispatch(log).status == "open"
    assert SessionView(log.tables, "s").head.counts["fenced"] == 1
    assert [done.did for done in recovered(log)] == ["closed"]


# ---- what goes wrong ----------------------------------------------------------------------


def killed(place: str) -> None:
    if place == RECOVERY_READY:
        raise Killed


def test_recoveries_that_die_every_time_park_in_the_end() -> None:
    story = dispatched()
    log = log_of(story)
    for _ in range(3):
        with pytest.raises(BaseExceptionGroup):
            recovered(log, ambient=world()._replace(reach=killed))
    assert types(log, story) == [["session_claimed"]] * 3
    [done] = recovered(log)
    assert (done.did, done.verdict) == ("parked", "indeterminate_tool")
    assert "after 3 recoveries" in done.why
    assert dispatch(log).status == "open"
    assert [done.did for done in recovered(log)] == ["left"]
    [done] = recovered(log, policy=Policy(insist=True))
    assert done.did == "closed"


def test_how_many_recoveries_may_die_is_settable_and_a_host_begins_anew() -> None:
    story = dispatched()
    for _ in range(4):
        story.claim(reason="recovery")
    log = log_of(story)
    assert [d.did for d in recovered(log, policy=Policy(claims_max=5))] == ["closed"]
    story.claim(reason="resume")
    story.claim(reason="recovery")
    assert [d.did for d in recovered(log_of(story), policy=Policy(claims_max=2))] == ["closed"]
    story.claim(reason="recovery")
    assert [d.did for d in recovered(log_of(story), policy=Policy(claims_max=2))] == ["parked"]


class Full(MemoryLog):
    """Refuses what is appended to one session."""

    async def append(self, frame: SealedFrame) -> int:
        if frame.frame.header.session == "two":
            raise AppendRefused("no room")
        return await super().append(frame)


def test_what_fails_for_one_session_fails_for_no_other() -> None:
    log = Full(clock=lambda: 0)
    for session in ("one", "two", "three"):
        load(log, dispatched(session).records)
    results = recovered(log)
    assert {done.session: done.did for done in results} == {
        "one": "closed",
        "three": "closed",
        "two": "failed",
    }
    [failed] = [done for done in results if done.did == "failed"]
    assert (failed.why, failed.operation, failed.instructions) == ("no room", None, [])
    assert count(results) == {"closed": 2, "failed": 1}


def test_a_session_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SessionNotFound):
        asyncio.run(recover_session(log_of(), "nope", ambient=world()))


def test_a_newer_session_is_left_alone() -> None:
    story = dispatched()
    story.forge({"type": "message", "v": 9, "id": "new", "time": "", "data": {"parent": "a"}})
    [done] = recovered(log_of(story))
    assert done.did == "left"
    assert "upgrade turnlog" in done.why


def test_results_are_plain_data() -> None:
    [done] = recovered(log_of(dispatched()))
    assert set(done.as_data()) == {
        *("session", "operation", "kind", "verdict", "did", "why", "dispatches", "instructions")
    }


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("mode", ["close", "park"])
def test_any_history_is_recovered_once(seed: int, mode: Any) -> None:
    log = stored(random_session(seed, "s"), random_session(seed + 1000, "t"))
    policy = Policy(mode=mode, insist=seed % 2 == 0)
    recovered(log, policy=policy)
    end = asyncio.run(log.end())
    again = recovered(log, policy=policy)
    assert {done.did for done in again} <= {"left"}
    assert asyncio.run(log.end()) == end
    assert list(log.verify()) == []
    for session in ("s", "t"):
        head = log.tables.get(("sessions", session))
        if head is not None and mode == "close" and not head.newer and not head.waiting:
            assert all(item["parked"] for item in head.open_operations.values())
        if head is not None:
            assert_balanced(SessionView(log.tables, session).context())


def test_two_prompts_one_after_the_other_leave_nothing_of_the_first() -> None:
    story = asking()
    story.own(assistant("a", "u", attempt="at"), finished("op"))
    story.own(user("v", "a"), accepted("op2", "v"), attempted("at2", "op2", "b"))
    story.own(parked("op2"))
    log = log_of(story)
    assert [done.did for done in recovered(log)] == ["left"]
    assert types(log, story) == []
