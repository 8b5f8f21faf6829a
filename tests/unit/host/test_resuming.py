"""Going on after a crash: each row of the design's two tables, and what hosts may change."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.unit.host.scene import (
    AMBIENT,
    EFFECTS,
    Hang,
    Ledger,
    MoodyLog,
    Script,
    after_crash,
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
    steps,
    told,
    tool,
    types_in,
    until,
)
from turnlog.core.errors import Fenced, UsageError
from turnlog.core.frames import Header, seal
from turnlog.host import (
    Ask,
    Happened,
    Never,
    OperationOpen,
    Policy,
    Session,
    Tool,
    ToolCall,
    Unsure,
    run_turn,
)
from turnlog.host.policy import Action
from turnlog.owner.guest import (
    allow_rerun,
    queue_input,
    request_abort,
    settle_dispatch,
    write_guest,
)
from turnlog.owner.owner import claim


async def resume(log: MoodyLog, *tools: Tool, **given: Any) -> Session:
    """Another host goes on to the end."""
    async with host(log, *tools, name="h2", **given) as session:
        assert await run_turn(session, Script(last="well")) == "completed"
        assert_ended(log)
    assert_sound(log)
    return session


def tries(log: MoodyLog, name: str) -> list[int]:
    return [item["try"] for item in dispatch_of(log, name).tries]


# ---- dispatches without an answer, by effect class


@pytest.mark.parametrize("before_effect", [True, False])
async def test_each_effect_class_is_treated_as_the_table_says(before_effect: bool) -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger, before_effect=before_effect)
    async with host(log, *ledger.tools(), name="h2") as session:
        (report,) = session.recovery
        assert report.verdict.name == "indeterminate_tool"
        assert {step.get("tool"): step["do"] for step in report.instructions} == {
            "read_only": "run_again",
            "idempotent": "run_again",
            "reconcilable": "probe",
            "opaque": "answer",
            None: "continue",
        }
        assert await run_turn(session, Script(last="well")) == "completed"
        assert_ended(log)
    assert_sound(log)
    assert_honest(log, ledger)
    happened = not before_effect
    assert {name: ledger.count(name) for name in EFFECTS} == {
        "read_only": 1 + happened,
        "idempotent": 1 + happened,
        "reconcilable": 1,
        "opaque": 1 * happened,
    }
    assert {row.tool: row.status for row in rows(log, "dispatches")} == {
        "read_only": "ok",
        "idempotent": "ok",
        "reconcilable": "ok",
        "opaque": "unknown",
    }
    assert tries(log, "read_only") == tries(log, "idempotent") == [1, 2]
    assert tries(log, "reconcilable") == ([1, 2] if before_effect else [1])
    assert tries(log, "opaque") == [1]
    answers = told(log)[2:6]
    assert answers[2] == f"tool: {'reconcilable done' if before_effect else 'probed: done'}"
    assert "unknown" in answers[3] or "not known" in answers[3]


async def test_a_second_try_has_the_first_ones_key_arguments_and_result_entry() -> None:
    ledger, seen = Ledger(), []
    log = await crashed_turn(ledger, "idempotent", message=calls("idempotent", n=1))

    async def run(call: ToolCall) -> str:
        seen.append(call)
        return "done"

    first = dispatch_of(log)
    await resume(log, Tool("idempotent", run, effect="idempotent"))
    row = dispatch_of(log)
    assert (row.key, row.result_entry) == (first.key, first.result_entry)
    (call,) = seen
    assert call.idempotency_key == row.key
    assert (call.args, call.try_number, call.dispatch) == ({"n": 1}, 2, row.dispatch)


@pytest.mark.parametrize(
    ("found", "status", "ran"),
    [
        (Happened("it did"), "ok", 0),
        (Happened(), "ok", 0),
        (Happened({"n": 1}), "ok", 0),
        (Happened(b"no json"), "ok", 0),
        (Never(), "ok", 1),
        (Unsure(), "unknown", 0),
        (None, "unknown", 0),
        ("happened", "unknown", 0),
        (True, "unknown", 0),
        (ValueError("broken"), "unknown", 0),
        (SystemExit(1), "unknown", 0),
        (asyncio.CancelledError(), "unknown", 0),
    ],
    ids=repr,
)
async def test_a_probe_decides_about_a_reconcilable_call(found: Any, status: str, ran: int) -> None:
    async def probe(call: ToolCall) -> Any:
        assert call.idempotency_key
        if isinstance(found, BaseException):
            raise found
        return found

    ledger = Ledger()
    log = await crashed_turn(ledger, "reconcilable", before_effect=True)
    await resume(log, ledger.tool("reconcilable", probe=probe))
    assert dispatch_of(log).status == status
    assert ledger.count("reconcilable") == ran


async def test_a_crash_while_probing_is_a_crash_before_it() -> None:
    asked = asyncio.Event()

    async def probe(call: ToolCall) -> Any:
        asked.set()
        await asyncio.Event().wait()

    ledger = Ledger()
    log = await crashed_turn(ledger, "reconcilable")
    async with host(log, ledger.tool("reconcilable", probe=probe), name="h2") as session:
        task = asyncio.create_task(run_turn(session, Script()))
        await asked.wait()
        log, old = await after_crash(log), log
        task.cancel()
        await asyncio.wait([task])
        assert statuses(old) == {"open": 1}, "a probe that was stopped settles nothing"
    await resume(log, ledger.tool("reconcilable"))
    assert ledger.count("reconcilable") == 1
    assert statuses(log) == {"ok": 1}


# ---- calls without T1, and turns without calls


async def test_calls_that_were_lost_with_their_message_are_made_anew() -> None:
    ledger, asked = Ledger(), []
    whole = await crashed_turn(ledger, "opaque", "read_only", before_effect=True)
    log = await after_crash(whole, before="tool_dispatched")

    async def permit(call: ToolCall) -> bool:
        asked.append(call.tool)
        return call.tool == "opaque"

    tools = [ledger.tool(name, permit=permit) for name in ("opaque", "read_only")]
    async with host(log, *tools, name="h2") as session:  # the answer went with the first T1
        assert session.recovery[0].verdict.name == "ready"
        assert await run_turn(session, Script(calls("opaque", "read_only"))) == "completed"
    assert asked == ["opaque", "read_only"]
    assert ledger.count("opaque") == 1
    assert ledger.count("read_only") == 0
    assert_sound(log)


async def stopped_before_t1(*names: str) -> MoodyLog:
    """The model has answered with calls, and none of them has been started."""
    log = MoodyLog()
    async with host(log) as session:
        scope = session.turn("go")
        turn = await scope.__aenter__()
        async with turn.attempt("m") as attempt:
            await attempt.finish(calls(*names))
        await session.flush()
        return await after_crash(log)


async def test_a_stored_call_runs_with_its_stored_arguments_and_no_new_model_call() -> None:
    ledger = Ledger()
    log = await stopped_before_t1("opaque")
    model = Script(last="well")
    async with host(log, ledger.tool("opaque"), name="h2") as session:
        (report,) = session.recovery
        assert report.verdict.name == "ready"
        async with session.resume() as turn:
            await turn.carry_out(turn.plan())
            assert ledger.count("opaque") == 1
            assert model.asked == 0
            assert [step["do"] for step in turn.plan()] == ["continue"]
        assert turn.outcome == "completed"
    assert_sound(log)


async def test_a_call_of_a_tool_that_is_gone_is_told_so() -> None:
    log = await stopped_before_t1("opaque")
    await resume(log)
    assert "There is no tool 'opaque'" in told(log)[2]


async def test_calls_of_an_import_are_never_run() -> None:
    ledger = Ledger()
    whole = await stopped_before_t1("opaque")
    log = MoodyLog()
    owner = await claim(log, "s", tables=log.tables, host="i", reason="import", ambient=AMBIENT)
    from turnlog.core.frames import NewEvent, decode

    for stored in whole.tables.records("s"):
        if stored.record.header.seq:
            events = decode(stored.record).events
            await owner.write([NewEvent(e.type, e.id, e.time, e.data) for e in events])
    async with host(log, ledger.tool("opaque"), name="h2") as session:
        assert [step.get("status") for step in session.recovery[0].instructions] == [
            "unknown",
            None,
        ]
        assert await run_turn(session, Script(last="well")) == "completed"
    assert ledger.effects == []
    assert_sound(log)


async def test_a_model_that_was_interrupted_is_asked_again() -> None:
    log = MoodyLog()
    async with host(log) as session:
        turn = await session.turn("go").__aenter__()
        await turn.attempt("m").__aenter__()
        await session.flush()
        log = await after_crash(log)
    async with host(log, name="h2") as session:
        assert session.recovery[0].verdict.name == "provider_interrupted"
        model = Script("well")
        assert await run_turn(session, model) == "completed"
        assert model.asked == 1
    assert len(rows(log, "attempts")) == 2
    assert_sound(log)


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        (None, "completed"),
        ("length", "completed"),
        ("error", "failed"),
        ("aborted", "aborted"),
        ("pause_turn", None),
    ],
)
async def test_a_turn_whose_last_word_was_said_is_only_finished(
    stop: str | None, outcome: str | None
) -> None:
    log = MoodyLog()
    async with host(log) as session:
        turn = await session.turn("go").__aenter__()
        async with turn.attempt("m") as attempt:
            await attempt.finish({"content": "that is all", "stop_reason": stop})
        await session.flush()
        log = await after_crash(log)
    model = Script("well")
    async with host(log, name="h2") as session:
        assert await run_turn(session, model) == (outcome or "completed")
    assert model.asked == (outcome is None)
    assert rows(log, "operations")[0].outcome == (outcome or "completed")
    assert_sound(log)


async def test_inputs_that_came_meanwhile_are_read_before_it_ends() -> None:
    log = await stopped_before_t1("opaque")
    said = queue_input("hurry", AMBIENT, delivery="steer")
    await write_guest(log, "s", [said], writer="p", ambient=AMBIENT)
    await resume(log, Ledger().tool("opaque"))
    assert "user: hurry" in told(log)
    assert told(log)[-1] == "assistant: well"


# ---- what hosts may choose, and what has changed


@pytest.mark.parametrize(
    ("effect", "action", "status", "ran"),
    [
        ("read_only", "answer", "unknown", 0),
        ("read_only", "probe", "unknown", 0),
        ("idempotent", "answer", "unknown", 0),
        ("idempotent", "run", "ok", 1),
        ("reconcilable", "answer", "unknown", 0),
        ("reconcilable", "probe", "ok", 1),
        ("opaque", "answer", "unknown", 0),
        ("opaque", "probe", "unknown", 0),
    ],
)
@pytest.mark.parametrize("by", ["effect", "tool"])
async def test_a_policy_may_be_more_careful(
    effect: str, action: Action, status: str, ran: int, by: str
) -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger, effect, before_effect=True)
    chosen = ledger.tool(effect)
    policy = Policy({effect: action})  # a tool of its effect's name: either way it is found
    if by == "tool":
        policy = Policy({"other": "run", effect: action})
    await resume(log, chosen, policy=policy)
    assert dispatch_of(log).status == status
    assert ledger.count(effect) == ran


async def test_an_opaque_call_may_be_probed_and_is_never_run() -> None:
    for found, status in ((Happened("yes"), "ok"), (Never(), "not_started"), (Unsure(), "unknown")):

        async def probe(call: ToolCall, found: Any = found) -> Any:
            return found

        ledger = Ledger()
        log = await crashed_turn(ledger, "opaque", before_effect=True)
        await resume(log, ledger.tool("opaque", probe=probe), policy=Policy({"opaque": "probe"}))
        assert dispatch_of(log).status == status
        assert ledger.effects == []


async def test_a_policy_may_leave_it_to_a_person() -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger, "idempotent", before_effect=True)
    policy = Policy({"idempotent": "park"})
    async with host(log, ledger.tool("idempotent"), name="h2", policy=policy) as session:
        assert await run_turn(session, Script()) == "parked"
        assert head_of(log).status == "requires_action"
        assert statuses(log) == {"unknown": 1}  # a person can say what became of an unknown
        with pytest.raises(UsageError, match="parked=True"):
            async with session.resume():
                raise AssertionError
        with pytest.raises(OperationOpen):
            async with session.turn("on"):
                raise AssertionError
    said = allow_rerun(dispatch_of(log).dispatch, AMBIENT, by="me")
    await write_guest(log, "s", [said], writer="me", ambient=AMBIENT)
    async with host(log, ledger.tool("idempotent"), name="h3") as session:
        async with session.resume(parked=True) as turn:
            assert [step["do"] for step in turn.plan()] == ["rerun"]
            await turn.carry_out(turn.plan())
        assert turn.outcome == "completed"
    assert statuses(log) == {"ok": 1}
    assert ledger.count("idempotent") == 1


WORDS = {
    "settle": ("ok", "completed", 0),
    "rerun": ("ok", "completed", 1),
    "abort": ("unknown", "aborted", 0),
}


@pytest.mark.parametrize("word", WORDS)
async def test_what_was_parked_goes_on_once_a_person_has_said_what_it_waited_for(word: str) -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger, "opaque", before_effect=True)
    policy = Policy({"opaque": "park"})
    async with host(log, ledger.tool("opaque"), name="h2", policy=policy) as session:
        assert await run_turn(session, Script()) == "parked"
    async with host(log, ledger.tool("opaque"), name="h3", policy=policy) as session:
        with pytest.raises(UsageError, match="waits for a person"):
            await run_turn(session, Script())
        row = dispatch_of(log)
        said = {
            "settle": settle_dispatch(row.dispatch, "ok", AMBIENT, by="me"),
            "rerun": allow_rerun(row.dispatch, AMBIENT, by="me"),
            "abort": request_abort(row.operation, AMBIENT),
        }[word]
        await write_guest(log, "s", [said], writer="me", ambient=AMBIENT)
        status, outcome, started = WORDS[word]
        assert await run_turn(session, Script()) == outcome
        assert (dispatch_of(log).status, ledger.count("opaque")) == (status, started)
        assert await run_turn(session, Script(last="well"), "and now?") == "completed"
    assert_ended(log)
    assert_sound(log)


async def test_a_turn_that_was_left_open_can_be_aborted() -> None:
    log = await crashed_turn(Ledger(), "opaque", before_effect=True)
    async with host(log, Ledger().tool("opaque"), name="h2") as session:
        await session.abort()
        assert await run_turn(session, Script()) == "aborted"
        assert statuses(log) == {"unknown": 1}


@pytest.mark.parametrize("then", EFFECTS)
@pytest.mark.parametrize("now", EFFECTS)
async def test_of_two_effect_classes_the_stricter_counts(then: str, now: str) -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger, then)
    made = ledger.tool(now)

    async def probe(call: ToolCall) -> Never:
        return Never()

    changed = Tool(then, made.run, effect=now, probe=probe)
    await resume(log, changed)
    again = len(ledger.effects) - 1
    strictest = EFFECTS[max(EFFECTS.index(then), EFFECTS.index(now))]
    assert again == (strictest != "opaque")
    assert dispatch_of(log).status == ("unknown" if strictest == "opaque" else "ok")


async def test_what_became_opaque_is_not_run_again_though_its_probe_says_never() -> None:
    async def probe(call: ToolCall) -> Never:
        return Never()

    ledger = Ledger()
    log = await crashed_turn(ledger, "idempotent", before_effect=True)
    made = Tool("idempotent", ledger.tool("idempotent").run, effect="opaque", probe=probe)
    await resume(log, made, policy=Policy({"opaque": "probe"}))
    assert ledger.effects == []
    assert dispatch_of(log).status == "not_started"


async def test_tools_that_are_gone_leave_their_calls_unknown() -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger)
    await resume(log)
    assert statuses(log) == {"unknown": 4}
    assert_honest(log, ledger)


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("error", [ValueError("no"), RuntimeError("half \ud83d"), SystemExit(1)])
async def test_arguments_that_no_longer_validate_are_not_run(error: BaseException) -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger)
    await resume(log, *(ledger.tool(name, validate=lambda args: _raise(error)) for name in EFFECTS))
    assert statuses(log) == {"unknown": 4}
    assert_honest(log, ledger)


async def test_a_check_that_changes_what_it_is_given_changes_no_retry() -> None:
    seen: list[Any] = []

    def grow(args: dict[str, Any]) -> dict[str, Any]:
        args["n"] += 1
        return args

    async def run(call: ToolCall) -> str:
        seen.append(call.args["n"])
        return "done"

    ledger = Ledger()
    log = await crashed_turn(ledger, "idempotent", message=calls("idempotent", n=1))
    await resume(log, Tool("idempotent", run, effect="idempotent", validate=grow))
    assert seen == [1]


@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("effect", ["read_only", "reconcilable"])
async def test_tries_are_counted_over_restarts(most: int, effect: str) -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger, effect, before_effect=True)
    started = 1
    for _ in range(most + 2):
        hang = Hang(ledger, effect, before_effect=True)
        policy = Policy(max_tries=most)
        async with host(log, *hang.tools, name="again", policy=policy) as session:
            task = asyncio.create_task(run_turn(session, Script()))
            await until(lambda task=task, hang=hang: task.done() or hang.started)
            if task.done():
                assert await task == "completed"
                break
            started += 1
            log = await after_crash(log)
            task.cancel()
            await asyncio.wait([task])
    assert started == most
    assert [item["try"] for item in dispatch_of(log).tries] == list(range(1, most + 1))
    assert dispatch_of(log).status == ("unknown" if effect == "read_only" else "not_started")
    assert_sound(log)


# ---- once is enough


async def test_resuming_twice_adds_nothing() -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger)
    await resume(log, *ledger.tools())
    before, effects = types_in(log), list(ledger.effects)
    async with host(log, *ledger.tools(), name="h3") as session:
        assert session.recovery == []
        with pytest.raises(UsageError):
            async with session.resume():
                raise AssertionError
        await session.close_open()
    assert types_in(log) == [*before, "session_claimed", "session_released"]
    assert ledger.effects == effects


async def test_a_plan_that_is_carried_out_twice_adds_nothing() -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger)
    async with host(log, *ledger.tools(), name="h2") as session, session.resume() as turn:
        plan = turn.plan()
        assert len(await turn.carry_out(plan)) == 3
        size, effects = len(types_in(log)), list(ledger.effects)
        assert await turn.carry_out(plan) == []
        both = await asyncio.gather(turn.carry_out(plan), turn.carry_out(turn.plan()))
        assert both == [[], []]
        assert len(types_in(log)) == size
        assert ledger.effects == effects
    assert_sound(log)


async def test_a_plan_carried_out_by_two_at_once_is_carried_out_once() -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger)
    async with host(log, *ledger.tools(), name="h2") as session, session.resume() as turn:
        plan = turn.plan()
        await asyncio.gather(turn.carry_out(plan), turn.carry_out(plan))
        assert ledger.count("read_only") == ledger.count("idempotent") == 2
    assert_honest(log, ledger)
    assert_sound(log)


async def test_in_the_same_process_a_cancelled_turn_goes_on_under_the_same_claim() -> None:
    ledger = Ledger()
    log, hang = MoodyLog(), Hang(ledger)
    async with host(log, *hang.tools) as session:
        task = asyncio.create_task(run_turn(session, Script(), "go"))
        await until(lambda: len(hang.started) == 4)
        task.cancel()
        await asyncio.wait([task])
        assert statuses(log) == {"unknown": 3, "error": 1}, "its own tools are known to have ended"
        assert await run_turn(session, Script()) == "completed"
        assert head_of(log).epoch == 1
    assert_honest(log, ledger)
    assert_sound(log)


async def test_closing_what_is_open_answers_everything_in_one_frame() -> None:
    ledger = Ledger()
    log = await crashed_turn(ledger)
    async with host(log, *ledger.tools(), name="h2") as session:
        seq = head_of(log).seq
        await session.close_open()
        assert head_of(log).seq == seq + 1
        assert_ended(log)
        assert rows(log, "operations")[0].outcome == "interrupted"
        await session.close_open()
        assert head_of(log).seq == seq + 1
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert statuses(log) == {"unknown": 4}
    assert_sound(log)


async def test_an_abort_requested_while_nobody_was_there_is_honoured() -> None:
    from turnlog.owner.guest import request_abort

    ledger = Ledger()
    log = await crashed_turn(ledger)
    (operation,) = rows(log, "operations")
    said = request_abort(operation.operation, AMBIENT)
    await write_guest(log, "s", [said], writer="p", ambient=AMBIENT)
    model = Script()
    async with host(log, *ledger.tools(), name="h2") as session:
        assert await run_turn(session, model) == "aborted"
        assert_ended(log)
    assert model.asked == 0
    assert statuses(log) == {"unknown": 4}
    assert_honest(log, ledger)
    assert_sound(log)


# ---- what persons say


async def unknown_call() -> tuple[MoodyLog, Ledger]:
    """A turn that has ended, with a call whose outcome is unknown."""
    ledger = Ledger()
    log = await crashed_turn(ledger, "opaque", before_effect=True)
    await resume(log, ledger.tool("opaque"))
    assert statuses(log) == {"unknown": 1}
    return log, ledger


async def test_a_person_allows_one_more_start_and_no_more() -> None:
    log, ledger = await unknown_call()
    said = allow_rerun(dispatch_of(log).dispatch, AMBIENT, by="me")
    await write_guest(log, "s", [said], writer="p", ambient=AMBIENT)
    for name in ("h3", "h4"):
        async with host(log, ledger.tool("opaque"), name=name) as session:
            if name == "h3":
                assert await run_turn(session, Script(last="well")) == "completed"
            else:
                assert session.recovery == []
    assert ledger.count("opaque") == 1
    assert tries(log, "opaque") == [1, 2]
    assert dispatch_of(log).status == "ok"
    assert_sound(log)


async def test_what_a_person_has_settled_is_settled() -> None:
    log, ledger = await unknown_call()
    said = settle_dispatch(dispatch_of(log).dispatch, "ok", AMBIENT, by="me")
    await write_guest(log, "s", [said], writer="p", ambient=AMBIENT)
    async with host(log, ledger.tool("opaque"), name="h3") as session:
        assert session.recovery == []
    assert dispatch_of(log).status == "ok"
    assert ledger.effects == []
    assert_sound(log)


# ---- damage


async def test_nothing_of_a_damaged_turn_runs() -> None:
    """Its log has a gap: it is parked, once, and may only be ended."""
    ledger = Ledger()
    log = await crashed_turn(ledger)
    head = head_of(log)
    header = Header("s", head.claim, head.epoch, head.seq + 5, "h")
    from tests.story import event

    await log.append(seal(header, [event("fact", name="n", value=1)]))
    effects = list(ledger.effects)
    async with host(log, *ledger.tools(), name="h2") as session:
        for _ in range(2):
            with pytest.raises(UsageError, match="close_open"):
                async with session.resume():
                    raise AssertionError
            assert types_in(log).count("operation_parked") == 1
        await session.close_open()
        assert_ended(log)
        assert await run_turn(session, Script("well"), "on") == "completed"
    assert ledger.effects == effects
    assert statuses(log) == {"unknown": 4}


async def test_two_brackets_left_open_do_not_hold_the_turn_up() -> None:
    from tests.story import accepted

    ledger = Ledger()
    log = await crashed_turn(ledger, "read_only")
    owner = await claim(log, "s", tables=log.tables, host="x", reason="resume", ambient=AMBIENT)
    await owner.write([accepted("comp", kind="compaction", trigger="pressure")])
    ended = await asyncio.gather(_end(log, ledger), return_exceptions=True)
    assert ended == ["completed"]
    assert_sound(log)
    assert {row.operation: row.outcome for row in rows(log, "operations")}["comp"] == "interrupted"


async def _end(log: MoodyLog, ledger: Ledger) -> str:
    async with host(log, ledger.tool("read_only"), name="h2") as session:
        return await run_turn(session, Script(last="well"))


async def test_a_call_that_waits_for_a_person_is_left_and_asked_for_once() -> None:
    async def permit(call: ToolCall) -> Ask:
        return Ask()

    log = MoodyLog()
    made = tool(lambda call: "ran", permit=permit)
    async with host(log, made) as session:
        task = asyncio.create_task(run_turn(session, Script(calls("t")), "go"))
        await until(lambda: head_of(log).waiting)
        log = await after_crash(log)
        task.cancel()
        await asyncio.wait([task])
    async with host(log, made, name="h2") as session:
        (report,) = session.recovery
        assert [step["do"] for step in report.instructions] == ["leave"]
        task = asyncio.create_task(run_turn(session, Script()))
        await until(lambda: types_in(log).count("approval_asked") == 2)
        assert head_of(log).status == "requires_action"
        row = rows(log, "approvals")[0]
        await session.decide(row.operation, row.assistant_entry, row.call_id, allow=True, by="me")
        assert await task == "completed"
    assert_sound(log)


@pytest.mark.parametrize("before_effect", [True, False])
@pytest.mark.parametrize("how", ["cancel", "abort", "rob"])
async def test_a_resumed_turn_is_left_at_any_step(how: str, before_effect: bool) -> None:
    """Of a second try that never ran the first may have: it is not told as not started."""
    first = Ledger()
    crashed = await crashed_turn(first, before_effect=before_effect)
    for number in range(200):
        log, ledger = await after_crash(crashed), Ledger()
        ledger.effects = list(first.effects)
        is_late = False
        with suppress(Fenced):
            async with host(log, *ledger.tools(), name="h2") as session:
                task = asyncio.create_task(run_turn(session, Script(last="well")))
                await steps(number)
                is_late = task.done()
                if how == "cancel":
                    task.cancel()
                elif how == "abort":
                    await session.abort()
                else:
                    await claim(
                        log, "s", tables=log.tables, host="r", reason="takeover", ambient=AMBIENT
                    )
                await asyncio.wait([task])
                await session.link.settle_background()
                if how != "rob" and session.view().head.open_operations:
                    assert await run_turn(session, Script(last="well")) == "completed"
        async with host(log, *ledger.tools(), name="h3") as session:
            if session.recovery:
                assert await run_turn(session, Script(last="well")) == "completed"
        assert_ended(log)
        assert_honest(log, ledger)
        assert_sound(log)
        if is_late:
            return
    raise AssertionError("it never ended")
