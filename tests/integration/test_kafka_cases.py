"""Cases 22 and 24: retention that eats the truth, a topic that is another one, and one session on
two partitions."""

from __future__ import annotations

import ast
import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiokafka.admin import NewPartitions
from aiokafka.partitioner import DefaultPartitioner

from tests.contract.adapter import append_all, claiming, dispatching, talking
from tests.contract.contract import settle
from tests.integration.kafka_topics import (
    administering,
    make_raw,
    make_topic,
    new_name,
    open_log,
    producing,
)
from tests.unit.cli.calls import Caller, isolated
from turnlog.core.errors import StateError
from turnlog.ingest.samples import claude_files
from turnlog.log import topics
from turnlog.log.kafka.log import KafkaLog
from turnlog.log.kafka.partition import STRAY, partition_of
from turnlog.log.kafka.records import to_message
from turnlog.log.kafka.topic import RULES

SOURCES = Path(__file__).parents[2] / "streams"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return tmp_path / "tables.db"


def topic_of(url: str) -> str:
    return url.rpartition("/")[2]


# ---- case 22: retention -------------------------------------------------------------------


@pytest.fixture
def turnlog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Caller:
    isolated(monkeypatch, tmp_path)
    return Caller(tmp_path, capsysbinary)


def redate(folder: Path, days: int) -> str:
    """Session files whose lines are so many days old; gives that day."""
    day = (datetime.now(UTC) - timedelta(days=days)).date().isoformat()
    for path in folder.rglob("*.jsonl"):
        text = path.read_text()
        dates = {line.partition('"timestamp":"')[2][:10] for line in text.splitlines()}
        for date in filter(None, dates):
            text = text.replace(f'"timestamp":"{date}T', f'"timestamp":"{day}T')
        path.write_text(text)
    return day


def test_what_is_imported_from_long_ago_is_new_in_the_topic(
    kafka_servers: str, turnlog: Caller
) -> None:
    """The broker deletes by a record's time; the events keep their own."""
    url = make_topic(kafka_servers, 3)
    claude_files.write(turnlog.folder / "claude")
    day = redate(turnlog.folder / "claude", 60)
    turnlog.on("import", "claude-code", turnlog.folder / "claude", log=url)
    sessions = turnlog.good("sessions", "--json", log=url).json
    assert sessions
    assert {row["first_time"][:10] for row in sessions} <= {day, None}

    async def times() -> list[int]:
        async with open_log(url, turnlog.folder / "fresh.db") as log:
            return [
                stored.time
                for partition in range(3)
                async for stored in log.read(partition=partition)
            ]

    now_ms = time.time() * 1000
    found = asyncio.run(times())
    assert found
    assert all(abs(each - now_ms) < 600_000 for each in found)


@pytest.mark.parametrize("retention", ["retention.ms", "retention.bytes"])
def test_nothing_is_written_to_a_topic_that_forgets(
    kafka_servers: str, turnlog: Caller, retention: str
) -> None:
    name = new_name()
    month_ms = 30 * 24 * 3600 * 1000
    make_raw(kafka_servers, name, {**RULES, retention: str(month_ms)})
    url = f"kafka://{kafka_servers}/{name}"
    topics.create(url, replication=1)
    claude_files.write(turnlog.folder / "claude")
    turnlog.write(frame.record for frame in talking("s", 2))
    for arguments in (
        ["import", "claude-code", turnlog.folder / "claude", "--log", url],
        ["copy", turnlog.url, url],
        ["input", "s", "x", "--log", url],
    ):
        done = turnlog(*arguments)
        assert (done.status, done.out) == (1, "")
        assert f"has {retention}={month_ms}" in done.err
        assert "mend it by: kafka-configs.sh" in done.err
    assert topics.look(url).ends == [0]


def test_every_consumer_says_where_it_begins_and_what_it_reads() -> None:
    """The client's defaults are to begin at the end and to commit by itself."""
    calls = [
        node
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "AIOKafkaConsumer"
    ]
    assert len(calls) >= 2
    for call in calls:
        said = {word.arg: ast.literal_eval(word.value) for word in call.keywords
                if word.arg is not None and isinstance(word.value, ast.Constant)}  # fmt: skip
        assert said["enable_auto_commit"] is False
        assert said["auto_offset_reset"] in ("none", "earliest")
        assert said["isolation_level"] == "read_uncommitted"
        assert "group_id" not in {word.arg for word in call.keywords}


# ---- case 22: a topic that is another one -------------------------------------------------


async def make_anew(servers: str, url: str, records: int, *, is_written_down: bool) -> None:
    """The topic is deleted and made again, by turnlog or by somebody, and gets some records."""
    name = topic_of(url)
    async with administering(servers) as admin:
        await admin.delete_topics([name])
        await asyncio.sleep(0.5)
    await asyncio.to_thread(make_raw, servers, name, RULES)
    if is_written_down:
        await asyncio.to_thread(topics.create, url, replication=1)
    async with producing(servers) as producer:
        for frame in talking("other", records)[:records]:
            message = to_message(frame.record, 1)
            await producer.send_and_wait(
                name, message.value, message.key, 0, headers=message.headers
            )


async def append_and_wait(log: KafkaLog) -> None:
    """The other topic may acknowledge it: but it is never saved."""
    position = await log.append(claiming("t"))
    await asyncio.wait_for(log.tables.wait(max(position, 6)), 20)


@pytest.mark.parametrize("records", [0, 1, 5, 9])
async def test_a_topic_made_anew_under_an_open_log_gives_it_nothing(
    kafka_servers: str, tables: Path, records: int
) -> None:
    """Also where the new one holds exactly one record, or as many as the old one did."""
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        frames = talking("s", 4)
        await append_all(log, frames)
        await settle(log)
        await make_anew(kafka_servers, url, records, is_written_down=False)
        with pytest.raises(StateError, match=r"not the one that was opened|made anew"):
            await append_and_wait(log)
        with pytest.raises(StateError, match=r"not the one that was opened|made anew"):
            await log.append(claiming("u"))
        assert [each.record for each in log.tables.records("s")] == [
            frame.record for frame in frames
        ]
        assert [row.session for row in log.tables.scan("sessions")] == ["s"]


@pytest.mark.parametrize("records", [0, 1, 5, 9])
async def test_a_topic_made_anew_does_not_go_into_old_tables(
    kafka_servers: str, tables: Path, records: int
) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        await append_all(log, talking("s", 4))
        await settle(log)
    await make_anew(kafka_servers, url, records, is_written_down=False)
    with pytest.raises(StateError, match=r"was deleted and made again .*what it held is gone"):
        await asyncio.to_thread(open_log, url, tables)
    # even where somebody says that it is meant to be so
    if records == 0:
        await asyncio.to_thread(topics.create, url, replication=1)
        async with open_log(url, tables.with_name("new.db")) as log:
            assert await log.end() == 0
        with pytest.raises(StateError, match="give another file for the tables"):
            await asyncio.to_thread(open_log, url, tables)
    else:
        with pytest.raises(StateError, match="holds records, and is not written down"):
            await asyncio.to_thread(topics.create, url, replication=1)


# ---- case 24: one session on two partitions -----------------------------------------------


async def test_another_client_s_partitions_are_not_ours(kafka_servers: str, tables: Path) -> None:
    """A producer that leaves the partition to its client, with Java's default function: most of
    what it sends is on a wrong partition, is quarantined, and holds nobody up."""
    count = 12
    url = await asyncio.to_thread(make_topic, kafka_servers, count)
    sessions = {f"s{number}": talking(f"s{number}", 3) for number in range(40)}
    java = DefaultPartitioner()
    everywhere = list(range(count))
    theirs = {session: java(session.encode(), everywhere, everywhere) for session in sessions}
    agreed = {session for session in sessions if theirs[session] == partition_of(session, count)}
    assert 0 < len(agreed) < len(sessions) // 2
    async with open_log(url, tables) as log, producing(kafka_servers) as producer:
        for frames in sessions.values():  # the first two are ours, where they belong
            await append_all(log, frames[:2])
        for session, frames in sessions.items():
            message = to_message(frames[2].record, count)
            sent = await producer.send_and_wait(
                topic_of(url), message.value, session.encode(), headers=message.headers
            )
            assert sent.partition == theirs[session]
        for session, frames in sessions.items():
            if session not in agreed:
                await log.append(frames[2])
            await log.append(frames[3])
        for partition in range(count):
            await log.tables.wait(await log.end(partition), partition)
        for session, frames in sessions.items():
            head = log.tables.get(("sessions", session))
            assert (head.seq, head.leaf, head.damage) == (3, 3, ())
            assert [each.record for each in log.tables.records(session)] == [
                frame.record for frame in frames
            ]
        strays = [
            stored.record.body
            for partition in range(count)
            for stored in log.tables.records(f"{STRAY}{partition}")
        ]
        assert sorted(strays) == sorted(
            frames[2].record.body for session, frames in sessions.items() if session not in agreed
        )
        quarantined = list(log.tables.scan("quarantine"))
        assert {row.session.startswith(STRAY) for row in quarantined} == {True}
        assert len(quarantined) == len(strays)
        assert list(log.verify()) == []


async def test_partitions_added_between_t1_and_t2_are_named_and_refused(
    kafka_servers: str, tables: Path
) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers, 4)
    moves = next(
        name
        for name in map("s{}".format, range(99))
        if partition_of(name, 4) != partition_of(name, 8)
    )
    async with open_log(url, tables) as log:
        home = log.partition_of(moves)
        frames = talking(moves, 1)
        await append_all(log, frames)
        await log.tables.wait(await log.append(dispatching(moves, 2)), home)
        async with administering(kafka_servers) as admin:
            await admin.create_partitions({topic_of(url): NewPartitions(8)})
        late = talking(moves, 3)[3]
        with pytest.raises(StateError, match=r"with 8 partitions, and was .* with 4"):
            # it goes where T1 is, and nobody is told that it is saved
            await asyncio.wait_for(log.tables.wait(await log.append(late), home), 20)
        with pytest.raises(StateError, match="run turnlog topics check"):
            await log.append(late)
    with pytest.raises(StateError, match="has 8 partitions and was made with 4: sessions would be"):
        await asyncio.to_thread(open_log, url, tables)
    for where in (tables, tables.with_name("fresh.db")):  # what is left can be read, and moved
        async with open_log(url, where, catch_up=False) as log:
            stored = [each async for each in log.read(session=moves, partition=home)]
            assert [each.record for each in stored[:2]] == [frame.record for frame in frames]
            assert len(stored) == 4


def test_what_is_in_a_topic_with_too_many_partitions_moves_to_another(
    kafka_servers: str, turnlog: Caller
) -> None:
    url, other = make_topic(kafka_servers, 2), make_topic(kafka_servers, 5)
    turnlog.write(*([frame.record for frame in talking(f"s{number}", 3)] for number in range(9)))
    assert turnlog("copy", turnlog.url, url).status == 0

    async def add() -> None:
        async with administering(kafka_servers) as admin:
            await admin.create_partitions({topic_of(url): NewPartitions(5)})

    asyncio.run(add())
    refused = turnlog("copy", url, other)
    assert (refused.status, refused.out) == (1, "")
    assert "by `turnlog dump` and `turnlog restore`" in refused.err
    turnlog.good("dump", "-o", "a", log=url)
    turnlog.good("restore", "a", log=other)
    assert "9 sessions there already" in turnlog("copy", turnlog.url, other).err
