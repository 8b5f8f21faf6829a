"""The Kafka log on a real broker: partitions, and what others may have done to its topic."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import NewPartitions, RecordsToDelete
from aiokafka.structs import TopicPartition

import turnlog.log
import turnlog.log.topics
from tests.contract.adapter import append_all, beginning, claiming, guest, large, talking
from tests.contract.contract import read_all, settle
from tests.forking import REFUSED, fork_and_append
from tests.integration.kafka_topics import (
    administering,
    make_raw,
    make_topic,
    new_name,
    open_log,
    producing,
)
from tests.story import fact
from turnlog.core.errors import AppendUnknown, LogUnavailable, StateError, TooLarge, UsageError
from turnlog.core.frames import Record
from turnlog.log.kafka.appender import Job
from turnlog.log.kafka.log import KafkaLog
from turnlog.log.kafka.partition import STRAY, partition_of
from turnlog.log.kafka.records import to_message
from turnlog.log.kafka.topic import RULES


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return tmp_path / "tables.db"


def topic_of(url: str) -> str:
    return url.rpartition("/")[2]


async def settle_all(log: KafkaLog) -> None:
    for partition in range(log.partitions):
        async for _ in log.read(await log.end(partition), partition=partition):
            pass


# ---- partitions ---------------------------------------------------------------------------


async def test_each_session_is_in_its_partition(kafka_servers: str, tables: Path) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers, 3)
    sessions = {f"s{number}": talking(f"s{number}", 6) for number in range(12)}
    async with open_log(url, tables) as log:
        assert log.partitions == 3
        positions = dict(
            zip(
                sessions,
                await asyncio.gather(*(append_all(log, frames) for frames in sessions.values())),
                strict=True,
            )
        )
        for session, frames in sessions.items():
            partition = log.partition_of(session)
            assert partition == partition_of(session, 3)
            stored = [each async for each in log.read(session=session, partition=partition)]
            assert [each.record for each in stored] == [frame.record for frame in frames]
            assert [each.position for each in stored] == positions[session]
            await log.tables.wait(positions[session][-1], partition)
            assert log.tables.get(("sessions", session)).position == positions[session][-1]
            assert list(log.tables.records(session)) == stored
            assert log.tables.record(session, stored[2].position) == stored[2]
        assert {log.partition_of(session) for session in sessions} == {0, 1, 2}
        assert sum([await log.end(each) for each in range(3)]) == 12 * 7
        assert list(log.verify()) == []
        assert log.rebuild() == 12 * 7
        assert list(log.verify()) == []
        for ask in (lambda: log.end(3), lambda: anext(log.follow(partition=3))):
            with pytest.raises(UsageError, match="no partition 3: this log has 3, from 0"):
                await ask()
    async with open_log(url, tables.with_name("fresh.db")) as log:
        assert [log.tables.position(each) for each in range(3)] == [
            await log.end(each) for each in range(3)
        ]
        assert list(log.verify()) == []


# ---- what is not ours (case 24) -----------------------------------------------------------


async def test_what_is_not_ours_is_quarantined_and_the_partition_goes_on(
    kafka_servers: str, tables: Path
) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers, 3)
    frames = talking("s", 4)
    home = partition_of("s", 3)
    wrong = (home + 1) % 3
    async with open_log(url, tables) as log, producing(kafka_servers) as producer:

        async def send(key: bytes | None, headers: list[tuple[str, bytes]], partition: int) -> None:
            body = frames[1].record.body
            topic = topic_of(url)
            await producer.send_and_wait(topic, body, key, partition, headers=headers)

        await append_all(log, frames[:2])
        ours = to_message(frames[1].record, 3).headers
        await send(b"s", ours, wrong)  # another client's idea of where it belongs
        await send(None, ours, home)
        await send(b"\xff", ours, home)
        await send(b"s", [], home)  # no header of ours
        other = to_message(talking("t", 1)[1].record, 3).headers
        await send(b"s", other, home)  # another session's frame
        await producer.send_and_wait(topic_of(url), None, b"s", home)  # a tombstone
        await append_all(log, frames[2:])
        await settle_all(log)
        head = log.tables.get(("sessions", "s"))
        assert head.leaf == 4
        assert head.counts["quarantined"] == 3
        reasons = [row.reason for row in log.tables.scan("quarantine", "s")]
        assert any("another session" in reason for reason in reasons)
        assert log.tables.get(("sessions", "t")) is None
        stray = [stored async for stored in log.read(session=f"{STRAY}{wrong}", partition=wrong)]
        assert [item.record.header for item in stray] == [frames[1].record.header]
        assert len(list(log.tables.records(f"{STRAY}{home}"))) == 2
        assert log.partition_of(f"{STRAY}{home}") == home
        assert list(log.verify()) == []


@pytest.mark.parametrize("ending", ["commit", "abort"])
async def test_a_foreign_transaction_is_named_and_hides_nothing(
    kafka_servers: str, tables: Path, caplog: pytest.LogCaptureFixture, ending: str
) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    frames = talking("s", 6)
    transactional = {"transactional_id": f"{topic_of(url)}-foreign"}
    caplog.set_level(logging.WARNING, "turnlog")
    async with (
        open_log(url, tables) as log,
        producing(kafka_servers, **transactional) as producer,
    ):
        await append_all(log, frames[:2])
        await producer.begin_transaction()
        message = to_message(frames[2].record, 1)
        await producer.send_and_wait(
            topic_of(url), message.value, message.key, 0, headers=message.headers
        )
        position = (await append_all(log, frames[3:5]))[-1]
        await log.tables.wait(position)  # an open transaction hides nothing behind it
        assert log.tables.get(("sessions", "s")).seq == 4
        await asyncio.sleep(0.1)
        assert "open since position 3" in caplog.text
        if ending == "commit":
            await producer.commit_transaction()
        else:
            await producer.abort_transaction()
        while (end := await log.end()) == position:  # noqa: ASYNC110  # the broker tells nobody
            await asyncio.sleep(0.01)
        await asyncio.wait_for(settle(log), 5)  # the marker is the last thing there
        assert "positions 6 to 6 hold no record" in caplog.text
        await asyncio.wait_for(log.tables.wait(end), 5)
        last = await log.append(frames[5])
        assert last == end + 1
        await log.tables.wait(last)
        assert len(await read_all(log)) == 6
        assert list(log.verify()) == []


async def test_a_record_s_time_is_the_broker_s(kafka_servers: str, tables: Path) -> None:
    """A session from long ago, with its times as the records', could be deleted at once."""
    url = await asyncio.to_thread(make_topic, kafka_servers)
    long_ago_ms = 1_500_000_000_000
    async with open_log(url, tables) as log, producing(kafka_servers) as producer:
        await producer.send_and_wait(topic_of(url), b"{}", b"s", 0, timestamp_ms=long_ago_ms)
        (stored,) = await read_all(log)
    assert abs(stored.time - time.time() * 1000) < 60_000


# ---- a topic that is no longer what it was (case 22) --------------------------------------


async def test_a_topic_made_anew_is_noticed(kafka_servers: str, tables: Path) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    log = open_log(url, tables)
    await append_all(log, talking("s", 4))
    await settle(log)
    async with administering(kafka_servers) as admin:
        await admin.delete_topics([topic_of(url)])
        await asyncio.sleep(0.5)
    await asyncio.to_thread(make_raw, kafka_servers, topic_of(url), RULES)
    async with producing(kafka_servers) as producer:
        for number in range(9):
            await producer.send_and_wait(topic_of(url), b"%d" % number, b"s", 0)
    with pytest.raises(StateError, match=r"not the one that was opened|made anew"):
        await asyncio.wait_for(log.tables.wait(6), 10)
    assert len(list(log.tables.records("s"))) == 5  # nothing of the other topic got in
    with pytest.raises(StateError, match=r"not the one that was opened|made anew"):
        await log.append(claiming("t"))
    await log.close()
    with pytest.raises(StateError, match="was deleted and made again"):
        await asyncio.to_thread(open_log, url, tables)


async def test_what_another_topic_acknowledges_is_not_taken_for_appended(
    kafka_servers: str, tables: Path
) -> None:
    """Appending goes by the topic's name. Nobody reads here, who would notice."""
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        await log.append(claiming("s"))
        async with administering(kafka_servers) as admin:
            await admin.delete_topics([topic_of(url)])
        await asyncio.sleep(1.5)  # what was seen of the topic is old then
        await asyncio.to_thread(make_raw, kafka_servers, topic_of(url), RULES)
        for _ in range(2):
            with pytest.raises(StateError, match="not the one that was opened"):
                await log.append(guest("s", fact("f", 1)))
        with pytest.raises(StateError, match="not the one that was opened"):
            await log.load([claiming("t").record])


async def test_more_partitions_are_noticed(kafka_servers: str, tables: Path) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers, 2)
    async with open_log(url, tables) as log:
        await log.append(claiming("s"))
        async with administering(kafka_servers) as admin:
            await admin.create_partitions({topic_of(url): NewPartitions(4)})
        await log.append(claiming("t"))
        with pytest.raises(StateError, match="not the one that was opened"):
            await asyncio.wait_for(log.tables.wait(9, log.partition_of("t")), 10)
    with pytest.raises(StateError, match="has 4 partitions and was made with 2"):
        await asyncio.to_thread(open_log, url, tables)


async def test_deleted_records_are_noticed_and_what_is_left_can_be_read(
    kafka_servers: str, tables: Path
) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    frames = talking("s", 6)
    async with open_log(url, tables.with_name("a.db")) as log:
        await append_all(log, frames)
    where = TopicPartition(topic_of(url), 0)
    async with administering(kafka_servers) as admin:
        await admin.delete_records({where: RecordsToDelete(3)})
    with pytest.raises(StateError, match=r"begins at position 4; what was before is deleted"):
        await asyncio.to_thread(open_log, url, tables)
    async with open_log(url, tables, catch_up=False) as log:
        left = await read_all(log)
        assert [item.record for item in left] == [frame.record for frame in frames[3:]]


async def test_records_deleted_under_a_reader_are_noticed(kafka_servers: str, tables: Path) -> None:
    """Also by one who has read all of them."""
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        await append_all(log, talking("s", 6))
        await settle(log)
        async with administering(kafka_servers) as admin:
            await admin.delete_records({TopicPartition(topic_of(url), 0): RecordsToDelete(3)})

        async def go_on() -> None:
            while True:
                await log.append(claiming("t"))
                await settle(log)

        with pytest.raises(StateError, match="begins at position 4; what was before has been del"):
            await asyncio.wait_for(go_on(), 30)


async def test_an_empty_topic_in_place_of_the_log_reads_as_none(
    kafka_servers: str, tables: Path
) -> None:
    """Its end is 0, up to which everything is known."""
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        await append_all(log, talking("s", 4))
        await settle(log)
        async with administering(kafka_servers) as admin:
            await admin.delete_topics([topic_of(url)])
            await asyncio.sleep(0.5)
        await asyncio.to_thread(make_raw, kafka_servers, topic_of(url), RULES)
        with pytest.raises(StateError, match="turnlog topics check"):
            await read_all(log)


async def test_who_was_forked_is_refused(kafka_servers: str, tables: Path) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        await log.append(claiming("s"))
        child = await asyncio.to_thread(fork_and_append, log)
        assert child == REFUSED


async def test_topics_are_looked_after_from_within_an_event_loop(kafka_servers: str) -> None:
    url = f"kafka://{kafka_servers}/{new_name()}"
    made = turnlog.log.topics.create(url, partitions=2)
    assert turnlog.log.topics.look(url).topic == made.topic


async def test_a_log_is_not_taken_for_tables(kafka_servers: str, tables: Path) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with turnlog.log.open(f"sqlite:{tables}") as log:
        await log.append(claiming("s"))
    with pytest.raises(LogUnavailable, match="a log of its own"):
        open_log(url, tables)


def test_tables_that_cannot_be_made_are_said(kafka_servers: str, tables: Path) -> None:
    url = make_topic(kafka_servers)
    tables.write_text("")
    with pytest.raises(LogUnavailable, match="the tables of the log cannot be made"):
        open_log(url, tables / "below")
    with open_log(url, tables.with_name("new.db")):
        assert tables.with_name("new.db").stat().st_mode & 0o777 == 0o600


async def test_tables_of_another_log_are_refused(kafka_servers: str, tables: Path) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    other = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        await log.append(claiming("s"))
    with pytest.raises(StateError, match="give another file for the tables"):
        await asyncio.to_thread(open_log, other, tables)
    with pytest.raises(LogUnavailable, match="the tables of a log that lies elsewhere"):
        turnlog.log.open(f"sqlite:{tables}")
    turnlog.log.open(f"sqlite:{tables.with_name('log.db')}").__exit__()
    with pytest.raises(LogUnavailable, match=r"log\.db"):
        await asyncio.to_thread(open_log, other, tables.with_name("log.db"))


async def test_a_topic_that_lost_its_end_is_noticed(kafka_servers: str, tables: Path) -> None:
    """As after an unclean election: the file knows more than the topic."""
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        await append_all(log, talking("s", 3))
        await settle(log)
        log._mirror.add(0, [], 1_000)
    with pytest.raises(StateError, match=r"ends at position 4, and .* up to 1000"):
        await asyncio.to_thread(open_log, url, tables)


# ---- sizes --------------------------------------------------------------------------------


async def test_what_is_too_large_is_refused_and_harms_no_neighbour(
    kafka_servers: str, tables: Path
) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        neighbours = [asyncio.ensure_future(log.append(frame)) for frame in beginning("s")]
        biggest = asyncio.ensure_future(log.append(large("t", 1, 850_000)))
        with pytest.raises(TooLarge, match=r"session 'big': the record has 1,2\d\d,\d\d\d bytes"):
            await log.load([Record("small", None, b"{}"), Record("big", None, b"x" * 1_200_000)])
        assert await asyncio.gather(*neighbours) == [1, 2, 3]
        assert await biggest == 4
        assert len(await read_all(log)) == 4


async def test_no_broker_at_an_address_is_said(tables: Path) -> None:
    with pytest.raises(LogUnavailable, match="no broker answers"):
        await asyncio.to_thread(open_log, "kafka://127.0.0.1:1/t", tables, ask_s=0.3)


# ---- a process that is killed --------------------------------------------------------------


OPEN = """
import sys
from pathlib import Path
from turnlog.log.kafka.address import parse
from turnlog.log.kafka.log import KafkaLog
print("ready", flush=True)
KafkaLog(parse(sys.argv[1]), tables=Path(sys.argv[2]), busy_ms=5_000)
"""


async def test_a_process_killed_while_it_catches_up_harms_nothing(
    kafka_servers: str, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await asyncio.to_thread(make_topic, kafka_servers, 3)
    async with open_log(url, tables.with_name("whole.db")) as log:
        frames = [talking(f"s{number}", 100) for number in range(12)]
        await asyncio.gather(*(append_all(log, each) for each in frames))
    for after_s in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPEN, url, str(tables), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()
        await asyncio.sleep(after_s)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    async with open_log(url, tables) as log:
        assert sum(log.tables.position(partition) for partition in range(3)) == 12 * 101
        assert len(list(log.tables.scan("entries"))) == 12 * 100
        assert list(log.verify()) == []


async def test_who_waits_is_told_of_a_bug_and_the_rest_goes_on(
    kafka_servers: str, tables: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the client stumbles over: nobody waits for ever."""
    url = await asyncio.to_thread(make_topic, kafka_servers)
    async with open_log(url, tables) as log:
        frames = talking("s", 2)
        await log.append(frames[0])
        loop = asyncio.get_running_loop()
        message = log._message(frames[1].record)
        broken: Any = message._replace(headers=[("epoch", 1)])
        job = Job(broken, "s", loop.create_future(), time.monotonic())
        log._appender.put([job])
        going_on = asyncio.ensure_future(log.append(frames[1]))
        with pytest.raises(AppendUnknown, match=r"session 's'.*TypeError"):
            await asyncio.wait_for(job.future, 60)
        await asyncio.wait_for(going_on, 60)
        await log.append(frames[2])
        assert [each.record for each in await read_all(log)] == [each.record for each in frames]
    assert "a bug" in caplog.text
