"""What the processes do that are killed: they append for ever, and tell what was acknowledged.

A frame is known by its session, epoch and seq alone, so that a test can say what must be there.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import turnlog.log
from tests.story import claimed, user
from turnlog.core.frames import Header, Record, SealedFrame, seal
from turnlog.log import EmbeddedLog

LOAD = 5
"""Records of one load: all of them are there, or none."""
Tell = Callable[..., None]


def claim_of(session: str, epoch: int) -> SealedFrame:
    data = claimed(f"claim-{epoch}", epoch - 1, host="host", reason="recovery")
    event = data._replace(id=f"{session}-claim-{epoch}")
    return seal(Header(session, None, None, None, "host"), [event])


def frame_of(session: str, epoch: int, seq: int) -> SealedFrame:
    """A message; every seventh is long, so that it is compressed or lies on many pages."""
    if seq == 0:
        return claim_of(session, epoch)
    say = f"{session} {epoch} {seq} " * (3_000 if seq % 7 == 0 else 3)
    parent = f"{session}-{epoch}-{seq - 1}" if seq > 1 else None
    message = user(f"{session}-{epoch}-{seq}", parent, say)
    return seal(Header(session, f"claim-{epoch}", epoch, seq, "host"), [message])


def loaded(name: str) -> list[Record]:
    """The records of one load; `name` is its number in the session."""
    return [
        seal(
            Header(f"load-{name}", None, None, None, f"load {number}"),
            [user(f"{name}-{number}", None)],
        ).record
        for number in range(LOAD)
    ]


async def write_session(log: EmbeddedLog, session: str, tell: Tell, frames: int) -> None:
    head = log.tables.get(("sessions", session))
    epoch = 1 + (head.epoch if head is not None else 0)
    for seq in range(frames):
        tell(session, epoch, seq, await log.append(frame_of(session, epoch, seq)))


async def write_sessions(log: EmbeddedLog, request: dict[str, Any], tell: Tell) -> None:
    names = [f"{request['name']}-{number}" for number in range(request["sessions"])]
    await asyncio.gather(*(write_session(log, name, tell, request["frames"]) for name in names))


async def load_for_ever(log: EmbeddedLog, request: dict[str, Any], tell: Tell) -> None:
    for number in range(request["frames"]):
        name = f"{request['name']}-{request['seed']}-{number}"
        tell(name, await log.load(loaded(name)))


async def rebuild_for_ever(log: EmbeddedLog, request: dict[str, Any], tell: Tell) -> None:
    writing = asyncio.ensure_future(write_sessions(log, request, tell))
    while not writing.done():
        await asyncio.to_thread(log.rebuild)
    await writing


WORK = {"append": write_sessions, "load": load_for_ever, "rebuild": rebuild_for_ever}


async def work(request: dict[str, Any], pipe: int) -> None:
    """Do what a request says; each line in the pipe is an acknowledgement."""

    def tell(*what: Any) -> None:
        os.write(pipe, json.dumps(what).encode() + b"\n")

    async with turnlog.log.open(request["url"], clock=lambda: 0, busy_ms=60_000) as log:
        await WORK[request["work"]](log, request, tell)
