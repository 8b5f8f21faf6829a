"""A real Kafka from Python packages alone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from tests.integration.running import TURNLOG
from turnlog.core.errors import LogUnavailable, UsageError
from turnlog.testing.broker import Broker
from turnlog.testing.broker_jars import Java


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
        said = rf"node 1 .* does not start: .*:{port}: Address already in use.*kafka\.log"
        with pytest.raises(LogUnavailable, match=said):
            Broker(tmp_path / "a", port=port, java=java).start()
        named = rf"{port}: Address already in use.* \(all of it is in (\S+)\)"
        done = subprocess.run(
            [*TURNLOG, "broker", "--port", str(port)],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1
        found = re.search(named, done.stderr)
        assert found is not None, done.stderr
        log = Path(found[1])
        assert "Address already in use" in log.read_text()
        shutil.rmtree(log.parents[1])


def test_a_folder_that_another_broker_has_is_named(tmp_path: Path, java: Java) -> None:
    """Also where only its node lives on; and nothing in it is touched."""
    with Broker(tmp_path, java=java) as broker:
        (node,) = broker.nodes
        settings = (tmp_path / "node-1" / "server.properties").read_bytes()
        for _ in range(2):
            with pytest.raises(LogUnavailable, match="node-1: another broker has this folder"):
                Broker(tmp_path, java=java).start()
            node._let_go()  # as if we had been killed
        assert (tmp_path / "node-1" / "server.properties").read_bytes() == settings
        assert node.pid is not None
    with Broker(tmp_path, java=java):
        pass


def test_what_makes_no_broker_is_refused(tmp_path: Path) -> None:
    java = Java("java", "")
    with pytest.raises(UsageError, match="1 to 9 nodes"):
        Broker(tmp_path, nodes=0, java=java)
    (tmp_path / "node-1").mkdir()
    with pytest.raises(UsageError, match="holds a broker of 1 nodes, not 3"):
        Broker(tmp_path, nodes=3, java=java)


def start(*options: str) -> tuple[subprocess.Popen[bytes], str, list[int]]:
    process = subprocess.Popen(
        [*TURNLOG, "broker", "--port", "0", "--json", "-q", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    told = orjson.loads(process.stdout.readline())
    return process, told["servers"], told["pids"]


@pytest.mark.parametrize(("end", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_command_ends_in_order(
    java: Java, tmp_path: Path, end: signal.Signals, status: int
) -> None:
    process, servers, _ = start("--data", str(tmp_path / "data"))
    assert answers(servers)
    process.send_signal(end)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == status
    assert not answers(servers)
    assert (tmp_path / "data" / "node-1" / "kafka.log").exists()


def test_the_command_ends_with_the_process_that_it_serves(java: Java) -> None:
    served = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process, servers, _ = start("--serving", str(served.pid))
    served.communicate(timeout=30)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 0
    assert not answers(servers)


def test_a_hard_end_leaves_no_node(java: Java) -> None:
    process, servers, pids = start("--stop-within", "0.1")
    os.kill(pids[0], signal.SIGSTOP)  # so that it cannot end in order
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 3
    assert b"ended hard" in said
    assert not answers(servers)


def test_a_node_that_dies_ends_the_command(java: Java) -> None:
    process, _, (node,) = start("--nodes", "1")
    os.kill(node, signal.SIGKILL)
    began = time.monotonic()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"node 1 of the broker has ended by itself" in said
    assert time.monotonic() - began < 20
