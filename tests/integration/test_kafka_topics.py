"""A topic that is not as it must be is named, with what mends it, and is not used (case 22)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.contract.adapter import talking
from tests.integration.kafka_topics import (
    make_raw,
    make_topic,
    new_name,
    open_log,
    producing,
    with_cluster,
)
from tests.unit.cli.calls import Caller, isolated
from turnlog.core.errors import LogUnavailable, StateError
from turnlog.ingest.samples import claude_files
from turnlog.log import topics
from turnlog.log.kafka.partition import partition_of
from turnlog.log.kafka.topic import META_KEY, RULES, SUFFIX

WRONG = {
    "cleanup.policy": "compact",
    "retention.ms": "604800000",
    "retention.bytes": "1000000000",
    "message.timestamp.type": "CreateTime",
    "unclean.leader.election.enable": "true",
    "max.message.bytes": "500000",
}


def test_a_topic_that_turnlog_made_is_right(kafka_servers: str, tmp_path: Path) -> None:
    url = f"kafka://{kafka_servers}/{new_name()}"
    found = topics.create(url, partitions=5, replication=1)
    assert found.problems == []
    assert found.notes == []
    assert found.meta is not None
    assert (found.meta.id, found.meta.partitions) == (found.topic.id, 5)
    assert found.begins == found.ends == [0] * 5
    assert {name: found.settings[name] for name in RULES} == dict(RULES)
    assert topics.create(url, partitions=9).topic == found.topic  # it is there, and stays
    open_log(url, tmp_path / "t.db")._close()


@pytest.mark.parametrize("setting", WRONG)
def test_a_wrong_setting_is_named_with_its_command(
    kafka_servers: str, tmp_path: Path, setting: str
) -> None:
    name = new_name()
    make_raw(kafka_servers, name, {**RULES, setting: WRONG[setting]})
    url = f"kafka://{kafka_servers}/{name}"
    found = topics.create(url, replication=1)  # written down, and still wrong
    assert found.meta is not None
    (problem,) = found.problems
    assert f"{name!r} has {setting}={WRONG[setting]}" in problem.what
    right = RULES.get(setting, "1000000")
    assert problem.mend == (
        f"kafka-configs.sh --bootstrap-server {kafka_servers} --alter --entity-type topics"
        f" --entity-name {name} --add-config {setting}={right}"
    )
    with pytest.raises(StateError, match=f"has {setting}=.*mend it by: kafka-configs.sh"):
        open_log(url, tmp_path / "t.db")


def test_every_rule_is_tested() -> None:
    assert set(RULES) < set(WRONG)


def test_too_few_replicas_in_sync_are_named(kafka_servers: str) -> None:
    url = make_topic(kafka_servers)
    name = url.rpartition("/")[2]
    meta = topics.look(url).meta
    assert meta is not None
    write_meta(kafka_servers, name, {**meta._asdict(), "min_insync_replicas": 2})
    (problem,) = topics.look(url).problems
    assert "min.insync.replicas=1, and was made for 2" in problem.what


def write_meta(servers: str, name: str, value: object) -> None:
    async def write() -> None:
        async with producing(servers) as producer:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            await producer.send_and_wait(name + SUFFIX, body, META_KEY, 0)

    asyncio.run(write())


def test_what_is_written_down_must_be_known(kafka_servers: str, tmp_path: Path) -> None:
    url = make_topic(kafka_servers)
    name = url.rpartition("/")[2]
    meta = topics.look(url).meta
    assert meta is not None
    write_meta(kafka_servers, name, {**meta._asdict(), "format": 2})
    with pytest.raises(StateError, match="format 2, and this turnlog knows 1; mend it by: upgrade"):
        open_log(url, tmp_path / "t.db")
    write_meta(kafka_servers, name, {**meta._asdict(), "function": "murmur2"})
    with pytest.raises(StateError, match="'murmur2', not 'sha256-64'"):
        open_log(url, tmp_path / "t.db")
    write_meta(kafka_servers, name, b"[]")
    with pytest.raises(StateError, match="is not turnlog's"):
        open_log(url, tmp_path / "t.db")


def test_a_topic_that_nobody_wrote_down_is_not_used(kafka_servers: str, tmp_path: Path) -> None:
    name = new_name()
    url = f"kafka://{kafka_servers}/{name}"
    with pytest.raises(LogUnavailable, match=f"no topic {name!r}: make it by `turnlog topics"):
        open_log(url, tmp_path / "t.db")
    make_raw(kafka_servers, name, RULES)
    with pytest.raises(StateError, match=f"no record in '{name}-meta'; mend it by: turnlog topics"):
        open_log(url, tmp_path / "t.db")

    async def write() -> None:
        async with producing(kafka_servers) as producer:
            await producer.send_and_wait(name, b"something else", b"k", 0)

    asyncio.run(write())
    with pytest.raises(StateError, match="holds records, and is not written down"):
        topics.create(url)
    (problem,) = topics.look(url).problems  # and nobody is sent where he is refused
    assert "holds records" in problem.what
    assert "topics create" not in str(problem)


def test_a_topic_that_can_take_nothing_is_named(kafka_servers: str) -> None:
    name = new_name()
    make_raw(kafka_servers, name, {**RULES, "min.insync.replicas": "2"})
    (problem,) = topics.create(f"kafka://{kafka_servers}/{name}", replication=1).problems
    assert "min.insync.replicas=2, and 1 of each partition: nothing can be app" in problem.what
    assert problem.mend is not None
    assert problem.mend.endswith("--add-config min.insync.replicas=1")


def test_what_is_written_down_must_stay(kafka_servers: str) -> None:
    """Also in a topic of several partitions, which somebody made before."""
    name = new_name()
    make_raw(kafka_servers, name + SUFFIX, {"cleanup.policy": "delete"}, 3)
    found = topics.create(f"kafka://{kafka_servers}/{name}", replication=1)
    assert found.meta is not None
    (problem,) = found.problems
    assert f"topic '{name}-meta' has cleanup.policy=delete, and must have compact" in problem.what
    assert problem.mend is not None
    assert problem.mend.endswith(f"--entity-name {name}-meta --add-config cleanup.policy=compact")


def test_a_topic_that_the_broker_refuses_is_said(kafka_servers: str) -> None:
    with pytest.raises(LogUnavailable, match="InvalidReplicationFactor"):
        topics.create(f"kafka://{kafka_servers}/{new_name()}", replication=9)


def test_the_meta_topic_is_compacted(kafka_servers: str) -> None:
    name = make_topic(kafka_servers).rpartition("/")[2]
    settings = with_cluster(kafka_servers, lambda cluster: cluster.settings_of(name + SUFFIX))
    assert settings["cleanup.policy"] == "compact"


# ---- the commands -------------------------------------------------------------------------


@pytest.fixture
def turnlog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Caller:
    isolated(monkeypatch, tmp_path)
    return Caller(tmp_path, capsysbinary)


def test_commands_make_check_and_describe(kafka_servers: str, turnlog: Caller) -> None:
    url = f"kafka://{kafka_servers}/{new_name()}"
    made = turnlog("topics", "create", url, "--partitions", "3", "--replication", "1")
    assert made.status == 0
    assert "as it must be: 3 partitions" in made.err
    assert turnlog("topics", "check", "--log", url).status == 0
    described = turnlog("topics", "describe", url)
    assert described.status == 0
    assert "LogAppendTime" in described.out
    assert "partition 2" in described.out
    data = turnlog("topics", "describe", url, "--json").json
    assert (data["meta"]["partitions"], data["problems"]) == (3, [])


def test_a_check_fails_where_anything_is_wrong(kafka_servers: str, turnlog: Caller) -> None:
    name = new_name()
    make_raw(kafka_servers, name, {**RULES, "cleanup.policy": "compact"})
    url = f"kafka://{kafka_servers}/{name}"
    checked = turnlog("topics", "check", url)
    assert checked.status == 1
    assert "cleanup.policy=compact" in checked.out
    assert "kafka-configs.sh" in checked.out
    assert turnlog("topics", "check", url, "--json").json["problems"]
    assert turnlog("topics", "check", "sqlite:x.db").status == 2


def test_commands_work_on_kafka_with_tables_beside_it(
    kafka_servers: str, turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_topic(kafka_servers, 3)
    turnlog.write([frame.record for frame in talking("s", 2)])
    assert turnlog("copy", turnlog.url, url).status == 0
    for command in ("sessions", "verify", "rebuild", "fsck", "dump"):
        assert turnlog(command, "--log", url).status == 0
    assert len(list(turnlog.folder.rglob("kafka/*.db"))) == 1
    monkeypatch.setenv("TURNLOG_TABLES", f"sqlite:{turnlog.folder}/elsewhere.db")
    shown = turnlog("show", "s", "--log", url)
    assert "message 2" in shown.out
    assert (turnlog.folder / "elsewhere.db").exists()


def test_sessions_are_imported_recovered_and_spoken_to_on_many_partitions(
    kafka_servers: str, turnlog: Caller
) -> None:
    url = make_topic(kafka_servers, 7)
    claude_files.write(turnlog.folder / "claude")
    folder = turnlog.folder / "claude"
    first = turnlog.on("import", "claude-code", folder, log=url)
    assert first.status == 1  # one of the files ends in mid-line
    assert "sessions: 4 new" in first.err
    listed = turnlog.good("sessions", "--json", log=url).json
    sessions = {row["session"] for row in listed}
    assert len({partition_of(session, 7) for session in sessions}) > 1
    assert "4 unchanged" in turnlog.on("import", "claude-code", folder, log=url).err
    turnlog.good("recover", "--close", log=url)
    for session in sorted(sessions):
        turnlog.good("input", session, "Go on.", log=url)
    waiting = turnlog.good("pending", "--json", log=url)
    assert waiting.out
    turnlog.good("verify", log=url)
    turnlog.good("fsck", log=url)
