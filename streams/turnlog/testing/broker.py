"""A real Apache Kafka on this machine's loopback, for development and tests.

    with Broker(folder) as broker:
        broker.servers        # 127.0.0.1:PORT, one for each node

Each node is broker and controller (KRaft). What it holds lies in the folder, and is there again at
the next start. Nodes are processes of their own, and are ended by their ids.
"""

from __future__ import annotations

import socket
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_bytes
from types import MappingProxyType
from typing import IO, Self

from turnlog.core.errors import LogUnavailable, UsageError
from turnlog.testing.broker_jars import Java, find_java

START_S = 90.0
STOP_S = 15.0
"""How long a node may take for an orderly end; then it is ended at once."""
HOST = "127.0.0.1"
_POLL_S = 0.05
_STARTED = "Kafka Server started"
_OPTIONS = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Small, and quick to start rather than quick for long."""
_LOGGING = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
"""


class Broker:
    """Some nodes that are one cluster; see the module's text.

    `port` is that of the first node, the others follow it; 0 takes what is free. `listeners` are
    the protocols of further ones, such as SASL_SSL, whose addresses are then in `listening`;
    `properties` go into each node's settings, over what stands there, and `users` with their
    passwords are made in a new folder, for SCRAM-SHA-512. Raises UsageError where the folder holds
    another number of nodes, or there is no Java.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 1,
        port: int = 0,
        java: Java | None = None,
        listeners: Sequence[str] = (),
        properties: Mapping[str, str] = MappingProxyType({}),
        users: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if not 1 <= nodes <= 9:
            raise UsageError(f"a broker has 1 to 9 nodes, not {nodes}")
        there = len(list(folder.glob("node-*"))) if folder.is_dir() else 0
        if there not in (0, nodes):
            raise UsageError(f"{folder}: holds a broker of {there} nodes, not {nodes}")
        self._java = java or find_java()
        ports = _free_ports(nodes * (2 + len(listeners)))
        clients = [port + index for index in range(nodes)] if port else ports[:nodes]
        voters = ",".join(
            f"{number}@{HOST}:{ports[nodes + number - 1]}" for number in range(1, nodes + 1)
        )
        served = {"PLAINTEXT": clients}
        for start, protocol in enumerate(listeners, 2):
            served[protocol] = ports[nodes * start : nodes * (start + 1)]
        cluster = _cluster_id(folder)
        self.nodes = [
            Node(
                number,
                folder / f"node-{number}",
                self._java,
                settings=[
                    *_settings(number, nodes, voters),
                    *_listeners(number, served, voters),
                    *(f"{name}={value}" for name, value in properties.items()),
                ],
                cluster=cluster,
                users=users,
            )
            for number in range(1, nodes + 1)
        ]
        self.listening = {
            protocol: ",".join(f"{HOST}:{each}" for each in found)
            for protocol, found in served.items()
        }
        self.servers = self.listening["PLAINTEXT"]

    def start(self) -> None:
        """Start all nodes and return once they answer. Raises LogUnavailable where one does not."""
        try:
            for node in self.nodes:
                node.format()
            for node in self.nodes:
                node.launch()
            deadline = time.monotonic() + START_S
            for node in self.nodes:
                node.wait(deadline)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all nodes, which write down what they hold."""
        for node in self.nodes:
            node.terminate()
        deadline = time.monotonic() + STOP_S
        for node in self.nodes:
            node.end(deadline)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Node:
    """One process of a broker."""

    def __init__(
        self,
        number: int,
        folder: Path,
        java: Java,
        *,
        settings: Sequence[str],
        cluster: str,
        users: Mapping[str, str],
    ) -> None:
        self.number = number
        self._folder = folder
        self._java = java
        self._settings = settings
        self._cluster = cluster
        self._users = users
        self._process: subprocess.Popen[bytes] | None = None
        self._said = folder / "kafka.log"
        self._lock: IO[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process's id, None where it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def format(self) -> None:
        """Write the settings down, and prepare the folder where it is new."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._take_folder()
        lines = (*self._settings, f"log.dirs={self._folder / 'data'}")
        (self._folder / "server.properties").write_text("\n".join(lines) + "\n", "utf-8")
        (self._folder / "log4j2.properties").write_text(_LOGGING, "utf-8")
        if (self._folder / "data" / "meta.properties").exists():
            return
        arguments = ["format", "-t", self._cluster, "-c", str(self._folder / "server.properties")]
        for name, password in self._users.items():
            arguments += ["--add-scram", f"SCRAM-SHA-512=[name={name},password={password}]"]
        done = subprocess.run(  # noqa: S603
            self._command("kafka.tools.StorageTool", *arguments), capture_output=True, check=False
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise LogUnavailable(f"{self._folder}: cannot be made a broker's folder: {said}")

    def _take_folder(self) -> None:
        """Lock the folder for as long as we or the node's process live. Kafka would notice another
        one only after it has begun to read what the other writes."""
        try:
            import fcntl
        except ModuleNotFoundError:  # it is of POSIX
            return
        self._let_go()
        lock = (self._folder / "lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise LogUnavailable(
                f"{self._folder}: another broker has this folder; end it, or give another"
            ) from error
        self._lock = lock

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def launch(self) -> None:
        """Start the process; `wait` returns once it serves."""
        inherited = () if self._lock is None else (self._lock.fileno(),)
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(  # noqa: S603
                self._command("kafka.Kafka", str(self._folder / "server.properties")),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,  # an interrupt at the terminal is ours to pass on
                pass_fds=inherited,
            )

    def wait(self, deadline: float) -> None:
        """Return once the node serves. Raises LogUnavailable where it ends, or takes too long."""
        while _STARTED not in self._said.read_text("utf-8", "replace"):
            if self.pid is None or time.monotonic() > deadline:
                why = _reason(self._said.read_text("utf-8", "replace")) or "it says nothing"
                raise LogUnavailable(
                    f"node {self.number} of the broker does not start: {why} (all of it is in"
                    f" {self._said}); if another broker has the port or the folder, end it or give"
                    " another"
                )
            time.sleep(_POLL_S)

    def terminate(self) -> None:
        """Ask for an orderly end."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self, deadline: float) -> None:
        """Wait for the end, and bring it about after the deadline."""
        if self._process is not None:
            try:
                self._process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill()
        self._let_go()

    def _command(self, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        java = [self._java.command, *_OPTIONS, logging, "-cp", self._java.classpath]
        return [*java, main, *arguments]


def _reason(said: str) -> str:
    """Of what a node says before it ends: the first error that has a name, else the last line. What
    comes after the first are its consequences, and then an orderly end."""
    lines = said.strip().splitlines()
    named = (line.partition("Exception: ")[2] for line in lines if not line.startswith("\t"))
    return next(filter(None, named), lines[-1] if lines else "")


def _settings(number: int, nodes: int, voters: str) -> list[str]:
    copies = min(nodes, 3)
    return [
        "process.roles=broker,controller",
        f"node.id={number}",
        f"controller.quorum.voters={voters}",
        "auto.create.topics.enable=false",  # a topic with wrong settings is worse than none
        "num.partitions=1",
        f"default.replication.factor={copies}",
        f"min.insync.replicas={copies // 2 + 1}",
        f"offsets.topic.replication.factor={copies}",
        "offsets.topic.num.partitions=3",
        f"transaction.state.log.replication.factor={copies}",
        f"transaction.state.log.min.isr={copies // 2 + 1}",
        "transaction.state.log.num.partitions=3",
        "group.initial.rebalance.delay.ms=0",
        # how long a dead node is waited for, and so how long its partitions take nothing
        "broker.session.timeout.ms=3000",
        "broker.heartbeat.interval.ms=500",
    ]


def _listeners(number: int, served: Mapping[str, Sequence[int]], voters: str) -> list[str]:
    """Where a node listens. The listeners are called after their protocols."""
    controller = voters.split(",")[number - 1].partition("@")[2]
    places = ",".join(f"{name}://{HOST}:{ports[number - 1]}" for name, ports in served.items())
    protocols = ",".join(f"{name}:{name}" for name in served)
    return [
        f"listeners={places},CONTROLLER://{controller}",
        f"advertised.listeners={places}",
        "controller.listener.names=CONTROLLER",
        f"listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT",
    ]


def _cluster_id(folder: Path) -> str:
    """The cluster's id: that of the nodes that are there, else a new one."""
    for meta in sorted(folder.glob("node-*/data/meta.properties")):
        for line in meta.read_text("utf-8").splitlines():
            if line.startswith("cluster.id="):
                return line.partition("=")[2]
    return urlsafe_b64encode(token_bytes(16)).decode().rstrip("=").replace("-", "A")


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has now; all are held until all are found."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
