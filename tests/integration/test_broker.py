"""A real Kafka from Python packages alone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from turnlog.core.errors import LogUnavailable, UsageError
from turnlog.testing.broker import Broker
from turnlog.testing.broker_jars import Java, find_java


@pytest.fixture(scope="module")
def java() -> Java:
    try:
        return find_java()
    except UsageError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def answers(servers: str) -> bool:
    host, _, port = servers.partition(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def test_it_serves_until_it_is_stopped_and_starts_again(tmp_path: Path, java: Java) -> None:
    broker = Broker(tmp_path, java=java)
    with broker:
        assert answers(broker.servers)
        assert all(node.pid for node in broker.nodes)
    assert not answers(broker.servers)
    assert not any(node.pid for node in broker.nodes)
    with Broker(tmp_path, java=java) as again:
        assert answers(again.servers)
        again.nodes[0].kill()
        assert again.nodes[0].pid is None


def test_a_node_that_cannot_start_says_why(tmp_path: Path, java: Java) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LogUnavailable, match=r"node 1 .* does not start: .*kafka\.log"):
            Broker(tmp_path, port=port, java=java).start()


def test_what_makes_no_broker_is_refused(tmp_path: Path) -> None:
    java = Java("java", "")
    with pytest.raises(UsageError, match="1 to 9 nodes"):
        Broker(tmp_path, nodes=0, java=java)
    (tmp_path / "node-1").mkdir()
    with pytest.raises(UsageError, match="holds a broker of 1 nodes, not 3"):
        Broker(tmp_path, nodes=3, java=java)
