"""A session with what waits shows what it will be once that is saved."""

from __future__ import annotations

import pytest

from tests.story import (
    accepted,
    assistant,
    attempted,
    branch,
    event,
    finished,
    result,
    state,
    t1,
    user,
)
from tests.unit.host.scene import AMBIENT, MoodyLog
from turnlog.core.frames import NewEvent
from turnlog.host.provisional import Provisional
from turnlog.owner.owner import Owner, claim
from turnlog.tables.evidence import reports_of
from turnlog.tables.view import SessionView

STORY: list[NewEvent] = [
    event("session_created", title="t"),
    user("u", None),
    accepted("o", "u"),
    attempted("a", "o", "m"),
    assistant("m", "u", "c1", "c2", attempt="a"),
    t1("d1", "o", "m", "r1", call_no=0),
    t1("d2", "o", "m", "r2", call_id="c2", call_index=1, call_no=1),
    state("st", "m", k=1),
    result("r2", "st", "c2", dispatch="d2"),
    event("input_queued", input="i", entry="e", content=[], delivery="steer"),
    event("approval_asked", operation="o", call_id="c1", assistant_entry="m"),
    result("r1", "r2", "c1", dispatch="d1"),
    event("fact", "f", name="title", value="better"),
    user("e", "r1"),
    finished("o"),
    branch("b", "u", "e", summary="elsewhere"),
    event("operation_parked", operation="o", reason="r"),
]


async def owner_of(log: MoodyLog) -> Owner:
    return await claim(log, "s", tables=log.tables, host="h", reason="open", ambient=AMBIENT)


def shown(view: SessionView) -> object:
    """What a host looks at."""
    head = view.head
    return {
        "context": view.context(),
        "state": view.state(),
        "path": [(row.id, row.kind, row.depth, row.void) for row in view.path()],
        "entries": [(row.id, row.parent, row.answers) for row in view.rows("entries")],
        "leaf": head.leaf,
        "status": head.status,
        "title": head.title,
        "inputs": [(row.input, row.status) for row in view.rows("inputs")],
        "open": (sorted(head.open_operations), sorted(head.open_dispatches)),
        "waiting": len(head.waiting),
        "damage": view.damage(),
        "operations": [
            (row.operation, row.outcome, row.parked, row.corruption)
            for row in view.rows("operations")
        ],
        "dispatches": [
            (row.dispatch, row.status, len(row.tries)) for row in view.rows("dispatches")
        ],
        "plan": [step["do"] for report in reports_of(view, "host") for step in report.instructions],
    }


@pytest.mark.parametrize("saved", range(len(STORY)))
async def test_any_part_of_a_story_may_wait(saved: int) -> None:
    log, whole = MoodyLog(), MoodyLog()
    owner, other = await owner_of(log), await owner_of(whole)
    await other.write(STORY)
    if saved:
        await owner.write(STORY[:saved])
    view = SessionView(Provisional(log.tables, "s", STORY[saved:]), "s")
    assert shown(view) == shown(SessionView(whole.tables, "s"))
    for id_ in ("u", "m", "r1", "b"):
        assert view.data(view.entry(view.number(id_))) == dict(
            next(made for made in STORY if made.id == id_).data
        )


async def test_it_grows_with_what_waits() -> None:
    log = MoodyLog()
    await owner_of(log)
    layer = Provisional(log.tables, "s", ())
    for count in range(1, len(STORY) + 1):
        layer.take(STORY[:count])
        at_once = Provisional(log.tables, "s", STORY[:count])
        if count > 1:
            assert shown(SessionView(layer, "s")) == shown(SessionView(at_once, "s"))


async def test_it_changes_no_table_and_shows_other_sessions_as_they_are() -> None:
    log = MoodyLog()
    owner = await owner_of(log)
    await owner.write(STORY[:3])
    other = await claim(log, "t", tables=log.tables, host="h", reason="open", ambient=AMBIENT)
    await other.write([user("x", None)])
    before = shown(SessionView(log.tables, "s"))
    layer = Provisional(log.tables, "s", STORY[3:])
    assert shown(SessionView(layer, "t")) == shown(SessionView(log.tables, "t"))
    assert shown(SessionView(log.tables, "s")) == before
    assert list(log.verify()) == []
