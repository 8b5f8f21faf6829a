"""Closing what dead hosts left open: judge, claim, judge again at the claim, write one frame.

Tables decide before anything is claimed, so recovering again adds nothing. A claim names the seq
that was seen, so a host that still writes keeps its session. The verdict that counts is the one at
the recovery's own claim: before it, nobody can write any more, and everything is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from turnlog.core.errors import OwnershipError, TurnlogError
from turnlog.core.frames import NewEvent
from turnlog.core.recovery import Instruction
from turnlog.core.rows import Head, Key, Row
from turnlog.log import EmbeddedLog, Heartbeat
from turnlog.owner.ambient import Ambient
from turnlog.owner.closing import closers, in_frames
from turnlog.owner.owner import Owner, claim
from turnlog.owner.places import RECOVERY_READY
from turnlog.recovery.dry_run import as_data, dry_run
from turnlog.recovery.liveness import look_around
from turnlog.recovery.policies import DEFAULT, Policy, follow_policy, is_work, judge, leave
from turnlog.tables.evidence import Report
from turnlog.tables.store import Store, View
from turnlog.tables.view import SessionView

CONCURRENCY = 32
"""Sessions that are recovered at once: their appends share commits."""
HOST = "turnlog recover"

Did = Literal["closed", "parked", "left", "failed"]


class Done(NamedTuple):
    """What became of one operation; of a session that failed, `operation` is None."""

    session: str
    operation: str | None
    kind: str | None
    verdict: str | None
    did: Did
    why: str
    dispatches: list[dict[str, Any]]
    instructions: list[Instruction]

    def as_data(self) -> dict[str, Any]:
        """As `turnlog recover --json` gives it."""
        return self._asdict()


async def recover_all(
    log: EmbeddedLog,
    *,
    sessions: Sequence[str] | None = None,
    policy: Policy = DEFAULT,
    ambient: Ambient,
    host: str = HOST,
    concurrency: int = CONCURRENCY,
) -> list[Done]:
    """Recover some sessions, or all that have anything open; gives what was done, in their order.

    What goes wrong with one session is told, and keeps no other from being recovered.
    """
    alive = await look_around(log, ambient, dead_after_s=policy.dead_after_s)
    chosen = list(with_open_work(log.tables) if sessions is None else dict.fromkeys(sessions))
    found: dict[str, list[Done]] = {}
    waiting = iter(chosen)

    async def work() -> None:
        for session in waiting:
            try:
                found[session] = await recover_session(
                    log, session, policy=policy, alive=alive, ambient=ambient, host=host
                )
            except TurnlogError as error:
                found[session] = [_failed(session, error)]

    async with asyncio.TaskGroup() as workers:
        for _ in range(min(concurrency, len(chosen))):
            workers.create_task(work())
    return [done for session in chosen for done in found[session]]


async def recover_session(
    log: EmbeddedLog,
    session: str,
    *,
    policy: Policy = DEFAULT,
    alive: Sequence[Heartbeat] = (),
    ambient: Ambient,
    host: str = HOST,
) -> list[Done]:
    """Recover one session; `alive` are the hosts that are (`look_around`).

    Raises SessionNotFound, LogError where the log fails, and StateError where what the tables point
    to is gone.
    """
    head = SessionView(log.tables, session).head
    judged = judge(log.tables, head, policy, alive=alive, ambient=ambient)
    if not judged.has_work:
        return [_done(report) for report in judged.reports]
    try:
        owner = await claim(
            log,
            session,
            tables=_AsJudged(log.tables, head),
            host=host,
            reason="recovery",
            ambient=ambient,
            expects_seq=head.seq,
        )
        return await _close(log, owner, judged.policy)
    except OwnershipError:
        why = "somebody else has just written to it or claimed it, so it is theirs to go on with"
        return [_done(leave(report, why)) for report in judged.reports]


def with_open_work(view: View) -> Iterator[str]:
    """The sessions that have an operation or a dispatch open."""
    return (head.session for head in view.scan("sessions") if has_open_work(head))


def has_open_work(head: Head) -> bool:
    """Whether a session has an operation or a dispatch open."""
    return bool(head.open_operations or head.open_dispatches or "open_dispatches" in head.overflow)


class _AsJudged:
    """Tables whose head of one session stays the one that was judged: the claim then names an epoch
    and a seq of one moment, and what other processes have written since makes it lose."""

    def __init__(self, tables: Store, head: Head) -> None:
        self._tables = tables
        self._head = head

    def get(self, key: Key, /) -> Row | None:
        is_head = key == ("sessions", self._head.session)
        return self._head if is_head else self._tables.get(key)

    async def wait(self, position: int, partition: int = 0) -> None:
        await self._tables.wait(position, partition)


async def _close(log: EmbeddedLog, owner: Owner, policy: Policy) -> list[Done]:
    """Judge again at the claim, and write what is to be written."""
    await log.tables.wait(owner.position, log.partition_of(owner.session))
    view = SessionView(log.tables, owner.session)
    reports = [follow_policy(report, policy) for report in dry_run(log.tables, [view.head])]
    ambient = owner.ambient
    released = NewEvent("session_released", ambient.ids(), ambient.now(), {"claim": owner.claim_id})
    ambient.reach(RECOVERY_READY)
    steps = [step for report in reports for step in report.instructions]
    made = closers(view, steps, by="recovery", ambient=ambient)
    for events in in_frames([*made.events, released]):
        await owner.write(events)
    return [_done(report) for report in reports]


def _done(report: Report) -> Done:
    did, why = _did(report)
    data = as_data(report)
    return Done(
        session=data["session"],
        operation=data["operation"],
        kind=data["kind"],
        verdict=data["verdict"],
        did=did,
        why=why,
        dispatches=data["dispatches"],
        instructions=data["instructions"],
    )


def _did(report: Report) -> tuple[Did, str]:
    reason = next((step["reason"] for step in report.instructions if "reason" in step), "")
    if not is_work(report):
        return "left", reason or report.verdict.why
    if any(step["do"] == "park" for step in report.instructions):
        return "parked", reason
    return "closed", report.verdict.why


def _failed(session: str, error: TurnlogError) -> Done:
    return Done(session, None, None, None, "failed", str(error), [], [])


def count(results: Iterable[Done]) -> dict[str, int]:
    """How many operations each was done with."""
    counts: dict[str, int] = {}
    for result in results:
        counts[result.did] = counts.get(result.did, 0) + 1
    return counts
