"""`kafka://HOST:PORT[,HOST:PORT…]/TOPIC`, and where the tables beside such a log lie."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from turnlog.core.errors import UsageError

PORT = 9092
SUFFIX = "-meta"
"""Behind a topic's name: the topic in which it is written down."""
_HOST = re.compile(r"\[[0-9A-Fa-f:.%\w]+\]|[^\[\]:\s]+")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,244}")  # 249 are allowed, and -meta is added


class Address(NamedTuple):
    """Brokers, as HOST:PORT with commas between, and a topic."""

    servers: str
    topic: str

    @property
    def url(self) -> str:
        """The URL of the log."""
        return f"kafka://{self.servers}/{self.topic}"


def parse(url: str) -> Address:
    """Read a URL. Raises UsageError, saying how one is written."""
    example = "write kafka://HOST:PORT/TOPIC"
    servers, slash, topic = url.removeprefix("kafka://").partition("/")
    if not url.startswith("kafka://") or not servers or not slash:
        raise UsageError(f"the log {url!r} names no broker and topic: {example}")
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise UsageError(
            f"the log {url!r}: {topic!r} is no name of a topic (letters, digits, . _ -): {example}"
        )
    if topic.endswith(SUFFIX):
        raise UsageError(
            f"the log {url!r}: in a topic whose name ends in {SUFFIX} it is written down what"
            f" another is: name that one, {topic.removesuffix(SUFFIX)!r}"
        )
    return Address(",".join(_server(url, each) for each in servers.split(",")), topic)


def _server(url: str, server: str) -> str:
    if "@" in server:
        raise UsageError("the log's URL holds a password: Kafka's settings are given apart from it")
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, str(PORT)
    is_host = _HOST.fullmatch(host) is not None
    if not is_host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"the log {url!r}: {server!r} is no HOST:PORT")
    return f"{host}:{port}"


def default_tables(id_: str) -> Path:
    """Where the tables of a topic lie that nobody has given a place: by its id, so that those of
    another topic of that name are others."""
    from platformdirs import user_data_path

    return user_data_path("turnlog", appauthor=False) / "kafka" / f"{id_}.db"
