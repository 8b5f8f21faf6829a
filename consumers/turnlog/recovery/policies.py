"""What recovery does about each session and operation: one judgement for dry runs and for real.

A session is left alone as a whole, with a reason, or each of its operations is closed, parked or
left. Whatever is done follows from the verdict's plan (`turnlog.core.recovery`) and a `Policy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from turnlog.core.frames import decode
from turnlog.core.ownership import Ownership, follow, sole_claim
from turnlog.core.recovery import (
    CORRUPTED,
    TERMINAL,
    Instruction,
    closing,
)
from turnlog.core.rows import Head
from turnlog.log import Heartbeat
from turnlog.owner.ambient import Ambient
from turnlog.owner.heartbeat import DEAD_AFTER_S
from turnlog.recovery.dry_run import dry_run
from turnlog.recovery.liveness import holder_of
from turnlog.tables.evidence import Report
from turnlog.tables.store import View

CLAIMS_MAX = 3


class Policy(NamedTuple):
    """How a recovery goes about it.

    `mode` is what it does with an operation that did not end, `reason` why it parks. After
    `claims_max` recoveries in a row without anything new from a host it parks. A session that was
    written to less than `after_s` seconds ago (by the log's times, which are labels) is left for a
    host; so is one whose host has given a sign of life within `dead_after_s`. With `insist` closing
    takes in what is parked, corrupted or waits for a person, and what recoveries have failed at.
    """

    mode: Literal["close", "park"] = "close"
    reason: str = "as recovery was told"
    claims_max: int = CLAIMS_MAX
    after_s: float = 0.0
    dead_after_s: float = DEAD_AFTER_S
    insist: bool = False


DEFAULT = Policy()


class Judgement(NamedTuple):
    """The reports on a session, with what is to be done as their instructions.

    `left` says why the session is left alone as a whole; `policy` is the one that was followed.
    """

    reports: list[Report]
    policy: Policy
    left: str | None = None

    @property
    def has_work(self) -> bool:
        """Whether anything is to be written, so that claiming the session makes sense."""
        return any(is_work(report) for report in self.reports)


def judge(
    view: View,
    head: Head,
    policy: Policy,
    *,
    alive: Sequence[Heartbeat],
    ambient: Ambient,
) -> Judgement:
    """Judge what a session has open; `alive` are the hosts that are."""
    reports = list(dry_run(view, [head]))
    if not reports:
        return Judgement([], policy)
    left = _why_left(view, head, policy, alive=alive, ambient=ambient)
    if left is not None:
        return Judgement([leave(report, left) for report in reports], policy, left)
    failed = recoveries_in_a_row(view, head)
    if failed >= policy.claims_max and not policy.insist:
        policy = policy._replace(mode="park", reason=f"after {failed} recoveries that did not end")
    return Judgement([follow_policy(report, policy) for report in reports], policy)


def follow_policy(report: Report, policy: Policy) -> Report:
    """A report whose instructions are those of a policy."""
    operation, verdict = report.operation, report.verdict
    if policy.mode == "close" and policy.insist:
        needs_person = verdict.name == CORRUPTED or not is_work(report)
        return _closed(report) if needs_person else report
    if policy.mode == "close" or verdict.name == TERMINAL or not is_work(report):
        return report
    if not report.is_open:
        return leave(report, "it has ended, so it cannot be parked: closing answers its calls")
    if verdict.name == CORRUPTED:
        return report  # parked by its plan
    reason = f"parked {policy.reason}: {verdict.name}: {verdict.why}"
    step: Instruction = {"do": "park", "operation": operation.operation, "reason": reason}
    return report._replace(instructions=[step])


def leave(report: Report, reason: str) -> Report:
    """A report with nothing to do but to say why."""
    step: Instruction = {"do": "leave", "operation": report.operation.operation, "reason": reason}
    return report._replace(instructions=[step])


def is_work(report: Report) -> bool:
    """Whether anything is to be written."""
    return any(step["do"] != "leave" for step in report.instructions)


def recoveries_in_a_row(view: View, head: Head) -> int:
    """How many claims in a row, the one in force the last, are recoveries'.

    A host's frames are in force under a host's claim only, so between them there is nothing new of
    one. The session is read, but only where a recovery has failed: it releases what it has closed.
    """
    if head.reason != "recovery":
        return 0
    own, row = Ownership(), 0
    for stored in view.records(head.session):
        frame = decode(stored.record)
        claim, before = sole_claim(frame), own.claim
        _, own = follow(own, frame)
        if claim is not None and own.claim != before:
            row = row + 1 if claim.data.get("reason") == "recovery" else 0
    return row


def _why_left(
    view: View,
    head: Head,
    policy: Policy,
    *,
    alive: Sequence[Heartbeat],
    ambient: Ambient,
) -> str | None:
    if head.newer:
        return "a newer turnlog has written to it, so it is read-only here: upgrade turnlog"
    holder = holder_of(view, head, alive)
    if holder is not None:
        age_s = max(ambient.uptime() - holder.uptime, 0.0)
        return (
            f"its host {holder.host!r} gave a sign of life {age_s:.0f} s ago; one that is silent"
            f" for {policy.dead_after_s:.0f} s is taken for dead"
        )
    if policy.after_s > 0:
        stored = view.record(head.session, head.position)
        quiet_s = (ambient.clock() - stored.time) / 1000 if stored is not None else policy.after_s
        if 0 <= quiet_s < policy.after_s:
            return f"left for a host: it was written to {quiet_s:.0f} s ago"
    return None


def _closed(report: Report) -> Report:
    """Nothing is run: what is not known to have ended is called unknown."""
    id_ = report.operation.operation
    finish: Instruction = {
        "do": "finish",
        "operation": id_,
        "outcome": "interrupted",
        "inferred": True,
    }
    return report._replace(instructions=closing(report.operation, report.evidence, finish))
