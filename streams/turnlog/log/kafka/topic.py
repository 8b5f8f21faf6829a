"""What a topic must be to hold a log, and what is written down of it in its `-meta` topic.

Each rule has a reason. Unlimited retention and no compaction: the log is the only truth, and
compaction would keep one frame of each session (case 22). LogAppendTime: with a writer's own time
a record from long ago could be deleted at once. The partition count is fixed, since a session's
partition is computed from it (case 24). A topic that was deleted and made again has its old name
and another id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)

from turnlog.core.errors import LogUnavailable, StateError
from turnlog.core.frames import MAX_FRAME_BYTES
from turnlog.log.kafka import consumers
from turnlog.log.kafka.address import SUFFIX
from turnlog.log.kafka.cluster import BEGINNING, END, Cluster, Topic
from turnlog.log.kafka.partition import FUNCTION
from turnlog.log.kafka.reach import denial

FORMAT = 1
"""The version of what is in the topic; a reader refuses a newer one."""
META_KEY = b"topic"
READ_S = 15.0
RULES: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
    "unclean.leader.election.enable": "false",
}
MESSAGE_BYTES_MIN = MAX_FRAME_BYTES + 100_000
_META_SETTINGS = {"cleanup.policy": "compact"}


class Meta(NamedTuple):
    """What is written down when a topic is made."""

    format: int
    topic: str
    id: str
    partitions: int
    function: str
    min_insync_replicas: int


class Problem(NamedTuple):
    """What is wrong with a topic, and the command that mends it, if one does."""

    what: str
    mend: str | None

    def __str__(self) -> str:
        return self.what if self.mend is None else f"{self.what}; mend it by: {self.mend}"


class Found(NamedTuple):
    """A topic as it is: `problems` must be empty for it to be used; `notes` pass by themselves."""

    topic: Topic
    meta: Meta | None
    settings: Mapping[str, str]
    begins: list[int]
    ends: list[int]
    problems: list[Problem]
    notes: list[str]


async def look(cluster: Cluster, name: str) -> Found:
    """Everything about a topic. Raises LogUnavailable where there is none."""
    topic = await cluster.topic(name)
    if topic is None:
        raise LogUnavailable(
            f"kafka://{cluster.servers}: there is no topic {name!r}: make it by"
            f" `turnlog topics create kafka://{cluster.servers}/{name}`"
        )
    settings = await cluster.settings_of(name)
    begins = await cluster.offsets(name, BEGINNING)
    ends = await cluster.offsets(name, END)
    meta = await read_meta(cluster, name)
    problems = [
        *_wrong_settings(cluster, topic, settings, meta),
        *_wrong_meta(cluster, topic, meta, is_empty=not any(ends)),
        *await _wrong_meta_settings(cluster, name, meta),
        *_lost(name, begins),
    ]
    notes = [
        f"partition {number} has {len(each.in_sync)} of {len(each.replicas)} replicas in sync"
        for number, each in enumerate(topic.partitions)
        if len(each.in_sync) < len(each.replicas)
    ]
    return Found(topic, meta, settings, begins, ends, problems, notes)


def _wrong_settings(
    cluster: Cluster, topic: Topic, settings: Mapping[str, str], meta: Meta | None
) -> list[Problem]:
    """The settings that are not as they must be, each with its command."""
    problems: list[Problem] = []

    def wrong(setting: str, why: str, wanted: str) -> None:
        is_ = settings.get(setting, "")
        problems.append(_wrong_setting(cluster, topic.name, f"{setting}={is_}", why, wanted))

    for setting, wanted in RULES.items():
        if settings.get(setting) != wanted:
            wrong(setting, f"and must have {wanted}", wanted)
    if int(settings.get("max.message.bytes", 0)) < MESSAGE_BYTES_MIN:
        why = f"and a frame needs {MESSAGE_BYTES_MIN}"
        wrong("max.message.bytes", why, str(MESSAGE_BYTES_MIN))
    least = meta.min_insync_replicas if meta is not None else 1
    if int(settings.get("min.insync.replicas", 0)) < least:
        wrong("min.insync.replicas", f"and was made for {least}", str(least))
    copies = min(len(each.replicas) for each in topic.partitions)
    if int(settings.get("min.insync.replicas", 0)) > copies:
        why = f"and {copies} of each partition: nothing can be appended"
        wrong("min.insync.replicas", why, str(copies // 2 + 1))
    return problems


def _wrong_setting(cluster: Cluster, name: str, is_: str, why: str, wanted: str) -> Problem:
    """One of a topic, as SETTING=VALUE, and the command that mends it."""
    setting = is_.partition("=")[0]
    command = (
        f"kafka-configs.sh --bootstrap-server {cluster.servers} --alter --entity-type topics"
        f" --entity-name {name} --add-config {setting}={wanted}"
    )
    return Problem(f"topic {name!r} has {is_}, {why}", command)


async def _wrong_meta_settings(cluster: Cluster, name: str, meta: Meta | None) -> list[Problem]:
    """Where what was written down could be deleted by itself."""
    if meta is None:
        return []
    settings = await cluster.settings_of(name + SUFFIX)
    return [
        _wrong_setting(
            cluster,
            name + SUFFIX,
            f"{setting}={settings.get(setting, '')}",
            f"and must have {wanted}",
            wanted,
        )
        for setting, wanted in _META_SETTINGS.items()
        if settings.get(setting) != wanted
    ]


def _wrong_meta(
    cluster: Cluster, topic: Topic, meta: Meta | None, *, is_empty: bool
) -> list[Problem]:
    """Where the topic is not the one that was written down."""
    url = f"kafka://{cluster.servers}/{topic.name}"
    create = f"turnlog topics create {url}"
    if meta is None:
        what = f"topic {topic.name!r} has no record in {topic.name + SUFFIX!r}"
        if is_empty:
            return [Problem(what, create)]
        return [
            Problem(
                f"{what}, and holds records: whether all are there is not known",
                "if it is a log, copy it to a new topic by `turnlog dump` and `turnlog restore`",
            )
        ]
    if meta.format > FORMAT:
        said = f"topic {topic.name!r} is of format {meta.format}, and this turnlog knows {FORMAT}"
        return [Problem(said, "upgrade turnlog")]
    problems: list[Problem] = []
    if meta.id != topic.id:
        problems.append(
            Problem(
                f"topic {topic.name!r} was deleted and made again (its id is {topic.id}, and was"
                f" {meta.id}): what it held is gone",
                f"restore it by `turnlog copy`, or if it is meant to be new and empty: {create}",
            )
        )
    if len(topic.partitions) != meta.partitions:
        problems.append(
            Problem(
                f"topic {topic.name!r} has {len(topic.partitions)} partitions and was made with"
                f" {meta.partitions}: sessions would be on two partitions",
                "copy it to a new topic by `turnlog dump` and `turnlog restore`; partitions cannot"
                " be taken away",
            )
        )
    if meta.function != FUNCTION:
        said = f"topic {topic.name!r} has partitions by {meta.function!r}, not {FUNCTION!r}"
        problems.append(Problem(said, "upgrade turnlog"))
    return problems


def _lost(name: str, begins: list[int]) -> list[Problem]:
    return [
        Problem(
            f"topic {name!r}, partition {number}: begins at position {begin + 1}; what was before"
            " is deleted",
            "copy what is left to a new topic by `turnlog dump` and `turnlog restore`",
        )
        for number, begin in enumerate(begins)
        if begin > 0
    ]


# ---- the -meta topic ----------------------------------------------------------------------


async def read_meta(cluster: Cluster, name: str) -> Meta | None:
    """What is written down of a topic; None where nothing is."""
    where = TopicPartition(name + SUFFIX, 0)
    if await cluster.topic(where.topic, wanted="Read") is None:
        return None
    (begin,), (end,) = (
        await cluster.offsets(where.topic, BEGINNING, [0]),
        await cluster.offsets(where.topic, END, [0]),
    )
    if begin == end:
        return None  # and a consumer that is stopped before it began raises CancelledError
    found: bytes | None = None
    consumer = AIOKafkaConsumer(
        **cluster.client.consumer,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_uncommitted",
    )
    try:
        await consumer.start()
        consumer.assign([where])
        consumer.seek(where, begin)
        async with asyncio.timeout(READ_S):
            while await consumer.position(where) < end:
                answer = await consumer.getmany(where, timeout_ms=500)
                for record in answer.get(where, []):
                    if record.key == META_KEY:
                        found = record.value
    except TopicAuthorizationFailedError as error:
        raise LogUnavailable(denial(cluster.client, "Read", where.topic)) from error
    except (KafkaError, TimeoutError) as error:
        raise LogUnavailable(
            f"topic {where.topic!r} cannot be read to its end ({error!r})", retriable=True
        ) from error
    finally:
        await consumers.end(consumer)
    return None if found is None else _parse(where.topic, found)


def _parse(topic: str, value: bytes) -> Meta:
    try:
        raw: Any = orjson.loads(value)
        return Meta(*(raw[field] for field in Meta._fields))
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"topic {topic!r}: its record is not turnlog's ({type(error).__name__}: {error})"
        ) from error


async def _write_meta(cluster: Cluster, meta: Meta, replication: int) -> None:
    name = meta.topic + SUFFIX
    settings = {**_META_SETTINGS, "min.insync.replicas": str(meta.min_insync_replicas)}
    await cluster.create(name, 1, replication, settings)
    producer = AIOKafkaProducer(**cluster.client.producer, acks="all", enable_idempotence=True)
    try:
        await producer.start()
        sent = await producer.send(name, orjson.dumps(meta._asdict()), META_KEY, 0)
        await sent
    except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError) as error:
        raise LogUnavailable(denial(cluster.client, "Write", name)) from error
    except KafkaError as error:
        raise LogUnavailable(
            f"topic {name!r} takes no record ({error!r}); run the same again", retriable=True
        ) from error
    finally:
        await producer.stop()


async def create(cluster: Cluster, name: str, *, partitions: int, replication: int) -> Found:
    """Make a topic and its `-meta` topic, or write down one that is there, is right, and holds
    nothing. Gives it as it is then. Raises StateError for one that must not be used so."""
    least = replication // 2 + 1
    settings = {
        **RULES,
        "min.insync.replicas": str(least),
        "max.message.bytes": str(max(MESSAGE_BYTES_MIN, 1_048_588)),
        "compression.type": "producer",
    }
    is_new = await cluster.create(name, partitions, replication, settings)
    found = await look(cluster, name)
    if is_new or not found.meta or found.meta.id != found.topic.id:
        if any(found.ends):
            raise StateError(
                f"topic {name!r} is there, holds records, and is not written down as a log; give"
                " another name"
            )
        meta = Meta(FORMAT, name, found.topic.id, len(found.topic.partitions), FUNCTION, least)
        await _write_meta(cluster, meta, replication)
        found = await look(cluster, name)
    return found
