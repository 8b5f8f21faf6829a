"""Lines of these shapes with random links, and lines of any shape, never stop an import.

Every line is accounted for: it is in the log, or it repeats one that is, or it is in the report.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.integration.import_files import figures, sessions_of
from tests.integration.import_sessions import claude_sessions, pi_sessions
from tests.unit.ingest.foreign import SESSION, Desk, encode

Json = Any

IDS = st.sampled_from(["a", "b", "c", "d", "e", "f"])
PARENTS = st.one_of(IDS, st.none(), st.just("gone"))
CALLS = st.sampled_from(["1", "2", ""])
TIMES = st.sampled_from(["t1", "t2", None, 5])
WORDS = st.sampled_from(
    ["hi", "", "[Request interrupted by user]", "<command-name>/x", "<bash-stdout>y", "\ud83d"]
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)

BLOCKS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
        st.builds(lambda id_: {"type": "tool_use", "id": id_, "name": "Task", "input": {}}, CALLS),
        st.builds(lambda id_: {"type": "tool_result", "tool_use_id": id_, "content": "x"}, CALLS),
        st.fixed_dictionaries({"type": st.just("thinking"), "thinking": WORDS}),
        ANYTHING,
    ),
    max_size=3,
)
USAGE = st.one_of(
    st.none(),
    st.fixed_dictionaries({"input_tokens": st.integers(-1, 9), "output_tokens": ANYTHING}),
)
CLAUDE = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user", "assistant", "system", "attachment", "zzz"]),
        "uuid": IDS,
        "parentUuid": PARENTS,
    },
    optional={
        "sessionId": st.just(SESSION),
        "timestamp": TIMES,
        "isSidechain": st.booleans(),
        "agentId": st.sampled_from(["x", "y"]),
        "isMeta": st.booleans(),
        "isCompactSummary": st.booleans(),
        "logicalParentUuid": PARENTS,
        "subtype": st.just("compact_boundary"),
        "compactMetadata": st.fixed_dictionaries(
            {"preservedSegment": st.fixed_dictionaries({"headUuid": PARENTS})}
        ),
        "message": st.one_of(
            ANYTHING,
            st.fixed_dictionaries(
                {"content": st.one_of(WORDS, BLOCKS)},
                optional={
                    "id": st.sampled_from(["m1", "m2"]),
                    "stop_reason": st.sampled_from(["end_turn", "tool_use", "max_tokens", None]),
                    "usage": USAGE,
                    "model": ANYTHING,
                },
            ),
        ),
        "toolUseResult": st.one_of(ANYTHING, st.just({"agentId": "x"})),
    },
)
CLAUDE_LINES = st.lists(
    st.one_of(
        CLAUDE,
        ANYTHING,
        st.fixed_dictionaries({"type": st.just("last-prompt"), "leafUuid": PARENTS}),
        st.fixed_dictionaries({"type": st.just("summary"), "summary": WORDS, "leafUuid": PARENTS}),
    ),
    max_size=14,
)

PI_BLOCKS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
        st.builds(lambda id_: {"type": "toolCall", "id": id_, "name": "n"}, CALLS),
        ANYTHING,
    ),
    max_size=3,
)
PI = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "message",
                "compaction",
                "branch_summary",
                "label",
                "session_info",
                "custom",
                "custom_message",
                "model_change",
                "thinking_level_change",
                "zzz",
                "session",
            ]
        ),
    },
    optional={
        "id": IDS,
        "parentId": PARENTS,
        "timestamp": TIMES,
        "targetId": PARENTS,
        "fromId": PARENTS,
        "firstKeptEntryId": PARENTS,
        "firstKeptEntryIndex": st.integers(-1, 9),
        "summary": st.one_of(WORDS, ANYTHING),
        "label": ANYTHING,
        "name": ANYTHING,
        "modelId": ANYTHING,
        "customType": ANYTHING,
        "retainedTail": ANYTHING,
        "message": st.one_of(
            ANYTHING,
            st.fixed_dictionaries(
                {
                    "role": st.sampled_from(
                        ["user", "assistant", "toolResult", "bashExecution", "custom", "z"]
                    ),
                    "content": st.one_of(WORDS, PI_BLOCKS, ANYTHING),
                },
                optional={
                    "toolCallId": CALLS,
                    "stopReason": st.sampled_from(["stop", "toolUse", "aborted", "zzz"]),
                    "usage": st.one_of(ANYTHING, st.just({"input": 1, "cost": {"total": 0.1}})),
                    "command": ANYTHING,
                },
            ),
        ),
    },
)
PI_HEADER = st.sampled_from(
    [
        [],
        [{"type": "session", "id": SESSION}],
        [{"type": "session", "id": SESSION, "version": 3, "parentSession": "p"}],
    ]
)
PI_LINES = st.builds(
    lambda header, lines: header + lines,
    PI_HEADER,
    st.lists(st.one_of(PI, ANYTHING), max_size=14),
)


def check(format_: str, lines: list[Json], cut: int) -> None:
    body = encode(lines)
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), format_)
        path = desk.write(body)
        report = desk.load(path)
        sessions = sessions_of(desk)
        if not sessions:
            assert len(report.problems) == 1
            return
        account(desk, sessions, lines)
        for session in sessions:
            assert desk.voids(session) == []
            shown = desk.show(session)
            assert shown["counts"]["quarantined"] == shown["counts"]["jumps"] == 0
            assert {damage["kind"] for damage in shown["damage"]} <= {"dangling_parent"}
            corruption = {name for row in shown["operations"] for name in row["corruption"]}
            assert corruption <= {"input_missing"}
        before = {session: desk.events(session) for session in sessions}
        desk.load(path)
        assert {session: desk.events(session) for session in sessions} == before
        check_cut(desk, Path(folder), body, cut)


def account(desk: Desk, sessions: list[str], lines: list[Json]) -> None:
    """Every line is in the log by its id or its number, or says what an earlier one says, or is a
    part of a message that began earlier."""
    ids = {event.id for session in sessions for event in desk.events(session)}
    name = "uuid" if desk.format == "claude-code" else "id"
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        keys = keys_of(line, name)
        in_log = not ids.isdisjoint({keys[0], f"line-{number}", f"line-{number - 1}"})
        assert in_log or not seen.isdisjoint(keys), (number, line)
        seen.update(keys)


def keys_of(line: Json, name: str) -> list[str]:
    """The line's id, then what else a later line may share with it."""
    if not isinstance(line, dict):
        return ["no line"]
    message = line.get("message")
    keys = [str(line.get(name))]
    if isinstance(message, dict) and line.get("type") == "assistant" and message.get("id"):
        keys.append(f"message {message['id']}")
    twin = json.dumps([line.get("parentUuid"), line.get("timestamp"), line.get("type"), message])
    return [*keys, twin]


def check_cut(expected: Desk, folder: Path, body: bytes, cut: int) -> None:
    """Whatever the file, importing a part of it first breaks nothing and counts nothing twice."""
    desk = Desk(folder, expected.format)
    desk.load(desk.write(body[: cut % (len(body) + 1)]))
    desk.load(desk.write(body))
    for session in sessions_of(desk):
        assert desk.voids(session) == []
        counts = desk.show(session)["counts"]
        assert counts["quarantined"] == counts["duplicates"] == counts["jumps"] == 0


def check_growth(format_: str, lines: list[Json], cut: int) -> None:
    """A file that could be real comes out the same however often it was imported on its way."""
    body = encode(lines)
    with tempfile.TemporaryDirectory() as folder:
        desk, grown = Desk(Path(folder), format_), Desk(Path(folder), format_)
        desk.load(desk.write(body))
        grown.load(grown.write(body[: cut % len(body)]))
        grown.load(grown.write(body))
        assert figures(grown, SESSION) == figures(desk, SESSION)


@given(claude_sessions(), st.integers(0, 10_000))
def test_any_claude_code_session(lines: list[Json], cut: int) -> None:
    check("claude-code", lines, cut)
    check_growth("claude-code", lines, cut)


@given(pi_sessions(), st.integers(0, 10_000))
def test_any_pi_session(lines: list[Json], cut: int) -> None:
    check("pi", lines, cut)
    check_growth("pi", lines, cut)


@given(CLAUDE_LINES, st.integers(0, 10_000))
def test_any_claude_code_lines(lines: list[Json], cut: int) -> None:
    check("claude-code", lines, cut)


@given(PI_LINES, st.integers(0, 10_000))
def test_any_pi_lines(lines: list[Json], cut: int) -> None:
    check("pi", lines, cut)


@given(st.lists(st.binary(max_size=30), max_size=8), st.sampled_from(["claude-code", "pi"]))
def test_any_bytes(pieces: list[bytes], format_: str) -> None:
    good = encode(
        [
            {
                "type": "user",
                "uuid": "u",
                "parentUuid": None,
                "sessionId": SESSION,
                "message": {"role": "user", "content": "x"},
            }
        ]
    )
    header = encode([{"type": "session", "id": SESSION}])
    body = (good if format_ == "claude-code" else header) + b"\n".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), format_)
        desk.load(desk.write(body))
        assert sessions_of(desk) == [SESSION]
        assert figures(desk, SESSION)["voids"] == []
