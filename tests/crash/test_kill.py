"""Processes killed while they append: what was acknowledged is there, whole, once, and folded."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.contract import read_all
from tests.crash.children import LOAD, frame_of, loaded
from turnlog.core.frames import Frame, decode
from turnlog.log import EmbeddedLog, Stored
from turnlog.log import open as open_log

LOGS = 5
"""The kills are shared out to so many files, so that none of them becomes long."""


class Server:
    """The fork server as a test sees it."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(
        self, *requests: dict[str, Any], acks: int | None = None, delay_s: float = 0.0
    ) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"requests": requests, "acks": acks, "delay_s": delay_s}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.process.communicate("")


def request(url: str, work: str = "append", **more: Any) -> dict[str, Any]:
    defaults = {"name": "s", "seed": 0, "sessions": 1, "frames": 1_000_000}
    return {"url": url, "work": work, **defaults, **more}


URLS = {
    "sqlite": "sqlite:{}.db",
    "file": "file:{}",
    "jsonl": "file:{}?format=jsonl",
}
KINDS = pytest.mark.parametrize("kind", URLS)
KILLS = {"sqlite": (100, 1_000), "file": (60, 1_000), "jsonl": (30, 300)}
"""Of each kind, in all: in `make test`, and in `make proof`."""


class Checked:
    """One log, read on from where it was last checked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.position = 0
        self.stored: dict[int, Stored] = {}
        self.loads: Counter[str] = Counter()

    def open(self) -> EmbeddedLog:
        lagging: list[tuple[int, int]] = []
        log = open_log(
            self.url,
            clock=lambda: 0,
            progress=lambda *reached: lagging.append(reached),
        )
        if self.url.startswith("sqlite:"):
            assert lagging == [], "frames and tables are written together, so they never lag"
        return log

    async def check(self, acks: list[list[Any]]) -> None:
        with self.open() as log:
            stored = await read_all(log, after=self.position)
            assert log.tables.position() == await log.end()
        seen = {item.position: item for item in stored}
        assert len(seen) == len(stored)
        for item in stored:
            assert isinstance(decode(item.record), Frame)
            if item.record.session.startswith("load-"):
                self.loads[item.record.session] += 1
        for ack in acks:
            self.check_ack(seen, ack)
        records = Counter(item.record for item in stored)
        assert records.total() == len(records), "nothing is there twice"
        assert set(self.loads.values()) <= {LOAD}, "a load is there wholly or not at all"
        self.position = max(seen, default=self.position)

    def check_ack(self, seen: dict[int, Stored], ack: list[Any]) -> None:
        if len(ack) == 2:
            name, positions = ack
            assert [seen[position].record for position in positions] == loaded(name)
            return
        session, epoch, seq, position = ack
        assert seen[position].record == frame_of(session, epoch, seq).record

    async def verify(self) -> None:
        with self.open() as log:
            assert list(log.verify()) == []
            stored = await read_all(log)
        if self.url.startswith("file:"):
            path = Path(self.url.removeprefix("file:").partition("?")[0])
            for name in ("tables.db", "lock"):
                (path / name).unlink()
            with self.open() as log:
                assert await read_all(log) == stored
                assert list(log.verify()) == []


def kill(server: Server, dice: random.Random, url: str, number: int) -> dict[str, Any]:
    """Some processes, killed somewhere: most times in the middle of an append."""
    work = dice.choice(["append"] * 6 + ["load"] * 2 + ["rebuild"])
    sessions = dice.choice([1, 1, 8])
    requests = [request(url, work, name=f"n{number}", seed=number, sessions=sessions)]
    if dice.random() < 0.25:
        requests.append(request(url, "append", name="second", sessions=2))
    if dice.random() < 0.25:
        requests[0]["name"] = "again"  # sessions that were killed before are taken over
    acks, delay_s = dice.randrange(1, 40), dice.random() * 0.003
    return server.run(*requests, acks=acks, delay_s=delay_s)


@pytest.mark.timeout(1_800)
@KINDS
def test_what_was_acknowledged_survives_the_kill(
    server: Server, tmp_path: Path, kind: str, proof: bool
) -> None:
    dice = random.Random(20_260_101)
    kills = KILLS[kind][proof]
    logs = [Checked(URLS[kind].format(tmp_path / f"{number}")) for number in range(LOGS)]
    acknowledged = 0
    for number in range(kills):
        log = logs[number % LOGS]
        answer = kill(server, dice, log.url, number)
        assert set(answer["ends"]) == {-signal.SIGKILL}, "each was at work when it was killed"
        asyncio.run(log.check(answer["acks"]))
        acknowledged += len(answer["acks"])
    assert acknowledged > kills
    for log in logs:
        asyncio.run(log.verify())


@KINDS
def test_processes_append_to_one_log_at_the_same_time(
    server: Server, tmp_path: Path, kind: str
) -> None:
    url = URLS[kind].format(tmp_path / "log")
    requests = [request(url, name=f"p{number}", sessions=2, frames=100) for number in range(3)]
    answer = server.run(*requests, request(url, "load", name="l", frames=30))
    assert answer["ends"] == [0, 0, 0, 0]
    assert len(answer["acks"]) == 3 * 2 * 100 + 30
    log = Checked(url)
    asyncio.run(log.check(answer["acks"]))
    assert sum(log.loads.values()) == 30 * LOAD
    asyncio.run(log.verify())
    with log.open() as opened:
        heads = list(opened.tables.scan("sessions"))
    assert {head.seq for head in heads if head.session.startswith("p")} == {99}
    assert [head.session for head in heads if head.damage] == []
