"""The compose files: valid, and their settings and commands run for real, without Docker."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.contract.adapter import talking
from tests.integration.compose import (
    FOLDER,
    ROOT,
    ImageNode,
    Stack,
    compose_config,
    dockerfile,
    resolve,
    sent_to_the_build,
)
from tests.integration.kafka_topics import administering, make_raw, open_log, with_cluster
from turnlog.core.errors import AppendUnknown
from turnlog.core.frames import SealedFrame
from turnlog.log.kafka.log import KafkaLog
from turnlog.testing.broker_jars import ROOTS, Java

ONE, THREE = FOLDER / "kafka.yaml", FOLDER / "cluster.yaml"
FILES = [ONE, THREE]
DOCS = (ROOT / "docs" / "kafka.md").read_text()
SESSIONS = [f"s{number}" for number in range(8)]
FRAMES = 6
GAP_S_MAX = 60.0

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def check_schema(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, file], capture_output=True, text=True, check=False)


# ---- what the files say -----------------------------------------------------------------------


@each_file
def test_the_file_is_valid(file: Path) -> None:
    done = check_schema(file)
    assert done.returncode == 0, done.stdout
    done = compose_config(file, "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_schema_finds_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "faulty.yaml"
    file.write_text(ONE.read_text().replace("mem_limit:", "memory_limit:"))
    done = check_schema(file)
    assert done.returncode == 1
    assert "memory_limit" in done.stdout


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("      kafka:\n        condition", "      kafko:\n        condition", "kafko"),
        ("  - data:/var", "  - date:/var", "date"),
        ("<<: *turnlog\n    command", "<<: *turnlock\n    command", "turnlock"),
    ],
    ids=["service", "volume", "anchor"],
)
def test_compose_finds_a_fault(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    text = ONE.read_text()
    assert right in text
    file = tmp_path / "faulty.yaml"
    file.write_text(text.replace(right, wrong))
    done = compose_config(file, "--quiet")
    assert done.returncode != 0
    assert said in done.stderr


@each_file
def test_the_image_is_the_kafka_that_the_tests_run(file: Path) -> None:
    [version] = {root.rpartition(":")[2] for root in ROOTS if "org.apache.kafka" in root}
    nodes = [each for each in resolve(file)["services"].values() if "image" in each]
    assert {each["image"] for each in nodes} == {f"apache/kafka:{version}"}


@each_file
def test_up_waits_for_the_job_and_the_job_for_all_nodes(file: Path) -> None:
    """`up --wait` fails on a job that ends, unless something that runs on waits for its end."""
    services = resolve(file)["services"]
    jobs = {name for name, each in services.items() if each["restart"] == "no"}
    assert jobs == {"topics"}
    waited_for = {
        name
        for each in services.values()
        if each["restart"] != "no"
        for name, how in each.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    assert waited_for == jobs
    nodes = {name for name, each in services.items() if "healthcheck" in each}
    needed = services["topics"]["depends_on"]
    assert {name for name, how in needed.items() if how["condition"] == "service_healthy"} == nodes


def test_both_files_can_run_at_once() -> None:
    one, three = map(resolve, FILES)
    assert one["name"] != three["name"]
    ports = [
        port["published"]
        for each in (one, three)
        for service in each["services"].values()
        for port in service.get("ports", [])
    ]
    assert len(ports) == len(set(ports)) == 4
    ids = {
        service["environment"]["CLUSTER_ID"]
        for each in (one, three)
        for service in each["services"].values()
        if "CLUSTER_ID" in service.get("environment", {})
    }
    assert len(ids) == 2


def test_the_docs_name_what_is_there() -> None:
    files = [resolve(file) for file in FILES]
    section = DOCS.partition("\n## With Docker\n")[2].partition("\n## ")[0]
    text = section + "".join(file.read_text() for file in FILES)
    ports = {
        port["published"]
        for each in files
        for service in each["services"].values()
        for port in service.get("ports", [])
    }
    assert set(re.findall(r"localhost:(\d+)", text)) == ports
    things = [*files[0]["volumes"].values(), *files[0]["networks"].values()]
    things += [*files[1]["volumes"].values(), *files[1]["networks"].values()]
    named = set(re.findall(r"turnlog-\w+_[\w-]+", text))
    assert len(named) > 2
    assert named <= {thing["name"] for thing in things}
    assert set(re.findall(r"-f (compose/\S+\.yaml)", text)) == {
        str(file.relative_to(ROOT)) for file in FILES
    }


# ---- what they do -----------------------------------------------------------------------------


@pytest.mark.timeout(300)
async def test_one_node(tmp_path: Path, java: Java) -> None:
    stack = Stack(ONE, tmp_path, java)
    url = stack.placed("kafka://localhost:9092/sessions")
    sent = {session: talking(session, FRAMES) for session in SESSIONS}

    def first() -> None:
        stack.__enter__()
        assert stack.healthy("kafka")
        made, again = stack.run("topics"), stack.run("topics")
        assert made.returncode == again.returncode == 0, made.stderr + again.stderr
        assert "is as it must be: 12 partitions" in made.stderr
        assert made.stderr == again.stderr
        for command in told_to_the_shell(ONE):
            done = stack.run("shell", command)
            assert done.returncode == 0, done.stderr
        check_settings(stack, "localhost:9092")
        assert settings_of_a_new_topic(stack, "localhost:9092") == {
            "message.timestamp.type": "LogAppendTime",
            "min.insync.replicas": "1",
            "unclean.leader.election.enable": "false",
        }

    try:
        await asyncio.to_thread(first)
        async with open_log(url, tmp_path / "tables.db") as log:
            await asyncio.gather(*(append(log, frames) for frames in sent.values()))
        await asyncio.to_thread(stack.__exit__)
        assert not await asyncio.to_thread(stack.healthy, "kafka")
        await asyncio.to_thread(stack.__enter__)
        async with open_log(url, tmp_path / "fresh.db") as log:
            await check(log, sent)
    finally:
        await asyncio.to_thread(stack.__exit__)


@pytest.mark.timeout(300)
async def test_three_nodes_and_one_of_them_dies(tmp_path: Path, java: Java) -> None:
    hosts = "localhost:19092,localhost:29092,localhost:39092"
    async with running(Stack(THREE, tmp_path, java)) as stack:
        url = stack.placed(f"kafka://{hosts}/sessions")
        assert await healthy(stack) == {"kafka-1", "kafka-2", "kafka-3"}
        made = await asyncio.to_thread(stack.run, "topics")
        assert made.returncode == 0, made.stderr
        await asyncio.to_thread(check_settings, stack, hosts)
        assert await asyncio.to_thread(settings_of_a_new_topic, stack, "localhost:29092") == {
            "message.timestamp.type": "LogAppendTime",
            "min.insync.replicas": "2",
            "unclean.leader.election.enable": "false",
        }
        sent = {session: talking(session, FRAMES) for session in SESSIONS}
        async with open_log(url, tmp_path / "tables.db") as log:
            await asyncio.gather(*(append(log, frames[:2]) for frames in sent.values()))
            dead = await leader(log, SESSIONS[0])
            stack.nodes[dead].kill()
            began = time.monotonic()
            await asyncio.gather(*(append(log, frames[2:]) for frames in sent.values()))
            gap_s = time.monotonic() - began
            print(f"{gap_s:.1f} s until all sessions went on")
            assert gap_s < GAP_S_MAX
            await check(log, sent)
        assert await healthy(stack) == set(stack.nodes) - {dead}
        for command in told_to_the_shell(THREE):
            done = await asyncio.to_thread(stack.run, "shell", command)
            assert done.returncode == 0, done.stderr
        async with open_log(url, tmp_path / "fresh.db") as log:
            await check(log, sent)


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_from_one_node_to_three(tmp_path: Path, java: Java) -> None:
    """As the docs say it."""
    [line] = re.findall(r"turnlog copy kafka://localhost\S+ kafka://localhost\S+", DOCS)
    (tmp_path / "one").mkdir()
    (tmp_path / "three").mkdir()
    sent = {session: talking(session, FRAMES) for session in SESSIONS}
    async with (
        running(Stack(ONE, tmp_path / "one", java)) as one,
        running(Stack(THREE, tmp_path / "three", java)) as three,
    ):
        for stack in (one, three):
            done = await asyncio.to_thread(stack.run, "topics")
            assert done.returncode == 0, done.stderr
        _, _, source, target = line.split()
        async with open_log(one.placed(source), tmp_path / "one.db") as log:
            await asyncio.gather(*(append(log, frames) for frames in sent.values()))
        one.places |= three.places
        done = await asyncio.to_thread(one.run, "shell", line)
        assert done.returncode == 0, done.stderr
        async with open_log(three.placed(target), tmp_path / "three.db") as log:
            await check(log, sent)


@asynccontextmanager
async def running(stack: Stack) -> AsyncGenerator[Stack]:
    await asyncio.to_thread(stack.__enter__)
    try:
        yield stack
    finally:
        for node in stack.nodes.values():  # nobody needs what they hold, and an orderly end is slow
            node.kill()


async def healthy(stack: Stack) -> set[str]:
    said = await asyncio.gather(*(asyncio.to_thread(stack.healthy, name) for name in stack.nodes))
    return set(itertools.compress(stack.nodes, said))


async def leader(log: KafkaLog, session: str) -> str:
    """The service that leads a session's partition."""
    servers, _, topic = log.url.removeprefix("kafka://").partition("/")
    found = await asyncio.to_thread(with_cluster, servers, lambda cluster: cluster.topic(topic))
    return f"kafka-{found.partitions[log.partition_of(session)].leader}"


async def append(log: KafkaLog, frames: list[SealedFrame]) -> None:
    """Append frames in order, the same again after an unknown outcome."""
    for frame in frames:
        for _ in range(5):
            try:
                await log.append(frame)
                break
            except AppendUnknown:
                continue
        else:
            raise AssertionError("never known")


async def check(log: KafkaLog, sent: dict[str, list[SealedFrame]]) -> None:
    for session, frames in sent.items():
        stored = log.read(session=session, partition=log.partition_of(session))
        seen = list(dict.fromkeys([each.record async for each in stored]))
        assert seen == [frame.record for frame in frames]
    assert list(log.verify()) == []


def check_settings(stack: Stack, servers: str) -> None:
    """Each setting of each node is one that Kafka knows, and is in force."""

    async def ask(node: ImageNode) -> dict[str, str]:
        wanted = ConfigResource(ConfigResourceType.BROKER, str(node.number))
        async with administering(stack.placed(servers)) as admin:
            [answer] = await admin.describe_configs([wanted])
        ((code, _, _, _, entries),) = answer.resources
        assert code == 0
        return {entry[0]: entry[1] for entry in entries}

    for node in stack.nodes.values():
        found = asyncio.run(ask(node))
        wanted = node.settings()
        assert len(wanted) > 12
        assert {name: found.get(name) for name in wanted} == wanted


def settings_of_a_new_topic(stack: Stack, server: str) -> dict[str, str]:
    """What a topic gets of the nodes that is made without settings."""
    servers = stack.placed(server)
    make_raw(servers, "other", {})
    found: dict[str, Any] = with_cluster(servers, lambda cluster: cluster.settings_of("other"))
    names = ("message.timestamp.type", "min.insync.replicas", "unclean.leader.election.enable")
    return {name: found[name] for name in names}


def told_to_the_shell(file: Path) -> list[str]:
    """Commands of the file's own text and of the docs for its service `shell`."""
    line = re.compile(rf"docker compose -f compose/{file.name} exec shell (turnlog .*)")
    found = line.findall(file.read_text() + DOCS)
    assert found
    return found


# ---- the image of turnlog ---------------------------------------------------------------------


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """A folder with what Docker would send to the build."""
    folder = tmp_path / "src"
    folder.mkdir()
    for name in sent_to_the_build():
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def test_the_wheel_can_be_made_of_what_is_sent(context: Path, tmp_path: Path) -> None:
    [build] = [step.text for step in dockerfile() if "pip wheel" in step.text]
    [line] = [part for part in build.split("&&") if "pip wheel" in part]
    command = line.replace("/wheels", str(tmp_path / "wheels")).split()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=context, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [wheel] = (tmp_path / "wheels").glob("turnlog-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.endswith(".py")}
    assert held == {
        path.relative_to(ROOT / root).as_posix()
        for root in ("streams", "producers", "consumers")
        for path in (ROOT / root).rglob("*.py")
    }


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_the_image_can_be_built(context: Path, tmp_path: Path) -> None:
    """The first stage for real, with this Python for that of the image."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "image"], check=True)
    [build] = [step.text for step in dockerfile() if "pip wheel" in step.text]
    for path in ("/wheels", "/opt"):
        build = build.replace(path, str(tmp_path) + path)
    environment = {**os.environ, "PATH": f"{tmp_path}/image/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", build],
        cwd=context, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    turnlog = tmp_path / "opt" / "turnlog" / "bin" / "turnlog"
    done = subprocess.run([turnlog, "topics", "--help"], capture_output=True, check=False)
    assert b"create" in done.stdout
