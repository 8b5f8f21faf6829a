"""Appending to Kafka next to Kafka's own tools.

Appends are what hosts do: sealed frames, each session's next one when its last is acknowledged. The
references send the same event bytes, one event a record, to the same kind of topic, with the same
acknowledgements, codec and sizes: Kafka's own producer performance tool, in Java, and aiokafka
without waiting for anything. All take turns, so that whatever else the machine does falls on each;
figures are medians over the rounds, of rates and of ratios. Nobody follows the topic meanwhile. The
goals are those of frames of 8 events.
"""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from aiokafka import AIOKafkaProducer

import turnlog.log
from tests.bench.brokers import Writer, events_of, new_topic, talks
from tests.bench.figures import Figure
from tests.bench.host import seconds_of
from turnlog.core.frames import SealedFrame
from turnlog.log import EmbeddedLog
from turnlog.log.client import SETTINGS
from turnlog.log.kafka.address import parse
from turnlog.testing.broker_jars import find_java

SESSIONS = 256
FRAMES = 128
"""Frames of 8 events of each session in a round: some two seconds of appends."""
SIZES = (8, 32)
ROUNDS = 7
MB = 1e6
BATCH_BYTES = int(SETTINGS["batch.size"].default)

_SAID = re.compile(r"records sent, ([\d.]+) records/sec")


# ---- appending ----------------------------------------------------------------------------


class Frames:
    """What is appended: frames of so many events for each of some sessions."""

    def __init__(self, writer: Writer, size: int, frames: int) -> None:
        self.size = size
        self.work = [talk.frames(frames) for talk in talks(writer, f"of-{size}", SESSIONS, size)]
        self.events = sum(len(frame.frame.events) for frames in self.work for frame in frames)

    async def append(self, log: EmbeddedLog) -> float:
        """Seconds an event."""

        async def write(frames: Sequence[SealedFrame]) -> None:
            for frame in frames:
                await log.append(frame)

        start = time.perf_counter()
        await asyncio.gather(*map(write, self.work))
        return (time.perf_counter() - start) / self.events


class Single:
    """The same events, one a record, in an order in which sessions take turns."""

    def __init__(self, frames: Frames, partition_of: Callable[[str], int]) -> None:
        self.records: list[tuple[int, bytes, bytes]] = []
        for same in zip(*frames.work, strict=True):
            for frame in same:
                session = frame.record.session
                place = partition_of(session), session.encode()
                self.records += [(*place, event) for event in events_of(frame)]
        self.bytes = sum(len(record[2]) for record in self.records)

    async def send(self, producer: AIOKafkaProducer, topic: str) -> float:
        start = time.perf_counter()
        for partition, key, event in self.records:
            await producer.send(topic, event, key, partition)
        await producer.flush()
        return (time.perf_counter() - start) / len(self.records)

    def write_payload(self, path: Path) -> Path:
        """The file that Kafka's tool takes its records from, in any order."""
        path.write_bytes(b"".join(event + b"\n" for _, _, event in self.records))
        return path


async def run_tool(url: str, payload: Path, records: int) -> float:
    """Seconds a record, as Kafka's own tool says."""
    java = await asyncio.to_thread(find_java)
    servers, topic = parse(url).servers, parse(url).topic
    settings = {
        "bootstrap.servers": servers,
        "acks": "all",
        "enable.idempotence": "true",
        "compression.type": "zstd",
        "batch.size": BATCH_BYTES,
        "linger.ms": 5,
    }
    command = [
        *(java.command, "-cp", java.classpath, "org.apache.kafka.tools.ProducerPerformance"),
        *("--topic", topic, "--num-records", str(records), "--throughput", "-1"),
        *("--payload-file", str(payload), "--producer-props"),
        *(f"{name}={value}" for name, value in settings.items()),
    ]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=True
    )
    return 1 / float(_SAID.findall(done.stdout)[-1])


@asynccontextmanager
async def producing(servers: str, topic: str, **settings: Any) -> AsyncIterator[AIOKafkaProducer]:
    """An idempotent producer with the settings of our own."""
    async with AIOKafkaProducer(
        bootstrap_servers=servers,
        acks="all",
        enable_idempotence=True,
        compression_type="zstd",
        max_batch_size=BATCH_BYTES,
        **settings,
    ) as producer:
        await producer.partitions_for(topic)
        yield producer


async def measure_appends(servers: str, folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """Batched appends next to the references."""
    writer = Writer()
    ours, plain, tools = [await asyncio.to_thread(new_topic, servers) for _ in range(3)]
    topic = parse(plain).topic
    async with (
        turnlog.log.open(ours, tables=f"sqlite:{folder / 'appends.db'}") as log,
        producing(servers, topic, linger_ms=5) as producer,
    ):
        work = {size: Frames(writer, size, FRAMES * SIZES[0] // size) for size in SIZES}
        single = Single(work[SIZES[0]], log.partition_of)
        payload = single.write_payload(folder / "payload")
        gc.collect()
        gc.freeze()  # what was prepared is no work of either
        seconds = await seconds_of(
            {
                "tool": partial(run_tool, tools, payload, len(single.records)),
                "single": partial(single.send, producer, topic),
                **{str(size): partial(frames.append, log) for size, frames in work.items()},
            },
            rounds,
        )
    gc.unfreeze()
    size = single.bytes / len(single.records)
    rates = {name: 1 / median(each) for name, each in seconds.items()}

    def times(name: str, reference: str) -> float:
        pairs = zip(seconds[reference], seconds[name], strict=True)
        return median(its / ours for its, ours in pairs)

    figures: list[Figure] = []
    for index, name in enumerate(map(str, SIZES)):
        what, rate = f"Kafka, appends in frames of {name},", rates[name]
        figures += [
            Figure(
                f"{what} MB/s as a share of Kafka's tool",
                times(name, "tool"),
                "",
                "" if index else ">= 0.7",
                f"{rate * size / MB:.0f} MB/s; tool {rates['tool'] * size / MB:.0f} MB/s"
                f" of events of {size:.0f} B",
            ),
            Figure(
                f"{what} times unawaited sends",
                times(name, "single"),
                "",
                "" if index else ">= 1.3",
                f"{rate:,.0f} events/s; one event a record {rates['single']:,.0f}",
            ),
        ]
    return figures
