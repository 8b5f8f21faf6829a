"""`turnlog copy` between kinds of logs: all of the command, which writes, reads back, compares.

The reference is a copy from SQLite to SQLite, in the same rounds.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import turnlog.log
from tests.bench.brokers import new_topic, serving
from tests.bench.figures import Figure, report
from tests.bench.kafka_tables import fill, messages
from tests.kafka import COMMAND

RUNS = 3
PAIRS = (("sqlite", "sqlite"), ("sqlite", "file"), ("sqlite", "kafka"), ("kafka", "sqlite"))


def copy(source: str, target: str, tables: Path) -> float:
    """Seconds of the command, its start among them. Tables of a topic are made from nothing."""
    env = {**os.environ, "TURNLOG_TABLES": f"sqlite:{tables}"}
    start = time.perf_counter()
    subprocess.run([*COMMAND, "copy", source, target], check=True, capture_output=True, env=env)
    return time.perf_counter() - start


async def make_sources(servers: str, folder: Path) -> tuple[Mapping[str, str], int]:
    """A log of each kind that is copied from, with the same sessions; and how many events."""
    records = messages()
    topic = await asyncio.to_thread(new_topic, servers)
    events = await fill(topic, folder, records)
    path = f"sqlite:{folder / 'source.db'}"
    async with turnlog.log.open(path) as log:
        for start in range(0, len(records), 1_000):
            await log.load(records[start : start + 1_000])
    return {"sqlite": path, "kafka": topic}, events


def measure_copies(servers: str, folder: Path, runs: int = RUNS) -> list[Figure]:
    """Events a second of each pair."""
    sources, events = asyncio.run(make_sources(servers, folder))
    found: dict[tuple[str, str], list[float]] = {pair: [] for pair in PAIRS}
    for run in range(runs):
        for pair in PAIRS:
            kind, into = pair
            place = folder / f"{run}-{kind}-{into}"
            target = new_topic(servers) if into == "kafka" else f"{into}:{place}"
            found[pair].append(copy(sources[kind], target, place.with_suffix(".tables")))
    rates = {pair: events / median(seconds) for pair, seconds in found.items()}
    reference = f"{events:,} events in frames of 8; sqlite to sqlite {rates[PAIRS[0]]:,.0f}/s"
    return [
        Figure(f"copy from {kind} to {into}", rates[kind, into], "events/s", ">= 10000", reference)
        for kind, into in PAIRS
    ]


def measure() -> list[Figure]:
    """All figures of copying."""
    with serving() as servers, tempfile.TemporaryDirectory() as folder:
        return measure_copies(servers, Path(folder))


if __name__ == "__main__":
    report(measure())
