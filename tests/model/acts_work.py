"""What an owner writes beside the tree: operations, attempts, dispatches, and all other records."""

from __future__ import annotations

from typing import Any

from tests.model.acts_tree import call_ids, entered
from tests.model.dispatches import Dispatch
from tests.model.world import World
from tests.model.writing import assistant, event, of_version, text, user
from turnlog.core.frames import Data

EFFECTS = ["read_only", "idempotent", "reconcilable", "opaque", None]
STATUSES = ["unknown", "ok", "error", "not_started"]
OUTCOMES = ["completed", "interrupted", "failed", "aborted", "blocked"]


def accept(world: World, kind: str, **data: Any) -> Data:
    """An operation begins."""
    id_ = world.fresh("o") if not world.chance(6) else world.operation()
    return event("operation_accepted", world.fresh("r"), operation=id_, kind=kind, **data)


def write_prompt(world: World) -> list[Data]:
    """A user message and the turn that it starts, in one frame."""
    if world.chance(15):
        input_entry = world.pick([None, world.entry()])
        return [accept(world, "prompt", input_entry=input_entry)]
    before = finish_of_prompt(world) if world.chance(70) else []
    said = user(world.fresh("e"), world.parent())
    begin = accept(world, "prompt", input_entry=said["id"], trigger="user")
    return [*before, *entered(world, said), begin]


def finish_of_prompt(world: World) -> list[Data]:
    """The end of the turn that is open."""
    return [
        event("operation_finished", world.fresh("r"), operation=prompt.id, outcome="completed")
        for prompt in world.operations
        if prompt.kind == "prompt"
    ]


def write_bracket(world: World) -> list[Data]:
    """A compaction or a navigation begins."""
    return [accept(world, world.pick(["compaction", "navigation"]), start_leaf=world.leaf)]


def write_attempt(world: World) -> list[Data]:
    """The model is asked."""
    entry = world.fresh("e") if not world.chance(6) else world.entry()
    attempt = world.fresh("a")
    if world.model.work.attempts and world.chance(6):
        attempt = world.pick([*world.model.work.attempts][::-1])
    return [
        event(
            "model_attempted",
            world.fresh("r"),
            operation=world.operation(),
            attempt=attempt,
            assistant_entry=entry,
            model="m",
            context="ctx",
        )
    ]


def write_turn(world: World) -> list[Data]:
    """A prompt, its attempt, the answer and its T1s, all in one frame."""
    before = finish_of_prompt(world) if world.chance(60) else []
    said, operation = user(world.fresh("e"), world.leaf), world.fresh("o")
    entry, attempt = world.fresh("e"), world.fresh("a")
    names = {"operation": operation}
    ids = call_ids(world)
    events = [
        *before,
        said,
        event(
            "operation_accepted", world.fresh("r"), kind="prompt", input_entry=said["id"], **names
        ),
        event("model_attempted", world.fresh("r"), attempt=attempt, assistant_entry=entry, **names),
        assistant(entry, said["id"], *ids, attempt=attempt, stop_reason="tool_use"),
    ]
    for index, call_id in enumerate(ids):
        events.append(dispatched(world, (entry, index, call_id), operation))
    world.leaf = entry
    return events


def dispatched(world: World, call: tuple[str, int, str], operation: str) -> Data:
    """The first T1 of a call."""
    id_, entry = world.fresh("d"), world.fresh("e")
    return event(
        "tool_dispatched",
        world.fresh("r"),
        operation=operation,
        dispatch=id_,
        call_no=call[1],
        try_=1 if not world.chance(5) else None,
        call_id=call[2] if not world.chance(5) else None,
        call_index=call[1],
        tool="tool",
        args_hash="h",
        assistant_entry=call[0],
        result_entry=entry if not world.chance(5) else world.entry(),
        effect=world.pick(EFFECTS),
        idempotency_key=f"key-{id_}",
    )


def write_dispatch(world: World) -> list[Data]:
    """T1 of a call on the path, or of one that is not there."""
    known = world.calls()
    call = world.pick(known) if known and not world.chance(8) else (world.entry(), 1, "call_0")
    return [dispatched(world, call, world.operation())]


def write_repeat(world: World) -> list[Data]:
    """A second T1 of a dispatch: the same, or after a rerun was allowed."""
    allowed = [d for d in world.dispatches if d.rerun]
    dispatch = world.pick(allowed) if allowed and not world.chance(20) else world.dispatch("open")
    if dispatch is None:
        return write_dispatch(world)
    data = {**dispatch.last.data, "try": dispatch.last.number + 1}
    if dispatch.rerun:
        data["result_entry"] = world.fresh("e") if not world.chance(8) else world.entry()
    if world.chance(15):
        name = world.pick(["try", "result_entry", "args_hash", "idempotency_key", "call_index"])
        data[name] = {"try": 1, "call_index": 1}.get(name, "other")
    if world.chance(5):
        data["effect"], data["tool"] = world.pick(EFFECTS), "other"
    return [{**event("tool_dispatched", world.fresh("r")), "data": data}]


def settlement(world: World, dispatch: Dispatch | None, settled_by: str | None) -> Data:
    """An answer without an entry."""
    number = None if dispatch is None else dispatch.last.number
    return event(
        "dispatch_settled",
        world.fresh("r"),
        dispatch="no-dispatch" if dispatch is None or world.chance(3) else dispatch.id,
        status=world.pick(STATUSES),
        try_=world.pick([number, None, 1]),
        settled_by=settled_by,
        note=world.pick([None, "so they say"]),
    )


def write_settlement(world: World) -> list[Data]:
    """An answer by the host, by recovery or by a person."""
    settled_by = world.pick(["host", "recovery", None, "person"])
    return [settlement(world, world.dispatch("open"), settled_by)]


def rerun(world: World) -> Data:
    """One T1 more."""
    dispatch = world.dispatch("unknown")
    number = 1 if dispatch is None else dispatch.last.number
    id_ = "no-dispatch" if dispatch is None else dispatch.id
    try_ = world.pick([number, None, 1, 2])
    return event("rerun_allowed", world.fresh("r"), dispatch=id_, try_=try_, by="ops")


def write_rerun(world: World) -> list[Data]:
    """The owner passes on that a person allows a rerun."""
    return [rerun(world)]


def write_usage(world: World) -> list[Data]:
    """What an attempt cost; now and then twice, or in other figures."""
    attempts = [*world.model.work.attempts][::-1]
    attempt = world.pick(attempts[:3]) if attempts and not world.chance(6) else "a-unknown"
    known = world.model.work.attempts.get(attempt)
    operation = world.operation() if known is None or world.chance(6) else known.operation
    figures = {"input": 10, "output": world.dice.below(3), "cost_usd": f"0.0{world.dice.below(3)}"}
    usage = figures if not world.chance(8) else world.pick([None, {}, {"input": 5}])
    data = {"operation": operation, "attempt": attempt, "usage": usage}
    if world.chance(10):
        data["model"] = world.pick(["m", "n"])
    return [event("usage_settled", world.fresh("r"), **data)]


def call_named(world: World) -> dict[str, Any]:
    """The call that an approval is about."""
    entry, _, call_id = world.pick([*world.calls()[:4], ("nowhere", 0, "call_0")])
    return {"operation": world.operation(), "assistant_entry": entry, "call_id": call_id}


def write_asked(world: World) -> list[Data]:
    """A call waits for a person."""
    return [event("approval_asked", world.fresh("r"), **call_named(world))]


def decision(world: World) -> Data:
    """A person decides."""
    waiting = [key for key, a in world.model.work.approvals.items() if a.waiting or a.asked]
    named = call_named(world)
    if waiting and not world.chance(20):
        key = world.pick(waiting[::-1])
        named = dict(zip(("operation", "assistant_entry", "call_id"), key, strict=True))
    choice, by = world.pick(["allow", "deny"]), world.pick(["ops", None])
    return event("approval_decided", world.fresh("r"), decision=choice, by=by, **named)


def write_decided(world: World) -> list[Data]:
    """The owner passes a decision on."""
    return [decision(world)]


def write_parked(world: World) -> list[Data]:
    """An operation needs a person."""
    reason = world.pick(["stuck", None])
    return [event("operation_parked", world.fresh("r"), operation=world.operation(), reason=reason)]


def write_finished(world: World) -> list[Data]:
    """An operation ends."""
    return [
        event(
            "operation_finished",
            world.fresh("r"),
            operation=world.operation(),
            outcome=world.pick(OUTCOMES),
            inferred=world.pick([None, True]),
        )
    ]


def abort(world: World) -> Data:
    """Somebody wants an operation to stop."""
    return event("abort_requested", world.fresh("r"), operation=world.operation())


def write_abort(world: World) -> list[Data]:
    """The owner asks itself to stop."""
    return [abort(world)]


def queued(world: World) -> Data:
    """An input for later; now and then with the id or the entry of another."""
    known = [*world.model.desk.inputs]
    id_ = world.pick(known) if known and world.chance(8) else world.fresh("i")
    entry = world.fresh("e") if not world.chance(8) else world.entry()
    if known and world.chance(8):
        entry = world.model.desk.inputs[world.pick(known)].entry
    data = {"entry": entry, "content": text(id_), "delivery": world.pick([None, "steer"])}
    return event("input_queued", world.fresh("r"), input=id_, **data)


def cancelled(world: World) -> Data:
    """An input that is not wanted any more."""
    known = [*world.model.desk.inputs, "no-input"]
    return event("input_cancelled", world.fresh("r"), input=world.pick(known))


def write_input(world: World) -> list[Data]:
    """The owner queues or cancels for itself."""
    return [world.pick([queued, cancelled])(world)]


def fact(world: World) -> Data:
    """A named value."""
    names = ["title", "score:a", "ingest_cursor", f"label:{world.entry()}"]
    name = world.pick([*names, f"label:{world.leaf}"])
    before = world.model.desk.facts.get(name)
    replaces = None if before is None or world.chance(15) else before.id
    value = world.pick(["alpha", "beta", None, 3])
    return event("fact", world.fresh("r"), name=name, value=value, replaces=replaces)


def write_fact(world: World) -> list[Data]:
    """A fact of the owner's."""
    return [fact(world)]


def write_blob(world: World) -> list[Data]:
    """A part of a large value, not always the next."""
    index, of = world.dice.below(3), world.pick([3, 2])
    data = {"digest": world.pick(["blob-1", "blob-2"]), "index": index, "of": of, "bytes": "AAAA"}
    return [event("blob_part", world.fresh("r"), **data)]


def write_silent(world: World) -> list[Data]:
    """Records that leave no row."""
    return [
        world.pick(
            [
                event("context_set", world.fresh("r"), digest="ctx", model="m"),
                event("chunk", world.fresh("r"), entry="e1", deltas=["a"], dt=[1]),
                event("later_record", world.fresh("r"), shape=1),
                event("later_record", world.fresh("r"), parent=7),
                of_version(2, event("usage_settled", world.fresh("r"), tokens=1)),
            ]
        )
    ]


def write_released(world: World) -> list[Data]:
    """The owner gives the session up, or means another claim."""
    claim = world.model.ownership.claim if not world.chance(15) else "another"
    return [event("session_released", world.fresh("r"), claim=claim)]
