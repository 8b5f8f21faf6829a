"""The tables of a log on Kafka: how fast they catch up, and how soon they show a frame; and events
of hosts, which wait for company in their batches and are saved once the tables show them.

A tool's start, T1, waits until it is read back. Its reference is a bare idempotent send of the same
bytes that is waited for. Both take turns in short rounds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

import turnlog.log
from tests.bench import folding
from tests.bench.brokers import Writer, new_topic, talks
from tests.bench.figures import Figure
from tests.bench.host import Looking, Round, call_in_turn, run_rounds
from tests.bench.kafka_appends import producing
from turnlog.core.frames import Record
from turnlog.host import Session, open_session
from turnlog.log import EmbeddedLog, topics
from turnlog.log.kafka.address import parse

SESSIONS = 64
FRAMES = 128
SIZE = 8
RUNS = 3
CALLS = 40
"""T1s of a session in a round; of many sessions a quarter each."""
STREAMED = 200
ROUNDS = 7


# ---- catching up --------------------------------------------------------------------------


def messages() -> list[Record]:
    """Frames of many sessions, which take turns."""
    writer = Writer()
    sessions = talks(writer, "caught-up", SESSIONS, SIZE)
    frames = [talk.claim() for talk in sessions]
    for _ in range(FRAMES):
        frames += [talk.next() for talk in sessions]
    return [frame.record for frame in frames]


async def fill(url: str, folder: Path, records: Sequence[Record]) -> int:
    """Load records into a topic; gives the number of their events."""
    async with turnlog.log.open(url, tables=f"sqlite:{folder / 'filling.db'}") as log:
        for start in range(0, len(records), 1_000):
            await log.load(records[start : start + 1_000])
    (folder / "filling.db").unlink()
    return sum(len(orjson.loads(record.body)["events"]) for record in records)


async def read_alone(url: str) -> float:
    """Seconds to read a topic with aiokafka and `orjson.loads`."""
    servers, topic = parse(url).servers, parse(url).topic
    start = time.perf_counter()
    async with AIOKafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False) as consumer:
        ends = await consumer.end_offsets(
            [TopicPartition(topic, number) for number in range(topics.PARTITIONS)]
        )
        consumer.assign(list(ends))
        await consumer.seek_to_beginning()
        left = sum(ends.values())
        while left > 0:
            for records in (await consumer.getmany(timeout_ms=1_000)).values():
                left -= len(records)
                for record in records:
                    orjson.loads(record.value)
    return time.perf_counter() - start


def open_anew(url: str, tables: Path) -> float:
    """Seconds to open a log whose tables are not there."""
    start = time.perf_counter()
    log = turnlog.log.open(url, tables=f"sqlite:{tables}")
    seconds = time.perf_counter() - start
    with log:
        pass
    tables.unlink()
    return seconds


async def measure_catch_up(servers: str, folder: Path, runs: int = RUNS) -> list[Figure]:
    """Tables in SQLite, from nothing to the end of the topic."""
    figures: list[Figure] = []
    for what, records, goal in (
        ("messages", messages(), ">= 15000"),
        ("whole turns", folding.turns(FRAMES * SESSIONS // 4), ""),
    ):
        url = await asyncio.to_thread(new_topic, servers)
        events = await fill(url, folder, records)
        found: list[float] = []
        alone: list[float] = []
        for _ in range(runs):
            alone.append(await read_alone(url))
            found.append(await asyncio.to_thread(open_anew, url, folder / "tables.db"))
        figures.append(
            Figure(
                f"catch-up of SQLite tables from Kafka, {what}",
                events / median(found),
                "events/s",
                goal,
                f"frames of {SIZE}; reading and orjson.loads alone {events / median(alone):,.0f}/s",
            )
        )
    return figures


# ---- T1 -----------------------------------------------------------------------------------


class Starts:
    """T1s of some sessions through hosts, and bare sends of the same bytes; seconds of each."""

    def __init__(self, log: EmbeddedLog, producer: AIOKafkaProducer, topic: str) -> None:
        self._log = log
        self._producer = producer
        self._topic = topic
        self._lookings: list[Looking] = []
        self._sessions: list[Session] = []
        self.seconds: list[float] = []
        self.bare: list[float] = []

    async def open(self, number: int, stack: AsyncExitStack) -> None:
        for index in range(number):
            looking = Looking()
            opened = open_session(
                self._log,
                f"starts-{index}",
                host="h",
                tools=[looking.tool],
                ambient=looking.ambient,
            )
            self._lookings.append(looking)
            self._sessions.append(await stack.enter_async_context(opened))

    async def run(self, calls: int) -> None:
        await asyncio.gather(*(call_in_turn(session, 1, calls) for session in self._sessions))
        for looking in self._lookings:
            self.seconds += looking.seconds
            looking.seconds = []

    async def run_bare(self, calls: int) -> None:
        await asyncio.gather(*(self._send(session.id, calls) for session in self._sessions))

    async def _send(self, session: str, calls: int) -> None:
        records = self._log.tables.records(session)
        body = next(each.record.body for each in records if b"tool_dispatched" in each.record.body)
        partition, key = self._log.partition_of(session), session.encode()
        for _ in range(calls):
            start = time.perf_counter()
            await self._producer.send_and_wait(self._topic, body, key, partition)
            self.bare.append(time.perf_counter() - start)


async def measure_starts(servers: str, folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """T1 until its effect starts, which is when the tables show it: of one session, and of many."""
    figures: list[Figure] = []
    for number in (1, SESSIONS):
        ours, plain = [await asyncio.to_thread(new_topic, servers) for _ in range(2)]
        topic = parse(plain).topic
        async with (
            turnlog.log.open(ours, tables=f"sqlite:{folder / f'starts-{number}.db'}") as log,
            producing(servers, topic) as producer,
            AsyncExitStack() as stack,
        ):
            starts = Starts(log, producer, topic)
            await starts.open(number, stack)
            calls = CALLS if number == 1 else max(CALLS // 4, 1)
            for round_ in range(rounds + 1):
                if round_ == 1:  # the first one fills the caches
                    starts.seconds, starts.bare = [], []
                await starts.run(calls)
                await starts.run_bare(calls)
        seconds, bare = (quantiles(each, n=100) for each in (starts.seconds, starts.bare))
        for percentile in (50, 99):
            ours_s, bare_s = seconds[percentile - 1], bare[percentile - 1]
            figures.append(
                Figure(
                    f"T1 on Kafka, {number} at once, p{percentile}, times a bare awaited send",
                    ours_s / bare_s,
                    "",
                    "",
                    f"{ours_s * 1e3:.1f} ms; bare {bare_s * 1e3:.1f} ms",
                )
            )
    return figures


# ---- events in batches --------------------------------------------------------------------


async def _seconds_an_event(sessions: Sequence[Session], events: int, text: str) -> float:
    async def stream(session: Session) -> None:
        for index in range(events):
            await session.set_extension("progress", {"step": index, "note": text})
            if index % SIZE == 0:
                await asyncio.sleep(0)  # as something that streams would
        await session.flush()

    start = time.perf_counter()
    await asyncio.gather(*map(stream, sessions))
    return (time.perf_counter() - start) / (events * len(sessions))


async def measure_streams(servers: str, folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """Events of many hosts' sessions that are batched, until all are saved; on SQLite, too."""
    text = Writer().text()
    urls = {
        "kafka": await asyncio.to_thread(new_topic, servers),
        "sqlite": f"sqlite:{folder / 'streams.db'}",
    }
    async with AsyncExitStack() as stack:
        cases: dict[str, Round] = {}
        for kind, url in urls.items():
            tables = f"sqlite:{folder / 'streams-tables.db'}" if kind == "kafka" else None
            log = await stack.enter_async_context(turnlog.log.open(url, tables=tables))
            sessions = [
                await stack.enter_async_context(open_session(log, f"streams-{index}", host="h"))
                for index in range(SESSIONS)
            ]
            cases[kind] = partial(_seconds_an_event, sessions, STREAMED, text)
        each = await run_rounds(cases, rounds)
    return [
        Figure(
            f"Kafka, events of {SESSIONS} hosts' sessions in batches, saved",
            1 / each["kafka"],
            "events/s",
            "",
            f"the same on SQLite {1 / each['sqlite']:,.0f}/s",
        )
    ]
