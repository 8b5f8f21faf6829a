"""What an import does beside converting: what is there, what has grown, what is somebody else's."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ingest.foreign import (
    SESSION,
    Desk,
    answer,
    boundary,
    call,
    encode,
    pi_header,
    pi_user,
    result,
    summary,
    system,
    text,
    user,
)
from turnlog.core.errors import UsageError
from turnlog.core.frames import NewEvent
from turnlog.ingest import Masker
from turnlog.ingest.cursor import FACT
from turnlog.owner.ambient import Ambient
from turnlog.owner.owner import Owner, claim

Json = Any


def turn(prefix: str, parent: str | None) -> list[Json]:
    return [user(f"{prefix}u", parent), answer(f"{prefix}a", f"{prefix}u")]


def claimed(desk: Desk, host: str, session: str = SESSION) -> Owner:
    return asyncio.run(
        claim(
            desk.log,
            session,
            tables=desk.log.tables,
            host=host,
            reason="open",
            ambient=Ambient(lambda: 0),
        )
    )


def write(owner: Owner, *events: NewEvent) -> None:
    asyncio.run(owner.write(events))


def end(desk: Desk) -> int:
    return asyncio.run(desk.log.end())


# ---- again --------------------------------------------------------------------------------------


def test_importing_again_adds_nothing(desk: Desk) -> None:
    path = desk.write(turn("1", None))
    first = desk.load(path)
    before = end(desk)
    again = desk.load(path)
    assert (first.new, again.new, again.unchanged) == ([SESSION], [], [SESSION])
    assert end(desk) == before
    assert not again.events


def test_a_grown_file_adds_what_is_new(desk: Desk) -> None:
    lines = [*turn("1", None), *turn("2", "1a")]
    desk.take(lines[:2])
    report = desk.load(desk.write(lines))
    assert (report.grown, report.events["message"]) == ([SESSION], 2)
    assert desk.path() == ["1u", "1a", "2u", "2a"]
    assert desk.show()["counts"]["duplicates"] == 0


def test_a_turn_that_was_ended_for_want_of_more_goes_on_as_another(desk: Desk) -> None:
    lines = [*turn("1", None), user("m", "1a", "stop hook: go on", isMeta=True), answer("2a", "m")]
    desk.take(lines[:2])
    shown = desk.take(lines)
    assert desk.outcomes() == {"1u": "completed", "2a": "completed"}
    assert [row["corruption"] for row in shown["operations"]] == [[], []]


def test_an_open_call_gets_its_answer_when_the_file_has_it(desk: Desk) -> None:
    lines = [user("u", None), answer("a", "u", call("c"), stop="tool_use"), result("r", "a", "c")]
    desk.take(lines[:2])
    desk.take(lines)
    assert desk.path() == ["u", "a", "r"]


def test_a_message_that_went_on_is_a_following_entry_and_its_usage_a_difference(
    desk: Desk,
) -> None:
    lines = [
        user("u", None),
        answer("p1", "u", call("c1"), message="m", stop=None, output=30),
        answer("p2", "p1", call("c2"), message="m", stop="tool_use", output=210),
        result("r2", "p2", "c2"),
        result("r1", "p1", "c1"),
    ]
    desk.take(lines[:2])
    shown = desk.take(lines)
    assert desk.path() == ["u", "p1", "r1", "p2", "r2"]  # the results stand with their calls
    assert shown["usage"]["output"] == 210
    assert shown["damage"] == []


def test_a_torn_last_line_is_taken_when_it_is_whole(desk: Desk) -> None:
    body = encode(turn("1", None))
    report = desk.load(desk.write(body[:-20]))
    assert [(f.line, "cut off" in f.what) for f in report.problems] == [(2, True)]
    assert not report.ok
    report = desk.load(desk.write(body))
    assert (report.ok, desk.path()) == (True, ["1u", "1a"])


def test_a_byte_order_mark_costs_no_line(desk: Desk, pi_desk: Desk) -> None:
    report = desk.load(desk.write(b"\xef\xbb\xbf" + encode(turn("1", None))))
    assert (report.problems, report.warnings, desk.path()) == ([], [], ["1u", "1a"])
    report = pi_desk.load(
        pi_desk.write(b"\xef\xbb\xbf" + encode([pi_header(), pi_user("a", None)]), "p.jsonl")
    )
    assert (report.problems, report.warnings, pi_desk.path()) == ([], [], ["a"])


def test_a_whole_last_line_needs_no_newline(desk: Desk) -> None:
    body = encode(turn("1", None))
    report = desk.load(desk.write(body[:-1]))
    assert (report.ok, desk.path()) == (True, ["1u", "1a"])
    assert desk.load(desk.write(body + encode(turn("2", "1a")))).grown == [SESSION]
    assert desk.path() == ["1u", "1a", "2u", "2a"]


def test_a_file_that_only_grew_by_what_cannot_be_read_is_told_once(desk: Desk) -> None:
    body = encode(turn("1", None))
    desk.load(desk.write(body))
    assert [f.line for f in desk.load(desk.write(body + b"{oops\n")).problems] == [3]
    again = desk.load(desk.write(body + b"{oops\n"))
    assert (again.problems, again.unchanged) == ([], [SESSION])


def test_the_cursor_is_in_each_frame_with_what_it_speaks_of(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.ingest.packing.FRAME_EVENTS", 4)
    desk.take([line for n in range(5) for line in turn(str(n), f"{n - 1}a" if n else None)])
    facts = [e for e in desk.of_type("fact") if e.data["name"] == FACT]
    assert len(facts) > 3
    assert [fact.data["value"]["done"] for fact in facts] == [False] * (len(facts) - 1) + [True]


# ---- a file that has changed --------------------------------------------------------------------


def test_of_a_changed_file_only_what_is_new_is_added(desk: Desk) -> None:
    lines = [*turn("1", None), *turn("2", "1a")]
    desk.take(lines)
    changed = [*turn("1", None), user("2u", "1a", "other words"), lines[3], *turn("3", "2a")]
    title = {"type": "ai-title", "aiTitle": "new"}
    report = desk.load(desk.write([*changed, title, {"type": "mode"}]))
    assert [("is not what was imported" in f.what) for f in report.warnings] == [True]
    shown = desk.show()
    assert desk.path() == ["1u", "1a", "2u", "2a", "3u", "3a"]
    assert shown["surface"][2]["text"] == "hello"
    assert (shown["title"], shown["damage"]) == ("new", [])
    assert (shown["usage"]["attempts"], desk.of_type("claude-code.mode")) == (3, [])
    again = desk.load(desk.write([*changed, title, {"type": "mode"}]))
    assert (again.unchanged, again.warnings) == ([SESSION], [])


def test_what_is_new_in_the_middle_of_a_changed_file_becomes_a_branch(desk: Desk) -> None:
    lines = [*turn("1", None), *turn("2", "1a")]
    desk.take(lines)
    desk.take([*lines[:2], *turn("3", "1a"), boundary("b", "3a"), summary("s", "b"), *lines[2:]])
    shown = desk.show()
    assert desk.surface() == ["1u", "1a", "3u", "3a", "s"]
    assert desk.data("s")["kind"] == "claude-code:compaction"
    assert (shown["damage"], desk.voids()) == ([], [])


def test_an_answer_that_is_new_in_a_known_turn_has_no_attempt(desk: Desk) -> None:
    lines = [user("u", None), answer("a", "u"), answer("b", "a"), user("v", "b")]
    desk.take([lines[0], lines[1], lines[3]])
    shown = desk.take(lines)
    assert desk.data("b")["attempt"] is None
    assert shown["damage"] == []
    assert all(not row["corruption"] for row in shown["operations"])


def test_a_shorter_file_changes_nothing(desk: Desk) -> None:
    lines = [*turn("1", None), *turn("2", "1a")]
    desk.take(lines)
    report = desk.load(desk.write(lines[:2]))
    assert len(report.warnings) == 1
    assert desk.path() == ["1u", "1a", "2u", "2a"]


def test_an_import_by_another_version_of_the_reader_adds_only_what_is_new(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [*turn("1", None), *turn("2", "1a")]
    desk.take(lines[:2])
    monkeypatch.setattr("turnlog.ingest.importer.READER", 2)
    monkeypatch.setattr("turnlog.ingest.writing.READER", 2)
    desk.take(lines)
    assert desk.path() == ["1u", "1a", "2u", "2a"]
    assert desk.load().unchanged == [SESSION]


# ---- what is somebody else's --------------------------------------------------------------------


def test_a_session_that_a_host_holds_is_left_alone(desk: Desk) -> None:
    desk.take(turn("1", None))
    owner = claimed(desk, "laptop")
    before = end(desk)
    report = desk.load(desk.write([*turn("1", None), *turn("2", "1a")]))
    assert report.left == [SESSION]
    assert "held by host 'laptop'" in report.problems[0].what
    assert end(desk) == before
    asyncio.run(owner.release())
    assert desk.load().grown == [SESSION]
    assert desk.path() == ["1u", "1a", "2u", "2a"]


def test_a_session_that_did_not_come_from_a_file_is_left_alone(desk: Desk) -> None:
    owner = claimed(desk, "laptop")
    write(owner, NewEvent("session_created", "c", None, {}))
    asyncio.run(owner.release())
    report = desk.load(desk.write(turn("1", None)))
    assert report.left == [SESSION]
    assert "did not come from a file" in report.problems[0].what


def test_what_a_recovery_closed_is_gone_on_with_beside_it(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("a", "u", call("c"), stop="tool_use"),
        result("r", "a", "c"),
        answer("b", "r"),
    ]
    desk.take(lines[:2])
    owner = claimed(desk, "recovery")
    closed = {"parent": "a", "role": "tool", "content": [], "call_id": "c", "status": "unknown"}
    write(
        owner,
        NewEvent("message", "close-1", None, closed),
        NewEvent(
            "operation_finished", "f", None, {"operation": "turn-u", "outcome": "interrupted"}
        ),
    )
    asyncio.run(owner.release())
    shown = desk.take(lines)
    assert desk.surface() == ["u", "a", "r", "b"]
    [back] = desk.of_type("branch")
    assert (back.data["parent"], back.data["from"]) == ("a", "close-1")
    assert sorted(desk.outcomes().values(), key=str) == ["completed", "interrupted"]
    assert all(not row["corruption"] for row in shown["operations"])
    assert (shown["damage"], shown["counts"]["jumps"]) == ([], 0)


def test_a_recovery_before_a_rewind_needs_no_way_back(desk: Desk) -> None:
    lines = [*turn("1", None), user("2u", "1a"), user("3u", "1a")]
    desk.take(lines[:3])
    owner = claimed(desk, "recovery")
    write(
        owner,
        NewEvent("custom", "x", None, {"parent": "2u", "kind": "k", "value": 1}),
        NewEvent(
            "operation_finished", "f", None, {"operation": "turn-2u", "outcome": "interrupted"}
        ),
    )
    asyncio.run(owner.release())
    desk.take(lines)
    assert len(desk.of_type("branch")) == 1
    assert desk.surface() == ["1u", "1a", "3u"]
    assert all(not row["corruption"] for row in desk.show()["operations"])


def test_whoever_takes_the_session_over_stops_the_import(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.ingest.packing.FRAME_EVENTS", 4)
    append = desk.log.append
    count = 0

    async def append_and_lose(frame: Any) -> int:
        nonlocal count
        count += 1
        if count == 3:
            monkeypatch.setattr(desk.log, "append", append)
            await claim(
                desk.log,
                SESSION,
                tables=desk.log.tables,
                host="laptop",
                reason="takeover",
                ambient=Ambient(lambda: 0),
            )
        return await append(frame)

    monkeypatch.setattr(desk.log, "append", append_and_lose)
    lines = [line for n in range(5) for line in turn(str(n), f"{n - 1}a" if n else None)]
    report = desk.load(desk.write(lines))
    assert report.left == [SESSION]
    assert "cut off" in report.problems[0].what


# ---- files and folders --------------------------------------------------------------------------


def test_folders_are_searched_and_agents_come_after_their_sessions(desk: Desk) -> None:
    agent = [
        user("s", None, "look", isSidechain=True, agentId="x1"),
        answer("sa", "s", isSidechain=True, agentId="x1"),
    ]
    main = [
        user("u", None),
        answer("a", "u", call("t", "Task", prompt="look"), stop="tool_use"),
        result("r", "a", "t", toolUseResult={"agentId": "x1"}),
    ]
    desk.write(agent, f"p/{SESSION}/subagents/agent-x1.jsonl")
    desk.write(main, f"p/{SESSION}.jsonl")
    desk.write(b"{}", "p/notes.txt")
    desk.write([{"type": "user"}], f"p/{SESSION}/tool-results/x.jsonl")
    desk.write([{"display": "history"}], "history.jsonl")
    desk.write(b"", "empty.jsonl")
    report = desk.load()
    assert report.new == [SESSION, f"{SESSION}.agent-x1"]
    assert [finding.what for finding in report.warnings] == [
        "it is empty",
        "it holds no session of claude-code; it was left out",
    ]
    child = desk.show(f"{SESSION}.agent-x1")
    assert child["parent_session"] == SESSION
    assert child["spawned_by"] == {"entry": "a", "call_index": 0, "dispatch": None}


def test_an_agent_that_comes_later_finds_its_call_in_the_parents_file(desk: Desk) -> None:
    main = [user("u", None), answer("a", "u", call("t", "Task", prompt="look"), stop="tool_use")]
    desk.load(desk.write(main, f"p/{SESSION}.jsonl"))
    agent = [user("s", None, " look", isSidechain=True), answer("b", "s", isSidechain=True)]
    path = desk.write(agent, f"p/{SESSION}/subagents/deep/agent-y.jsonl")
    desk.load(path)
    assert desk.show(f"{SESSION}.agent-y")["spawned_by"]["entry"] == "a"
    grown = desk.load(desk.write([*agent, user("t", "b", isSidechain=True)], str(path)))
    assert grown.grown == [f"{SESSION}.agent-y"]


def test_an_agent_without_its_parents_file_names_its_parent(desk: Desk) -> None:
    desk.load(desk.write([user("s", None, isSidechain=True)], "agent-z.jsonl"))
    shown = desk.show(f"{SESSION}.agent-z")
    assert (shown["parent_session"], shown["spawned_by"]) == (SESSION, None)


def test_side_chains_grow_with_their_file(desk: Desk) -> None:
    side = {"isSidechain": True}
    lines = [
        user("u", None),
        user("s", None, "look", **side),
        answer("sa", "s", **side),
        answer("a", "u"),
        user("s2", "sa", **side),
        user("v", "a"),
    ]
    child = f"{SESSION}.side-s"
    for count in (2, 4, 5, 6):
        report = desk.load(desk.write(lines[:count]))
        assert not report.problems
    assert desk.surface() == ["u", "a", "v"]
    assert desk.surface(child) == ["s", "sa", "s2"]
    assert desk.show(child)["counts"]["duplicates"] == 0
    assert desk.load().unchanged == [SESSION]


def test_a_session_keeps_the_name_of_its_first_import(desk: Desk) -> None:
    other = "99999999-2222-4333-8444-555555555555"
    lines = [{**line, "sessionId": other} for line in turn("1", None)]
    desk.load(desk.write(lines))
    assert desk.surface(other) == ["1u", "1a"]  # no line goes by the name of the file
    desk.load(desk.write([*lines, user("2u", "1a")]))
    assert desk.surface(other) == ["1u", "1a", "2u"]


def test_the_same_session_in_two_files_is_one(desk: Desk) -> None:
    desk.write(turn("1", None), "a/x.jsonl")
    desk.write([*turn("1", None), *turn("2", "1a")], "b/y.jsonl")
    report = desk.load()
    assert (report.new, report.grown, report.problems) == ([SESSION], [], [])
    assert desk.surface() == ["1u", "1a", "2u", "2a"]


def test_a_path_that_is_not_there_is_a_usage_error(desk: Desk) -> None:
    with pytest.raises(UsageError, match="there is no such file or folder"):
        desk.load(desk.folder / "gone")
    desk.format = "zzz"
    with pytest.raises(UsageError, match="there are claude-code and pi"):
        desk.load()


def test_what_is_no_session_file_is_told(desk: Desk) -> None:
    assert "no session of claude-code is in it" in desk.load().warnings[0].what
    for body in (b"", b"\0\0\0", b"hello\n", b"[1]\n", encode([{"type": "mode"}])):
        report = desk.load(desk.write(body, "x.jsonl"))
        assert len(report.problems) == 1
        assert report.new == []
    pipe = desk.folder / "pipe"
    os.mkfifo(pipe)
    assert "no regular file" in desk.load(pipe).problems[0].what
    locked = desk.write(turn("1", None), "locked.jsonl")
    if os.geteuid() != 0:
        locked.chmod(0)
        assert "cannot be read" in desk.load(locked).problems[0].what


def test_a_name_of_any_bytes_can_be_told(desk: Desk) -> None:
    """Case 13: file names need not be UTF-8."""
    path = Path(os.fsdecode(os.fsencode(desk.folder) + b"/a\xb2.jsonl"))
    path.write_bytes(encode([{**line, "sessionId": None} for line in turn("1", None)]))
    report = desk.load(path)
    assert report.new == ["a\ufffd"]
    assert desk.show("a\ufffd")["origin"]["path"].endswith("a\ufffd.jsonl")


def test_a_file_that_changes_while_it_is_read_is_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnlog.ingest import claude_code

    path = desk.write(turn("1", None))
    read = claude_code.ClaudeFile.read

    def read_and_spoil(self: claude_code.ClaudeFile) -> Any:
        reading = read(self)
        path.write_bytes(b"x" * 5_000)
        return reading

    monkeypatch.setattr(claude_code.ClaudeFile, "read", read_and_spoil)
    report = desk.load(path)
    assert "changed while the file was read" in report.problems[0].what


# ---- the report ---------------------------------------------------------------------------------


def test_the_report_says_what_came_in(desk: Desk) -> None:
    seen: list[tuple[int, int]] = []
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    path = desk.write([user("u", None, f"use {key}"), answer("a", "u")])
    report = desk.load(path, progress=lambda done, total: seen.append((done, total)))
    size = path.stat().st_size
    assert (report.files, report.bytes, seen[-1]) == (1, size, (size, size))
    assert report.masked == {"aws_access_key": 1}
    assert report.seconds > 0
    assert desk.show()["surface"][0]["text"] == "use [masked:aws_access_key]"
    data = report.as_data()
    assert data["sessions"]["new"] == [SESSION]
    assert data["events"]["message"] == 2
    assert data["problems"] == []


def test_without_a_masker_secrets_are_published_as_they_are(desk: Desk) -> None:
    desk.masker = None
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    shown = desk.take([user("u", None, f"use {key}")])
    assert shown["surface"][0]["text"] == f"use {key}"


def test_characters_that_had_to_be_replaced_are_marked(desk: Desk) -> None:
    """Case 13: half characters become U+FFFD once, where they enter, and the part says so."""
    body = encode([user("u", None, "ok"), answer("a", "u", text("half \ud83d"), text("whole"))])
    report = desk.load(desk.write(body))
    parts = desk.data("a")["content"]
    assert parts == [
        {"type": "text", "text": "half \ufffd", "normalised": True},
        {"type": "text", "text": "whole"},
    ]
    assert [(f.line, "half characters" in f.what) for f in report.warnings] == [(2, True)]


def test_bad_lines_are_told_and_the_rest_is_imported(desk: Desk) -> None:
    deep = b'{"type":"user","uuid":"d","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n"
    lines: Sequence[bytes] = [
        encode([user("u", None, "nul \0 is legal")]),
        b'{"type":"user"\n',
        b"\0\0\0\0\n",
        deep,
        encode([{**answer("a", "u"), "big": 2**70, "nan": float("nan")}]),
        b'{"type":"system","uuid":"s","parentUuid":"a","x":"\xff\xfe"}\n',
    ]
    report = desk.load(desk.write(b"".join(lines)))
    assert [finding.line for finding in report.problems] == [2, 3, 4]
    assert [finding.line for finding in report.warnings] == [5, 5, 6]
    assert desk.path() == ["u", "a", "s"]
    assert desk.data("a")["source"] == {
        "big": str(2**70),
        "nan": "NaN",
        "message": "msg_a",
    }


def test_a_large_part_is_a_blob_and_comes_back_whole(desk: Desk) -> None:
    from turnlog.core.blobs import resolve

    words = "wörter " * 60_000
    desk.take([user("u", None, words), answer("a", "u")])
    part = desk.data("u")["content"][0]
    assert (part["type"], part["size"]) == ("blob", len(words.encode()))
    import base64

    slices = sorted(desk.of_type("blob_part"), key=lambda event: event.data["index"])
    body = b"".join(base64.b64decode(event.data["bytes"]) for event in slices)
    assert resolve(part, {part["digest"]: body}.get) == {"type": "text", "text": words}
    assert desk.surface() == ["u", "a"]


def test_a_session_that_begins_with_a_very_large_prompt_is_created_first(desk: Desk) -> None:
    shown = desk.take([user("u", None, "ö" * 1_000_000), answer("a", "u")])
    assert (shown["damage"], desk.path()) == ([], ["u", "a"])
    assert desk.events()[0].type == "session_created"


def test_what_is_too_large_for_a_blob_is_cut_with_a_warning(desk: Desk) -> None:
    report = desk.load(desk.write([user("u", None, "x" * 17_000_000), answer("a", "u")]))
    part = desk.data("u")["content"][0]
    assert (part["truncated"], part["size"], part["preview"]) == (True, 17_000_000, "x" * 1_000)
    assert [(f.line, "too large" in f.what) for f in report.warnings] == [(1, True)]


def test_an_event_that_the_vocabulary_refuses_keeps_its_place(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.ingest.claude_lines.usage_of", lambda line: {"input": "many"})
    monkeypatch.setattr("turnlog.ingest.claude_teller.usage_of", lambda line: {"input": "many"})
    monkeypatch.setattr("turnlog.ingest.claude_teller.count_at", lambda data, name: "many")
    lines = [*turn("1", None), boundary("b", "1a"), summary("s", "b"), *turn("2", "s")]
    report = desk.load(desk.write(lines))
    assert [finding.line for finding in report.problems] == [2, 4, 6]
    assert desk.data("s")["kind"] == "claude-code:refused"
    assert desk.path() == ["1u", "1a", "b", "s", "2u", "2a"]
    assert desk.show()["damage"] == []


def test_pi_files_are_found_in_their_folders(pi_desk: Desk) -> None:
    pi_desk.write([pi_header(), pi_user("a", None)], f"--w--/2026-01-01_{SESSION}.jsonl")
    pi_desk.write([system("s", None)], "other.jsonl")
    report = pi_desk.load()
    assert report.new == [SESSION]
    assert len(report.warnings) == 1


def test_extra_patterns_are_masked_too(desk: Desk) -> None:
    desk.masker = Masker({"ticket": r"T-(?P<secret>[0-9]{4})"})
    shown = desk.take([user("u", None, "see T-1234")])
    assert shown["surface"][0]["text"] == "see T-[masked:ticket]"
