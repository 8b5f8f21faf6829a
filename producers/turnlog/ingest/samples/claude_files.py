"""The sample sessions of Claude Code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turnlog.ingest.samples.claude_writer import ClaudeWriter, call, named, text, thinking

Told = tuple[Path, str, dict[str, Any]]

PROJECT = "-home-ada-tide-table"
TABLE = """\
     1\u2192\"\"\"Print a tide table.\"\"\"
     2\u2192
     3\u2192def rows(levels):
     4\u2192    for hour, level in enumerate(levels):
     5\u2192        yield f"{hour:02}:00  {int(level * 10) / 10:5.1f} m"
"""
TESTS = """\
     1\u2192from tide_table import rows
     2\u2192
     3\u2192def test_levels_are_rounded():
     4\u2192    assert list(rows([1.25, 1.29])) == ["00:00    1.3 m", "01:00    1.3 m"]
"""
# the example key of a provider's own manual, put together here so that no scanner takes it for one
EXAMPLE_KEY = "AKIA" + "IOSFODNN7EXAMPLE"


def write(folder: Path) -> list[Told]:
    """Write the sessions into a project folder as Claude Code lays it out."""
    project = folder / PROJECT
    return [*_rewound(project), _compacted(project), _unfinished(project)]


def _rewound(project: Path) -> list[Told]:
    """Parallel calls in a split message, a rewind, and a sub-agent."""
    session = named("rewound")
    out = ClaudeWriter(session, start="2026-03-02")
    out.bare({"type": "file-history-snapshot", "messageId": named("snap"), "snapshot": {}})
    done = _rounding(out)
    out.prompt("Also print low water in blue.")
    out.answer(
        "04", text("Colours need a terminal; I would add a flag."), stop="end_turn", usage=[31]
    )
    prompt = "Review how tide_table.py rounds levels. Report in two sentences."
    report = "round() rounds half to even, so 1.25 becomes 1.2. Use Decimal to round half up."
    _review(out, done, prompt, report)
    leaf = out.line("system", {"subtype": "turn_duration", "durationMs": 41_250})
    out.bare({"type": "ai-title", "aiTitle": "Tide table: round the levels", "sessionId": session})
    out.bare(
        {
            "type": "last-prompt",
            "lastPrompt": "Have the rounding reviewed first, please.",
            "leafUuid": leaf,
            "sessionId": session,
        }
    )
    path = out.save(project / f"{session}.jsonl")
    expects = _expects(out, "u a t t a t a u a t a", branches=2, completed=3)
    return [(path, session, expects), _agent(project, session, prompt, report)]


def _rounding(out: ClaudeWriter) -> str:
    """The first turn; gives the line that it ends with."""
    out.prompt("The tide table cuts levels off instead of rounding them. Fix it.")
    parts = out.answer(
        "01",
        thinking("Both the code and its test are needed."),
        text("I'll look at the code and at its test."),
        call("read_code", "Read", file_path="tide_table.py"),
        call("read_test", "Read", file_path="test_tide_table.py"),
        stop="tool_use",
        usage=[9, 9, 61, 118],
    )
    # parallel results: siblings in the file, each under the line of its own call
    out.result("toolu_read_code", TABLE, parent=parts[2])
    out.result("toolu_read_test", TESTS, parent=parts[3])
    out.answer(
        "02",
        text("`int()` cuts off. Rounding with `round()` is enough."),
        call(
            "edit",
            "Edit",
            file_path="tide_table.py",
            old_string="int(level * 10) / 10",
            new_string="round(level, 1)",
        ),
        stop="tool_use",
        usage=[22, 131],
    )
    out.result("toolu_edit", "The file tide_table.py has been updated.")
    return out.answer("03", text("Levels are rounded now."), stop="end_turn", usage=[14])[-1]


def _review(out: ClaudeWriter, under: str, prompt: str, report: str) -> None:
    """The turn that was typed in the place of another, with a sub-agent's call."""
    out.prompt("Have the rounding reviewed first, please.", parent=under)
    task = {"description": "Review rounding", "prompt": prompt, "subagent_type": "reviewer"}
    out.answer("05", call("review", "Task", **task), stop="tool_use", usage=[77])
    out.result(
        "toolu_review",
        report,
        toolUseResult={"status": "completed", "agentId": "7c21ab9e", "totalTokens": 4_310},
    )
    out.answer(
        "06",
        text("The review found that 1.25 becomes 1.2; I'd use Decimal."),
        stop="end_turn",
        usage=[44],
    )


def _agent(project: Path, session: str, prompt: str, report: str) -> Told:
    out = ClaudeWriter(session, agent="7c21ab9e", start="2026-03-02")
    out.time(64)
    out.prompt(prompt)
    out.answer("a1", call("a_read", "Read", file_path="tide_table.py"), stop="tool_use", usage=[58])
    out.result("toolu_a_read", TABLE.replace("int(level * 10) / 10", "round(level, 1)"))
    out.answer("a2", text(report), stop="end_turn", usage=[39])
    path = out.save(project / session / "subagents" / "agent-7c21ab9e.jsonl")
    expects = _expects(out, "u a t a", completed=1)
    return path, f"{session}.agent-7c21ab9e", expects


def _compacted(project: Path) -> Told:
    """A compaction that keeps the newest messages, and a secret in a tool's output."""
    session = named("compacted")
    out = ClaudeWriter(session, start="2026-03-03")
    out.prompt("Upload the table to our bucket each morning.")
    out.answer("11", call("env", "Bash", command="cat .env"), stop="tool_use", usage=[40])
    out.result("toolu_env", f"AWS_REGION=eu-north-1\nAWS_ACCESS_KEY_ID={EXAMPLE_KEY}\n")
    out.answer(
        "12", text("The key is there. A cron job at six will do."), stop="end_turn", usage=[33]
    )
    head = out.prompt("Use a timer of systemd.")
    tail = out.answer(
        "13", text("Done: tide-upload.timer runs at 06:00."), stop="end_turn", usage=[52]
    )[-1]
    out.compact(
        head,
        tail,
        "Summary: the table is to be uploaded to a bucket each morning; the key lies in .env; a"
        " cron job was considered.",
    )
    out.prompt("Which unit do I enable?")
    out.answer(
        "14", text("`systemctl enable --now tide-upload.timer`"), stop="end_turn", usage=[19]
    )
    out.bare({"type": "custom-title", "customTitle": "Morning upload", "sessionId": session})
    path = out.save(project / f"{session}.jsonl")
    return path, session, _expects(out, "u u a u a", completed=3)


def _unfinished(project: Path) -> Told:
    """Two calls without an answer, one of them at the end, and a line that was cut off."""
    session = named("unfinished")
    out = ClaudeWriter(session, start="2026-03-04")
    out.prompt("Publish version 1.2.")
    out.answer(
        "21",
        call("tag", "Bash", command="git tag v1.2 && git push --tags"),
        stop="tool_use",
        usage=[48],
    )
    out.prompt("[Request interrupted by user for tool use]")
    out.prompt("Build first, then publish.")
    out.answer(
        "22",
        text("Building."),
        call("build", "Bash", command="make dist"),
        stop="tool_use",
        usage=[17, 55],
    )
    out.result("toolu_build", "tide_table-1.2.tar.gz")
    out.answer("23", call("upload", "Bash", command="make upload"), stop="tool_use", usage=[42])
    torn = '{"parentUuid":"' + str(out.at) + '","isSidechain":false,"type":"user","message":{"ro'
    path = out.save(project / f"{session}.jsonl", torn=torn)
    return path, session, _expects(out, "u a u t u a t a", unanswered=1, aborted=1, open=1)


def _expects(
    out: ClaudeWriter, surface: str, *, branches: int = 1, unanswered: int = 0, **outcomes: int
) -> dict[str, Any]:
    """What is true of a session; the surface by the first letters of its roles."""
    roles = {"u": "user", "a": "assistant", "t": "tool"}
    return {
        "usage": out.usage,
        "branches": branches,
        "unanswered": unanswered,
        "outcomes": outcomes,
        "surface": [roles[letter] for letter in surface.split()],
    }
