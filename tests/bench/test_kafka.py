"""The benches of the log on Kafka, and of copying, still run. What they measure is no test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import brokers, copying, kafka_appends, kafka_tables
from tests.bench.figures import Figure, report


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "TEXTS", 20)
    for module, small in (
        (kafka_appends, {"SESSIONS": 3, "FRAMES": 4}),
        (kafka_tables, {"SESSIONS": 2, "FRAMES": 4, "CALLS": 4, "STREAMED": 4}),
    ):
        for name, value in small.items():
            monkeypatch.setattr(module, name, value)


def check(figures: list[Figure], number: int, capsys: pytest.CaptureFixture[str]) -> None:
    report(figures)
    assert len(capsys.readouterr().out.splitlines()) == len(figures) == number
    assert all(figure.value > 0 for figure in figures)


async def test_kafka_runs(
    tmp_path: Path, kafka_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [
        *await kafka_appends.measure_appends(kafka_servers, tmp_path, rounds=1),
        *await kafka_tables.measure_catch_up(kafka_servers, tmp_path, runs=1),
        *await kafka_tables.measure_starts(kafka_servers, tmp_path, rounds=1),
        *await kafka_tables.measure_streams(kafka_servers, tmp_path, rounds=1),
    ]
    check(figures, 11, capsys)


def test_copying_runs(
    tmp_path: Path, kafka_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check(copying.measure_copies(kafka_servers, tmp_path, runs=1), 4, capsys)
