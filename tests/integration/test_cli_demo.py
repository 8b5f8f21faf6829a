"""The demo: the whole way on one page, checked against what was written, and hosts that crash."""

import io
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.every_log import Places, places
from tests.integration.kafka_topics import new_name
from tests.unit.cli.calls import Caller, isolated
from turnlog.cli.demo import crash, processes
from turnlog.cli.demo import run as demo_module
from turnlog.cli.demo.acts import Acts, play
from turnlog.cli.terminal import columns
from turnlog.ingest.samples import Sample, write_samples
from turnlog.log import open as open_log
from turnlog.log import topics
from turnlog.owner.ambient import system_clock

__all__ = ["places"]

# One worker runs the hosts for all of these tests.
pytestmark = pytest.mark.xdist_group("demo")
ROOT = Path(__file__).parents[2]
ROOTS = ":".join(str(ROOT / name) for name in ("streams", "producers", "consumers"))
PROCESSES = Path("/proc")
MAIN = "from turnlog.cli.app import main; main()"


@pytest.fixture(scope="module")
def acts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acts]:
    """What came of the hosts, once; their log stays open."""
    folder = tmp_path_factory.mktemp("acts")
    with open_log(f"sqlite:{folder}/log.db", clock=system_clock) as log:
        yield play(log, folder / "host", lambda *_: None)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A folder, and the whole demo as a process of its own that has run in it."""
    folder = tmp_path_factory.mktemp("ran")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "demo", "--keep", "d", "--json"],
        env={"PYTHONPATH": ROOTS, "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return folder, done


@pytest.fixture
def real(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    """Commands, with hosts of their own."""
    isolated(monkeypatch, tmp_path)
    monkeypatch.setattr(demo_module, "LARGE_MB", 1)
    (tmp_path / "home").mkdir()
    return Caller(tmp_path, capsysbinary)


@pytest.fixture
def turnlog(real: Caller, acts: Acts, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """Commands, where what came of the hosts is there already."""
    monkeypatch.setattr(demo_module, "play", lambda *_: acts)
    return real


def hosts_in(folder: Path) -> list[str]:
    """The processes that work for a demo in a folder."""
    found = []
    for path in PROCESSES.glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if f"{folder}/" in words:
            found.append(words)
    return found


def test_the_page(turnlog: Caller) -> None:
    done = turnlog("demo", "--keep", "d")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    for section in (
        "1  What came in",
        "2  One session",
        "3  What the model sees",
        "4  What was left open",
        "5  A host is killed",
        "6  A host freezes",
        "7  Cost per session",
        "8  Are the figures right?",
        "Try next",
    ):
        assert any(line.startswith(section) for line in lines)
    assert "the last line is cut off" in done.out
    assert "aws_access_key ×1" in done.out
    assert "left behind" in done.out
    for line in (
        "   After SIGKILL: indeterminate_tool: 4 dispatched call(s) without an answer",
        "     read_gauge   ok       run again: it changes nothing",
        "     book_berth   ok       run again with the same key: it takes effect once",
        "     order_fuel   ok       asked the receiver about the key: it had happened",
        "     send_notice  unknown  not run again: nobody knows, and the model is told so",
        "     The receiver got 0 requests: the call never started; evidence: not_started",
        "     The receiver got 1 request: the answer came too late; evidence: ok",
    ):
        assert line in lines
    assert lines.count("     SIGCONT: the woken host is told: fenced") == 2
    page = done.out.partition("Try next")[0].splitlines()[1:]
    assert all(columns(line) <= 80 for line in page)
    assert len(page) <= 110
    assert "   yes: " in done.out


def test_the_commands_to_try_next_work(ran: Any, real: Caller) -> None:
    folder, done = ran
    *commands, last = json.loads(done.stdout)["next"]
    assert last == "turnlog import claude-code ~/.claude/projects"
    said = [command.split()[1] for command in commands]
    assert {"pending", "settle", "rerun"} < set(said)
    for command in commands:
        _, *arguments = shlex.split(command)
        assert real(*arguments).status == 0, command
    rows = real("pending", "--json", "--log", f"sqlite:{folder}/d/log.db").json
    assert [(row["session"], row["rerun_allowed"]) for row in rows if row["dispatch"]] == [
        ("storm-1", True),
        ("storm-2", False),
    ]


def test_the_data(ran: Any) -> None:
    _, done = ran
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert data["ok"] is True
    assert len(data["checks"]) > 60
    assert all(check["ok"] for check in data["checks"])
    assert [report["format"] for report in data["imports"]] == ["claude-code", "pi"]
    assert data["rate"]["bytes"] > 1_000_000
    assert len(data["session"]["branches"]) > 1
    assert data["older"]["at"] != data["session"]["leaf"]
    assert {report["verdict"] for report in data["recovery"]} == {"ready"}
    assert len(data["costs"]) == 11
    assert data["masked"] == {"aws_access_key": 1}


@pytest.mark.parametrize("kind", ["zstd", "kafka"])
def test_on_any_log(places: Places, real: Caller, kind: str) -> None:
    """Every figure is the same, whatever the log is."""
    url = places.url(kind)
    done = real("demo", "--keep", "d", "--json", "--log", url)
    assert (done.status, done.err) == (0, "")
    assert done.json["log"] == url
    assert len(done.json["checks"]) > 60
    assert all(check["ok"] for check in done.json["checks"])
    assert not list(real.folder.glob("d/log.*"))
    for command in done.json["next"][:-1]:
        assert real(*shlex.split(command)[1:]).status == 0, command
    assert hosts_in(real.folder) == []
    again = real("demo", "--keep", "e", "--log", url)
    assert (again.status, again.out) == (2, "")
    assert f"{url} is not empty; name a new log" in again.err


def test_a_topic_is_made(kafka_servers: str, turnlog: Caller) -> None:
    url = f"kafka://{kafka_servers}/{new_name()}"
    assert turnlog("demo", "--keep", "d", "--log", url).status == 0
    assert len(topics.look(url).topic.partitions) == 3


def test_a_log_that_hosts_cannot_share_is_refused(real: Caller) -> None:
    done = real("demo", "--keep", "d", "--log", "memory:")
    assert (done.status, done.out) == (2, "")
    assert "name another log" in done.err
    assert not (real.folder / "d").exists()


def test_a_killed_host(ran: Any) -> None:
    data = json.loads(ran[1].stdout)["crash"]
    assert (data["signal"], data["ended"]) == (signal.SIGKILL, "completed")
    assert data["recovery"]["verdict"] == "indeterminate_tool"
    assert len(data["recovery"]["dispatches"]) == 4
    assert len(data["helpers"]) == 1
    told = [
        (call["effect"], call["plan"], call["status"], call["tries"], [*call["counted"].values()])
        for call in data["calls"]
    ]
    assert told == [
        ("read_only", "run_again", "ok", 2, [2, 0, 0]),
        ("idempotent", "run_again", "ok", 2, [2, 1, 0]),
        ("reconcilable", "probe", "ok", 1, [1, 1, 1]),
        ("opaque", "answer", "unknown", 1, [1, 1, 0]),
    ]
    assert [call["answer"] for call in data["calls"]][1:3] == [
        "berth 4",
        "900 l, at the quay at eleven",
    ]


def test_frozen_hosts(ran: Any) -> None:
    data = json.loads(ran[1].stdout)["frozen"]
    assert list(data) == ["t1.sent", "effect.done"]
    for place, evidence, requests in (("t1.sent", "not_started", 0), ("effect.done", "ok", 1)):
        found = data[place]
        assert (found["other"]["ended"], found["woken"]["ended"]) == ("completed", "fenced")
        assert "of another claim is in force" in found["woken"]["why"]
        assert (found["status"], found["effect"]) == ("unknown", "opaque")
        assert [piece["status"] for piece in found["evidence"]] == [evidence]
        assert (found["counted"]["requests"], found["counted"]["effects"]) == (requests, requests)


def test_no_host_is_left(ran: Any) -> None:
    assert hosts_in(ran[0]) == []


def test_a_crash_that_ends_otherwise_is_named_and_fails_the_command(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = crash.EXPECTED["send_notice"]._replace(tries=2)
    monkeypatch.setitem(crash.EXPECTED, "send_notice", wrong)
    done = turnlog("demo", "--keep", "d")
    assert done.status == 1
    assert "no: crash: send_notice: {'effect': 'opaque'" in done.out
    data = turnlog("demo", "--keep", "e", "--json")
    assert (data.status, data.json["ok"]) == (1, False)


def broken(condition: str, what: str) -> list[str]:
    """The command of hosts that do something else where their task fulfils a condition."""
    start = "from turnlog.cli.demo.host import main; main()"
    code = f"import json, sys, time; task = json.loads(sys.argv[1]); {what} if {condition} else 0"
    return ["-P", "-c", f"{code}; {start}"]


@pytest.mark.parametrize(
    ("condition", "what", "said"),
    [
        ("True", "sys.exit('no memory')", "the first host ended too early, with status 1; it said"),
        ("True", "time.sleep(60)", "the first host did not get there in 1 s; it said: nothing"),
        ("task['act'] == 'storm'", "sys.exit('no memory')", "status 1; it said: no memory"),
        ("task['session'] == 'storm-1' and task['act'] == 'go on'", "sys.exit('no memory')",
         "the host that takes over failed with status 1; it said: no memory"),
    ],
)  # fmt: skip
def test_a_broken_host_ends_the_demo_and_none_is_left(
    real: Caller, monkeypatch: pytest.MonkeyPatch, condition: str, what: str, said: str
) -> None:
    monkeypatch.setattr(processes, "COMMAND", broken(condition, what))
    if "sleep" in what:
        monkeypatch.setattr(processes, "LIMIT_S", 1)
    done = real("demo", "--keep", "d")
    assert (done.status, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert hosts_in(real.folder) == []


@pytest.mark.skipif(not PROCESSES.exists(), reason="processes cannot be listed here")
def test_a_demo_that_is_terminated_leaves_no_host(tmp_path: Path) -> None:
    code = (
        "from turnlog.cli.demo import processes; processes.Host.wake = lambda self: print(1, flush"
        f"=True) or __import__('time').sleep(60); {MAIN}"
    )
    demo = subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--keep", "d"],
        env={"PYTHONPATH": ROOTS, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    assert demo.stdout.readline() == "1\n"
    assert len(hosts_in(tmp_path)) == 1  # frozen
    demo.terminate()
    demo.communicate(timeout=30)
    assert demo.returncode == 128 + signal.SIGTERM
    assert hosts_in(tmp_path) == []


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
