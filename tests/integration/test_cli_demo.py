"""The demo: the whole way on one page, checked against what was written."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.calls import Caller, isolated
from turnlog.cli import demo as demo_module
from turnlog.cli.terminal import columns
from turnlog.ingest.samples import Sample, write_samples


@pytest.fixture
def turnlog(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    isolated(monkeypatch, tmp_path)
    monkeypatch.setattr(demo_module, "LARGE_MB", 1)
    (tmp_path / "home").mkdir()
    return Caller(tmp_path, capsysbinary)


def test_the_page(turnlog: Caller) -> None:
    done = turnlog("demo", "--keep", "d")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) <= 75
    for section in (
        "1  What came in",
        "2  One session",
        "3  What the model sees",
        "4  What was left open",
        "5  Cost per session",
        "6  Are the figures right?",
        "Try next",
    ):
        assert any(line.startswith(section) for line in lines)
    assert "the last line is cut off" in done.out
    assert "aws_access_key ×1" in done.out
    assert "left behind" in done.out
    page = done.out.partition("Try next")[0].splitlines()[1:]
    assert all(columns(line) <= 80 for line in page)
    assert "   yes: " in done.out


def test_the_commands_to_try_next_work(turnlog: Caller) -> None:
    done = turnlog("demo", "--keep", "d", "--json")
    *commands, last = done.json["next"]
    assert last == "turnlog import claude-code ~/.claude/projects"
    for command in commands:
        _, *arguments = command.split()
        assert turnlog(*arguments).status == 0, command


def test_the_data(turnlog: Caller) -> None:
    done = turnlog("demo", "--keep", "d", "--json")
    assert done.status == 0
    data = done.json
    assert data["ok"] is True
    assert len(data["checks"]) > 30
    assert all(check["ok"] for check in data["checks"])
    assert [report["format"] for report in data["imports"]] == ["claude-code", "pi"]
    assert data["rate"]["bytes"] > 1_000_000
    assert len(data["session"]["branches"]) > 1
    assert data["older"]["at"] != data["session"]["leaf"]
    assert {report["verdict"] for report in data["recovery"]} == {"ready"}
    assert len(data["costs"]) == 7
    assert data["masked"] == {"aws_access_key": 1}


def test_a_figure_that_is_not_right_is_named_and_fails_the_command(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(folder: Path) -> list[Sample]:
        samples = write_samples(folder)
        usage = {**samples[0].expects["usage"], "output": 1}
        changed = samples[0]._replace(expects={**samples[0].expects, "usage": usage})
        missing = samples[1]._replace(session="nowhere")
        return [changed, missing, *samples[2:]]

    monkeypatch.setattr(demo_module, "write_samples", wrong)
    done = turnlog("demo", "--keep", "d")
    assert done.status == 1
    assert "no: " in done.out
    assert "usage" in done.out
    assert "nowhere: in the log" in done.out
    data = turnlog("demo", "--keep", "e", "--json")
    assert data.status == 1
    assert data.json["ok"] is False


def own(turnlog: Caller) -> None:
    """Sessions of the person's own, in their home."""
    for sample in write_samples(turnlog.folder / "mine"):
        if sample.format == "pi":
            target = turnlog.folder / "home/.pi/agent/sessions" / sample.path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            text = sample.path.read_text().replace(sample.session, f"own-{sample.session}")
            target.write_text(text)


def formats(data: Any) -> list[str]:
    return [report["format"] for report in data["imports"]]


def test_own_sessions_come_in_where_the_person_says_yes(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(turnlog)
    assert formats(turnlog("demo", "--keep", "a", "--json").json) == ["claude-code", "pi"]
    done = turnlog("demo", "--keep", "b", "--json", "--mine", "--yes")
    assert (done.status, formats(done.json)) == (0, ["claude-code", "pi", "pi"])
    assert done.err == ""
    for answer, count in (("y\n", 3), ("YES\n", 3), ("n\n", 2), ("\n", 2), ("", 2)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        done = turnlog(
            "demo", "--keep", f"c{answer.strip()}{count}{len(answer)}", "--json", "--mine"
        )
        assert done.status == 0
        assert len(formats(done.json)) == count
        assert "Import your own 2 files" in done.err


def test_without_own_sessions_nobody_is_asked(turnlog: Caller) -> None:
    done = turnlog("demo", "--keep", "a", "--mine", "--json")
    assert (done.status, done.err) == (0, "")


def test_a_folder_that_is_not_empty_is_left_alone(turnlog: Caller) -> None:
    Path("full").mkdir()
    Path("full/mine").write_text("x")
    for name in ("full", "full/mine"):
        done = turnlog("demo", "--keep", name)
        assert (done.status, done.out) == (2, "")
        assert "is not an empty folder" in done.err
    assert [path.name for path in Path("full").iterdir()] == ["mine"]


def test_a_temporary_folder_stays_for_the_commands_to_try(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(turnlog.folder))
    done = turnlog("demo", "--json")
    assert Path(done.json["folder"]).parent == turnlog.folder
    assert len(turnlog("sessions", "--json", "--log", done.json["log"]).json) == 7


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    roots = ":".join(str(root / name) for name in ("streams", "producers", "consumers"))
    done = subprocess.run(
        [sys.executable, "-c", "from turnlog.cli.app import main; main()", "demo", "--keep", "d"],
        env={"PYTHONPATH": roots, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
