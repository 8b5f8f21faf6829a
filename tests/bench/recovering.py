"""Recovering: sessions with open calls, found and closed by the command in its own process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

import turnlog.log
from tests.bench.figures import Figure, report
from tests.story import Story, accepted, assistant, attempted, t1, user
from turnlog.core.frames import Record

SESSIONS = 1_000
IDLE = 1_000
"""Sessions beside them that have nothing open."""
COMMAND = [sys.executable, "-c", "from turnlog.cli.app import main; main()", "recover", "--json"]


def crashed(session: str) -> list[Record]:
    """A turn whose four calls have a T1 and no answer, and one that was not started."""
    story = Story(session).begin(title="A crash")
    ids = {name: f"{session}-{name}" for name in ("u", "op", "at", "a")}
    story.own(user(ids["u"], None, "do it"), accepted(ids["op"], ids["u"]))
    story.own(attempted(ids["at"], ids["op"], ids["a"]))
    calls = [f"c{index}" for index in range(5)]
    story.own(assistant(ids["a"], ids["u"], *calls, attempt=ids["at"]))
    for index, effect in enumerate(("read_only", "idempotent", "reconcilable", "opaque")):
        names = f"{session}-d{index}", ids["op"], ids["a"], f"{session}-r{index}"
        data = {"call_index": index, "call_id": calls[index], "effect": effect}
        story.own(t1(*names, **data))
    return story.records


def idle(session: str) -> list[Record]:
    story = Story(session).begin()
    story.own(user(f"{session}-u", None))
    return story.records


async def fill(path: Path, sessions: int, others: int) -> None:
    async with turnlog.log.open(f"sqlite:{path}", clock=lambda: 0) as log:
        for number in range(max(sessions, others)):
            records = crashed(f"crashed-{number:05d}") if number < sessions else []
            records += idle(f"idle-{number:05d}") if number < others else []
            await log.load(records)


def measure(sessions: int | None = None) -> list[Figure]:
    count = SESSIONS if sessions is None else sessions
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        asyncio.run(fill(path, count, IDLE if sessions is None else sessions))
        times: list[float] = []
        for expected in (count, 0):
            began = time.perf_counter()
            done = subprocess.run(
                [*COMMAND, "--log", f"sqlite:{path}"], capture_output=True, check=True
            )
            times.append(time.perf_counter() - began)
            closed = [row for row in orjson.loads(done.stdout) if row["did"] == "closed"]
            assert len(closed) == expected
    again = f"{times[1]:.2f} s again, with nothing to do"
    name = f"{count:,} sessions with open calls found and closed"
    return [Figure(name, times[0], "s", "<= 10", again)]


if __name__ == "__main__":
    report(measure())
