"""From signals to exit statuses, in this process: the work is any, the signals are real."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.unit.cli.calls import isolated
from turnlog.cli.options import Common
from turnlog.cli.process.options import ProcessOptions
from turnlog.cli.process.process import Process
from turnlog.cli.process.runner import Work, run
from turnlog.cli.process.stop import Stopped
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import LogUnavailable, UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    isolated(monkeypatch, tmp_path)
    for name in ("ADMIN", "LOG_FORMAT", "STOP_WITHIN"):
        monkeypatch.delenv(f"TURNLOG_{name}", raising=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner may ignore it
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


class Ended(NamedTuple):
    status: int
    lines: list[dict[str, Any]]

    @property
    def errors(self) -> list[str]:
        return [line["message"] for line in self.lines if line["level"] == "error"]


def ended(work: Work, capsys: pytest.CaptureFixture[str], **options: Any) -> Ended:
    terminal = Terminal(Common())
    run(terminal, ProcessOptions(**options), work)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return Ended(terminal.status, lines)


async def until_stop(process: Process) -> None:
    assert await process.stop.wait(30)


def kicked(number: int, then: Any = until_stop) -> Work:
    async def work(process: Process) -> None:
        os.kill(os.getpid(), number)
        await then(process)

    return work


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_an_end_that_was_asked_for(
    number: int, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done = ended(kicked(number), capsys)
    assert done.status == status
    assert [line["message"] for line in done.lines][-1] == "stopped"
    assert done.errors == []


def test_what_the_work_is_at_is_finished(capsys: pytest.CaptureFixture[str]) -> None:
    finished = []

    async def finishing(process: Process) -> None:
        await until_stop(process)
        await asyncio.sleep(0.1)
        finished.append(True)

    assert ended(kicked(signal.SIGTERM, finishing), capsys).status == 0
    assert finished == [True]


def test_a_second_sigterm_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    async def again(process: Process) -> None:
        await until_stop(process)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)

    assert ended(kicked(signal.SIGTERM, again), capsys).status == 0


def test_work_that_is_done_ends_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(process: Process) -> None:
        process.terminal.status = 1  # damage was found, say

    assert ended(work, capsys) == Ended(1, [])


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (LogUnavailable("no log"), 1, "no log"),
        (UsageError("no such thing"), 2, "no such thing"),
        (ZeroDivisionError("x"), 1, "unexpected ZeroDivisionError: x; this is a bug"),
        (SystemExit(0), 1, "unexpected RuntimeError: SystemExit: 0"),
        (BrokenPipeError(), 1, "BrokenPipeError"),
        (asyncio.CancelledError(), 1, "unexpected RuntimeError: CancelledError"),
    ],
)
def test_work_that_fails(
    error: BaseException, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(_process: Process) -> None:
        raise error

    done = ended(work, capsys)
    assert done.status == status
    assert len(done.errors) == 1
    assert said in done.errors[0]


def test_failing_while_stopping_is_failing(capsys: pytest.CaptureFixture[str]) -> None:
    async def failing(process: Process) -> None:
        await until_stop(process)
        raise LogUnavailable("not flushed")

    for number in (signal.SIGTERM, signal.SIGINT):
        done = ended(kicked(number, failing), capsys)
        assert (done.status, done.errors) == (1, ["not flushed"])


def test_breaking_off_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    async def breaking(process: Process) -> None:
        await until_stop(process)
        raise Stopped

    done = ended(kicked(signal.SIGTERM, breaking), capsys)
    assert (done.status, done.errors) == (0, [])


def test_debugging_shows_errors_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNLOG_DEBUG", "1")

    async def work(_process: Process) -> None:
        raise LogUnavailable("no log")

    (line,) = ended(work, capsys).lines
    assert "Traceback" in line["trace"]


def test_nothing_begins_where_the_admin_port_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    begun = []

    async def work(_process: Process) -> None:
        begun.append(True)

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = ended(work, capsys, admin=f"127.0.0.1:{taken.getsockname()[1]}")
    assert (done.status, begun) == (1, [])
    assert "in use" in done.errors[0]
    assert ended(work, capsys, admin="nowhere").status == 2
    assert begun == []


def test_settings_stand_where_no_option_was_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ProcessOptions().in_force() == (None, None, 25.0)
    monkeypatch.setenv("TURNLOG_ADMIN", "0.0.0.0:9100")
    monkeypatch.setenv("TURNLOG_LOG_FORMAT", "json")
    monkeypatch.setenv("TURNLOG_STOP_WITHIN", "7.5")
    assert ProcessOptions().in_force() == ("0.0.0.0:9100", "json", 7.5)
    given = ProcessOptions("9100", "text", 1.0)
    assert given.in_force() == given
    monkeypatch.setenv("TURNLOG_STOP_WITHIN", "0")
    with pytest.raises(UsageError, match="stop_within"):
        ProcessOptions().in_force()
    monkeypatch.delenv("TURNLOG_STOP_WITHIN")
    monkeypatch.setenv("TURNLOG_LOG_FORMAT", "xml")
    with pytest.raises(UsageError, match="log_format"):
        ProcessOptions().in_force()
