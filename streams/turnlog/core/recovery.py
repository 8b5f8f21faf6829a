"""Recovery: what a dead host left open, and what may be done about it. Pure.

`recover(operation, evidence)` gives the verdict, in the order of the design's table; `plan` turns
it into instructions for one of two executors: a host, which has the tools, or the recovery
consumer, which has none. An effect with an unknown outcome is never run again blindly.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from turnlog.core.fold.messages import TERMINAL_STOPS
from turnlog.core.rows import Attempt, Dispatch, Entry, Json, Operation

Executor = Literal["host", "consumer"]
Instruction = dict[str, Any]
CORRUPTED = "corrupted"
INDETERMINATE = "indeterminate_tool"
TERMINAL = "terminal"
INTERRUPTED = "provider_interrupted"
READY = "ready"


class Call(NamedTuple):
    """A tool call on the leaf's path that has neither an answer nor a T1.

    `proven` is False where a missing T1 proves nothing: imported entries, or after a gap.
    """

    assistant_entry: str
    call_index: int
    call_id: str
    tool: str | None
    waiting: bool
    proven: bool


class Evidence(NamedTuple):
    """What the tables say about one operation.

    `damage` is the session's, as (kind, position, detail); `overflow` that more was counted than
    kept. `dispatches` are those of the operation without an answer, `on_path` the ids of those
    whose call is on the leaf's path. `last_message` is the last message entry on the path,
    `attempt_entry` the entry of the last attempt, `own_entry` a compaction's or navigation's entry,
    `reruns` the dispatches of the operation that a person allowed to be started once more,
    `answered` whether a parked operation has since got the word of a person that it waited for.
    """

    damage: Sequence[Json] = ()
    overflow: bool = False
    dispatches: Sequence[Dispatch] = ()
    on_path: frozenset[str] = frozenset()
    calls: Sequence[Call] = ()
    attempt: Attempt | None = None
    attempt_entry: Entry | None = None
    last_message: Entry | None = None
    own_entry: Entry | None = None
    reruns: Sequence[Dispatch] = ()
    answered: bool = False


class Verdict(NamedTuple):
    """A verdict, why, and the outcome where it is inferred and not yet written."""

    name: str
    why: str
    outcome: str | None = None


def recover(operation: Operation, evidence: Evidence) -> Verdict:
    """The verdict on one operation (design, "Recovery")."""
    if operation.corruption:
        return Verdict(CORRUPTED, f"corrupted: {', '.join(operation.corruption)}")
    damage = _damage_within(operation, evidence)
    if damage is not None:
        return Verdict(CORRUPTED, damage)
    if evidence.dispatches:
        count = len(evidence.dispatches)
        return Verdict(INDETERMINATE, f"{count} dispatched call(s) without an answer")
    if operation.outcome is not None:
        return Verdict(TERMINAL, f"finished: {operation.outcome}")
    if operation.superseded:
        return Verdict(TERMINAL, "superseded by a newer operation")
    if evidence.attempt is not None and evidence.attempt_entry is None:
        return Verdict(INTERRUPTED, "the model was asked and its answer is not in the log")
    outcome = _inferred_outcome(operation, evidence)
    if outcome is not None:
        return Verdict(
            TERMINAL, f"its work is done ({outcome}), only the finish is missing", outcome
        )
    return Verdict(READY, "everything that began has ended")


def plan(
    operation: Operation, verdict: Verdict, evidence: Evidence, executor: Executor
) -> list[Instruction]:
    """What the executor is to do about a verdict; an empty list where there is nothing to do."""
    if verdict.name == CORRUPTED:
        return _corrupted_plan(operation, verdict, evidence)
    if executor == "host" and evidence.reruns:
        # whatever comes after is planned once they have ended: they may open the operation again
        return [_again(dispatch, "rerun") for dispatch in evidence.reruns]
    if verdict.name == TERMINAL:
        if verdict.outcome is None:
            return []
        return [_finish(operation, verdict.outcome)]
    if operation.parked is not None and not (executor == "host" and evidence.answered):
        return [{"do": "leave", "operation": operation.operation, "reason": operation.parked}]
    if executor == "host":
        return _host_plan(operation, verdict, evidence)
    return _consumer_plan(operation, evidence)


def closing(operation: Operation, evidence: Evidence, finish: Instruction) -> list[Instruction]:
    """The instructions that end an operation whatever it has open: each dispatch and each call gets
    an answer, then it finishes. Of one that is not open only the dispatches are left."""
    steps = [close_dispatch(dispatch, evidence) for dispatch in evidence.dispatches]
    if not _is_open(operation):
        return steps
    return [*steps, *(_close_call(call) for call in evidence.calls), finish]


def idempotency_key(session: str, operation: str, call_no: int) -> str:
    """The key of a logical call: stable across tries and hosts, never from the model."""
    digest = sha256()
    for part in (session, operation, str(call_no)):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


def closing_entry(assistant_entry: str, call_index: int) -> str:
    """The entry id of the result that closes a call without T1: the same each time."""
    return f"close-{sha256(f'{call_index}:{assistant_entry}'.encode()).hexdigest()[:32]}"


def _damage_within(operation: Operation, evidence: Evidence) -> str | None:
    if evidence.overflow:
        return "the session has more damage than is kept"
    for kind, position, detail in evidence.damage:
        starts = position > operation.accepted if kind == "gap" else position >= operation.accepted
        if starts and (not operation.finished or position <= operation.finished):
            return f"damage at position {position}: {kind} ({detail})"
    return None


def _inferred_outcome(operation: Operation, evidence: Evidence) -> str | None:
    if operation.kind in ("compaction", "navigation"):
        own = evidence.own_entry
        return "completed" if own is not None and own.void is None else None
    entry, last = evidence.attempt_entry, evidence.last_message
    if entry is None or last is None or entry.number != last.number or entry.calls:
        return None
    return TERMINAL_STOPS.get(entry.stop_reason or "")


def _corrupted_plan(
    operation: Operation, verdict: Verdict, evidence: Evidence
) -> list[Instruction]:
    """Parked once, so that a recovery that comes again adds nothing; and only where it is open."""
    if not _is_open(operation) and not evidence.dispatches:
        return []
    do = "park" if _is_open(operation) and operation.parked is None else "leave"
    return [{"do": do, "operation": operation.operation, "reason": verdict.why}]


def _is_open(operation: Operation) -> bool:
    """Of one that is not, only dispatches without an answer are left to look after."""
    return operation.outcome is None and not operation.superseded


def _host_plan(operation: Operation, verdict: Verdict, evidence: Evidence) -> list[Instruction]:
    steps = [_host_step(dispatch, evidence) for dispatch in evidence.dispatches]
    if not _is_open(operation):
        return steps
    for call in evidence.calls:
        if call.waiting:
            steps.append({"do": "leave", **_call(call), "reason": "it waits for approval"})
        elif call.proven:
            steps.append({"do": "permit_and_run", **_call(call)})
        else:
            steps.append(_close_call(call))
    if verdict.name == INTERRUPTED:
        steps.append({"do": "ask_model", "operation": operation.operation})
    elif not any(call.waiting for call in evidence.calls):
        steps.append({"do": "continue", "operation": operation.operation})
    return steps


def _host_step(dispatch: Dispatch, evidence: Evidence) -> Instruction:
    """The default policy of the design's second table."""
    if dispatch.effect in ("read_only", "idempotent"):
        do = "run_again"
    elif dispatch.effect == "reconcilable":
        do = "probe"
    else:
        return close_dispatch(dispatch, evidence)
    return _again(dispatch, do)


def _again(dispatch: Dispatch, do: str) -> Instruction:
    """Another try of a dispatch (rule 9)."""
    return {
        "do": do,
        "dispatch": dispatch.dispatch,
        "tool": dispatch.tool,
        "effect": dispatch.effect,
        "try": dispatch.tries[-1]["try"] + 1,
        "idempotency_key": dispatch.key,
    }


def _consumer_plan(operation: Operation, evidence: Evidence) -> list[Instruction]:
    if _is_open(operation) and any(call.waiting for call in evidence.calls):
        reason = "a call waits for approval, which is no crash"
        return [{"do": "leave", "operation": operation.operation, "reason": reason}]
    return closing(operation, evidence, _finish(operation, "interrupted"))


def close_dispatch(dispatch: Dispatch, evidence: Evidence) -> Instruction:
    """The outcome is unknown: a result on the path, else a settlement, which moves no leaf."""
    on_path = dispatch.dispatch in evidence.on_path
    step: Instruction = {
        "do": "answer" if on_path else "settle",
        "dispatch": dispatch.dispatch,
        "tool": dispatch.tool,
        "effect": dispatch.effect,
        "status": "unknown",
    }
    if on_path:
        step["result_entry"] = dispatch.result_entry
    return step


def _close_call(call: Call) -> Instruction:
    return {
        "do": "answer",
        **_call(call),
        "status": "not_started" if call.proven else "unknown",
        "result_entry": closing_entry(call.assistant_entry, call.call_index),
    }


def _call(call: Call) -> Instruction:
    return {
        "assistant_entry": call.assistant_entry,
        "call_index": call.call_index,
        "call_id": call.call_id,
        "tool": call.tool,
    }


def _finish(operation: Operation, outcome: str) -> Instruction:
    return {
        "do": "finish",
        "operation": operation.operation,
        "outcome": outcome,
        "inferred": True,
    }
