"""The bench of appending still runs. What it measures is no test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import append
from tests.bench.figures import report


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SESSIONS": 4, "ONE_EACH": 4, "MANY_EACH": 2, "SHORT": 10}.items():
        monkeypatch.setattr(append, name, value)


async def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = [
        *await append.measure_writers(tmp_path, rounds=2),
        *await append.measure_growth(tmp_path, rounds=2, long=200),
        *await append.measure_opening(tmp_path, rounds=2, long=200),
    ]
    report(figures)
    assert len(capsys.readouterr().out.splitlines()) == len(figures) == 5
    assert all(figure.value > 0 for figure in figures)
