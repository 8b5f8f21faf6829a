"""The bench of hosts still runs. What it measures is no test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import append, host
from tests.bench.figures import report


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"SESSIONS": 3, "CALLS": 4, "CALLS_EACH": 2, "EVENTS": 10, "ONE_BY_ONE": 2}
    for name, value in small.items():
        monkeypatch.setattr(host, name, value)
    monkeypatch.setattr(append.database, "CHECKPOINT_PAGES", 100)


async def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = [
        *await host.measure_starts(tmp_path, rounds=2),
        *await host.measure_sessions(tmp_path, rounds=2),
        *await host.measure_stream(tmp_path, rounds=2),
    ]
    report(figures)
    assert len(capsys.readouterr().out.splitlines()) == len(figures) == 4
    assert all(figure.value > 0 for figure in figures)
