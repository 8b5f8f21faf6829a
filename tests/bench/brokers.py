"""A real Kafka for a bench, and events that compress as those of sessions do."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import orjson

from tests.kafka import VARIABLE
from turnlog.core.frames import Header, NewEvent, SealedFrame, seal
from turnlog.log import topics
from turnlog.testing.broker import Broker

TIME = "2026-01-01T00:00:00.000Z"
TEXTS = 10_000
TEXT_BYTES = 505

_numbers = count()


@contextmanager
def serving() -> Iterator[str]:
    """The addresses of the broker that TURNLOG_KAFKA names, or of one that ends with the bench."""
    named = os.environ.get(VARIABLE)
    if named:
        yield named
        return
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        yield broker.servers


def new_topic(servers: str, partitions: int = topics.PARTITIONS) -> str:
    """A topic of its own; gives its URL."""
    url = f"kafka://{servers}/bench-{os.getpid()}-{next(_numbers)}"
    topics.create(url, partitions=partitions)
    return url


class Writer:
    """Texts and ids, the same in every run.

    A vocabulary of words that look random, few of them often: zstd brings batches of such events to
    a quarter, about as it does with those of real sessions.
    """

    def __init__(self) -> None:
        chance = random.Random(1)
        letters = "etaoinshrdlucmfwypvbgkjqxz"
        words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(2 * TEXTS)]
        self._chance = chance
        self._texts = [self._text(words) for _ in range(TEXTS)]

    def _text(self, words: list[str]) -> str:
        picked: list[str] = []
        size = 0
        while size < TEXT_BYTES:
            picked.append(words[min(int(self._chance.paretovariate(0.35)), len(words)) - 1])
            size += len(picked[-1]) + 1
        return " ".join(picked)[:TEXT_BYTES]

    def text(self) -> str:
        return self._chance.choice(self._texts)

    def id(self, number: int) -> str:
        return f"{self._chance.getrandbits(64):016x}-{number:015x}"


class Talk:
    """A session of messages of about 710 bytes, so many in a frame."""

    def __init__(self, writer: Writer, session: str, events: int) -> None:
        self.session = session
        self._writer = writer
        self._events = events
        self._seq = 0
        self._parent: str | None = None

    def claim(self) -> SealedFrame:
        data = {"claim": "c" * 32, "expects": 0, "host": "host", "reason": "open"}
        header = Header(self.session, None, None, None, "host")
        return seal(header, [NewEvent("session_claimed", f"claim {self.session}", TIME, data)])

    def frames(self, number: int) -> list[SealedFrame]:
        return [self.next() for _ in range(number)]

    def next(self) -> SealedFrame:
        events: list[NewEvent] = []
        if self._seq == 0:
            data: dict[str, object] = {"title": "a session", "cwd": "/home/somebody/project"}
            events.append(NewEvent("session_created", f"created {self.session}", TIME, data))
        for index in range(self._events):
            id_ = self._writer.id(self._seq * self._events + index)
            data = {
                "parent": self._parent,
                "role": ("user", "assistant")[index % 2],
                "content": [{"type": "text", "text": self._writer.text()}],
            }
            events.append(NewEvent("message", id_, TIME, data))
            self._parent = id_
        self._seq += 1
        return seal(Header(self.session, "c" * 32, 1, self._seq, "host"), events)


def talks(writer: Writer, name: str, number: int, events: int) -> list[Talk]:
    return [Talk(writer, f"{name}-{index:04d}-{'x' * 24}", events) for index in range(number)]


def events_of(frame: SealedFrame) -> list[bytes]:
    """A frame's events, each as it stands in the body."""
    return [orjson.dumps(event) for event in orjson.loads(frame.record.body)["events"]]
