"""The process model in processes of their own: ends in time whatever the work is at."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.integration.running import TURNLOG, asked, running

SCRIPT = """
import asyncio, os, signal, sys, threading, time, warnings
signal.signal(signal.SIGINT, {interrupt})
from turnlog.cli.options import Common
from turnlog.cli.process.options import ProcessOptions
from turnlog.cli.process.runner import run
from turnlog.cli.terminal import Terminal

async def work(process):
    print("works", flush=True)
{work}

terminal = Terminal(Common())
run(terminal, ProcessOptions(sys.argv[1] or None, None, float(sys.argv[2])), work)
sys.exit(terminal.status)
"""
DEAF = "await asyncio.Event().wait()"
BLOCKED = "time.sleep(600)"
BUSY = "while True: pass"
CHILD = "process.last_calls.append(lambda: print('called', flush=True)); await asyncio.sleep(600)"
SLOW_END = "await process.stop.wait(); await asyncio.to_thread(sys.stdin.read)"


def script(work: str, interrupt: str = "signal.default_int_handler") -> list[str]:
    lines = "\n".join(f"    {line}" for line in work.splitlines())
    return [sys.executable, "-P", "-c", SCRIPT.format(work=lines, interrupt=interrupt)]


@pytest.mark.parametrize("work", [DEAF, BLOCKED, BUSY])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_does_not_end_is_ended_hard(tmp_path: Path, work: str, number: int) -> None:
    with running(tmp_path, "", 0.3, command=script(work)) as process:
        assert process.line() == "works"
        assert process.end(number) == 3
        assert process.errors == ["not ended within 0.3 s: ended hard"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_counts_whatever_thread_the_kernel_gives_it_to(
    tmp_path: Path, number: int, status: int
) -> None:
    """The main thread is the first choice, and not the only one."""
    work = f"signal.pthread_kill(threading.get_ident(), {number})\nawait process.stop.wait()"
    with running(tmp_path, "", 600, command=script(work)) as process:
        assert process.line() == "works"
        assert process.ended() == status
        assert process.errors == []


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_while_stopping_ends_at_once(tmp_path: Path, first: int) -> None:
    with running(tmp_path, "", 600, command=script(BLOCKED)) as process:
        assert process.line() == "works"
        process.send(first)
        process.until_said("stopping, within 600 s")
        assert process.end(signal.SIGINT) == 130
        assert process.errors == ["interrupted again: ended at once"]


def test_what_would_outlive_a_hard_end_is_called(tmp_path: Path) -> None:
    with running(tmp_path, "", 0.1, command=script(CHILD)) as process:
        assert process.line() == "works"
        assert process.end() == 3
        assert process.rest() == ["called"]


def test_an_ignored_interrupt_stays_so(tmp_path: Path) -> None:
    work = "await process.stop.wait(); print('stopped', flush=True)"
    with running(tmp_path, "", 30, command=script(work, "signal.SIG_IGN")) as process:
        assert process.line() == "works"
        process.send(signal.SIGINT)
        assert process.end(signal.SIGTERM) == 0
        assert [line["message"] for line in process.said] == [
            "SIGTERM: stopping, within 30 s",
            "stopped",
        ]


def test_the_admin_port_stays_up_during_the_stop(tmp_path: Path) -> None:
    with running(tmp_path, "127.0.0.1:0", 600, command=script(SLOW_END)) as process:
        place = process.admin()
        assert process.line() == "works"
        process.send(signal.SIGTERM)
        process.until_said("stopping")
        status, said = asked(place, "/readyz")
        assert status == 503
        assert "[-]running: stopping" in said
        assert asked(place, "/livez") == (200, "ok\n")
        assert process.process.stdin is not None
        process.process.stdin.close()
        assert process.ended() == 0


def test_warnings_threads_and_what_nobody_awaits_are_json(tmp_path: Path) -> None:
    work = (
        "warnings.simplefilter('always')\n"
        "warnings.warn('old ways', DeprecationWarning)\n"
        "thread = threading.Thread(target=lambda: 1 / 0, name='odd')\n"
        "thread.start(); thread.join()\n"
        "async def failing(): raise ValueError('nobody looks')\n"
        "task = asyncio.create_task(failing())\n"
        "await asyncio.sleep(0.01)\n"
        "del task\n"
        "import gc; gc.collect()\n"
    )
    with running(tmp_path, "", 30, command=script(work)) as process:
        assert process.ended() == 0
    levels = {line["logger"]: (line["level"], line["message"]) for line in process.said}
    assert levels["py.warnings"][0] == "warning"
    assert "old ways" in levels["py.warnings"][1]
    assert levels["turnlog.cli.process.logs"] == (
        "critical",
        "uncaught in odd: division by zero",
    )
    assert "never retrieved" in levels["asyncio"][1]


def test_health_asks_it(tmp_path: Path) -> None:
    with running(tmp_path, "127.0.0.1:0", 600, command=script(SLOW_END)) as process:
        place = process.admin()
        assert process.line() == "works"
        with running(tmp_path, "health", place) as asking:
            assert asking.process.wait(60) == 1
            assert asking.rest() == ["[+]loop ok", "[-]running: starting", "readyz check failed"]
        with running(tmp_path, "health", "--live", TURNLOG_ADMIN=place) as asking:
            assert asking.process.wait(60) == 0
            assert asking.rest() == ["[+]loop ok", "livez check passed"]
        with running(
            tmp_path, "health", f"http://{place}/", "--json", http_proxy="http://127.0.0.1:1"
        ) as asking:
            assert asking.process.wait(60) == 1
            (row,) = asking.rows(1)
            assert row["url"] == f"http://{place}/readyz"
            assert row["good"] is False
            assert "readyz check failed" in row["said"]


def test_a_wrong_admin_address_is_a_wrong_call(tmp_path: Path) -> None:
    """A wrong place is a wrong call, before anything begins."""
    with running(
        tmp_path, "follow", "s", "--admin", "nowhere", "--log", "sqlite:no.db", command=TURNLOG
    ) as process:
        assert process.ended() == 2
        assert "write HOST:PORT" in process.errors[0]
