"""The rules for Claude Code files, one test each: tree, groups, turns, compactions, side chains."""

from tests.unit.ingest.foreign import (
    SESSION,
    Desk,
    answer,
    boundary,
    call,
    result,
    summary,
    system,
    text,
    user,
)


def plain(prefix: str, parent: str | None) -> list[object]:
    """A prompt and its answer."""
    return [user(f"{prefix}u", parent), answer(f"{prefix}a", f"{prefix}u")]


def test_entries_keep_the_ids_of_their_lines(desk: Desk) -> None:
    shown = desk.take(plain("1", None))
    assert [node["entry"] for node in shown["surface"]] == ["1u", "1a"]
    assert shown["leaf"] == "1a"
    assert (shown["agent"], shown["damage"]) == ("claude-code", [])


def test_an_import_gives_the_same_events_each_time(desk: Desk) -> None:
    lines = [*plain("1", None), user("2u", "1a"), answer("2a", "2u", call("c"), stop="tool_use")]
    desk.take(lines)
    other = Desk(desk.folder)
    other.take(lines)
    assert [e.digest for e in desk.events()] == [e.digest for e in other.events()]


# ---- split messages ---------------------------------------------------------------------------


def test_lines_of_one_message_are_one_entry_named_by_the_first(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("p1", "u", text("a"), message="m", stop=None, output=25),
        answer("p2", "p1", call("c1"), message="m", stop=None, output=25),
        answer("p3", "p2", call("c2"), message="m", stop="tool_use", output=210),
        result("r1", "p2", "c1"),
        result("r2", "p3", "c2"),
    ]
    shown = desk.take(lines)
    assert desk.path() == ["u", "p1", "r1", "r2"]
    assert [part["type"] for part in desk.data("p1")["content"]] == [
        "text",
        "tool_call",
        "tool_call",
    ]
    assert desk.data("p1")["stop_reason"] == "tool_use"
    assert (shown["usage"]["output"], shown["usage"]["attempts"]) == (210, 1)


def test_parts_merge_across_results_that_stand_between_them(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("p1", "u", call("c1"), message="m", stop=None),
        result("r1", "p1", "c1"),
        answer("p2", "r1", call("c2"), message="m", stop="tool_use", output=7),
        result("r2", "p2", "c2"),
        answer("a", "r2"),
    ]
    shown = desk.take(lines)
    assert desk.path() == ["u", "p1", "r1", "r2", "a"]
    assert len(desk.data("p1")["content"]) == 2
    assert shown["usage"]["output"] == 8


def test_another_prompt_ends_a_message_that_could_go_on(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("p1", "u", text("a"), message="m", stop=None, output=3),
        user("v", "p1"),
        answer("p2", "v", text("b"), message="m", output=5),
    ]
    shown = desk.take(lines)
    assert desk.path() == ["u", "p1", "v", "p2"]
    assert shown["usage"]["output"] == 5  # what the message says in all, once


def test_a_message_without_an_id_goes_by_its_request(desk: Desk) -> None:
    lines = [user("u", None), answer("p1", "u", requestId="q"), answer("p2", "p1", requestId="q")]
    for line in lines[1:]:
        del line["message"]["id"]
    desk.take(lines)
    assert desk.path() == ["u", "p1"]


def test_a_later_part_without_usage_leaves_that_of_an_earlier_one(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("p1", "u", message="m", output=4),
        answer("p2", "p1", message="m", output=None),
    ]
    assert desk.take(lines)["usage"]["output"] == 4


# ---- the tree -----------------------------------------------------------------------------------


def test_a_prompt_under_an_earlier_entry_is_a_rewind(desk: Desk) -> None:
    lines = [*plain("1", None), *plain("2", "1a"), *plain("3", "1a")]
    desk.take(lines)
    [branch] = desk.of_type("branch")
    assert (branch.data["parent"], branch.data["from"]) == ("1a", "2a")
    assert desk.path() == ["1u", "1a", branch.id, "3u", "3a"]
    assert desk.surface() == ["1u", "1a", "3u", "3a"]
    assert desk.show()["counts"]["jumps"] == 0


def test_a_rewind_to_the_beginning_starts_at_the_root(desk: Desk) -> None:
    desk.take([*plain("1", None), *plain("2", None)])
    [branch] = desk.of_type("branch")
    assert (branch.data["parent"], branch.data["from"]) == (None, "1a")
    assert desk.surface() == ["2u", "2a"]


def test_a_prompt_after_an_answer_that_was_left_behind_is_a_rewind(desk: Desk) -> None:
    desk.take([*plain("1", None), user("2u", "1u"), answer("2a", "2u")])
    assert desk.surface() == ["1u", "2u", "2a"]


def test_parallel_siblings_follow_one_another(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("a", "u", call("c1"), call("c2"), stop="tool_use"),
        result("r2", "a", "c2"),
        result("r1", "a", "c1"),
        system("s", "a", subtype="info"),
        user("m", "r2", "reminder", isMeta=True),
        answer("b", "r2"),
        user("v", "b"),
    ]
    shown = desk.take(lines)
    assert desk.path() == ["u", "a", "r2", "r1", "s", "m", "b", "v"]
    assert desk.of_type("branch") == []
    assert len(shown["branches"]) == 1


def test_answers_side_by_side_follow_one_another(desk: Desk) -> None:
    lines = [user("u", None), answer("a", "u", stop="max_tokens"), answer("b", "u")]
    desk.take(lines)
    assert desk.path() == ["u", "a", "b"]
    assert desk.outcomes() == {"u": "completed"}


def test_two_turns_that_were_written_in_between_each_other_are_told_one_by_one(desk: Desk) -> None:
    lines = [
        *plain("1", None),
        user("x", "1a"),
        user("y", "1a"),
        answer("xa", "x", call("cx"), stop="tool_use"),
        answer("ya", "y"),
        result("xr", "xa", "cx"),
        answer("xb", "xr"),
    ]
    desk.take(lines)
    order = [e.id for e in desk.events() if e.type == "message"]
    assert order == ["1u", "1a", "x", "xa", "xr", "xb", "y", "ya"]
    assert desk.path()[-4:] == ["xa", "xr", "xb", desk.show()["leaf"]]  # where the file ends
    assert desk.outcomes() == {"1u": "completed", "x": "completed", "y": "completed"}


def test_coming_back_to_a_branch_goes_on_at_its_tip(desk: Desk) -> None:
    lines = [*plain("1", None), *plain("2", "1a"), *plain("3", "1a"), *plain("4", "2a")]
    desk.take(lines)
    assert desk.surface() == ["1u", "1a", "2u", "2a", "4u", "4a"]
    assert len(desk.of_type("branch")) == 2


def test_what_leads_up_to_a_rewound_prompt_begins_its_branch(desk: Desk) -> None:
    lines = [
        *plain("1", None),
        *plain("2", "1a"),
        user("m", "1a", "Caveat", isMeta=True),
        user("c", "m", "<command-name>/model</command-name>"),
        user("3u", "c"),
        system("at", "1a", subtype="hook"),
        user("4u", "at"),
    ]
    desk.take(lines)
    assert desk.surface() == ["1u", "1a", "4u"]
    assert [e.data["parent"] for e in desk.of_type("branch")] == ["1a", "1a"]


def test_a_root_that_carries_messages_is_a_new_beginning(desk: Desk) -> None:
    lines = [*plain("1", None), system("s", None), user("2u", "s"), system("t", None)]
    desk.take(lines)
    assert desk.surface() == ["2u"]
    assert desk.path()[-3:] == ["s", "2u", "t"]


def test_a_child_is_told_after_its_parent(desk: Desk) -> None:
    lines = [user("u", None), user("v", "a"), answer("a", "u"), answer("b", "v")]
    shown = desk.take(lines)
    assert desk.path() == ["u", "a", "v", "b"]
    assert shown["damage"] == []


def test_a_dangling_parent_is_kept_and_shown(desk: Desk) -> None:
    shown = desk.take([*plain("1", None), user("2u", "gone"), answer("2a", "2u")])
    assert [damage["kind"] for damage in shown["damage"]] == ["dangling_parent"]
    assert desk.data("2u")["parent"] == "gone"
    assert desk.surface() == ["1u", "1a", "2u", "2a"]


def test_a_cycle_is_broken_with_a_warning(desk: Desk) -> None:
    lines = [user("z", "y"), user("x", "y"), user("y", "x"), user("w", "w")]
    report = desk.load(desk.write(lines))
    assert [finding.line for finding in report.warnings] == [2, 4]
    assert "cycle" in report.warnings[0].what
    assert {e.id for e in desk.of_type("message")} == {"x", "y", "z", "w"}
    assert desk.show()["damage"] == []


def test_a_repeated_line_is_left_out_and_another_one_of_its_id_is_told(desk: Desk) -> None:
    lines = [*plain("1", None), user("1u", None), user("1a", "1u", "other"), user("2u", "1a")]
    report = desk.load(desk.write(lines))
    assert [(finding.line, "line 2" in finding.what) for finding in report.warnings] == [(4, True)]
    assert desk.path() == ["1u", "1a", "2u"]


def test_a_replay_under_new_ids_is_told_once(desk: Desk) -> None:
    lines = [
        *plain("1", None),
        user("2u", "1a", "again?", timestamp="t2"),
        answer("2a", "2u", message="m2", timestamp="t3"),
        boundary("b", "2a", preservedMessages={"uuids": ["2u", "2a"]}),
        summary("s", "b"),
        user("2u'", "1a", "again?", timestamp="t2"),
        answer("2a'", "2u'", message="m2", timestamp="t3"),
        user("3u", "2a'"),
    ]
    shown = desk.take(lines)
    assert desk.surface() == ["s", "2u", "2a", "3u"]
    assert shown["usage"]["output"] == 2
    assert desk.voids() == []


def test_the_newest_leaf_pointer_says_where_the_leaf_is(desk: Desk) -> None:
    pointer = {"type": "last-prompt", "leafUuid": "1a", "sessionId": SESSION}
    lines = [*plain("1", None), *plain("2", "1a")]
    desk.take([*lines, pointer])
    assert desk.surface() == ["1u", "1a"]
    later = Desk(desk.folder)
    later.take([*lines[:2], pointer, *lines[2:]])
    assert later.surface() == ["1u", "1a", "2u", "2a"]


def test_a_leaf_pointer_to_the_last_message_moves_nothing(desk: Desk) -> None:
    lines = [*plain("1", None), system("s", "1a"), {"type": "last-prompt", "leafUuid": "1a"}]
    desk.take(lines)
    assert desk.path() == ["1u", "1a", "s"]


# ---- turns --------------------------------------------------------------------------------------


def test_a_prompt_and_its_operation_stand_in_one_frame(desk: Desk) -> None:
    desk.take(plain("1", None))
    types = [event.type for event in desk.events()]
    assert types[1:7] == [
        "message",
        "operation_accepted",
        "model_attempted",
        "message",
        "usage_settled",
        "operation_finished",
    ]
    accepted = desk.of_type("operation_accepted")[0].data
    assert (accepted["input_entry"], accepted["kind"]) == ("1u", "prompt")


def test_how_a_turn_ended_is_inferred(desk: Desk) -> None:
    lines = [
        user("1", None),
        answer("1a", "1", stop="end_turn"),
        user("2", "1a"),
        answer("2a", "2", stop="max_tokens"),
        user("3", "2a"),
        answer("3a", "3", stop="refusal"),
        user("4", "3a"),
        answer("4a", "4", stop=None),
        user("5", "4a"),
        answer("5a", "5", call("c5"), stop=None),
        user("6", "5a"),
        answer("6a", "6", stop="stop_sequence", isApiErrorMessage=True),
        user("7", "6a"),
        user("8", "7"),
        answer("8a", "8", call("c8"), stop="tool_use"),
        user("8i", "8a", [text("[Request interrupted by user for tool use]")]),
        user("9", "8i"),
        answer("9a", "9", isAbortedMidStream=True),
    ]
    desk.take(lines)
    assert desk.outcomes() == {
        "1": "completed",
        "2": "completed",
        "3": "completed",
        "4": "completed",
        "5": "interrupted",
        "6": "failed",
        "7": "interrupted",
        "8": "aborted",
        "9": "aborted",
    }
    assert all(event.data["inferred"] for event in desk.of_type("operation_finished"))


def test_what_has_not_ended_at_the_end_of_the_file_stays_open(desk: Desk) -> None:
    for tail in (
        [],
        [answer("a", "u", stop=None)],
        [answer("a", "u", call("c"), stop="tool_use")],
        [answer("a", "u"), user("m", "a", "stop hook says: go on", isMeta=True)],
    ):
        other = Desk(desk.folder)
        assert other.take([user("u", None), *tail])["status"] == "open"
        assert other.outcomes() == {"u": None}


def test_meta_text_and_output_are_no_prompts(desk: Desk) -> None:
    lines = [
        user("m", None, "Caveat: ...", isMeta=True),
        user("c", "m", "<command-name>/clear</command-name>"),
        user("o", "c", "<local-command-stdout></local-command-stdout>"),
        user("b", "o", "<bash-input>ls</bash-input>"),
        user("e", "b", "<bash-stdout>x</bash-stdout>"),
        user("n", "e", ""),
        user("u", "n", "now you"),
    ]
    desk.take(lines)
    assert list(desk.outcomes()) == ["u"]
    assert desk.surface() == ["m", "c", "o", "b", "e", "n", "u"]


def test_a_command_that_the_model_answers_begins_a_turn_then(desk: Desk) -> None:
    lines = [*plain("1", None), user("c", "1a", "<command-name>/fix</command-name>")]
    lines += [user("m", "c", "Fix it all", isMeta=True), answer("a", "m")]
    desk.take(lines)
    assert desk.outcomes() == {"1u": "completed", "a": "completed"}
    accepted = desk.of_type("operation_accepted")[1].data
    assert (accepted["input_entry"], accepted["trigger"]) == ("m", None)


def test_of_a_file_that_begins_in_mid_turn_no_turn_is_told_before_its_first_prompt(
    desk: Desk,
) -> None:
    lines = [
        answer("a", "gone", call("c"), stop="tool_use", output=7),
        result("r", "a", "c"),
        answer("b", "r"),
        user("u", "b"),
        answer("d", "u"),
    ]
    for count in range(1, len(lines) + 1):
        shown = desk.take(lines[:count])
        assert all(not row["corruption"] for row in shown["operations"])
        assert [found["kind"] for found in shown["damage"]] == ["dangling_parent"]
    assert desk.surface() == ["a", "r", "b", "u", "d"]
    assert desk.outcomes() == {"u": "completed"}
    assert desk.data("a")["attempt"] is None
    assert desk.data("a")["source"]["usage"]["output"] == 7
    assert shown["usage"]["attempts"] == 1


def test_no_dispatch_is_invented(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("a", "u", call("c"), stop="tool_use"),
        result("r", "a", "c", error=True),
        answer("b", "r", call("d"), stop="tool_use"),
        result("s", "b", "d", toolDenialKind="user-rejected"),
    ]
    shown = desk.take(lines)
    assert shown["dispatches"] == []
    assert desk.data("r")["dispatch"] is None
    assert [desk.data(id_)["status"] for id_ in "rs"] == ["error", "not_started"]
    assert [desk.data(id_)["settled_by"] for id_ in "rs"] == ["host", "host"]
    assert desk.data("r")["tool"] == "Bash"


def test_a_call_that_was_moved_past_is_unknown(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("a", "u", call("c1"), call("c2"), stop="tool_use"),
        result("r", "a", "c2"),
        user("v", "r"),
        answer("b", "v", call("c1"), stop="tool_use"),
    ]
    desk.take(lines)
    path = desk.path()
    assert [path[0], path[1], path[2], path[4], path[5]] == ["u", "a", "r", "v", "b"]
    unknown = desk.data(path[3])
    assert (unknown["call_id"], unknown["status"], unknown["settled_by"]) == (
        "c1",
        "unknown",
        "import",
    )
    answered = desk.log.tables.get(("entries", SESSION, 4))
    assert answered.answers == (2, 0)


def test_an_open_call_on_a_branch_is_unknown_where_the_branch_goes_on(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("a", "u", call("c"), call("c"), stop="tool_use"),
        result("r", "a", "c"),
        user("v", "r"),
        answer("b", "v"),
        user("w", "a"),
    ]
    desk.take(lines)
    unknown = [e for e in desk.of_type("message") if e.data.get("status") == "unknown"]
    assert len({event.id for event in unknown}) == 3  # one under r; both under a
    assert desk.path()[-1] == "w"
    assert desk.voids() == []


def test_a_result_of_several_blocks_is_several_entries(desk: Desk) -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("one")]},
        {"type": "tool_result", "tool_use_id": "c2"},
        text("[Request interrupted by user]"),
    ]
    lines = [
        user("u", None),
        answer("a", "u", call("c1"), call("c2"), stop="tool_use"),
        user("r", "a", blocks, toolUseResult={"kept": True}),
        user("v", "r"),
    ]
    desk.take(lines)
    path = desk.path()
    roles = [desk.data(id_)["role"] for id_ in path]
    assert roles == ["user", "assistant", "tool", "tool", "user", "user"]
    assert (path[2], desk.data(path[2])["details"]) == ("r", {"kept": True})
    assert desk.outcomes() == {"u": "aborted", "v": None}


# ---- compactions --------------------------------------------------------------------------------


def test_a_compaction_replaces_what_the_model_saw(desk: Desk) -> None:
    desk.take([*plain("1", None), *plain("2", "1a"), boundary("b", "2a"), summary("s", "b")])
    [compaction] = desk.of_type("compaction")
    assert compaction.data["replaces"] == {"first": "1u", "last": "2a"}
    assert compaction.data["tokens_before"] == 9
    assert desk.path()[-2:] == ["b", "s"]
    assert desk.surface() == ["s"]


def test_the_preserved_tail_stays_in_sight(desk: Desk) -> None:
    lines = [
        *plain("1", None),
        *plain("2", "1a"),
        boundary("b", "2b", preservedSegment={"headUuid": "2u"}),
        summary("s", "b"),
        answer("2b", "s", timestamp="2025-12-31T00:00:00Z"),  # earlier than the summary
        *plain("3", "2b"),
    ]
    desk.take(lines)
    assert desk.surface() == ["s", "2u", "2a", "2b", "3u", "3a"]
    assert desk.voids() == []


def test_a_second_compaction_covers_the_first_and_its_tail(desk: Desk) -> None:
    """Case 1: no message on the path may be neither in sight nor covered."""
    lines = [
        *plain("1", None),
        *plain("2", "1a"),
        boundary("b1", "2a", preservedMessages={"uuids": [None, "gone", "2u", "2a"]}),
        summary("s1", "b1"),
        *plain("3", "s1"),
        boundary("b2", "3a", preservedSegment={"headUuid": "3u"}),
        summary("s2", "b2"),
        *plain("4", "s2"),
    ]
    desk.take(lines)
    assert desk.surface() == ["s2", "3u", "3a", "4u", "4a"]
    assert desk.of_type("compaction")[1].data["replaces"] == {"first": "s1", "last": "2a"}


def test_a_compaction_never_cuts_a_call_from_its_result(desk: Desk) -> None:
    lines = [
        *plain("1", None),
        user("2u", "1a"),
        answer("2a", "2u", call("c1"), call("c2"), stop="tool_use"),
        result("r1", "2a", "c1"),
        result("r2", "r1", "c2"),
        boundary("b", "r2", preservedSegment={"headUuid": "r2"}),
        summary("s", "b"),
    ]
    desk.take(lines)
    assert desk.surface() == ["s", "2a", "r1", "r2"]
    assert desk.voids() == []


def test_an_open_call_is_answered_before_a_compaction(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer("a", "u", call("c"), stop="tool_use"),
        boundary("b", "a"),
        summary("s", "b"),
        answer("z", "s"),
    ]
    desk.take(lines)
    assert desk.surface() == ["s", "z"]
    assert desk.voids() == []
    assert desk.outcomes() == {"u": "completed"}  # the turn went on across it


def test_a_compaction_that_replaces_nothing_is_a_custom_entry_in_context(desk: Desk) -> None:
    lines = [
        *plain("1", None),
        boundary("b", "1a", preservedSegment={"headUuid": "1u"}),
        summary("s", "b", "all of it"),
    ]
    shown = desk.take(lines)
    assert desk.of_type("compaction") == []
    assert desk.surface() == ["1u", "1a", "s"]
    assert shown["surface"][2]["text"] == "all of it"


def test_a_compaction_whose_logical_parent_lies_far_above_stays_at_the_leaf(desk: Desk) -> None:
    """Case 1, second report: the parent of a compaction is the leaf, or nothing is reachable."""
    lines = [*plain("1", None), *plain("2", "1a"), boundary("b", "1u"), summary("s", "b")]
    desk.take(lines)
    assert desk.path() == ["1u", "1a", "2u", "2a", "b", "s"]
    assert desk.surface() == ["s"]


def test_a_compaction_on_a_branch_replaces_that_branch_alone(desk: Desk) -> None:
    lines = [
        *plain("1", None),
        *plain("2", "1a"),
        *plain("3", "1a"),
        boundary("b", "3a", preservedSegment={"headUuid": "2u"}),  # not on this branch
        summary("s", "b"),
        *plain("4", "2a"),
    ]
    desk.take(lines)
    assert desk.of_type("compaction")[0].data["replaces"] == {"first": "1u", "last": "3a"}
    assert desk.surface() == ["1u", "1a", "2u", "2a", "4u", "4a"]


# ---- side chains --------------------------------------------------------------------------------


def test_a_side_chain_in_the_file_is_a_session_of_its_own(desk: Desk) -> None:
    side = {"isSidechain": True}
    lines = [
        user("u", None),
        answer("a", "u", text("x"), call("x", "Read"), message="m", stop=None),
        answer("a2", "a", call("t", "Task", prompt="look "), message="m", stop="tool_use"),
        user("su", None, "look", **side),
        answer("sa", "su", **side),
        result("r", "a2", "t"),
    ]
    shown = desk.take(lines)
    assert [node["entry"] for node in shown["surface"]] == ["u", "a", "r"]
    child = desk.show(f"{SESSION}.side-su")
    assert [node["entry"] for node in child["surface"]] == ["su", "sa"]
    assert child["parent_session"] == SESSION
    assert child["spawned_by"] == {"entry": "a", "call_index": 1, "dispatch": None}
    assert child["operations"][0]["outcome"] == "completed"


def test_side_chains_are_told_apart_by_their_agents(desk: Desk) -> None:
    lines = [
        user("u", None),
        answer(
            "a",
            "u",
            call("t1", "Task", prompt="p"),
            call("t2", "Agent", prompt="p"),
            stop="tool_use",
        ),
        user("s1", None, "p", isSidechain=True, agentId="one"),
        user("s2", None, "p", isSidechain=True, agentId="two"),
        answer("s1a", "s1", isSidechain=True, agentId="one"),
        result("r2", "a", "t2", toolUseResult={"agentId": "two"}),
    ]
    desk.take(lines)
    one = desk.show(f"{SESSION}.agent-one")
    assert one["spawned_by"]["call_index"] == 0
    assert desk.show(f"{SESSION}.agent-two")["spawned_by"]["call_index"] == 1


def test_a_side_chain_of_nobody_has_a_parent_session_and_no_call(desk: Desk) -> None:
    desk.take([user("u", None), user("s", None, "who?", isSidechain=True)])
    child = desk.show(f"{SESSION}.side-s")
    assert (child["parent_session"], child["spawned_by"]) == (SESSION, None)


# ---- what is no message -------------------------------------------------------------------------


def test_lines_that_are_no_messages_are_kept(desk: Desk) -> None:
    lines = [
        user("u", None),
        system("s", "u", subtype="turn_duration", durationMs=5),
        {**system("p", "s"), "type": "progress", "data": {"x": 1}},
        {**system("n", "p"), "type": 7},
        user("v", "n", "seen by people only", isVisibleInTranscriptOnly=True),
        {"type": "file-history-snapshot", "snapshot": {}},
        {"type": "zzz", "parent": "u"},
        {"type": None},
        [1, 2],
    ]
    desk.take(lines)
    kinds = [event.data["kind"] for event in desk.of_type("custom")]
    assert kinds == [
        "claude-code:system",
        "claude-code:progress",
        "claude-code:line",
        "claude-code:user",
    ]
    assert desk.data("s")["value"] == {"subtype": "turn_duration", "durationMs": 5}
    assert desk.surface() == ["u"]
    opaque = {e.id: (e.type, e.data) for e in desk.events() if e.type.startswith("claude-code.")}
    assert opaque["line-6"][0] == "claude-code.file-history-snapshot"
    assert opaque["line-7"] == ("claude-code.zzz", {"line": {"type": "zzz", "parent": "u"}})
    assert opaque["line-9"] == ("claude-code.line", {"line": [1, 2]})


def test_titles_are_facts_and_the_persons_own_wins(desk: Desk) -> None:
    lines = [
        user("u", None),
        {"type": "summary", "summary": "of another file", "leafUuid": "x"},
        {"type": "summary", "summary": "first", "leafUuid": "u"},
        {"type": "ai-title", "aiTitle": "second"},
        {"type": "custom-title", "customTitle": "third"},
        {"type": "ai-title", "aiTitle": "fourth"},
    ]
    assert desk.take(lines)["title"] == "third"
    titles = [e.data["value"] for e in desk.of_type("fact") if e.data["name"] == "title"]
    assert titles == ["first", "second", "third"]
    assert (
        len(desk.of_type("claude-code.summary")) == len(desk.of_type("claude-code.ai-title")) == 1
    )


def test_a_message_without_an_id_follows_what_came_before_it(desk: Desk) -> None:
    nameless = {"type": "user", "message": {"role": "user", "content": "hi"}}
    desk.take([*plain("1", None), nameless, system("s", "1a")])
    assert desk.path() == ["1u", "1a", "line-3", "s"]


def test_what_changes_from_line_to_line_is_kept_where_it_changes(desk: Desk) -> None:
    first = {"cwd": "/a", "version": "1", "gitBranch": "main"}
    lines = [
        user("u", None, **first),
        user("v", "u", **first, permissionMode="plan"),
        user("w", "v", **{**first, "cwd": "/b"}),
    ]
    assert desk.take(lines)["cwd"] == "/a"
    sources = [desk.data(id_).get("source") for id_ in "uvw"]
    assert sources == [{"git_branch": "main"}, {"permissionMode": "plan"}, {"cwd": "/b"}]


def test_usage_of_copied_lines_is_counted_where_they_come_from(desk: Desk) -> None:
    lines = [
        user("u", None, sessionId="older"),
        answer("a", "u", sessionId="older"),
        user("v", "a"),
        answer("b", "v", forkedFrom={"sessionId": "older"}),
        answer("c", "b"),
    ]
    shown = desk.take(lines)
    assert shown["usage"]["attempts"] == 1
    assert desk.surface() == ["u", "a", "v", "b", "c"]
