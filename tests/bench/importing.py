"""Importing a Claude Code file into SQLite, next to reading its lines with `orjson.loads` alone.

The memory of a large import is that of a process of its own, so that nothing else is counted.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import orjson

import turnlog.log
from tests.bench.figures import Figure, report
from turnlog.ingest import Masker, import_files
from turnlog.ingest.samples import big_claude_file
from turnlog.owner.ambient import Ambient

MEGABYTES = 40
LARGE_MEGABYTES = 1_000
RUNS = 3
MB = 1e6


def measure_speed(folder: Path, megabytes: int = MEGABYTES, runs: int = RUNS) -> list[Figure]:
    """From the file to the saved log with its tables; the whole of it, masking included."""
    file = folder / "file.jsonl"
    big_claude_file(file, megabytes)
    size = file.stat().st_size / MB
    found, bare = [], []
    for run in range(runs):
        bare.append(size / _read(file))
        found.append(size / _import(file, folder / f"{run}.db")["seconds"])
    each, alone = median(found), median(bare)
    return [
        Figure(
            f"import of a Claude Code file of {size:.0f} MB into SQLite",
            each,
            "MB/s",
            ">= 10",
            f"lines and orjson.loads alone {alone:.0f} MB/s: {alone / each:.0f} times that",
        )
    ]


def measure_masking(folder: Path) -> list[Figure]:
    """What masking costs where there is nothing to mask."""
    file = folder / "clean.jsonl"
    big_claude_file(file, 10)
    events = [orjson.dumps({"line": orjson.loads(line)}) for line in file.open("rb")]
    size = sum(map(len, events)) / MB
    masker = Masker()
    rates = []
    for _ in range(RUNS):
        start = time.process_time()
        for event in events:
            masker.suspects(event)
        rates.append(size / (time.process_time() - start))
    return [Figure("masking, events without a secret", median(rates), "MB/s", ">= 150")]


def measure_memory(folder: Path, megabytes: int = LARGE_MEGABYTES) -> list[Figure]:
    """The largest resident size of a process that imports a file of a gigabyte."""
    file = folder / "large.jsonl"
    big_claude_file(file, megabytes)
    command = [sys.executable, "-m", "tests.bench.importing", str(file), str(folder / "large.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    size = file.stat().st_size / MB
    return [
        Figure(
            f"memory at most, import of {size:,.0f} MB",
            told["memory"],
            "MB",
            "<= 300",
            f"{size / told['seconds']:.0f} MB/s",
        )
    ]


def measure(megabytes: int = MEGABYTES, large: int = LARGE_MEGABYTES) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            *measure_speed(folder, megabytes),
            *measure_masking(folder),
            *measure_memory(folder, large),
        ]


def _read(file: Path) -> float:
    start = time.perf_counter()
    with file.open("rb") as lines:
        for line in lines:
            orjson.loads(line)
    return time.perf_counter() - start


def _import(file: Path, log: Path) -> dict[str, Any]:
    start = time.perf_counter()
    outcome = asyncio.run(_import_into(file, log))
    if outcome:
        raise AssertionError(outcome)
    return {"seconds": time.perf_counter() - start}


async def _import_into(file: Path, log: Path) -> list[str]:
    ambient = Ambient()
    async with turnlog.log.open(f"sqlite:{log}", clock=ambient.clock) as opened:
        done = await import_files(
            opened, "claude-code", [file], ambient=ambient, host="bench", masker=Masker()
        )
    return [str(finding) for finding in (*done.problems, *done.warnings)]


def _import_alone(file: str, log: str) -> None:
    """The process of `measure_memory`."""
    import resource

    told = _import(Path(file), Path(log))
    # kilobytes on Linux, bytes on macOS
    unit = 1024 if sys.platform == "darwin" else 1
    told["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / unit / MB
    print(json.dumps(told))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _import_alone(*sys.argv[1:])
    else:
        report(measure())
