"""The bench of sessions still runs. What it measures is no test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import sessions
from tests.bench.figures import report


async def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = [
        *await sessions.measure_idle(tmp_path, number=5),
        *await sessions.measure_resuming(tmp_path, rounds=2, long=200),
        *await sessions.measure_forking(tmp_path, rounds=2, long=200),
    ]
    report(figures)
    assert len(capsys.readouterr().out.splitlines()) == len(figures)
    assert all(figure.value > 0 for figure in figures if "tasks" not in figure.name)
