"""The names that are promised, and what counts appends, on real logs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import turnlog.log
from tests.contract.adapter import claiming, large, owned, talking
from tests.story import user
from turnlog.cli.process.appends import measured
from turnlog.cli.process.metrics import Metrics, kind_of, topic_of
from turnlog.core.errors import ClaimLost, LogUnavailable
from turnlog.core.frames import Record

OPERATIONS = (Path(__file__).parents[4] / "docs" / "operations.md").read_text("utf-8")


def exposed(metrics: Metrics) -> dict[tuple[str, ...], float]:
    text, _ = metrics.exposed("")
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))):
            sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }  # fmt: skip


def test_every_metric_is_documented_and_nothing_else() -> None:
    """Name and labels of each, as in the table of docs/operations.md."""
    found: dict[str, set[str]] = {}
    for row in re.findall(r"^\| `(turnlog_\w+)` \| ([^|]*) \|", OPERATIONS, re.MULTILINE):
        found[row[0]] = set(re.findall(r"`(\w+)`", row[1]))
    metrics = Metrics()
    shown: dict[str, set[str]] = {}
    for metric in vars(metrics).values():
        if hasattr(metric, "describe"):
            (family,) = metric.describe()
            name = f"{family.name}_total" if family.type == "counter" else family.name
            shown[name] = set(metric._labelnames)
    shown["turnlog_build_info"] = {"python", "version"}
    assert found == shown
    names = {name for name, *_ in exposed(metrics) if name.startswith("turnlog_")}
    assert names == {"turnlog_build_info"}  # the rest has no series before something happens


def test_no_label_holds_a_session() -> None:
    labels = {
        label for metric in vars(Metrics()).values() for label in getattr(metric, "_labelnames", ())
    }
    assert labels == {
        "group", "log", "outcome", "partition", "projection", "reason", "stage", "topic", "type"
    }  # fmt: skip


def test_labels_of_logs() -> None:
    urls = ["kafka://a:1,b:2/sessions", "sqlite:/x/y.db", "file:/x/y", "memory:"]
    assert [kind_of(url) for url in urls] == ["kafka", "sqlite", "file", "memory"]
    assert [topic_of(url) for url in urls] == ["sessions", "/x/y.db", "/x/y", ""]


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
async def test_appends_are_counted_by_what_came_of_them(kind: str, tmp_path: Path) -> None:
    metrics = Metrics()
    url = f"sqlite:{tmp_path}/log.db" if kind == "sqlite" else "memory:"
    plain = turnlog.log.open(url, clock=lambda: 0)
    frames = talking("s", 3)
    size = sum(len(frame.record.body) for frame in frames)
    async with measured(plain, metrics) as log:
        for frame in frames:
            await log.append(frame)
        with pytest.raises(ClaimLost):
            await log.append(claiming("s", "c2", expects=0))
        odd = Record("s", None, b"odd")
        await log.load([owned("s", 9, user("u", None)).record, odd])
        size += len(odd.body) + len(owned("s", 9, user("u", None)).record.body)
        assert await log.end() == 6
        assert [stored.position async for stored in log.read()] == [1, 2, 3, 4, 5, 6]
        assert log.tables.position() == 6
    with pytest.raises(LogUnavailable):
        await log.append(frames[0])
    with pytest.raises(LogUnavailable):
        await plain.append(frames[0])
    found = exposed(metrics)
    log_label = f"log={kind}"
    assert found["turnlog_events_appended_total", log_label, "type=message"] == 4
    assert found["turnlog_events_appended_total", log_label, "type=session_claimed"] == 1
    assert found["turnlog_append_bytes_total", log_label] == size
    count = "turnlog_append_duration_seconds_count"
    assert found[count, log_label, "outcome=appended"] == 5
    assert found[count, log_label, "outcome=refused"] == 2


async def test_what_nobody_knows_the_outcome_of_is_unknown(tmp_path: Path) -> None:
    class Leaving:
        """Stands for a caller who goes away while an append is under way."""

        url = "memory:"

        async def append(self, frame: Any) -> int:
            raise KeyboardInterrupt

    metrics = Metrics()
    with pytest.raises(KeyboardInterrupt):
        await measured(Leaving(), metrics).append(large("s", 1, 10))  # type: ignore[arg-type]
    found = exposed(metrics)
    assert found["turnlog_append_duration_seconds_count", "log=memory", "outcome=unknown"] == 1


def test_a_measured_log_can_be_read_synchronously(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/log.db"
    with measured(turnlog.log.open(url), Metrics()) as log:
        assert log.url == url
        assert log.partitions == 1
    with pytest.raises(LogUnavailable):
        log.tables.position()
