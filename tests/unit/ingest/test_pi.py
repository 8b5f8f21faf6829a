"""The rules for pi files, one test each: versions, branches, states, compactions, prices."""

from typing import Any

from tests.unit.ingest.foreign import (
    SESSION,
    Desk,
    encode,
    pi,
    pi_answer,
    pi_call,
    pi_header,
    pi_result,
    pi_user,
    text,
)

Json = Any


def linear(*lines: Json) -> list[Json]:
    """Lines of version 1: no ids."""
    bare = [{k: v for k, v in line.items() if k not in ("id", "parentId")} for line in lines]
    return [pi_header(None, provider="p", modelId="m", thinkingLevel="off"), *bare]


def test_entries_keep_their_ids_and_parents(pi_desk: Desk) -> None:
    shown = pi_desk.take([pi_header(), pi_user("a", None), pi_answer("b", "a"), pi_user("c", "b")])
    assert pi_desk.path() == ["a", "b", "c"]
    assert (shown["agent"], shown["cwd"], shown["origin"]["version"]) == ("pi", "/w", 3)
    assert pi_desk.outcomes() == {"a": "completed", "c": None}


def test_version_1_is_linear_and_goes_by_ordinals(pi_desk: Desk) -> None:
    lines = linear(pi_user("", None), pi_answer("", None), pi_user("", None))
    del lines[0]["version"]
    shown = pi_desk.take(lines)
    assert pi_desk.path() == ["line-1", "line-2", "line-3"]
    assert shown["state"] == {"provider": "p", "model": "m", "thinking_level": "off"}


def test_in_version_1_a_compaction_counts_the_lines_that_can_be_read(pi_desk: Desk) -> None:
    lines = linear(
        pi_user("", None, "one"),
        pi_answer("", None),
        pi_user("", None, "two"),
        pi("compaction", "", None, summary="s", firstKeptEntryIndex=3, tokensBefore=7),
        pi_user("", None, "three"),
    )
    body = encode(lines[:2]) + b"{broken\n\n" + encode(lines[2:])
    pi_desk.take(body)
    assert pi_desk.surface() == ["line-4", "line-3", "line-5"]
    data = pi_desk.data("line-4")
    assert (data["replaces"], data["tokens_before"]) == ({"first": "line-1", "last": "line-2"}, 7)


def test_a_parent_that_is_not_the_line_before_is_a_branch(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi_user("a", None),
        pi_answer("b", "a"),
        pi_user("c", "b"),
        pi_answer("d", "a"),  # even an answer: pi's tree is exact
        pi_user("e", None),
    ]
    pi_desk.take(lines)
    assert [e.data["parent"] for e in pi_desk.of_type("branch")] == ["a", None]
    assert pi_desk.surface() == ["e"]
    assert pi_desk.show()["counts"]["jumps"] == 0


def test_a_branch_summary_is_the_branch_and_the_model_sees_it(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi_user("a", None),
        pi_answer("b", "a"),
        pi("branch_summary", "s", "a", fromId="b", summary="tried b", details={"x": 1}),
        pi_user("c", "s"),
        pi("branch_summary", "t", "c", fromId="root", summary="in place"),
    ]
    shown = pi_desk.take(lines)
    branches = pi_desk.of_type("branch")
    assert [(e.id, e.data["parent"], e.data["from"]) for e in branches] == [
        ("s", "a", "b"),
        ("t", "c", None),
    ]
    assert branches[0].data["source"] == {"details": {"x": 1}}
    assert [node["text"] for node in shown["surface"]] == ["hello", "tried b", "hello", "in place"]


def test_model_and_thinking_are_the_whole_state(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi("model_change", "m1", None, provider="p", modelId="one"),
        pi_user("a", "m1"),
        pi("thinking_level_change", "t1", "a", thinkingLevel="high"),
        pi("model_change", "m2", "a", provider="p", modelId="two"),
    ]
    shown = pi_desk.take(lines)
    assert pi_desk.data("t1")["value"] == {
        "provider": "p",
        "model": "one",
        "thinking_level": "high",
    }
    assert shown["state"] == {"provider": "p", "model": "two"}  # t1 is on the other branch


def test_labels_and_names_are_facts_and_stand_for_their_parents(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi_user("a", None),
        pi("label", "l", "a", targetId="a", label="start"),
        pi("session_info", "n", "l", name="The name"),
        pi_answer("b", "n"),
        pi("label", "l2", "a", targetId="l", label=None),
        pi_user("c", "l2"),
    ]
    shown = pi_desk.take(lines)
    facts = {e.id: (e.data["name"], e.data["value"]) for e in pi_desk.of_type("fact")}
    assert (facts["line-3"], facts["line-6"]) == (("label:a", "start"), ("label:a", None))
    assert shown["title"] == "The name"
    assert pi_desk.surface() == ["a", "c"]  # the label went back to a, so does what follows it


def test_the_leaf_is_the_last_entry_also_where_that_is_a_label(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi_user("a", None),
        pi_answer("b", "a"),
        pi("label", "l", "a", targetId="b", label="x"),
    ]
    pi_desk.take(lines)
    assert pi_desk.surface() == ["a"]
    nothing = Desk(pi_desk.folder, "pi")
    nothing.take([*lines[:3], pi("session_info", "n", None, name="x")])
    assert nothing.surface() == []


def test_prices_are_exact_decimals(pi_desk: Desk) -> None:
    costs = [0.012497099999999999, 1e-7, 3, "x", None]
    lines = [pi_header(), pi_user("0", None)]
    for number, cost in enumerate(costs, 1):
        usage = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": {"total": cost}}
        lines.append(pi_answer(str(number), str(number - 1), usage=usage))
    shown = pi_desk.take(lines)
    assert float(shown["usage"]["cost_usd"]) == 3.0124972
    assert {name: shown["usage"][name] for name in ("input", "cache_read", "cache_write")} == {
        "input": 5,
        "cache_read": 15,
        "cache_write": 20,
    }


def test_stop_reasons_end_turns(pi_desk: Desk) -> None:
    lines = [pi_header()]
    parent = None
    for stop in ("stop", "length", "error", "aborted", "toolUse"):
        lines += [pi_user(f"u-{stop}", parent), pi_answer(f"a-{stop}", f"u-{stop}", stop=stop)]
        parent = f"a-{stop}"
    pi_desk.take([*lines, pi_user("last", parent)])
    assert pi_desk.outcomes() == {
        "u-stop": "completed",
        "u-length": "completed",
        "u-error": "failed",
        "u-aborted": "aborted",
        "u-toolUse": "interrupted",
        "last": None,
    }
    assert pi_desk.data("a-toolUse")["stop_reason"] == "tool_use"


def test_results_answer_their_calls_and_unanswered_ones_are_unknown(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi_user("a", None),
        pi_answer("b", "a", pi_call("1"), pi_call("2"), pi_call("3"), stop="aborted"),
        pi_result("r", "b", "2", isError=True, details={"diff": 1}),
        pi_user("c", "r"),
    ]
    pi_desk.take(lines)
    data = pi_desk.data("r")
    assert (data["status"], data["details"], data["tool"]) == ("error", {"diff": 1}, "bash")
    path = pi_desk.path()
    assert path[:3] == ["a", "b", "r"]
    assert path[-1] == "c"
    assert [pi_desk.data(id_)["call_id"] for id_ in path[3:-1]] == ["1", "3"]


def test_a_compaction_replaces_what_is_before_the_first_kept(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi_user("a", None),
        pi_answer("b", "a"),
        pi_user("c", "b"),
        pi_answer("d", "c"),
        pi("compaction", "k1", "d", summary="s1", firstKeptEntryId="c", tokensBefore=5),
        pi_user("e", "k1"),
        pi("compaction", "k2", "e", summary="s2", firstKeptEntryId="d", usage={"input": 3}),
        pi_user("f", "k2"),
    ]
    shown = pi_desk.take(lines)
    assert pi_desk.surface() == ["k2", "d", "e", "f"]
    assert pi_desk.data("k2")["replaces"] == {"first": "k1", "last": "c"}
    assert pi_desk.data("k2")["usage"]["input"] == 3
    assert shown["usage"]["attempts"] == 2
    assert pi_desk.voids() == []


def test_a_compaction_that_would_uncover_a_former_one_replaces_that_too(pi_desk: Desk) -> None:
    """pi would show again what the first one covered; a surface never uncovers anything."""
    lines = [
        pi_header(),
        pi_user("a", None),
        pi_answer("b", "a"),
        pi_user("c", "b"),
        pi("compaction", "k1", "c", summary="s1", firstKeptEntryId="c"),
        pi_user("d", "k1"),
        pi("compaction", "k2", "d", summary="s2", firstKeptEntryId="b"),
    ]
    pi_desk.take(lines)
    assert pi_desk.surface() == ["k2", "c", "d"]


def test_a_compaction_without_a_known_first_kept_replaces_all(pi_desk: Desk) -> None:
    for kept in ({"firstKeptEntryId": "gone"}, {"retainedTail": [{"role": "user"}]}, {}):
        desk = Desk(pi_desk.folder, "pi")
        desk.take(
            [pi_header(), pi_user("a", None), pi("compaction", "k", "a", summary="s", **kept)]
        )
        assert desk.surface() == ["k"]
    # of the last one but one: what was retained is kept with the summary
    desk = Desk(pi_desk.folder, "pi")
    tail = [{"role": "user", "content": "kept"}]
    desk.take([pi_header(), pi_user("a", None), pi("compaction", "k", "a", retainedTail=tail)])
    assert desk.data("k")["content"][1] == {"type": "opaque", "value": {"retained_tail": tail}}


def test_compactions_that_replace_nothing_supersede_one_another(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi("model_change", "m", None, modelId="x"),
        pi_user("a", "m"),
        pi("compaction", "k1", "a", summary="s1", firstKeptEntryId="m"),
        pi_user("b", "k1"),
        pi("compaction", "k2", "b", summary="s2", firstKeptEntryId="m"),
    ]
    pi_desk.take(lines)
    assert [e.id for e in pi_desk.of_type("custom")] == ["k1"]
    assert pi_desk.data("k1")["in_context"] is True
    assert pi_desk.surface() == ["a", "k2", "b"]


def test_commands_of_the_user_are_told_to_the_model_unless_excluded(pi_desk: Desk) -> None:
    shell = {"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 0}
    lines = [
        pi_header(),
        pi("message", "a", None, message=shell),
        pi("message", "b", "a", message={**shell, "excludeFromContext": True}),
        pi("message", "c", "b", message={**shell, "output": "", "exitCode": 2}),
        pi("message", "d", "c", message={**shell, "cancelled": True}),
    ]
    shown = pi_desk.take(lines)
    assert [node["text"] for node in shown["surface"]] == [
        "Ran `ls`\n```\nx\n```",
        "Ran `ls`\n```\n(no output)\n```\n(the command exited with code 2)",
        "Ran `ls`\n```\nx\n```\n(the command was cancelled)",
    ]
    assert pi_desk.outcomes() == {}


def test_extensions_ride_on_the_tree(pi_desk: Desk) -> None:
    said = {"customType": "note", "content": "remember", "display": True, "details": {"n": 1}}
    lines = [
        pi_header(),
        pi("custom", "a", None, customType="plan", data={"step": 1}),
        pi("custom_message", "b", "a", **said),
        pi("message", "c", "b", message={"role": "hookMessage", **said}),
        pi("message", "d", "c", message={"role": "strange"}),
        pi("zzz", "e", "d", x=1),
        {"type": "usage", "x": 2},
        {"type": 5},
        [],
    ]
    shown = pi_desk.take(lines)
    customs = {e.id: e.data for e in pi_desk.of_type("custom")}
    assert [customs[id_]["kind"] for id_ in "abcde"] == [
        "pi:plan",
        "pi:note",
        "pi:note",
        "pi:message",
        "pi:zzz",
    ]
    assert [node["text"] for node in shown["surface"]] == ["remember", "remember"]
    assert customs["b"]["value"]["details"] == {"n": 1}
    assert pi_desk.of_type("pi.usage")[0].data["line"]["x"] == 2
    assert [e.data["line"] for e in pi_desk.of_type("pi.line")] == [{"type": 5}, []]


def test_thinking_and_images_are_parts(pi_desk: Desk) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        text("x"),
        {"type": "toolCall", "id": "", "name": "n"},
        {"type": "other"},
        7,
    ]
    pi_desk.take([pi_header(), pi_user("a", None), pi_answer("b", "a", *blocks)])
    content = pi_desk.data("b")["content"]
    assert content[0] == {"type": "reasoning", "text": "hm", "signature": "sig"}
    assert content[1] == {"type": "image", "media_type": "image/png", "data": "AAAA"}
    assert [part["type"] for part in content[3:]] == ["opaque"] * 3


def test_a_fragment_without_a_header_is_imported(pi_desk: Desk) -> None:
    path = pi_desk.write([pi_user("b", "a"), pi_answer("c", "b")], f"2026_{SESSION}.jsonl")
    report = pi_desk.load(path)
    assert (report.new, report.problems) == ([SESSION], [])
    assert [damage["kind"] for damage in pi_desk.show()["damage"]] == ["dangling_parent"]
    other = Desk(pi_desk.folder / "other", "pi")
    other.load(other.write([{"type": "message", "message": {"role": "user"}}], "plain.jsonl"))
    assert other.path("plain") == ["line-0"]


def test_a_fork_has_its_parents_lines_and_counts_only_its_own_usage(pi_desk: Desk) -> None:
    header = pi_header(
        parentSession="/s/2025-01-01T00-00-00-000Z_parent-id.jsonl",
        timestamp="2026-01-01T00:00:00.000Z",
    )
    old = {**pi_answer("b", "a"), "timestamp": "2025-12-31T00:00:00.000Z"}
    lines = [header, pi_user("a", None), old, pi_answer("c", "b")]
    shown = pi_desk.take(lines)
    assert shown["usage"]["attempts"] == 1
    assert (shown["parent_session"], shown["fork_at"]) == ("parent-id", None)


def test_a_repeated_id_and_a_cycle_are_told(pi_desk: Desk) -> None:
    lines = [
        pi_header(),
        pi_user("a", None),
        pi_user("a", "a", "again"),
        pi_user("x", "y"),
        pi_user("y", "x"),
    ]
    report = pi_desk.load(pi_desk.write(lines))
    assert [finding.line for finding in report.warnings] == [3, 4]
    assert pi_desk.path() == ["a", "x", "y"]


def test_a_file_that_pi_gave_ids_goes_on_by_its_ordinals(pi_desk: Desk) -> None:
    """pi rewrites a file of version 1 with random ids when it opens it."""
    old = linear(pi_user("", None, "one"), pi_answer("", None))
    del old[0]["version"]
    pi_desk.take(old)
    new = [pi_header(), pi_user("x1", None, "one"), pi_answer("x2", "x1"), pi_user("x3", "x2")]
    report = pi_desk.load(pi_desk.write(new))
    assert len(report.warnings) == 1
    assert pi_desk.path() == ["line-1", "line-2", "x3"]
    assert pi_desk.outcomes() == {"line-1": "completed", "x3": None}
    pi_desk.take([*new, pi_answer("x4", "x3"), pi_user("x5", "x1")])
    assert pi_desk.surface() == ["line-1", "x5"]
    assert pi_desk.show()["damage"] == []
