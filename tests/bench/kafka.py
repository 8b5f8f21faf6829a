"""All figures of the log on Kafka, on one broker of this run."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.bench.brokers import serving
from tests.bench.figures import Figure, report
from tests.bench.kafka_appends import measure_appends
from tests.bench.kafka_tables import measure_catch_up, measure_starts, measure_streams


def measure() -> list[Figure]:
    """Appending, catching up, starting tools, and events in batches."""
    figures: list[Figure] = []
    with serving() as servers:
        for part in (measure_appends, measure_catch_up, measure_starts, measure_streams):
            with tempfile.TemporaryDirectory() as folder:
                figures += asyncio.run(part(servers, Path(folder)))
    return figures


if __name__ == "__main__":
    report(measure())
