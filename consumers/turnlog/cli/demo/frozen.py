"""A host freezes at a named place of the protocol, another one takes over, and it wakes.

The frozen process stops itself there (`turnlog.testing.failpoints`). What became of its call is
read from the log: a call that had not started never does, and an answer that comes too late is kept
on its dispatch as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.cli.demo.checks import Check, compare
from turnlog.cli.demo.host import Task
from turnlog.cli.demo.processes import Hosts
from turnlog.cli.demo.receiver import Counted, Receiver
from turnlog.cli.opening import catch_up
from turnlog.core.rows import Dispatch
from turnlog.log import EmbeddedLog
from turnlog.owner import places
from turnlog.tables.view import SessionView

Json = Any


class Place(NamedTuple):
    """Where a host is frozen, in which session, and what comes of it: the evidence on its call once
    it is awake, and what the receiver counts."""

    place: str
    session: str
    evidence: list[str]
    counted: Counted


PLACES = (
    Place(places.T1_SENT, "storm-1", ["not_started"], Counted(0, 0, 0)),
    Place(places.EFFECT_DONE, "storm-2", ["ok"], Counted(1, 1, 0)),
)


class Frozen(NamedTuple):
    """What came of one of them: how the two hosts ended, and the call."""

    place: Place
    other: Json
    woken: Json
    row: Dispatch
    counted: Counted
    epoch: int

    @property
    def evidence(self) -> list[str]:
        """What came too late to be the answer."""
        return [piece["status"] for piece in self.row.evidence]


def freeze(
    log: EmbeddedLog, hosts: Hosts, receiver: Receiver, folder: Path, place: Place
) -> Frozen:
    """Let it happen, and gather what came of it. Raises StateError where a host fails."""
    name = f"host that freezes at {place.place}"
    task = Task(log.url, place.session, name, "Storm", str(folder), receiver.port, "storm")
    frozen = hosts.start(task, f"{place.place}:1:stop")
    frozen.frozen()
    other = hosts.start(task._replace(host="host that takes over", act="go on")).ended()
    frozen.wake()
    woken = frozen.ended()
    catch_up(log)
    view = SessionView(log.tables, place.session)
    [row] = view.rows("dispatches")
    return Frozen(place, other, woken, row, receiver.counted(row.tool, row.key), view.head.epoch)


def check_frozen(found: Frozen) -> Iterator[Check]:
    """Each figure of it."""
    what = f"frozen at {found.place.place}"
    yield compare(f"{what}: how the other host ended", "completed", found.other["ended"])
    yield compare(f"{what}: how the woken host ended", "fenced", found.woken["ended"])
    yield compare(f"{what}: the call", ["opaque", "unknown"], [found.row.effect, found.row.status])
    yield compare(f"{what}: starts of it in the log", 1, len(found.row.tries))
    yield compare(f"{what}: late evidence", found.place.evidence, found.evidence)
    yield compare(
        f"{what}: what the receiver did", found.place.counted._asdict(), found.counted._asdict()
    )
    yield compare(f"{what}: epoch", 2, found.epoch)


def as_data(found: Frozen) -> dict[str, Json]:
    """It as plain data."""
    row = found.row
    return {
        "session": row.session,
        "dispatch": row.dispatch,
        "tool": row.tool,
        "effect": row.effect,
        "idempotency_key": row.key,
        "status": row.status,
        "settled_by": row.settled_by,
        "evidence": [dict(piece) for piece in row.evidence],
        "counted": found.counted._asdict(),
        "other": found.other,
        "woken": found.woken,
    }
