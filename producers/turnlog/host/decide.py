"""What to do about each thing that is open, by the tools this host has and the policy it keeps.

The plan is that of `turnlog.core.recovery`; here it is made more careful where this host cannot do
what it says. A dispatch of this host's own claim cannot be started again (rule 9), one whose tool
is gone or takes its arguments no longer is not, and of two effect classes the stricter counts.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from turnlog.core.recovery import Instruction, close_dispatch
from turnlog.core.rows import Dispatch
from turnlog.host.permission import validated
from turnlog.host.policy import Policy
from turnlog.host.tools import Tool, Tools, stricter
from turnlog.tables.evidence import Report

Json = Any
ArgsOf = Callable[[Dispatch], Json]


def decide(
    report: Report,
    *,
    tools: Tools,
    policy: Policy,
    claim: str,
    busy: Set[Any],
    args_of: ArgsOf,
) -> list[Instruction]:
    """The instructions of a report as this host will carry them out.

    `busy` holds the dispatches, and the calls as (assistant entry, call index), that are being
    worked on; nothing is said about those. `args_of` gives the arguments a dispatch ran with.
    """
    rows = {row.dispatch: row for row in report.evidence.dispatches}
    reruns = {row.dispatch: row for row in report.evidence.reruns}
    steps: list[Instruction] = []
    parked: list[str] = []
    for step in report.instructions:
        id_: str = step.get("dispatch", "")
        row = rows.get(id_) or reruns.get(id_)
        call = (step.get("assistant_entry"), step.get("call_index"))
        if id_ in busy or call in busy or (row and (row.assistant_entry, row.call_index) in busy):
            continue
        if row is not None and id_ in rows:
            closed = close_dispatch(row, report.evidence)
            tool = tools.get(row.tool or "")
            if not report.is_open or row.tries[-1]["claim"] == claim:
                steps.append(closed)
            elif _is_parked(row, tool, policy):  # a person can only say what became of an unknown
                steps.append(closed)
                parked.append(row.tool or "a tool")
            else:
                steps.append(_decided(row, closed, tool, policy, args_of))
        elif step["do"] == "rerun":
            if _takes(tools.get(step["tool"] or ""), args_of(reruns[step["dispatch"]])) is None:
                steps.append(step)
        else:
            steps.append(step)
    if parked:
        reason = f"what became of {', '.join(parked)} is for a person to say"
        steps.append({"do": "park", "operation": report.operation.operation, "reason": reason})
    return steps


def _is_parked(row: Dispatch, tool: Tool | None, policy: Policy) -> bool:
    effect = row.effect if tool is None else stricter(row.effect, tool.effect)
    return policy.action(row.tool, effect) == "park"


def _decided(
    row: Dispatch, closed: Instruction, tool: Tool | None, policy: Policy, args_of: ArgsOf
) -> Instruction:
    if tool is None:
        return {**closed, "why": f"this host has no tool {row.tool!r}"}
    effect = stricter(row.effect, tool.effect)
    action = policy.action(row.tool, effect)
    last = row.tries[-1]["try"]
    if action == "probe" and tool.probe is None:
        return {**closed, "why": f"tool {row.tool!r} has no probe"}
    if action == "answer":
        return closed
    if action == "run" and last >= policy.max_tries:
        return {**closed, "why": f"it was started {last} times"}
    refused = _takes(tool, args_of(row))
    if refused is not None:
        return {**closed, "why": refused}
    return {
        "do": "run_again" if action == "run" else "probe",
        "dispatch": row.dispatch,
        "tool": row.tool,
        "effect": effect,
        "try": last + 1,
        "idempotency_key": row.key,
        "assistant_entry": row.assistant_entry,
        "call_index": row.call_index,
        "call_id": row.call_id,
    }


def _takes(tool: Tool | None, args: Json) -> str | None:
    """Why a tool does not take arguments that it took before, or None."""
    if tool is None:
        return "this host has not the tool"
    found = validated(tool, args)
    return found if isinstance(found, str) else None
