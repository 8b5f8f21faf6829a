"""`turnlog recover`: what was left open, what recovery would do about it, and doing it."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Sequence

from turnlog.cli.guard import FAILED
from turnlog.cli.opening import open_log
from turnlog.cli.plain import brief, counted
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import UsageError
from turnlog.core.recovery import Executor, Instruction
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.query.sessions import find_session, heads
from turnlog.recovery.dry_run import as_data, dry_run
from turnlog.recovery.executor import Done, count, has_open_work, recover_all
from turnlog.recovery.liveness import look_around
from turnlog.recovery.policies import Policy, judge
from turnlog.tables.evidence import Report
from turnlog.tables.view import SessionView

VERDICT_STYLES = {"corrupted": "bold red", "indeterminate_tool": "yellow", "ready": "green"}
DID_STYLES = {"closed": "green", "parked": "yellow", "left": "dim", "failed": "bold red"}


def policy_of(sessions: Sequence[str], *, close: bool, park: bool, after_s: float) -> Policy:
    """The policy that options ask for. Who names sessions and says --close means it."""
    if close and park:
        raise UsageError("recover: --close and --park exclude each other; nothing was changed")
    return Policy(
        mode="park" if park else "close", after_s=after_s, insist=close and bool(sessions)
    )


def show_recovery(
    terminal: Terminal, sessions: Sequence[str], *, policy: Policy, executor: Executor
) -> None:
    """Print a report on everything that is open, and change nothing."""
    with open_log(terminal) as log:
        reports = find_reports(log, sessions, policy=policy, executor=executor)
    if terminal.common.json:
        terminal.document([as_data(report) for report in reports])
        return
    for report in reports:
        print_report(terminal, report)
    if reports:
        terminal.say(
            (f"{counted(len(reports), 'operation')} to recover; nothing was changed", "dim")
        )
    else:
        terminal.say("nothing is open")


def find_reports(
    log: EmbeddedLog, sessions: Sequence[str], *, policy: Policy, executor: Executor
) -> list[Report]:
    """What a recovery would do now, or a host that resumed each session."""
    ambient = Ambient()
    alive = asyncio.run(look_around(log, ambient, dead_after_s=policy.dead_after_s))
    with log.tables.snapshot() as view:
        named = [SessionView(view, find_session(view, one)).head for one in sessions]
        chosen = named or heads(view)
        if executor == "host":
            return list(dry_run(view, chosen, executor=executor))
        return [
            report
            for head in chosen
            if has_open_work(head)
            for report in judge(view, head, policy, alive=alive, ambient=ambient).reports
        ]


def recover_sessions(terminal: Terminal, sessions: Sequence[str], *, policy: Policy) -> None:
    """Close or park what is open, and print what was done; fails where any session failed."""
    results = asyncio.run(_recover(terminal, sessions, policy))
    if any(result.did == "failed" for result in results):
        terminal.status = FAILED
    if terminal.common.json:
        terminal.document([result.as_data() for result in results])
        return
    for result in results:
        print_result(terminal, result)
    if not results:
        terminal.say("nothing is open")
        return
    counts = count(results)
    said = ", ".join(f"{counts[did]:,} {did}" for did in DID_STYLES if did in counts)
    terminal.say(f"{counted(len(results), 'operation')}: {said}")
    if "closed" in counts or "parked" in counts:
        terminal.say(("`turnlog pending` lists what a person should look at", "dim"))


async def _recover(terminal: Terminal, sessions: Sequence[str], policy: Policy) -> list[Done]:
    async with open_log(terminal) as log:
        chosen = [find_session(log.tables, one) for one in sessions] if sessions else None
        host = f"turnlog recover on {platform.node() or 'this machine'}"
        return await recover_all(log, sessions=chosen, policy=policy, ambient=Ambient(), host=host)


def print_result(terminal: Terminal, result: Done) -> None:
    """What was done with one operation, and why; its steps with -v."""
    verdict = result.verdict or "error"
    terminal.fit(
        (f"{result.did:<7}", DID_STYLES[result.did]),
        (brief(result.session, 512), "cyan"),
        f"  {result.kind or 'operation'} " if result.operation is not None else "",
        (brief(result.operation or "", 512), "dim"),
    )
    why = result.why.removeprefix(f"{verdict}: ")
    terminal.print("  ", (verdict, VERDICT_STYLES.get(verdict, "")), f": {brief(why, 300)}")
    if terminal.common.verbose:
        for instruction in result.instructions:
            terminal.fit("  → ", *_step(instruction, result.why))


def print_report(terminal: Terminal, report: Report, indent: str = "") -> None:
    """One operation: where it is, the verdict and why, and each step."""
    operation, verdict = report.operation, report.verdict
    kind = operation.kind or "operation"
    terminal.fit(
        indent,
        (brief(operation.session, 512), "cyan"),
        f"  {kind} ",
        (brief(operation.operation, 512), "dim"),
    )
    why = verdict.why.removeprefix(f"{verdict.name}: ")
    terminal.print(
        f"{indent}  ", (verdict.name, VERDICT_STYLES.get(verdict.name, "")), f": {brief(why, 300)}"
    )
    for instruction in report.instructions:
        terminal.fit(f"{indent}  → ", *_step(instruction, verdict.why))


def _step(instruction: Instruction, why: str) -> list[str | tuple[str, str]]:
    """What to do, to which tool, how, and the rest as name: value; not what was said before."""
    shown = {"do", "tool", "operation", "status", "outcome", "inferred"}
    if instruction.get("reason") == why:
        shown.add("reason")
    rest = ", ".join(
        f"{name}: {brief(str(value), 80)}"
        for name, value in instruction.items()
        if name not in shown and value is not None
    )
    tool = brief(str(instruction.get("tool") or ""), 60)
    how = instruction.get("status") or instruction.get("outcome") or ""
    return [
        (f"{instruction['do']} ", "bold"),
        f"{tool} " if tool else "",
        (f"as {how}  " if how else "", "yellow"),
        (rest, "dim"),
    ]
