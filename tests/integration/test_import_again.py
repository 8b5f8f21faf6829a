"""A file that shrinks, is written anew, or is imported by several at once: nothing is damaged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import turnlog.log
from tests.integration.import_files import figures, sessions_of
from tests.unit.ingest.foreign import (
    SESSION,
    Desk,
    answer,
    call,
    encode,
    pi_answer,
    pi_header,
    pi_user,
    result,
    text,
    user,
)
from turnlog.core.errors import OwnershipError
from turnlog.ingest import Report, import_files
from turnlog.owner.ambient import Ambient, system_clock

Json = Any


def linear(count: int, first: int = 0) -> list[Json]:
    """A Claude Code session of prompts and answers."""
    lines: list[Json] = []
    for n in range(first, first + count):
        parent = f"n{n - 1}" if n else None
        lines.append(answer(f"n{n}", parent) if n % 2 else user(f"n{n}", parent, f"text {n}"))
    return lines


def linear_pi(count: int) -> list[Json]:
    lines: list[Json] = [pi_header()]
    for n in range(count - 1):
        parent = f"n{n - 1}" if n else None
        lines.append(pi_answer(f"n{n}", parent) if n % 2 else pi_user(f"n{n}", parent))
    return lines


def mixed() -> list[Json]:
    """Split messages, calls, a side chain, a rewind, a title and lines without an id."""
    side = {"isSidechain": True}
    return [
        user("u", None),
        answer("p1", "u", text("a"), call("c1"), message="m", stop=None),
        answer("p2", "p1", call("c2"), message="m", stop="tool_use", output=9),
        result("r1", "p1", "c1"),
        result("r2", "p2", "c2"),
        {"type": "ai-title", "aiTitle": "one"},
        answer("b", "r2", call("t", "Task", prompt="look"), stop="tool_use"),
        user("s", None, "look", **side),
        answer("sa", "s", **side),
        result("rt", "b", "t"),
        answer("z", "rt"),
        {"type": "mode", "mode": "plan"},
        user("v", "u", "again"),
        {"type": "ai-title", "aiTitle": "two"},
        answer("w", "v", call("open"), stop="tool_use"),
        result("rw", "w", "open"),
        answer("x", "rw"),
    ]


def check_sound(desk: Desk) -> None:
    for session in sessions_of(desk):
        shown = desk.show(session)
        counts = shown["counts"]
        assert (shown["damage"], desk.voids(session)) == ([], [])
        assert (counts["jumps"], counts["quarantined"], counts["duplicates"]) == (0, 0, 0)
        assert all(not row["corruption"] for row in shown["operations"])


# ---- shorter, and longer again ------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(30, 15, 30), (30, 15, 40), (30, 16, 40), (30, 5, 31)])
@pytest.mark.parametrize("format_", ["claude-code", "pi"])
def test_a_file_that_shrinks_and_grows_again_adds_only_what_is_new(
    sizes: tuple[int, ...], format_: str, tmp_path: Path
) -> None:
    make = linear if format_ == "claude-code" else linear_pi
    desk, expected = Desk(tmp_path, format_), Desk(tmp_path, format_)
    for size in sizes:
        report = desk.load(desk.write(make(size)))
        assert report.ok
        check_sound(desk)
    expected.take(make(sizes[0]))
    expected.take(make(sizes[-1]))
    assert desk.path() == expected.path()
    assert desk.show()["branches"] == expected.show()["branches"]
    assert figures(desk, SESSION) == figures(expected, SESSION)


def test_a_shorter_file_writes_nothing_wherever_it_was_cut(tmp_path: Path) -> None:
    lines = mixed()
    for again in range(len(lines) + 1):
        desk, expected = Desk(tmp_path), Desk(tmp_path)
        expected.take(lines)
        desk.take(lines)
        before = asyncio.run(desk.log.end())
        for size in range(len(lines) - 1, 0, -1):
            report = desk.load(desk.write(lines[:size]))
            assert ["shorter than what was imported" in f.what for f in report.warnings] == [True]
            assert report.ok
        assert asyncio.run(desk.log.end()) == before
        desk.load(desk.write(lines[: again or 1]))
        more = [*lines, user("later", "x")]
        for body in (lines, more):
            desk.take(body)
            expected.take(body)
        check_sound(desk)
        for session in sessions_of(expected):
            assert figures(desk, session) == figures(expected, session)
            assert desk.path(session) == expected.path(session)


def test_what_is_new_in_a_shorter_file_is_added_and_the_rest_goes_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.take(linear(20))
    other = [*linear(6), user("o1", "n5"), answer("o2", "o1")]
    desk.take(other)
    assert desk.path()[-3:-1] != ["o1", "o2"]
    assert desk.path()[-1] == "o2"
    check_sound(desk)
    desk.take(linear(30))
    assert desk.path()[-1] == "n29"
    check_sound(desk)
    assert desk.load().unchanged == [SESSION]


@pytest.mark.parametrize("cut", range(2, 20, 3))
def test_a_file_that_was_written_anew_and_then_grows_into_what_is_known(
    cut: int, tmp_path: Path
) -> None:
    """The middle is gone, then what was behind it is there again, and more."""
    desk = Desk(tmp_path)
    desk.take(linear(20))
    pad = {"type": "mode", "mode": "x" * 8_000}
    anew: list[Json] = [pad, *linear(cut)]
    desk.take(anew)
    check_sound(desk)
    for size in (cut + 1, 20, 21, 24):
        report = desk.load(desk.write([*anew, *linear(size - cut, cut)]))
        assert (report.warnings, report.problems) == ([], [])
        check_sound(desk)
    assert desk.path() == [f"n{n}" for n in range(24)]
    usage = desk.show()["usage"]
    assert (usage["attempts"], usage["output"]) == (12, 12)


# ---- several at once ----------------------------------------------------------------------------


def importing(desk: Desk, host: str) -> Any:
    ids = iter(range(1_000_000))
    return import_files(
        desk.log,
        desk.format,
        [desk.folder],
        ambient=Ambient(lambda: 0, lambda: f"{host}-{next(ids)}"),
        host=host,
        masker=None,
    )


@pytest.mark.parametrize("patience", [0.0, 1.0])
@pytest.mark.parametrize("frame", [1, 3, 50])
def test_several_imports_of_the_same_files_at_once_come_out_as_one(
    patience: float, frame: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where each takes the session from the other whenever it can."""
    monkeypatch.setattr("turnlog.ingest.packing.FRAME_EVENTS", frame)
    monkeypatch.setattr("turnlog.ingest.writing.PATIENCE_S", patience)
    desk, expected = Desk(tmp_path), Desk(tmp_path)
    expected.masker = None
    files = {f"{n}.jsonl": [line | {"sessionId": f"s{n}"} for line in mixed()] for n in range(4)}
    for name, lines in files.items():
        desk.write(encode(lines), name)

    async def three() -> list[Report]:
        return await asyncio.gather(*(importing(desk, host) for host in "abc"))

    reports = asyncio.run(three())
    if patience:
        assert [report.problems for report in reports] == [[], [], []]
    for finding in (finding for report in reports for finding in report.problems):
        assert "import the file again" in finding.what
    assert asyncio.run(importing(desk, "d")).ok
    expected.load()
    check_sound(desk)
    assert sorted(sessions_of(desk)) == sorted(sessions_of(expected))
    for session in sessions_of(expected):
        assert figures(desk, session) == figures(expected, session)
        assert desk.path(session) == expected.path(session)
        assert desk.show(session)["branches"] == expected.show(session)["branches"]


def test_several_processes_that_import_the_same_files_leave_one_tree(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for n in range(4):
        lines = [line | {"sessionId": f"s{n}"} for line in linear(300)]
        folder.mkdir(exist_ok=True)
        (folder / f"{n}.jsonl").write_bytes(encode(lines))
    url = f"sqlite:{tmp_path / 'log.db'}"
    program = "import sys; from turnlog.cli.app import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "import", "claude-code", str(folder)]
    processes = [
        subprocess.Popen([*command, "--log", url], stderr=subprocess.PIPE) for _ in range(3)
    ]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    with turnlog.log.open(url, clock=system_clock, create=False) as log:
        for n in range(4):
            head = log.tables.get(("sessions", f"s{n}"))
            assert (head.counts["entries"], head.depth, head.released) == (300, 300, True)
            assert (head.counts["jumps"], head.counts["duplicates"], head.damage) == (0, 0, ())


def test_an_import_that_never_gets_its_turn_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)

    async def lose(*_: Any, **__: Any) -> None:
        raise OwnershipError("another claim won")

    monkeypatch.setattr("turnlog.ingest.writing.claim", lose)
    report = desk.load(desk.write(linear(4)))
    assert (report.left, len(report.problems)) == ([SESSION], 1)
    assert report.problems[0].what.endswith("another claim won; import the file again")
