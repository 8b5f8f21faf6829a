"""One real Kafka for a whole test run, however many workers it has.

TURNLOG_KAFKA=HOST:PORT names one that is there. Else the first test that wants one starts
`turnlog broker`, which ends with the run: with the process that all workers are children of.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import orjson
import pytest

from turnlog.core.errors import UsageError
from turnlog.testing.broker import Broker
from turnlog.testing.broker_jars import Java, find_java

VARIABLE = "TURNLOG_KAFKA"
ENVIRONMENT = dict(os.environ)
"""As it was when the tests began: one that has given itself another home must not give it to the
broker, whose jars are kept in the person's own."""
COMMAND = [sys.executable, "-P", "-c", "from turnlog.cli.app import main; main()"]


@pytest.fixture(scope="session")
def kafka_servers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The addresses of a broker. Fails in CI where there is none to be had; skips elsewhere."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    shared = tmp_path_factory.getbasetemp()
    folder = shared.parent if is_worker else shared
    run = os.getppid() if is_worker else os.getpid()
    with (folder / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = folder / "kafka.servers"
        if not told.exists():
            told.write_text(_start(folder, run))
    servers = told.read_text()
    if not servers:
        said = (folder / "kafka.err").read_text().strip()
        do_without(f"no Kafka to test with: {said}; set {VARIABLE}=HOST:PORT")
    return servers


@pytest.fixture(scope="session")
def java() -> Java:
    """What brokers of a test's own run on. Fails in CI where there is none; skips elsewhere."""
    try:
        return find_java()
    except UsageError as error:
        do_without(str(error))


@pytest.fixture(scope="module")
def broker(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One node of a module's own, which may be killed."""
    with Broker(tmp_path_factory.mktemp("broker"), java=java) as broker:
        yield broker


def do_without(why: str) -> NoReturn:
    """CI may not be green over tests that never ran."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def _start(folder: Path, run: int) -> str:
    """Start a broker that ends with a process; its addresses, nothing where that failed."""
    command = [*COMMAND, "broker", "--port", "0", "--json", "--serving", str(run)]
    with (folder / "kafka.err").open("w") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err,
            start_new_session=True, env=ENVIRONMENT,
        )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    process.returncode = 0  # it goes on, and nobody waits for it here
    return orjson.loads(line)["servers"] if line else ""
