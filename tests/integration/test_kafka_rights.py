"""docs/kafka-security.md says which rights each role needs: exactly these, on a real authorizer."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.contract.adapter import talking
from tests.integration.kafka_topics import new_name
from tests.secured import PASSWORDS, Acl, Secured
from tests.unit.cli.calls import Caller, Result, isolated
from turnlog.testing.broker_jars import find_java

pytestmark = [pytest.mark.xdist_group("secured"), pytest.mark.timeout(240)]
PAGE = Path(__file__).parents[2] / "docs/kafka-security.md"
WORK = {
    "Operator": ["topics create URL --partitions 2", "topics check URL"],
    "Host": [
        "copy LOCAL URL",
        "input s more --log URL",
        "recover --close --log URL",
        "verify --log URL",
    ],
    "Reader": [
        "config check --connect --log URL",
        "sessions --log URL",
        "show s --log URL",
        "fsck --log URL",
        "recover --dry-run --log URL",
        "dump --log URL",
    ],
}
"""What a role does, command by command."""


def lines_of(role: str) -> list[str]:
    """The commands that give a role its rights, as the page has them."""
    section = PAGE.read_text("utf-8").partition(f"### {role}\n")[2].partition("###")[0]
    return [line for line in section.splitlines() if line.startswith("kafka-acls.sh")]


def acls_of(role: str, topic: str) -> list[Acl]:
    """These rights on a topic of this name and the one beside it."""
    found: list[Acl] = []
    for line in lines_of(role):
        words = shlex.split(line)
        of = words[words.index("--topic") + 1]
        operations = [words[i + 1] for i, word in enumerate(words) if word == "--operation"]
        found += [Acl(operation, of.replace("sessions", topic)) for operation in operations]
    return found


RIGHTS = [(role, acl) for role in WORK for acl in acls_of(role, "sessions")]


@pytest.fixture
def worker(
    secured: Secured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Caller:
    """Commands as alice runs them, with a local log to copy from."""
    isolated(monkeypatch, tmp_path)
    turnlog = Caller(tmp_path, capfdbinary)
    turnlog.write([frame.record for frame in talking("s", 2)])
    for name, value in secured.settings().items():
        monkeypatch.setenv("TURNLOG_KAFKA_" + name.upper().replace(".", "_"), value)
    return turnlog


def new_topic(secured: Secured, worker: Caller, role: str) -> str:
    """What is there before a role does its work; gives the topic's name."""
    if role == "Operator":
        return new_name()
    name = secured.make_topic()
    if role == "Reader":
        # by the operators' listener, which nobody authenticates at
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TURNLOG_KAFKA_SECURITY_PROTOCOL", "PLAINTEXT")
            done = worker("copy", worker.url, f"kafka://{secured.broker.servers}/{name}")
            assert done.status == 0, done.err
    return name


def failure(secured: Secured, worker: Caller, role: str, name: str) -> Result | None:
    """The first of a role's commands that fails, None where none does."""
    for number, command in enumerate(WORK[role]):
        words = [
            {"URL": f"kafka://{secured.sasl}/{name}", "LOCAL": worker.url}.get(word, word)
            for word in command.split()
        ]
        if "topics" not in words:
            words += ["--tables", f"sqlite:{worker.folder}/{name}-{number}.db"]
        done = worker(*words)
        assert PASSWORDS["alice"] not in done.out + done.err
        if done.status:
            return done
    return None


@pytest.mark.parametrize("role", WORK)
def test_a_role_does_its_work_with_the_rights_of_the_page(
    secured: Secured, worker: Caller, role: str
) -> None:
    name = new_topic(secured, worker, role)
    secured.allow("alice", acls_of(role, name))
    failed = failure(secured, worker, role, name)
    assert failed is None, failed


@pytest.mark.parametrize(("role", "acl"), RIGHTS)
def test_with_one_right_fewer_it_is_named(
    secured: Secured, worker: Caller, role: str, acl: Acl
) -> None:
    name = new_topic(secured, worker, role)
    missing = Acl(acl.operation, acl.topic.replace("sessions", name))
    secured.allow("alice", [each for each in acls_of(role, name) if each != missing])
    failed = failure(secured, worker, role, name)
    assert failed is not None
    said = failed.out + failed.err
    print(said)
    assert failed.status == 1
    # a reader without Read cannot even see the topic
    unseen = role == "Reader" and acl == Acl("Read", "sessions")
    operation = r"Describe" if unseen else acl.operation
    pattern = rf"user 'alice' has no right to {operation} topic '{missing.topic}'.*--operation"
    assert re.search(pattern, said), said


@pytest.mark.parametrize("role", WORK)
def test_a_line_of_the_page_can_be_run(secured: Secured, role: str) -> None:
    """By the tool that kafka-acls.sh starts; all lines are alike."""
    java = find_java()
    words = shlex.split(lines_of(role)[0])[1:]
    words[words.index("--bootstrap-server") + 1] = secured.broker.servers
    at = words.index("--command-config")
    del words[at : at + 2]
    done = subprocess.run(
        [java.command, "-cp", java.classpath, "org.apache.kafka.tools.AclCommand", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Adding ACLs" in done.stdout
