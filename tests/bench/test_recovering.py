"""The bench of recovering still runs. What it measures is no test."""

from __future__ import annotations

import pytest

from tests.bench import recovering
from tests.bench.figures import report


def test_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    figures = recovering.measure(sessions=6)
    report(figures)
    assert len(capsys.readouterr().out.splitlines()) == len(figures) == 1
    assert all(figure.value > 0 for figure in figures)
