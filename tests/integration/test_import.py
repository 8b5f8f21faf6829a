"""Real session files, and those of our own making: what comes out is what is in them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import turnlog.log
from tests.integration.import_files import (
    REAL,
    figures,
    needs_samples,
    own_files,
    real_file,
    sessions_of,
)
from tests.unit.ingest.foreign import SESSION, Desk, answer, call, encode, result, text, user
from turnlog.core.frames import SealedFrame
from turnlog.ingest.cursor import FACT
from turnlog.ingest.samples import Sample, big_claude_file, write_samples
from turnlog.owner.ambient import system_clock

Json = Any


def imported(folder: Path, name: str) -> tuple[Desk, str]:
    file = real_file(name)
    desk = Desk(folder, file.format)
    report = desk.load(desk.write(file.body, name))
    assert (report.problems, report.warnings) == ([], [])
    [session] = sessions_of(desk)
    return desk, session


def unanswered(desk: Desk, session: str) -> list[str]:
    """The call ids without an answer on the path, in order."""
    rows = list(desk.log.tables.scan("entries", session))
    answered = {row.answers for row in rows if row.answers}
    return [
        call_id
        for row in rows
        for index, call_id in enumerate(row.calls)
        if (row.number, index) not in answered
    ]


def usage(desk: Desk, session: str) -> tuple[int, ...]:
    shown = desk.show(session)["usage"]
    return tuple(shown[n] for n in ("input", "output", "cache_read", "cache_write", "attempts"))


def reference_usage(lines: list[Json]) -> tuple[int, ...]:
    """Each message once, with the figures of its last line; counted apart from the importer."""
    last = {
        line["message"]["id"]: line["message"]["usage"] for line in lines if "requestId" in line
    }
    names = ("input_tokens", "output_tokens")
    names += ("cache_read_input_tokens", "cache_creation_input_tokens")
    return (*(sum(use[name] for use in last.values()) for name in names), len(last))


# ---- real files ---------------------------------------------------------------------------------


@needs_samples
def test_sample_01_has_one_call_without_an_answer(tmp_path: Path) -> None:
    desk, session = imported(tmp_path, "01_claude_real_06381696.jsonl")
    shown = desk.show(session)
    assert session == "06381696-0074-49f8-863e-6ad4fac507f9"
    assert unanswered(desk, session) == ["toolu_01BxsuUhRW9umBEuD9FYvYDu"]  # ExitPlanMode
    assert shown["leaf"] == "6f4073ca-8776-4aad-8623-62263908d34e"  # whose last line is 71ea7ad9
    assert [row["outcome"] for row in shown["operations"]] == [None]  # one typed prompt
    assert shown["operations"][0]["verdict"] == "ready"
    assert len(desk.of_type("claude-code.file-history-snapshot", session)) == 2
    assert (shown["damage"], desk.voids(session), shown["dispatches"]) == ([], [], [])
    roles = Counter(node["role"] for node in shown["surface"])
    assert roles == {"user": 4, "assistant": 3, "tool": 2}


@needs_samples
def test_sample_02_has_23_calls_3_of_them_without_an_answer(tmp_path: Path) -> None:
    desk, session = imported(tmp_path, "02_claude_real_full-session.jsonl")
    lines = [
        json.loads(line)
        for line in real_file("02_claude_real_full-session.jsonl").body.splitlines()
    ]
    rows = list(desk.log.tables.scan("entries", session))
    assert sum(len(row.calls) for row in rows) == 23
    assert unanswered(desk, session) == [
        "toolu_019KCj6ze6s4xPHdfY6s1FC5",
        "toolu_011df4X9k8WZCHh9sXKVzGHZ",
        "toolu_01XSaf9HkXmiWhn7q2mekBiR",
    ]
    assert usage(desk, session) == reference_usage(lines) == (1223, 833, 185540, 21565, 10)
    shown = desk.show(session)
    assert [row["outcome"] for row in shown["operations"]] == ["completed", None]
    assert len(shown["branches"]) == 1
    assert (shown["damage"], desk.voids(session)) == ([], [])
    assert shown["counts"]["entries"] == 10 + 20 + 2


@needs_samples
def test_sample_09_has_a_rewind_and_a_compaction_that_keeps_a_tail(tmp_path: Path) -> None:
    name = "09_claude_fixture_dag_compact_after_rewind_preserved.jsonl"
    desk, session = imported(tmp_path, name)
    shown = desk.show(session)
    assert (session, shown["leaf"], shown["status"]) == ("s2", "p1a", "idle")
    assert desk.surface(session) == ["cs", "b2a", "b2u2", "b2a2", "p1u", "p1a"]
    path = desk.path(session)
    assert [id_ for id_ in path if not id_.startswith("branch-")] == [
        *("u1", "a1", "b2u", "b2a", "b2u2", "cb", "cs", "b2a2", "p1u", "p1a"),
    ]
    assert [(b["tip"], b["fork_point"]) for b in shown["branches"]] == [
        ("b1a", None),
        ("p1a", "a1"),
    ]
    assert desk.data("cs", session)["replaces"] == {"first": "u1", "last": "b2u"}
    assert usage(desk, session) == (50, 25, 0, 0, 5)
    assert (shown["damage"], desk.voids(session)) == ([], [])


@needs_samples
def test_sample_04_is_linear_with_prices(tmp_path: Path) -> None:
    desk, session = imported(tmp_path, "04_pi_real_v1_large-session_head80.jsonl")
    lines = [
        json.loads(line)
        for line in real_file("04_pi_real_v1_large-session_head80.jsonl").body.splitlines()
    ]
    answers = [
        line["message"] for line in lines if line.get("message", {}).get("role") == "assistant"
    ]
    calls = [b["id"] for m in answers for b in m["content"] if b["type"] == "toolCall"]
    results = {
        line["message"]["toolCallId"]
        for line in lines
        if line.get("message", {}).get("role") == "toolResult"
    }
    shown = desk.show(session)
    assert shown["usage"]["attempts"] == len(answers) == 35
    assert float(shown["usage"]["cost_usd"]) == pytest.approx(
        sum(message["usage"]["cost"]["total"] for message in answers)
    )
    unknown = [e.data["call_id"] for e in desk.events(session) if e.data.get("status") == "unknown"]
    assert unknown == [id_ for id_ in calls if id_ not in results]
    assert len(unknown) == 16
    outcomes = [desk.outcomes(session)[f"line-{n}"] for n in (1, 4, 17, 25, 33, 69)]
    assert outcomes == ["aborted", "completed", "completed", "failed", "completed", None]
    assert shown["state"] == {
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "thinking_level": "off",
    }
    assert (len(shown["branches"]), shown["damage"], desk.voids(session)) == (1, [], [])


@needs_samples
def test_sample_05_has_two_compactions_that_replace_nothing(tmp_path: Path) -> None:
    desk, session = imported(tmp_path, "05_pi_v3_fixture.jsonl")
    shown = desk.show(session)
    assert desk.surface(session) == ["30c6a75f", "22a2720e", "2c19d326", "ddd2179a", "4a666296"]
    assert (shown["leaf"], shown["state"]["model"]) == ("2c19d326", "pi-fixture-model")
    assert (shown["damage"], desk.voids(session), shown["status"]) == ([], [], "idle")


@needs_samples
@pytest.mark.parametrize("name", REAL)
def test_a_real_file_imported_twice_adds_nothing(name: str, tmp_path: Path) -> None:
    desk, session = imported(tmp_path, name)
    before = desk.events(session)
    report = desk.load(tmp_path / name)
    assert (report.unchanged, desk.events(session)) == ([session], before)


@needs_samples
@pytest.mark.parametrize("name", REAL)
def test_times_decide_nothing(name: str, tmp_path: Path) -> None:
    """Case 11: the same file with all its times shuffled gives the same session."""
    file = real_file(name)
    lines = [json.loads(line) for line in file.body.splitlines()]
    times = [line.get("timestamp") for line in lines]
    for line, time_ in zip(lines, reversed(times), strict=True):
        line["timestamp"] = time_
    desk, session = imported(tmp_path, name)
    other = Desk(tmp_path / "shuffled", file.format)
    other.load(other.write(encode(lines), name))
    assert figures(other, session) == figures(desk, session)
    assert other.path(session) == desk.path(session)


# ---- files of our own ---------------------------------------------------------------------------


def test_our_own_samples_are_what_they_say(tmp_path: Path) -> None:
    samples = write_samples(tmp_path)
    desks = {name: Desk(tmp_path, name) for name in ("claude-code", "pi")}
    for name, desk in desks.items():
        report = desk.load(tmp_path / name)
        torn = [finding for finding in report.problems if "cut off" in finding.what]
        assert report.problems == torn
        assert len(torn) == (name == "claude-code")
    for sample in samples:
        check_sample(desks[sample.format], sample)
    assert desks["claude-code"].masker is not None
    assert desks["claude-code"].masker.counts == {"aws_access_key": 1}


def check_sample(desk: Desk, sample: Sample) -> None:
    shown = desk.show(sample.session)
    outcomes = Counter(row["outcome"] or "open" for row in shown["operations"])
    found = {
        "usage": {name: shown["usage"][name] for name in sample.expects["usage"]},
        "branches": len(shown["branches"]),
        "unanswered": len(unanswered(desk, sample.session)),
        "outcomes": dict(outcomes),
        "surface": [node["role"] for node in shown["surface"]],
    }
    assert found == sample.expects
    assert (shown["damage"], desk.voids(sample.session)) == ([], [])


def test_the_same_samples_come_out_each_time(tmp_path: Path) -> None:
    one, two = write_samples(tmp_path / "a"), write_samples(tmp_path / "b")
    for left, right in zip(one, two, strict=True):
        assert left.path.read_bytes() == right.path.read_bytes()


def test_a_large_file_is_as_large_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    session = big_claude_file(path, 2)
    assert 2_000_000 <= path.stat().st_size < 2_200_000
    desk = Desk(tmp_path)
    assert desk.load(path).ok
    shown = desk.show(session)
    assert (shown["status"], shown["damage"], len(shown["branches"])) == ("idle", [], 1)


# ---- being killed -------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


def lines_of_a_session() -> list[Json]:
    side = {"isSidechain": True}
    return [
        user("u", None),
        answer("p1", "u", text("a"), call("c1"), message="m", stop=None),
        answer("p2", "p1", call("c2"), message="m", stop="tool_use", output=9),
        result("r1", "p1", "c1", "x" * 300_000),
        result("r2", "p2", "c2"),
        answer("b", "r2", call("t", "Task", prompt="look"), stop="tool_use"),
        user("s", None, "look", **side),
        answer("sa", "s", **side),
        result("rt", "b", "t"),
        answer("z", "rt"),
        user("v", "u", "again"),
        answer("w", "v", call("open"), stop="tool_use"),
        user("x", "w"),
    ]


@pytest.mark.parametrize("frame", [1, 3])
@pytest.mark.parametrize("first", [5, 13])
def test_an_import_killed_at_any_append_is_gone_on_with(
    first: int, frame: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before and after every append, once while the file was shorter: nothing twice, and
    the same tree where the file was the same."""
    monkeypatch.setattr("turnlog.ingest.packing.FRAME_EVENTS", frame)
    monkeypatch.setattr("turnlog.ingest.writing.PATIENCE_S", 0.0)
    lines = lines_of_a_session()
    expected = Desk(tmp_path)
    if first < len(lines):
        expected.take(lines[:first])
    expected.take(lines)
    appends = asyncio.run(expected.log.end())
    for dies_after in range(1, appends + 2):
        for arrives in (False, True):
            desk = Desk(tmp_path)
            kill_at(desk, dies_after, arrives=arrives)
            try:
                desk.take(lines[:first])
                desk.take(lines)
            except BaseExceptionGroup:
                pass
            heal(desk)
            report = desk.load(desk.write(lines))
            assert report.problems == []
            check_equal(desk, expected)
            if first == len(lines):
                assert [told(desk, s) for s in sessions_of(desk)] == [
                    told(expected, s) for s in sessions_of(expected)
                ]


def told(desk: Desk, session: str) -> Json:
    """Every event of a session but cursors and repeated parts of blobs, and the branches."""
    events = [
        (event.type, event.id, event.data)
        for event in desk.events(session)
        if event.data.get("name") != FACT and event.type != "blob_part"
    ]
    shown = desk.show(session)
    return events, shown["branches"], shown["counts"]["jumps"]


def kill_at(desk: Desk, number: int, *, arrives: bool) -> None:
    append = desk.log.append
    left = number

    async def append_or_die(frame: SealedFrame) -> int:
        nonlocal left
        left -= 1
        if left > 0:
            return await append(frame)
        if left == 0 and arrives:
            await append(frame)
        raise Killed

    desk.log.append = append_or_die  # type: ignore[method-assign]  # the process's own end


def heal(desk: Desk) -> None:
    del desk.log.append  # type: ignore[misc]  # a new process has the log as it is


def check_equal(desk: Desk, expected: Desk) -> None:
    sessions = sessions_of(expected)
    assert sessions_of(desk) == sessions
    for session in sessions:
        assert figures(desk, session) == figures(expected, session)
        assert desk.show(session)["counts"]["duplicates"] == 0
        assert desk.show(session)["usage"] == expected.show(session)["usage"]
        ids = [e.id for e in desk.events(session) if e.type in ("message", "usage_settled")]
        assert len(ids) == len(set(ids))


PROGRAM = """
import asyncio, sys
from pathlib import Path
import turnlog.log
from turnlog.ingest import Masker, import_files
from turnlog.owner.ambient import Ambient

async def main(log: str, file: str) -> None:
    ambient = Ambient()
    async with turnlog.log.open(log, clock=ambient.clock) as opened:
        await import_files(
            opened, "claude-code", [Path(file)], ambient=ambient, host="h", masker=Masker(),
            progress=lambda done, total: print(done, flush=True),
        )

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("lines_before_kill", [1, 200, 900])
def test_an_importer_that_is_killed_leaves_nothing_half_done(
    lines_before_kill: int, tmp_path: Path
) -> None:
    """SIGKILL in mid-import, then again without: as if it had been imported at once."""
    file = tmp_path / "big.jsonl"
    session = big_claude_file(file, 3)
    url = f"sqlite:{tmp_path / 'log.db'}"
    command = [sys.executable, "-c", PROGRAM, url, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(lines_before_kill):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    expected = Desk(tmp_path)
    expected.load(file)
    with turnlog.log.open(url, clock=system_clock, create=False) as log:
        head = log.tables.get(("sessions", session))
        whole = expected.log.tables.get(("sessions", session))
        assert (head.usage, head.depth, head.leaf) == (whole.usage, whole.depth, whole.leaf)
        assert (head.damage, head.counts["duplicates"], head.released) == ((), 0, True)
        assert head.counts["entries"] == whole.counts["entries"]


def test_a_large_file_takes_little_memory_and_does_not_stall(tmp_path: Path) -> None:
    """The outline alone is held. (The figures themselves are in tests/bench/importing.py.)"""
    import tracemalloc

    file = tmp_path / "big.jsonl"
    big_claude_file(file, 8)
    from turnlog.ingest.claude_code import ClaudeFile
    from turnlog.ingest.lines import LineFile
    from turnlog.ingest.told import Notes

    notes = Notes(lambda _line, _what: None, lambda _line, _what: None)
    tracemalloc.start()
    started = time.process_time()
    with LineFile(file) as lines:
        [session] = (
            ClaudeFile(lines, [SESSION], is_agent=False, cuts=(), notes=notes).read().sessions
        )
        count = sum(1 for _ in session.tell())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count > 1_000
    assert peak < 8_000_000
    assert time.process_time() - started < 30


def test_own_files_are_six() -> None:
    assert len(list(own_files())) == 6
