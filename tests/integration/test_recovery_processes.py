"""Recovery beside real processes: hosts that live, die or freeze, recoveries that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = [ROOT, *(ROOT / name for name in ("streams", "producers", "consumers"))]
DEAD_AFTER_S = 1.0

HOST = """
import asyncio, sys
import turnlog.log
from tests.story import accepted, assistant, attempted, created, t1, user
from turnlog.owner.ambient import Ambient
from turnlog.owner.heartbeat import Pulse
from turnlog.owner.owner import claim

async def main():
    ambient = Ambient()
    async with turnlog.log.open(sys.argv[1], clock=ambient.clock) as log:
        async with Pulse(log, "host", ambient=ambient, interval_s=0.1):
            for session in sys.argv[2:]:
                owner = await claim(
                    log, session, tables=log.tables, host="host", reason="open", ambient=ambient
                )
                await owner.write([created(), user("u", None), accepted("op", "u")])
                await owner.write([attempted("at", "op", "a")])
                await owner.write([assistant("a", "u", "c1", attempt="at")])
                await owner.write([t1("d", "op", "a", "r")])
            print("started", flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""

RECOVERY = """
import asyncio, os, signal, sys
import turnlog.log
from turnlog.owner.ambient import Ambient
from turnlog.recovery.executor import recover_all
from turnlog.recovery.policies import Policy

url, dead_after, kill_at = sys.argv[1], float(sys.argv[2]), sys.argv[3]

def reach(place):
    if place == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    ambient = Ambient(reach=reach)
    async with turnlog.log.open(url, clock=ambient.clock) as log:
        found = await recover_all(log, ambient=ambient, policy=Policy(dead_after_s=dead_after))
    for done in found:
        print(done.session, done.did)

asyncio.run(main())
"""


class Machine:
    """Processes over one log."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:{folder}/log.db"
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, ROOTS))}
        self.hosts: list[subprocess.Popen[str]] = []

    def host(self, *sessions: str) -> subprocess.Popen[str]:
        """A host that has started a call in each session, and goes on."""
        host = subprocess.Popen(
            [sys.executable, "-c", HOST, self.url, *sessions],
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hosts.append(host)
        assert host.stdout is not None
        assert host.stdout.readline() == "started\n"
        return host

    def recover(self, kill_at: str = "", dead_after_s: float = DEAD_AFTER_S) -> dict[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", RECOVERY, self.url, str(dead_after_s), kill_at],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == (-signal.SIGKILL if kill_at else 0), done.stderr
        return dict(line.split() for line in done.stdout.splitlines())

    def command(self, *arguments: str) -> Any:
        """What a command of turnlog prints as JSON."""
        program = "from turnlog.cli.app import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments, "--json", "--log", self.url],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def end(self) -> None:
        for host in self.hosts:
            host.kill()
            host.communicate()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.end()


def test_a_host_lives_then_is_killed(machine: Machine) -> None:
    host = machine.host("one", "two")
    assert machine.recover() == {"one": "left", "two": "left"}
    assert [row["is_held"] for row in machine.command("pending")] == [True, True]
    host.kill()
    host.wait()
    assert machine.command("recover")[0]["did"] == "left"  # its last beat is seconds old
    time.sleep(DEAD_AFTER_S + 0.2)
    assert machine.recover() == {"one": "closed", "two": "closed"}
    assert machine.recover() == {}
    assert {row["state"] for row in machine.command("pending")} == {"unknown"}
    machine.command("settle", "d", "--session", "one", "--as", "ok", "--note", "seen")
    machine.command("rerun", "d", "--session", "two")
    rows = machine.command("pending")
    assert [(row["session"], row["rerun_allowed"]) for row in rows] == [("two", True)]
    assert machine.command("verify")["differences"] == []


def test_a_host_of_the_same_name_does_not_keep_the_dead_ones_sessions(machine: Machine) -> None:
    machine.host("one").kill()
    machine.host("two")
    time.sleep(DEAD_AFTER_S + 0.2)
    assert machine.recover() == {"one": "closed", "two": "left"}


def test_a_host_that_is_frozen_loses_its_session_and_learns_it(machine: Machine) -> None:
    host = machine.host("one")
    host.send_signal(signal.SIGSTOP)
    time.sleep(DEAD_AFTER_S + 0.2)
    assert machine.recover() == {"one": "closed"}
    host.send_signal(signal.SIGCONT)
    assert machine.recover() == {}
    assert machine.command("show", "one")["released"] is True


@pytest.mark.parametrize("place", ["claim.sent", "claim.saved", "recovery.ready", "frame.sent"])
def test_a_recovery_that_is_killed_is_made_up_for(machine: Machine, place: str) -> None:
    machine.host("one").kill()
    time.sleep(DEAD_AFTER_S + 0.2)
    machine.recover(kill_at=place)
    expected = {} if place == "frame.sent" else {"one": "closed"}
    assert machine.recover() == expected
    [row] = machine.command("pending")
    assert (row["state"], row["verdict"]) == ("unknown", "terminal")
    assert machine.command("verify")["differences"] == []


def test_two_recoveries_at_once_close_each_session_once(machine: Machine) -> None:
    names = [f"s{number}" for number in range(40)]
    machine.host(*names).kill()
    time.sleep(DEAD_AFTER_S + 0.2)
    command = [sys.executable, "-c", RECOVERY, machine.url, str(DEAD_AFTER_S), ""]
    both = [
        subprocess.Popen(command, env=machine.env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [line.split() for one in both for line in one.communicate()[0].splitlines()]
    assert [one.returncode for one in both] == [0, 0]
    closed = [session for session, did in told if did == "closed"]
    assert sorted(closed) == sorted(names)
    assert {row["state"] for row in machine.command("pending")} == {"unknown"}
    assert machine.command("fsck", "--damage") == []
