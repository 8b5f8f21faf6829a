"""What goes wrong: events and frames that nobody should write, and that are in the log."""

from __future__ import annotations

from typing import Any

import orjson

from tests.model.acts_tree import write_result
from tests.model.acts_work import settlement
from tests.model.world import World
from tests.model.writing import body_of, event, record_of, user
from turnlog.core.frames import Data, Header, Record

GARBAGE = [b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"events": {}}', b'{"events": 3}', b"1e999"]
SCALARS: list[Any] = [None, 0, -1, "", "e1", True, 1.5, 2**40, "x" * 600]
FAULTY: list[Any] = [
    {},
    5,
    None,
    [],
    {"type": "message", "v": 1, "id": "f1"},
    {"type": "message", "v": "1", "id": "f2", "data": {}},
    {"type": "message", "v": 0, "id": "f3", "data": {"parent": None}},
    {"type": "zzz", "v": 1, "id": "", "data": {}},
    {"type": "zzz", "v": 1, "id": "f4", "data": {}, "time": 7},
    {"type": "session_claimed", "v": 1, "id": "f5", "data": {"claim": "c"}},
    {"type": "session_claimed"},
    {"type": "dispatch_settled", "v": 1, "id": "f6", "data": {"settled_by": "host"}},
    {"type": "input_queued", "v": 1, "id": "f7", "data": {"input": "i1"}},
]


def random_json(world: World, depth: int = 3) -> Any:
    """Any JSON, with the names of our own fields among its keys."""
    shape = world.dice.below(4) if depth else 0
    if shape == 1:
        return [random_json(world, depth - 1) for _ in range(world.dice.below(3))]
    if shape > 1:
        names = ["type", "v", "id", "data", "events", "parent", "session", "claim", "dispatch"]
        return {
            world.pick(names): random_json(world, depth - 1) for _ in range(world.dice.below(4))
        }
    return world.pick(SCALARS)


def write_malformed(world: World) -> list[Any]:
    """An event that breaks the vocabulary."""
    if world.written and world.chance(60):
        broken = orjson.loads(orjson.dumps(world.pick(world.written[::-1][:12])))
        if isinstance(broken.get("data"), dict) and broken["data"]:
            name = world.pick(sorted(broken["data"]))
            broken["data"][name] = world.pick([7, [1], ""])
        broken["id"] = world.fresh("e")
        return [broken]
    return [world.pick([*FAULTY, random_json(world)])]


def write_again(world: World) -> list[Data]:
    """An event that was written before: the same, under another id, or changed."""
    if not world.written:
        return [user(world.fresh("e"), world.parent())]
    before = world.pick(world.written[::-1][:20])
    again: Data = {**before, "data": {**before["data"]}}
    how = world.dice.below(4)
    if how == 1:
        again["id"] = world.fresh("r")
    elif how == 2 and again["data"]:
        _change(world, again["data"])
    elif how == 3:
        again["data"]["extra"] = 1
        again["id"] = before["id"] if world.chance(50) else world.fresh("r")
    return [again]


def _change(world: World, data: Data) -> None:
    name = world.pick(sorted(data))
    value = data[name]
    if isinstance(value, bool) or value is None:
        data[name] = world.pick([True, "e1", "o1"])
    elif isinstance(value, int):
        data[name] = value + 1
    elif isinstance(value, str):
        options = [value + "x", "ok", "error", "completed", "failed", "allow", "prompt", "summary"]
        data[name] = world.pick([None, world.pick(options)])
    else:
        data[name] = world.pick([None, [], {}])


def write_misplaced(world: World) -> list[Data]:
    """What has no place in this frame: a claim, or a second `session_created`."""
    if world.chance(60):
        before = world.model.desk.created
        data = dict(before.data) if before is not None and world.chance(60) else {"title": "late"}
        return [{**event("session_created", world.fresh("r")), "data": data}]
    claim = world.pick(["c-misplaced", world.model.ownership.claim or "c"])
    return [event("session_claimed", world.fresh("r"), claim=claim, expects=0)]


def fenced(world: World, others: list[Data]) -> Record:
    """A frame of an owner that lost the session, with what may still count."""
    claim, epoch = world.pick(world.claims[::-1])
    events: list[Data] = []
    mine = [d for d in world.dispatches if claim in [t.claim for t in d.tries]]
    for _ in range(1 + world.dice.below(2)):
        dispatch = world.pick(mine) if mine and not world.chance(15) else world.dispatch()
        if dispatch is None:
            continue
        if world.chance(40):
            events.append(settlement(world, dispatch, world.pick(["host", None, "person"])))
        else:
            entry = world.pick([dispatch.last.data["result_entry"], world.fresh("e")])
            said = write_result(world)[0]
            said["data"]["dispatch"] = dispatch.id
            events.append({**said, "id": entry})
    for id_, attempt in world.model.work.attempts.items():
        if attempt.claim == claim and world.chance(50):
            usage = {"input": 3, "cost_usd": "1.5"}
            data = {"operation": attempt.operation, "attempt": id_, "usage": usage}
            events.append(event("usage_settled", world.fresh("r"), **data))
    header = Header(world.script.session, claim, epoch, 1 + world.dice.below(9), "late host")
    return record_of(header, [*events, *others] or [event("chunk", "r", entry="e")])


def out_of_force(world: World, events: list[Any]) -> Record:
    """An owner frame that is not in force: a stranger's, from the future, behind, in conflict."""
    own, session = world.model.ownership, world.script.session
    claim, epoch, seq = own.claim or "c-none", own.epoch, own.seq
    header = world.pick(
        [
            Header(session, claim, epoch, seq, "w"),
            Header(session, "stranger", epoch, seq + 1, "w"),
            Header(session, claim, epoch + 1, 1, "w"),
            Header(session, claim, epoch, max(seq - 1, 0), "w"),
            Header(session, claim, epoch + 3, seq + 1, "w"),
        ]
    )
    return record_of(header, events)


def unreadable(world: World, events: list[Any]) -> Record:
    """A record that is no frame, under all kinds of headers."""
    own, session = world.model.ownership, world.script.session
    in_force = world.header(ahead=world.pick([1, 1, 2, 0]))
    header = world.weighted(
        [
            (5, in_force if own.claim is not None else None),
            (1, None),
            (1, Header(session, None, None, None, None)),
            (1, Header("elsewhere", own.claim, own.epoch, own.seq + 1, None)),
            (1, Header(session, own.claim, None, None, None)),
            (1, Header(session, "old", max(own.epoch - 1, 0), 1, None)),
            (1, Header(session, "future", own.epoch + 1, 1, None)),
        ]
    )
    bodies = [world.pick(GARBAGE), orjson.dumps(random_json(world))]
    if header is not None:
        wrong = {world.pick(["session", "claim", "epoch", "seq"]): "another"}
        bodies += [body_of(header, events, **wrong), body_of(header, [random_json(world)])]
    return Record(session, header, world.pick(bodies))


def forbidden(world: World, events: list[Any]) -> list[Any]:
    """What a guest may not write, beside what it may."""
    return world.pick([events, [user(world.fresh("e"), None)], [settlement(world, None, "host")]])
