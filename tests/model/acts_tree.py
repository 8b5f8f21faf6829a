"""What an owner writes into the tree: messages, states, compactions, navigation, extensions."""

from __future__ import annotations

from typing import Any

from tests.model.tree import Node, is_result
from tests.model.world import World
from tests.model.writing import assistant, event, of_version, result, text, user
from turnlog.core.frames import Data

STOPS = ["stop", "tool_use", None, "length", "content_filter", "error", "aborted", "pause"]


def entered(world: World, *events: Data) -> list[Data]:
    """Events whose last entry is likely the next leaf."""
    world.leaf = events[-1]["id"]
    return list(events)


def write_user(world: World) -> list[Data]:
    """A user message, now and then from the queue, sealed or by the system."""
    pending = [queued.entry for queued in world.model.desk.inputs.values()]
    id_ = world.pick(pending) if pending and world.chance(50) else world.fresh("e")
    said = user(id_, world.parent())
    if world.chance(8):
        said["data"]["content"] = {"sealed": "key", "alg": None}
    if world.chance(8):
        said["data"]["role"] = "system"
    return entered(world, said)


def call_ids(world: World) -> list[str]:
    """Call ids: they repeat, within a message and across messages."""
    return [f"call_{world.dice.below(3)}" for _ in range(world.pick([1, 2, 0, 3]))]


def write_assistant(world: World) -> list[Data]:
    """An assistant message, likely the one that an attempt is to write."""
    waiting, data = world.unanswered, {"stop_reason": world.pick(STOPS)}
    id_ = world.fresh("e")
    if waiting and not world.chance(10):
        data["attempt"], attempt = world.pick(waiting)
        assert attempt.asked is not None
        id_ = attempt.asked.data["assistant_entry"]
    elif world.chance(20):
        data["attempt"] = world.pick([*world.model.work.attempts, "no-attempt"])
    return entered(world, assistant(id_, world.parent(), *call_ids(world), **data))


def write_result(world: World) -> list[Data]:
    """A T2 of a dispatch."""
    dispatch = world.dispatch("open")
    if dispatch is None:
        return write_plain_result(world)
    entry = dispatch.last.data["result_entry"]
    if world.chance(12):
        entry = world.pick([world.fresh("e"), dispatch.tries[0].data["result_entry"]])
    data: dict[str, Any] = {
        "dispatch": "no-dispatch" if world.chance(4) else dispatch.id,
        "status": world.pick(["ok", "error", "unknown", "not_started", None]),
        "settled_by": world.pick(["host", None, "recovery", "import"]),
    }
    parent = dispatch.last.data["assistant_entry"] if world.chance(50) else world.parent()
    return entered(world, result(entry, parent, **data))


def write_plain_result(world: World) -> list[Data]:
    """A tool result without a dispatch, as importers write them."""
    asked = [call_id for _, _, call_id in world.calls()]
    call_id = world.pick([*asked[:3], "call_9", None])
    return entered(world, result(world.fresh("e"), world.parent(), call_id=call_id))


def write_state(world: World) -> list[Data]:
    """The whole state."""
    return entered(
        world,
        event(
            "app_state", world.fresh("e"), parent=world.parent(), value={"k": world.dice.below(5)}
        ),
    )


def write_branch(world: World) -> list[Data]:
    """A rewind, with or without its operation."""
    target = world.pick([*world.entries[::-1], None]) if not world.chance(8) else world.parent()
    data: dict[str, Any] = {"from_": world.leaf, "label": world.pick([None, "first", "second"])}
    data["summary"] = world.pick([None, "what was tried", {"sealed": "key"}])
    return entered(world, event("branch", world.fresh("e"), parent=target, **data))


def write_custom(world: World) -> list[Data]:
    """State of an extension."""
    shown = world.pick([None, True, False])
    kind = world.pick(["note", "todo"])
    data = {"kind": kind, "value": world.pick([None, 1, [2]]), "in_context": shown}
    return entered(world, event("custom", world.fresh("e"), parent=world.parent(), **data))


def write_jump(world: World) -> list[Data]:
    """An entry under another than the leaf, without navigation."""
    target = world.pick([*world.entries[::-1], None])
    return entered(world, user(world.fresh("e"), target))


def write_opaque(world: World) -> list[Data]:
    """An entry of a type or a version that we do not know."""
    return entered(
        world,
        world.pick(
            [
                event("later_entry", world.fresh("e"), parent=world.parent(), shape=1),
                of_version(2, event("message", world.fresh("e"), parent=world.parent(), body=[])),
                of_version(3, event("fact", world.fresh("e"), parent=world.parent())),
            ]
        ),
    )


def _compaction(world: World, kind: str, first: str, last: str) -> list[Data]:
    parent = world.leaf if not world.chance(8) else world.parent()
    path = [node.id for node in world.model.tree.path(world.model.tree.leaf)]
    prepared_at = world.pick([None, *path[::-1][:4]])
    if world.chance(6):
        prepared_at = world.entry()
    if world.chance(4):
        first, last = last, first
    return entered(
        world,
        event(
            "compaction",
            world.fresh("e"),
            parent=parent,
            kind=kind,
            replaces={"first": first, "last": last},
            content=text("in short"),
            prepared_at=prepared_at,
            operation=world.operation() if world.chance(50) else None,
        ),
    )


def write_summary(world: World) -> list[Data]:
    """A summary of a span, balanced or not, over former summaries or not."""
    names = [node.id for node in world.surface]
    if world.model.tree.fork_entry is not None and world.chance(30):
        names.insert(0, world.model.tree.fork_entry)
    if not names or world.chance(4):
        return _compaction(world, "summary", world.entry(), world.entry())
    start = world.dice.below(len(names)) if world.chance(50) else 0
    end = start + world.dice.below(len(names) - start)
    if world.chance(60):
        start, end = _rounded(world.surface, start, end)
    return _compaction(world, "summary", names[min(start, len(names) - 1)], names[end])


def _rounded(nodes: list[Node], start: int, end: int) -> tuple[int, int]:
    """A span without the results at its start, and with those that follow its end."""
    while start < end and start < len(nodes) and is_result(nodes[start]):
        start += 1
    while end + 1 < len(nodes) and is_result(nodes[end + 1]):
        end += 1
    return start, end


def write_prune(world: World) -> list[Data]:
    """One result trimmed; now and then something else."""
    results = [node.id for node in world.surface if is_result(node)]
    if not results or world.chance(8):
        return _compaction(world, "prune", world.entry(), world.entry())
    name = world.pick(results[::-1])
    return _compaction(world, "prune", name, name)
