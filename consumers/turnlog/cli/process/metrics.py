"""The metrics of a process, by their names: `docs/operations.md` says what each means.

No label holds a session, or anything else of which there may be any number.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from turnlog.core.events import TYPES

OTHER = "other"
_APPEND_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Every metric, in a registry of its own: a process has one, and a test as many as it likes."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.appended = Counter(
            "turnlog_events_appended_total", "Events that are durable in the log.",
            ("log", "type"), registry=registry,
        )  # fmt: skip
        self.append_bytes = Counter(
            "turnlog_append_bytes_total", "Bytes of frames that are durable in the log.",
            ("log",), registry=registry,
        )  # fmt: skip
        self.append_duration = Histogram(
            "turnlog_append_duration_seconds", "From an append to its outcome.",
            ("log", "outcome"), buckets=_APPEND_S, registry=registry,
        )  # fmt: skip
        self.consumed = Counter(
            "turnlog_events_consumed_total", "Events that were read and dealt with.",
            ("group", "topic"), registry=registry,
        )  # fmt: skip
        self.lag = Gauge(
            "turnlog_consumer_lag_records", "Positions between a reader and the log's end.",
            ("group", "topic", "partition"), registry=registry,
        )  # fmt: skip
        self.projection_position = Gauge(
            "turnlog_projection_position", "The position up to which a projection is folded.",
            ("projection", "partition"), registry=registry,
        )  # fmt: skip
        self.log_end = Gauge(
            "turnlog_log_end_position", "The position of the log's last record.",
            ("partition",), registry=registry,
        )  # fmt: skip
        self.quarantined = Counter(
            "turnlog_quarantined_total", "What was read and could not be folded.",
            ("stage", "reason"), registry=registry,
        )  # fmt: skip
        build = Info("turnlog_build", "The release that runs.", registry=registry)
        build.info({"version": _version(), "python": python_version()})

    def exposed(self, accept: str) -> tuple[bytes, str]:
        """Everything, as a scraper wants it, and the type of that."""
        try:
            encode, kind = choose_encoder(accept)
        except (TypeError, ValueError):  # it names a version that is none
            encode, kind = choose_encoder("")
        return encode(self.registry), kind

    def count_appended(self, log: str, types: Iterable[str], size: int) -> None:
        """A frame with events of these types is in the log."""
        self.append_bytes.labels(log).inc(size)
        for type_ in types:
            self.appended.labels(log, type_ if type_ in TYPES else OTHER).inc()


def kind_of(url: str) -> str:
    """The label `log`: sqlite, file, kafka or memory."""
    return url.partition(":")[0]


def topic_of(url: str) -> str:
    """The label `topic`: the topic of a log on Kafka, else the place of the log."""
    scheme, _, rest = url.partition(":")
    return rest.rpartition("/")[2].partition("?")[0] if scheme == "kafka" else rest


def _version() -> str:
    try:
        return version("turnlog")
    except PackageNotFoundError:
        return "unknown"
