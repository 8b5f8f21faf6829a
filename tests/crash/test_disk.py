"""A disk that is really full: clear errors, nothing lost, and work goes on once there is room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.contract import read_all
from tests.crash.children import frame_of
from tests.crash.limited import FRAMES
from turnlog.log import open as open_log


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
@pytest.mark.parametrize(
    ("kind", "tables"),
    [("sqlite:{}", "."), ("file:{}", "tables.db"), ("file:{}?format=jsonl", "tables.db")],
)
async def test_a_full_disk_loses_nothing(tmp_path: Path, kind: str, tables: str) -> None:
    url = kind.format(tmp_path / "log")
    done = subprocess.run(  # noqa: ASYNC221  # nothing else is to run meanwhile
        [sys.executable, "-m", "tests.crash.limited", url, str(tmp_path / "log" / tables)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    told = json.loads(done.stdout)
    assert 20 < told["full"] < FRAMES
    first, *others = told["said"]
    assert "the disk failed" in first or "the disk is full" in first
    assert len(others) == 15
    assert all(said.startswith("AppendRefused: ") for said in others)
    assert all("nothing was appended" in said for said in told["said"])
    with open_log(url, clock=lambda: 0) as log:
        stored = {item.position: item.record for item in await read_all(log)}
        assert list(log.verify()) == []
    expected = [frame_of("s", 1, seq).record for seq in range(FRAMES)]
    assert [stored[position] for position in told["acknowledged"]] == expected
    assert len(stored) == FRAMES
