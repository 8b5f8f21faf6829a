"""Formats: which files hold sessions, and of which name."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.ingest.foreign import SESSION, pi_header, pi_user, user
from turnlog.ingest.formats import FORMATS, Identity, session_files

Json = Any
CLAUDE, PI = FORMATS["claude-code"], FORMATS["pi"]


@pytest.mark.parametrize(
    ("path", "lines", "identity"),
    [
        (f"/p/{SESSION}.jsonl", [user("u", None)], Identity((SESSION,))),
        ("/p/copy.jsonl", [user("u", None)], Identity((SESSION,))),
        ("/p/copy.jsonl", [{"type": "user", "uuid": "u"}], Identity(("copy",))),
        ("/p/copy.jsonl", [{"type": "summary"}], None),
        ("/p/copy.jsonl", [{"type": "other", "uuid": 1}], None),
        (
            f"/p/{SESSION}.jsonl",
            [user("u", None, sessionId="other", isSidechain=True)],
            Identity((SESSION, "other"), is_agent=True),
        ),
        (
            f"/p/{SESSION}/subagents/x/agent-7.jsonl",
            [user("u", None)],
            Identity((f"{SESSION}.agent-7",), True, SESSION, "7"),
        ),
        (
            "/p/agent-7.jsonl",
            [user("u", None)],
            Identity((f"{SESSION}.agent-7",), True, SESSION, "7"),
        ),
    ],
)
def test_claude_code_files(path: str, lines: list[Json], identity: Identity | None) -> None:
    assert CLAUDE.identify(Path(path), lines) == identity


@pytest.mark.parametrize(
    ("path", "lines", "identity"),
    [
        ("/p/x.jsonl", [pi_header()], Identity((SESSION,))),
        (f"/p/2026_{SESSION}.jsonl", [pi_user("a", None)], Identity((SESSION,))),
        ("/p/x.jsonl", [pi_user("a", None)], Identity(("x",))),
        ("/p/x.jsonl", [user("u", None)], None),
    ],
)
def test_pi_files(path: str, lines: list[Json], identity: Identity | None) -> None:
    assert PI.identify(Path(path), lines) == identity


def test_a_folder_is_searched_but_for_what_lies_aside(tmp_path: Path) -> None:
    names = ["b.jsonl", "a/c.jsonl", "a/tool-results/d.jsonl", "a/e.txt", "workflows/f.jsonl"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in session_files(CLAUDE, tmp_path)]
    assert found == ["b.jsonl", "a/c.jsonl"]
    assert len(list(session_files(PI, tmp_path))) == 4
    assert list(session_files(PI, tmp_path / "a/e.txt")) == [tmp_path / "a/e.txt"]
