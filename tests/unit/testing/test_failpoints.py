"""Failpoints of real processes: each action happens, is announced, and never by accident."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from turnlog.core.errors import UsageError
from turnlog.owner.ambient import go_on
from turnlog.testing.failpoints import EXIT_CODE, Failpoint, from_environment, parse

PROGRAM = """
from turnlog.testing.failpoints import from_environment
reach = from_environment()
for _ in range(3):
    print("reached", flush=True)
    reach("t1.sent")
print("done", flush=True)
"""


def start(failpoint: str, marker: Path | None = None) -> subprocess.Popen[str]:
    env = {**os.environ, "TURNLOG_FAILPOINT": failpoint}
    if marker is not None:
        env["TURNLOG_FAILPOINT_MARKER"] = str(marker)
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def test_without_the_variable_nothing_happens() -> None:
    assert from_environment({}) is go_on
    assert from_environment({"TURNLOG_FAILPOINT": " , "}) is go_on


def test_several_can_be_set() -> None:
    assert parse("t1.sent:1:kill, t2.saved:12:exit") == [
        Failpoint("t1.sent", 1, "kill"),
        Failpoint("t2.saved", 12, "exit"),
    ]


@pytest.mark.parametrize(
    "text",
    ["t1.sent", "t1.sent:1", "t1.sent:0:kill", "t1.sent:x:kill", "t1:1:kill", "t1.sent:²:kill"],
)
def test_what_is_no_failpoint_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="TURNLOG_FAILPOINT"):
        from_environment({"TURNLOG_FAILPOINT": text})


def test_an_unknown_action_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="kill, stop, exit"):
        parse("t1.sent:1:explode")


@pytest.mark.parametrize(("action", "code"), [("kill", -signal.SIGKILL), ("exit", EXIT_CODE)])
def test_a_process_dies_the_nth_time(action: str, code: int, tmp_path: Path) -> None:
    with start(f"t1.sent:2:{action}", tmp_path / "marker") as process:
        assert process.stdout is not None
        assert process.stdout.read() == "reached\nreached\n"
    assert process.returncode == code
    assert (tmp_path / "marker").read_text() == f"t1.sent:2:{action} {process.pid}\n"


def test_a_process_that_dies_unannounced() -> None:
    with start("t1.sent:1:exit") as process:
        assert process.wait(20) == EXIT_CODE


def test_a_frozen_process_goes_on_when_it_is_woken(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with start("t1.sent:1:stop", pipe) as process:
        assert pipe.read_text() == f"t1.sent:1:stop {process.pid}\n"
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        assert process.stdout.read().endswith("done\n")
    assert process.returncode == 0


def test_the_actions_are_those_of_the_process_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    did: list[object] = []
    monkeypatch.setattr(os, "kill", lambda pid, sent: did.append((pid == os.getpid(), sent)))
    monkeypatch.setattr(os, "_exit", did.append)
    value = "t1.sent:1:kill,t1.sent:2:stop,t1.sent:3:exit"
    marker = tmp_path / "marker"
    environ = {"TURNLOG_FAILPOINT": value, "TURNLOG_FAILPOINT_MARKER": str(marker)}
    reach = from_environment(environ)
    for place in ("t2.saved", "t1.sent", "t1.sent", "t1.sent", "t1.sent"):
        reach(place)
    assert did == [(True, signal.SIGKILL), (True, signal.SIGSTOP), EXIT_CODE]
    assert marker.read_text().split()[::2] == value.split(",")
