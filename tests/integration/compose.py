"""What a compose file says, run on this machine without Docker.

`docker-compose config` resolves a file as Compose does. Of what it says only places are changed: an
address becomes one on loopback, and a volume a folder. A node's settings go the way they go in the
image `apache/kafka`, whose start script calls `kafka.docker.KafkaDockerWrapper`. That is in Kafka's
own jar, makes KAFKA_A_B the setting a.b (of a__b it makes a_b, of a___b a-b), leaves out
KAFKA_HEAP_OPTS and a few more, and formats the volume. Of the image's own `server.properties`
nothing is taken where any such variable is given, not even where the data lies.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.kafka import COMMAND
from turnlog.testing.broker import _LOGGING, START_S, STOP_S, Node
from turnlog.testing.broker_jars import Java

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "compose"
DOCKER_COMPOSE = Path(sys.executable).parent / "docker-compose"
DATA = "/var/lib/kafka/data"
"""A volume of the image, which is its user's; a new volume anywhere else would be root's."""
TOOLS = {"kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand"}
"""Scripts of the image that health checks may call, each with the class that it starts."""
ADDRESS = re.compile(r"\b([a-z][\w-]*):(\d+)\b")
RUN_S = 60


class Step(NamedTuple):
    """An instruction of a Dockerfile."""

    name: str
    text: str


def resolve(file: Path) -> dict[str, Any]:
    """A compose file as Compose understands it."""
    done = compose_config(file, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace("$$", "$"))


def compose_config(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DOCKER_COMPOSE, "-f", file, "config", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_S,
    )


def dockerfile() -> list[Step]:
    text = (FOLDER / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [Step(*line.split(maxsplit=1)) for line in lines]


def sent_to_the_build() -> list[str]:
    """What `Dockerfile.dockerignore` lets through, of the folder above."""
    lines = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in lines
    return [line[1:] for line in lines if line.startswith("!")]


class ImageNode(Node):
    """A node that is set up as the image does it."""

    def __init__(self, folder: Path, java: Java, environment: Mapping[str, str]) -> None:
        number = int(environment["KAFKA_NODE_ID"])
        cluster = environment["CLUSTER_ID"]
        super().__init__(number, folder, java, settings=(), cluster=cluster, users={})
        self._environment = environment

    def format(self) -> None:
        self._folder.mkdir(exist_ok=True)
        (self._folder / "log4j2.properties").write_text(_LOGGING)
        arguments = ["setup", "-D", "/nowhere", "-M", "/nowhere", "-F", str(self._folder)]
        done = subprocess.run(
            self._command("kafka.docker.KafkaDockerWrapper", *arguments),
            env=dict(self._environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_S,
        )
        # as the image's script takes it
        assert done.returncode == 0 or "already formatted" in done.stdout + done.stderr, done

    def settings(self) -> dict[str, str]:
        """What the wrapper has made of the environment."""
        lines = (self._folder / "server.properties").read_text().split("\n")
        return dict(line.split("=", 1) for line in lines if line)

    def _command(self, main: str, *arguments: str) -> list[str]:
        command = super()._command(main, *arguments)
        at = command.index("-cp")
        heap = self._environment["KAFKA_HEAP_OPTS"].split()
        return [*command[:at], *heap, *command[at:]]  # of two the JVM takes the later


class Stack:
    """The services of a compose file. As a context it runs the nodes of Kafka among them."""

    def __init__(self, file: Path, folder: Path, java: Java) -> None:
        self.services: dict[str, dict[str, Any]] = resolve(file)["services"]
        self._folder = folder
        self._tools = _make_tools(folder / "bin", java)
        self.places = _places(self.services)
        self.nodes = {
            name: ImageNode(folder / name, java, self._node_environment(name))
            for name, service in self.services.items()
            if "KAFKA_NODE_ID" in service.get("environment", {})
        }

    def placed(self, text: str) -> str:
        """A text with all addresses as they are here; KeyError for one that nobody serves."""
        hosts = {address.partition(":")[0] for address in self.places}

        def here(found: re.Match[str]) -> str:
            return self.places[found[0]] if found[1] in hosts else found[0]

        return ADDRESS.sub(here, text)

    def healthy(self, name: str) -> bool:
        """Whether a service's health check says so, within the time of all its tries."""
        check = self.services[name]["healthcheck"]
        kind, text = check["test"]
        assert kind == "CMD-SHELL"
        command = self.placed(text).replace("/opt/kafka/bin", str(self._tools))
        seconds = int(check["timeout"].removesuffix("s")) * check["retries"]
        with subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                return process.wait(seconds) == 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self, name: str, command: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a service's own command, or another one in its environment."""
        service = self.services[name]
        entry = service.get("entrypoint") or _entrypoint()
        line = [*entry, *service["command"]] if command is None else shlex.split(command)
        assert line[0] == "turnlog"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            **{key: self.placed(value) for key, value in service.get("environment", {}).items()},
        }
        return subprocess.run(
            [*COMMAND, *map(self.placed, line[1:])],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_S,
        )

    def __enter__(self) -> Self:
        try:
            for node in self.nodes.values():
                node.format()
                node.launch()
            deadline = time.monotonic() + START_S
            for node in self.nodes.values():
                node.wait(deadline)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for node in self.nodes.values():
            node.terminate()
        deadline = time.monotonic() + STOP_S
        for node in self.nodes.values():
            node.end(deadline)

    def _node_environment(self, name: str) -> dict[str, str]:
        service = self.services[name]
        environment = {key: str(value) for key, value in service["environment"].items()}
        [volume] = service["volumes"]
        assert volume["target"] == DATA, "elsewhere the image's user may not write"
        data = self._folder / name / "data"
        for key, value in environment.items():
            bound = re.sub(r"://:(\d+)", lambda found: f"://{name}:{found[1]}", value)
            environment[key] = self.placed(bound).replace(volume["target"], str(data))
        assert environment["KAFKA_LOG_DIRS"] == str(data), "the data is not on the volume"
        return environment


def _make_tools(folder: Path, java: Java) -> Path:
    """The scripts of the image's /opt/kafka/bin that are needed."""
    folder.mkdir()
    for script, main in TOOLS.items():
        path = folder / script
        command = f"{java.command} $KAFKA_HEAP_OPTS -cp {java.classpath} {main}"
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o755)
    return folder


def _entrypoint() -> list[str]:
    [entry] = [step.text for step in dockerfile() if step.name == "ENTRYPOINT"]
    return json.loads(entry)


def _places(services: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Each address that a node listens on, or that is published for it, and one here for it."""
    listeners = {
        name: service.get("environment", {}).get("KAFKA_LISTENERS", "")
        for name, service in services.items()
    }
    addresses = [
        f"{name}:{port}"
        for name, text in listeners.items()
        for port in re.findall(r"://:(\d+)", text)
    ]
    places = dict(zip(addresses, _free_addresses(len(addresses)), strict=True))
    for name, service in services.items():
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1", f"{name} can be reached from other machines"
            places[f"localhost:{port['published']}"] = places[f"{name}:{port['target']}"]
    return places


def _free_addresses(count: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
