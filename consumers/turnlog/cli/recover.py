"""`turnlog recover --dry-run`: what was left open, and what recovery would do about it."""

from __future__ import annotations

from turnlog.cli.opening import reading
from turnlog.cli.plain import brief, counted
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import UsageError
from turnlog.core.recovery import Executor, Instruction
from turnlog.query.sessions import find_session, heads
from turnlog.recovery.dry_run import Report, dry_run
from turnlog.tables.view import SessionView

VERDICT_STYLES = {"corrupted": "bold red", "indeterminate_tool": "yellow", "ready": "green"}


def print_reports(
    terminal: Terminal, sessions: list[str], *, is_dry_run: bool, executor: Executor
) -> None:
    """Print a report on everything that is open."""
    if not is_dry_run:
        raise UsageError(
            "recover: this release only shows what recovery would do: give --dry-run; nothing was"
            " changed"
        )
    with reading(terminal) as view:
        chosen = heads(view)
        if sessions:
            chosen = iter([SessionView(view, find_session(view, one)).head for one in sessions])
        reports = list(dry_run(view, chosen, executor=executor))
    if terminal.common.json:
        terminal.document([report.as_data() for report in reports])
        return
    for report in reports:
        print_report(terminal, report)
    if reports:
        terminal.say(
            (f"{counted(len(reports), 'operation')} to recover; nothing was changed", "dim")
        )
    else:
        terminal.say("nothing is open")


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
