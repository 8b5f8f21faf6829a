"""A new log of each kind, for tests of what must hold on all of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import turnlog.log
from tests.integration.kafka_topics import make_topic
from turnlog.log import EmbeddedLog

KINDS = ("memory", "sqlite", "zstd", "jsonl", "kafka")
STORED = KINDS[1:]
"""Those that outlive the process, and so can be named to a command."""
PARTITIONS = 3


class Places:
    """New logs below a folder. A Kafka log has its tables there, too, when `open` opens it."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._request = request
        self._numbers = itertools.count(1)
        self._tables: dict[str, str] = {}

    def url(self, kind: str) -> str:
        """The URL of a log that is not there yet, or as a topic that is empty."""
        place = self._folder / f"{kind}-{next(self._numbers)}"
        if kind == "kafka":
            servers = self._request.getfixturevalue("kafka_servers")
            url = make_topic(servers, PARTITIONS)
            self._tables[url] = f"sqlite:{place}.db"
            return url
        return {
            "memory": "memory:",
            "sqlite": f"sqlite:{place}.db",
            "zstd": f"file:{place}",
            "jsonl": f"file:{place}?format=jsonl",
        }[kind]

    def open(self, url: str) -> EmbeddedLog:
        """Open one of them."""
        return turnlog.log.open(url, clock=lambda: 0, tables=self._tables.get(url))

    def new(self, kind: str) -> EmbeddedLog:
        """A new one, open."""
        return self.open(self.url(kind))


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Places:
    return Places(tmp_path, request)
