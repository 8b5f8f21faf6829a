"""What a person does about a crash: recover, pending, settle, rerun, input, abort."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnlog.cli.importing
import turnlog.cli.words
import turnlog.log
from tests.contract.heartbeats import beat
from tests.every_log import PARTITIONS, places
from tests.story import (
    Story,
    abort,
    accepted,
    asked,
    assistant,
    cancelled,
    decided,
    event,
    finished,
    queued,
    result,
    settled,
    text,
    user,
)
from tests.unit.cli.calls import Caller, isolated
from tests.unit.query.logs import random_session
from tests.unit.recovery.crashes import (
    answered,
    asking,
    calling,
    compacting,
    corrupted,
    dispatched,
    off_path,
    superseded,
    waiting,
)
from turnlog.core.frames import NewEvent
from turnlog.log import Heartbeat
from turnlog.owner.ambient import Ambient, system_uptime
from turnlog.owner.heartbeat import system_boot

__all__ = ["places"]


@pytest.fixture
def turnlog_(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Caller:
    """Commands on a log, by default on SQLite."""
    isolated(monkeypatch, tmp_path)
    caller = Caller(tmp_path, capsysbinary)
    kind = getattr(request, "param", "sqlite")
    if kind != "sqlite":
        caller.url = request.getfixturevalue("places").url(kind)
    return caller


everywhere = pytest.mark.parametrize("turnlog_", ["sqlite", "zstd", "kafka"], indirect=True)


def alive(turnlog: Caller, host: str = "h", since: int = 0) -> None:
    """A sign of life of this moment."""

    async def say(one: Heartbeat) -> None:
        async with turnlog_log(turnlog) as log:
            await log.beat(one)

    now = {"boot": system_boot(), "uptime": system_uptime()}
    others = (since,) * (PARTITIONS - 1)
    asyncio.run(say(beat("i", host=host, since=since, others=others, **now)))


def turnlog_log(turnlog: Caller) -> Any:
    return turnlog_open(turnlog.url)


def turnlog_open(url: str) -> Any:
    return turnlog.log.open(url, clock=Ambient().clock)


def unknown(session: str = "s") -> Story:
    """A call whose outcome a recovery could not know."""
    story = dispatched(session, tool="pay", args={"sum": 3})
    story.own(settled("d"), finished("op", "interrupted"))
    return story


# ---- recover -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "verdict", "did"),
    [
        (asking, "provider_interrupted", "closed"),
        (calling, "ready", "closed"),
        (dispatched, "indeterminate_tool", "closed"),
        (off_path, "indeterminate_tool", "closed"),
        (superseded, "indeterminate_tool", "closed"),
        (answered, "terminal", "closed"),
        (corrupted, "corrupted", "parked"),
        (waiting, "ready", "left"),
    ],
)
def test_each_crash(turnlog_: Caller, make: Callable[[], Story], verdict: str, did: str) -> None:
    turnlog_.write(make())
    [told] = turnlog_.good("recover", "--dry-run", "--json").json
    [done] = turnlog_.good("recover", "--json").json
    assert set(done) == {*told, "did"}
    assert (done["verdict"], done["did"]) == (told["verdict"], did) == (verdict, did)
    assert done["instructions"] == told["instructions"]
    again = turnlog_.good("recover", "--json").json
    assert {row["did"] for row in again} <= {"left"}
    assert turnlog_.good("verify", "--json").json["differences"] == []
    assert turnlog_.good("fsck", "--damage", "--json").json == []


@everywhere
def test_recover_for_a_person(turnlog_: Caller) -> None:
    turnlog_.write(dispatched("one"), corrupted("two"), waiting("three"), compacting("four"))
    done = turnlog_.good("recover")
    lines = done.out.splitlines()
    assert [line.split()[:2] for line in lines[::2]] == [
        ["closed", "four"],
        ["closed", "four"],
        ["closed", "one"],
        ["left", "three"],
        ["parked", "two"],
    ]
    assert lines[5] == "  indeterminate_tool: 1 dispatched call(s) without an answer"
    assert done.err.splitlines() == [
        "5 operations: 3 closed, 1 parked, 1 left",
        "`turnlog pending` lists what a person should look at",
    ]
    assert turnlog_.good("recover", "one").err == "nothing is open\n"
    assert turnlog_.good("recover", "two", "-q").err == ""


def test_steps_are_shown_to_who_asks_for_more(turnlog_: Caller) -> None:
    turnlog_.write(dispatched())
    assert "  → answer bash as unknown" in turnlog_.good("recover", "-v").out


def test_only_named_sessions_are_recovered(turnlog_: Caller) -> None:
    turnlog_.write(dispatched("aa"), dispatched("bb"))
    [done] = turnlog_.good("recover", "b", "--json").json
    assert done["session"] == "bb"
    assert [row["session"] for row in turnlog_.good("recover", "--json").json] == ["aa"]
    assert "no session 'nope'" in turnlog_.bad(1, "recover", "nope")


@everywhere
def test_parking_and_closing_what_is_parked(turnlog_: Caller) -> None:
    turnlog_.write(dispatched())
    [told] = turnlog_.good("recover", "--park", "--dry-run", "--json").json
    [done] = turnlog_.good("recover", "--park", "--json").json
    assert [step["do"] for step in told["instructions"]] == ["park"]
    assert (done["did"], done["instructions"]) == ("parked", told["instructions"])
    assert turnlog_.good("recover", "--close", "--json").json[0]["did"] == "left"
    operation, _ = turnlog_.good("pending", "--json").json
    assert operation["state"] == "parked"
    [command] = operation["next"]
    assert turnlog_.good(*command.split()[1:], "--json").json[0]["did"] == "closed"
    assert [row["state"] for row in turnlog_.good("pending", "--json").json] == ["unknown"]


@everywhere
def test_the_session_of_a_living_host_is_left_alone(turnlog_: Caller) -> None:
    turnlog_.write(dispatched())
    alive(turnlog_)
    for options in ([], ["--dry-run"]):
        [row] = turnlog_.good("recover", "--json", *options).json
        assert [step["do"] for step in row["instructions"]] == ["leave"]
        assert "gave a sign of life" in row["instructions"][0]["reason"]
    [row] = turnlog_.good("pending", "--json").json
    assert (row["is_held"], row["next"]) == (True, [])
    assert "its host is alive" in turnlog_.good("pending").out
    alive(turnlog_, since=10**6)  # it was started again since
    [row] = turnlog_.good("recover", "--json").json
    assert row["did"] == "closed"


@everywhere
def test_sessions_are_left_for_a_host_for_a_time(turnlog_: Caller) -> None:
    async def write() -> None:
        async with turnlog_log(turnlog_) as log:
            await log.load(dispatched().records)

    asyncio.run(write())
    [row] = turnlog_.good("recover", "--after", "3600", "--json").json
    assert row["did"] == "left"
    assert row["why"].startswith("left for a host: it was written to")
    assert turnlog_.good("recover", "--after", "0", "--json").json[0]["did"] == "closed"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--close", "--park"], "exclude each other"),
        (["--for", "host"], "needs --dry-run"),
        (["--after", "-1"], "Invalid value for '--after'"),
        (["--after", "soon"], "Invalid value for '--after'"),
    ],
)
def test_wrong_calls_change_nothing(turnlog_: Caller, options: list[str], said: str) -> None:
    turnlog_.write(dispatched())
    assert said in turnlog_.bad(2, "recover", *options)
    assert len(turnlog_.good("pending", "--json").json) == 1


def test_a_session_that_cannot_be_recovered_fails_the_command(turnlog_: Caller) -> None:
    story = dispatched("bad")
    turnlog_.write(story, dispatched("good"))
    with sqlite3.connect(turnlog_.folder / "log.db") as connection:
        # the frame that the assistant's message is in
        connection.execute("UPDATE frames SET body = x'00' WHERE position = 4")
    connection.close()
    done = turnlog_.on("recover", "--json")
    assert done.status == 1
    told = {row["session"]: (row["did"], row["why"]) for row in done.json}
    assert told["good"][0] == "closed"
    assert told["bad"][0] == "failed"
    assert "position 4 can no longer be read" in told["bad"][1]
    shown = turnlog_.on("recover")
    assert shown.status == 1
    assert shown.out.startswith("failed bad")
    assert "position 4 can no longer be read" in shown.out, "however narrow the terminal is"


# ---- pending -------------------------------------------------------------------------------


@everywhere
def test_pending_for_a_person(turnlog_: Caller) -> None:
    story = unknown("pay")
    story.own(result("r", "a", "c1", dispatch="d"))
    turnlog_.write(story, dispatched("open"), waiting("wait"))
    shown = turnlog_.good("pending")
    lines = shown.out.splitlines()
    assert lines[0].startswith("open    open  bash (opaque) d")
    assert lines[2] == "  with no arguments  key key"
    assert lines[3] == f"  → turnlog recover open --log {turnlog_.url}"
    assert lines[4].startswith("unknown pay  pay (opaque) d")
    assert lines[6] == '  with "sum":3  key key'
    assert lines[7].startswith("  a late answer says ok")
    assert lines[8] == f"  → turnlog settle d --as ok --log {turnlog_.url}"
    assert lines[9].startswith("waiting wait  prompt op")
    assert shown.err == "3 things: 1 open, 1 waiting, 1 unknown\n"
    assert turnlog_.good("pending", "pay", "--json").json[0]["args"] == {"sum": 3}


def test_nothing_is_pending(turnlog_: Caller) -> None:
    turnlog_.write(Story("s").begin())
    shown = turnlog_.good("pending")
    assert (shown.out, shown.err) == ("", "nothing waits for anybody\n")
    assert turnlog_.good("pending", "--json").json == []


def test_a_rerun_that_was_allowed_is_shown(turnlog_: Caller) -> None:
    turnlog_.write(unknown())
    turnlog_.good("rerun", "d")
    assert "may be run once more" in turnlog_.good("pending").out


# ---- settle and rerun ----------------------------------------------------------------------


@pytest.mark.parametrize("status", ["ok", "error"])
def test_settle(turnlog_: Caller, status: str) -> None:
    turnlog_.write(unknown())
    told = turnlog_.good(
        "settle", "d", "--as", status, "--note", "I saw it", "--by", "ann", "--json"
    ).json
    assert told == {
        "session": "s",
        "operation": "op",
        "dispatch": "d",
        "status": status,
        "settled_by": "person",
        "rerun_allowed": False,
        "by": "ann",
        "note": "I saw it",
        "position": told["position"],
    }
    assert turnlog_.good("pending", "--json").json == []
    said = turnlog_.bad(1, "settle", "d", "--as", "ok")
    assert f"it is {status}, not unknown: its person has settled it" in said


@everywhere
def test_settle_says_what_it_did(turnlog_: Caller) -> None:
    turnlog_.write(unknown())
    done = turnlog_.good("settle", "d", "--as", "ok")
    assert (done.out, done.err) == ("", "pay d is ok now, as you say\n")
    [_, note] = turnlog_.good("events", "s", "--type", "dispatch_settled", "--json").rows
    assert note["data"]["settled_by"] == "person"
    assert note["data"]["by"]
    assert note["data"]["try"] == 1


@everywhere
def test_rerun(turnlog_: Caller) -> None:
    turnlog_.write(unknown())
    done = turnlog_.good("rerun", "d", "--note", "no invoice", "--session", "s")
    assert "may be started once more, as try 2" in done.err
    assert "may already be run again" in turnlog_.bad(1, "rerun", "d")
    [host] = turnlog_.good("recover", "--dry-run", "--for", "host", "--json").json
    assert host["operation"] == "op"
    assert turnlog_.good("settle", "d", "--as", "ok", "--json").json["rerun_allowed"] is False


@pytest.mark.parametrize("command", [["settle", "--as", "ok"], ["rerun"]])
def test_words_that_would_change_nothing_are_refused(turnlog_: Caller, command: list[str]) -> None:
    turnlog_.write(dispatched("open"), unknown("one"), unknown("two"))

    def refused(dispatch: str, session: str) -> str:
        said = turnlog_.bad(1, *command, dispatch, "--session", session)
        assert len(turnlog_.good("events", "one", "--json").rows) == before
        return said

    before = len(turnlog_.good("events", "one", "--json").rows)
    assert "it is open, not unknown: its host may still answer" in refused("d", "open")
    assert "no dispatch 'x'" in refused("x", "one")
    assert "no session 'nope'" in refused("d", "nope")
    assert "3 sessions have a dispatch 'd'" in turnlog_.bad(1, *command, "d")


def test_a_rerun_of_what_happened_is_refused(turnlog_: Caller) -> None:
    story = unknown()
    story.own(result("r", "a", "c1", dispatch="d"))
    turnlog_.write(story)
    said = turnlog_.bad(1, "rerun", "d")
    assert f"at position {len(story.records)} says that it took effect (ok)" in said
    assert "turnlog settle d --as ok" in said


def test_wrong_words(turnlog_: Caller) -> None:
    turnlog_.write(unknown())
    assert "Missing option '--as'" in turnlog_.bad(2, "settle", "d")
    assert "Invalid value for '--as'" in turnlog_.bad(2, "settle", "d", "--as", "maybe")


def meddling(monkeypatch: pytest.MonkeyPatch, story: Story, *events: NewEvent) -> None:
    """Somebody else's frame arrives between looking and writing."""
    write = turnlog.cli.words.write_guest

    async def meddled(log: Any, session: str, *args: Any, **options: Any) -> int:
        before = len(story.records)
        story.own(*events) if not events[0].type.startswith("input") else story.guest(*events)
        await log.load(story.records[before:])
        return await write(log, session, *args, **options)

    monkeypatch.setattr(turnlog.cli.words, "write_guest", meddled)


@everywhere
def test_a_late_answer_in_between_is_said(
    turnlog_: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = unknown()
    turnlog_.write(story)
    meddling(monkeypatch, story, result("r", "a", "c1", dispatch="d"))
    said = turnlog_.bad(1, "rerun", "d")
    assert "it changed nothing: the dispatch is unknown meanwhile" in said


def test_another_word_in_between_is_said(turnlog_: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    story = unknown()
    turnlog_.write(story)
    meddling(monkeypatch, story, settled("d", "error", settled_by="person", by="ann", **{"try": 1}))
    said = turnlog_.bad(1, "settle", "d", "--as", "ok")
    assert "it changed nothing: the dispatch is error meanwhile" in said


def test_more_words_than_are_kept(turnlog_: Caller) -> None:
    story = unknown()
    for number in range(64):
        story.guest(settled("d", "ok", settled_by="person", note=str(number), **{"try": 9}))
    turnlog_.write(story)
    said = turnlog_.bad(1, "settle", "d", "--as", "ok")
    assert "64 words on it are kept already" in said


# ---- input and abort -----------------------------------------------------------------------


@everywhere
def test_input(turnlog_: Caller) -> None:
    turnlog_.write(asking())
    told = turnlog_.good("input", "s", "and the tests", "--delivery", "steer", "--json").json
    assert (told["status"], told["delivery"], told["is_held"]) == ("queued", "steer", False)
    [waits] = turnlog_.good("show", "s", "--json").json["pending_inputs"]
    assert (waits["text"], waits["input"]) == ("and the tests", told["input"])
    said = turnlog_.good("input", "s", "more")
    assert said.out == ""
    assert "no host is at work on it now" in said.err
    alive(turnlog_)
    assert "its host reads it when it can" in turnlog_.good("input", "s", "more").err


def test_input_that_nobody_would_read(turnlog_: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    story = asking("s1")
    story.guest(abort("op"))
    full = asking("s2")
    full.guest(*(queued(f"i{number}", f"e{number}") for number in range(63)))
    turnlog_.write(story, full)
    assert "cannot be steered; send it with --delivery follow_up" in turnlog_.bad(
        1, "input", "s1", "x", "--delivery", "steer"
    )
    turnlog_.good("input", "s1", "x")
    assert "the text is empty" in turnlog_.bad(2, "input", "s1", "  ")
    assert "holds" in turnlog_.bad(1, "input", "s1", "x" * 300_000) or True
    meddling(monkeypatch, full, queued("i63", "e63"))
    assert "others have filled the queue" in turnlog_.bad(1, "input", "s2", "x")
    monkeypatch.undo()
    assert "64 inputs wait to be read already" in turnlog_.bad(1, "input", "s2", "x")


@everywhere
def test_abort(turnlog_: Caller) -> None:
    turnlog_.write(compacting())
    told = turnlog_.good("abort", "s", "--json").json
    assert (told["operation"], told["kind"], told["aborting"]) == ("op", "prompt", True)
    assert told["position"]
    again = turnlog_.good("abort", "s")
    assert "prompt op was asked before to stop" in again.err
    assert "turnlog recover s --close" in again.err
    alive(turnlog_)
    assert "recover" not in turnlog_.good("abort", "s").err
    assert len(turnlog_.good("events", "s", "--type", "abort_requested", "--json").rows) == 1


def test_abort_of_a_bracket_alone(turnlog_: Caller) -> None:
    story = Story("s").begin()
    story.own(user("u", None), accepted("comp", kind="compaction"))
    turnlog_.write(story)
    assert turnlog_.good("abort", "s", "--json").json["kind"] == "compaction"


def test_abort_where_nothing_is_open(turnlog_: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    story = asking()
    turnlog_.write(story, Story("idle").begin())
    assert "nothing is open that could be stopped" in turnlog_.bad(1, "abort", "idle")
    assert "no session 'nope'" in turnlog_.bad(1, "abort", "nope")
    meddling(monkeypatch, story, assistant("a", "u", attempt="at"), finished("op"))
    assert "it has ended meanwhile (completed)" in turnlog_.bad(1, "abort", "s")


@pytest.mark.parametrize(("word", "decision"), [("--allow", "allow"), ("--deny", "deny")])
def test_decide(turnlog_: Caller, word: str, decision: str) -> None:
    turnlog_.write(waiting())
    [row] = turnlog_.good("pending", "--json").json
    assert row["next"] == ["turnlog decide s c1 --allow", "turnlog decide s c1 --deny"]
    told = turnlog_.good("decide", "s", word, "--by", "ann", "--json").json
    assert (told["call_id"], told["decision"], told["by"]) == ("c1", decision, "ann")
    assert told["position"]
    assert "no call waits for a decision" in turnlog_.bad(1, "decide", "s", word)
    assert turnlog_.good("show", "s", "--json").json["status"] == "open"


@everywhere
def test_decide_which(turnlog_: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    story = waiting()
    story.own(asked("op", "a", "c2"))
    turnlog_.write(story, Story("idle").begin())
    assert "several calls wait ('c1', 'c2')" in turnlog_.bad(2, "decide", "s", "--allow")
    assert "no call 'nope' waits" in turnlog_.bad(1, "decide", "s", "nope", "--allow")
    assert "no call waits" in turnlog_.bad(1, "decide", "idle", "--deny")
    turnlog_.bad(2, "decide", "s")
    turnlog_.bad(2, "decide", "s", "--allow", "--deny")
    assert "c2 allowed: no host" in turnlog_.good("decide", "s", "c2", "--allow").err
    meddling(monkeypatch, story, decided("op", "a", "c1", by="bob", decision="deny"))
    assert "bob was faster and said deny" in turnlog_.bad(1, "decide", "s", "--allow")


def test_nothing_is_written_to_a_newer_session(turnlog_: Caller) -> None:
    story = unknown()
    story.forge({"type": "message", "v": 9, "id": "new", "time": "", "data": {"parent": "a"}})
    turnlog_.write(story)
    for command in (
        ["settle", "d", "--as", "ok"],
        ["rerun", "d"],
        ["input", "s", "x"],
        ["abort", "s"],
    ):
        assert "upgrade turnlog to write to it" in turnlog_.bad(1, *command)


def test_queued_and_cancelled_inputs_do_not_fill_the_queue(turnlog_: Caller) -> None:
    story = asking()
    for number in range(70):
        story.guest(queued(f"i{number}", f"e{number}"))
        story.guest(cancelled(f"i{number}"))
    turnlog_.write(story)
    turnlog_.good("input", "s", "x")


# ---- any history ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_every_command_bears_any_history(turnlog_: Caller, seed: int) -> None:
    turnlog_.write(random_session(seed, "one", 80), random_session(seed + 100, "two", 40))
    for arguments in (
        ["pending"],
        ["recover", "--park", "--dry-run"],
        ["recover"],
        ["pending", "-v"],
        ["recover", "one", "two", "--close"],
        ["pending"],
    ):
        done = turnlog_.on(*arguments)
        assert done.status == 0, done
        assert turnlog_.on(*arguments, "--json").json is not None
    assert turnlog_.good("verify", "--json").json["differences"] == []


def test_nothing_of_a_session_acts_on_the_terminal(turnlog_: Caller) -> None:
    evil = "\x1b[31m\u202e\r[bold]x"
    story = Story(evil).begin()
    story.own(user("u", None), accepted(f"op{evil}", "u"))
    said = {"type": "tool_call", "call_id": evil, "name": evil, "args": {evil: evil}}
    story.own(event("message", "a", parent="u", role="assistant", content=[*text(evil), said]))
    story.own(
        event(
            "tool_dispatched",
            operation=f"op{evil}",
            dispatch=evil,
            call_index=0,
            call_id=evil,
            tool=evil,
            assistant_entry="a",
            result_entry="r",
            idempotency_key=evil,
        )
    )
    turnlog_.write(story)
    for arguments in (
        ["pending"],
        ["recover", "-v"],
        ["pending"],
        ["rerun", evil],
        ["abort", evil],
    ):
        done = turnlog_.on(*arguments)
        for stream in (done.out, done.err):
            assert not set(stream) & set("\x1b\x07\u202e\r")


def test_an_import_is_at_work_while_it_runs(
    turnlog_: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_files, seen = turnlog.cli.importing.import_files, list[Heartbeat]()

    async def watched(log: Any, *args: Any, **options: Any) -> Any:
        seen.extend(await log.heartbeats())
        return await import_files(log, *args, **options)

    monkeypatch.setattr(turnlog.cli.importing, "import_files", watched)
    turnlog_.good("import", "pi", turnlog_.folder)
    assert [one.host.startswith("turnlog import on") for one in seen] == [True]

    async def after() -> list[Heartbeat]:
        async with turnlog_log(turnlog_) as log:
            return await log.heartbeats()

    assert asyncio.run(after()) == []
