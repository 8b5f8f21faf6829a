"""The bench of files still runs. What it measures is no test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import append, files
from tests.bench.figures import report


async def test_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"SESSIONS": 4, "ONE_EACH": 4, "MANY_EACH": 2}.items():
        monkeypatch.setattr(append, name, value)
    figures = await files.measure_writers(tmp_path, rounds=2)
    report(figures)
    assert len(capsys.readouterr().out.splitlines()) == len(figures) == 3
    assert all(figure.value > 0 for figure in figures)
