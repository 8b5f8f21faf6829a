"""What the client says of an append, and what is made of it. Nothing is sent here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    OutOfOrderSequenceNumber,
    TopicAuthorizationFailedError,
)
from aiokafka.structs import RecordMetadata, TopicPartition

from turnlog.core.errors import AppendRefused, AppendUnknown
from turnlog.core.frames import Record
from turnlog.log.kafka.appender import BACKOFF_MS, Appender, Job
from turnlog.log.kafka.records import to_message
from turnlog.log.kafka.settings import Client


@pytest.fixture
async def appender() -> AsyncIterator[Appender]:
    appender = Appender(Client("127.0.0.1:1", {}), "t", deadline_s=0.3)
    yield appender
    await appender.close()


def sent(appender: Appender, *, ago_s: float = 0.0) -> tuple[Job, asyncio.Future[RecordMetadata]]:
    """An append as if a producer had it; what it says of it is set on the future."""
    loop = asyncio.get_running_loop()
    message = to_message(Record("s", None, b"{}"), 1)
    job = Job(message, "s", loop.create_future(), time.monotonic() - ago_s)
    said: asyncio.Future[RecordMetadata] = loop.create_future()
    appender._sent[said] = job
    said.add_done_callback(appender._done)
    return job, said


def acknowledged(offset: int, timestamp: int = 1_700_000_000_000) -> RecordMetadata:
    kind = 0 if timestamp == -1 else 1
    return RecordMetadata("t", 0, TopicPartition("t", 0), offset, timestamp, kind, 0)


async def test_an_acknowledgement_with_an_offset_is_a_position(appender: Appender) -> None:
    job, said = sent(appender)
    said.set_result(acknowledged(41))
    assert await job.future == 42


@pytest.mark.parametrize("offset", [-1, 0, 3])
async def test_a_duplicate_has_no_place(appender: Appender, offset: int) -> None:
    """The client counts a duplicate batch's records from -1: the second would be at offset 0."""
    job, said = sent(appender)
    said.set_result(acknowledged(offset, timestamp=-1))
    with pytest.raises(AppendUnknown, match="does not say where"):
        await job.future


@pytest.mark.parametrize("error", [MessageSizeTooLargeError, TopicAuthorizationFailedError])
async def test_what_the_broker_refuses_at_once_is_refused(
    appender: Appender, error: type[Exception]
) -> None:
    job, said = sent(appender)
    said.set_exception(error("t"))
    with pytest.raises(AppendRefused, match=r"session 's', topic 't', partition 0: nothing was"):
        await job.future


@pytest.mark.parametrize("error", [MessageSizeTooLargeError, TopicAuthorizationFailedError])
async def test_what_may_have_been_tried_before_is_unknown(
    appender: Appender, error: type[Exception]
) -> None:
    job, said = sent(appender, ago_s=BACKOFF_MS / 1000)
    said.set_exception(error("t"))
    with pytest.raises(AppendUnknown):
        await job.future


@pytest.mark.parametrize(
    "error", [NotLeaderForPartitionError, OutOfOrderSequenceNumber, KafkaConnectionError]
)
async def test_everything_else_is_unknown_and_so_is_what_goes_with_it(
    appender: Appender, error: type[Exception]
) -> None:
    job, said = sent(appender)
    neighbour, its = sent(appender)
    said.set_exception(error())
    for each in (job, neighbour):
        with pytest.raises(AppendUnknown, match="append the same frame again"):
            await each.future
    its.set_result(acknowledged(5))  # too late: it has been told
    await asyncio.sleep(0)


async def test_what_is_never_answered_is_unknown_after_the_deadline(appender: Appender) -> None:
    job, _ = sent(appender)
    with pytest.raises(AppendUnknown, match=r"no acknowledgement within 0\.3 s"):
        await asyncio.wait_for(job.future, 2)


async def test_what_no_producer_can_be_made_for_is_refused(appender: Appender) -> None:
    loop = asyncio.get_running_loop()
    message = to_message(Record("s", None, b"{}"), 1)
    jobs = [Job(message, "s", loop.create_future(), time.monotonic()) for _ in range(3)]
    jobs[1].future.cancel()
    appender.put(jobs)
    for job in (jobs[0], jobs[2]):
        with pytest.raises(AppendRefused, match="nothing was appended") as refused:
            await job.future
        assert refused.value.retriable
