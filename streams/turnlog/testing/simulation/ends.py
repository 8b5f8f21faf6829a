"""What is looked at when a history's actors are done, and again when somebody has healed it."""

from __future__ import annotations

from turnlog.core import fold as folding
from turnlog.core.frames import Event, Frame
from turnlog.core.recovery import CORRUPTED, INDETERMINATE, INTERRUPTED, READY, TERMINAL
from turnlog.core.rows import TABLES, Operation, key_of
from turnlog.tables.evidence import report_on, reports_of
from turnlog.tables.memory import DictStore, differences
from turnlog.tables.view import SessionView
from turnlog.testing.simulation.stores import Worker
from turnlog.testing.simulation.surfaces import unbalanced
from turnlog.testing.simulation.watch import Watch
from turnlog.testing.simulation.world import World


def check_verdicts(world: World, watch: Watch) -> None:
    """Every operation that has not ended is listed, with the verdict that the log gives."""
    for session in list(watch.judges):
        view = SessionView(world.tables, session)
        listed = {report.operation.operation for report in reports_of(view, "host")}
        for row in view.rows("operations"):
            expected = _verdict(world, watch, view, row)
            found = report_on(view, row, "host").verdict.name
            if found != expected:
                watch.fail("verdict", f"{row.operation} is {found}, the log says {expected}")
            is_open = row.outcome is None and not row.superseded
            if is_open and row.operation not in listed:
                watch.fail("listed", f"{row.operation} is open and not listed")


def _verdict(world: World, watch: Watch, view: SessionView, row: Operation) -> str:
    """The design's table of verdicts, read from the events of the operation alone."""
    judge = watch.judges[view.session]
    last = row.finished or world.end
    if row.corruption or any(row.accepted <= position <= last for _, position, _ in view.damage()):
        return CORRUPTED
    calls = [c for c in judge.calls.values() if c.data["operation"] == row.operation]
    if any(call.status == "open" for call in calls):
        return INDETERMINATE
    if row.outcome is not None or row.superseded:
        return TERMINAL
    applied = _applied(world, watch, view.session)
    asked = [
        event.data["assistant_entry"]
        for event in applied
        if event.type == "model_attempted" and event.data["operation"] == row.operation
    ]
    if asked and asked[-1] not in judge.entries:
        return INTERRUPTED
    if row.kind in ("compaction", "navigation"):
        own = [event for event in applied if event.type in ("compaction", "branch")]
        mine = [event for event in own if event.data.get("operation") == row.operation]
        done = any(view.entry(view.number(event.id)).void is None for event in mine)
        return TERMINAL if done else READY
    messages = [entry for entry in view.path() if entry.kind == "message"]
    is_last = bool(asked and messages and messages[-1].id == asked[-1])
    return TERMINAL if is_last and messages[-1].stop_reason == "stop" else READY


def _applied(world: World, watch: Watch, session: str) -> list[Event]:
    seen: set[tuple[str | None, int | None]] = set()
    events: list[Event] = []
    judge = watch.judges[session]
    for item in world.landed:
        frame = item.frame
        if not isinstance(frame, Frame) or frame.header.session != session:
            continue
        name = frame.header.claim, frame.header.seq
        if name not in seen and judge.applied.get(name) == frame.digest:
            seen.add(name)
            events += frame.events
    return events


def check_ended(world: World, watch: Watch) -> None:
    """After a take-over nothing is open that need not be, and contexts are balanced."""
    for session in list(watch.judges):
        view = SessionView(world.tables, session)
        for row in view.rows("operations"):
            left = row.outcome is None and not row.superseded and row.parked is None
            if left and not row.corruption:
                watch.fail("ends", f"{row.operation} is open although somebody took over")
        told = unbalanced(view.context())
        if told is not None:
            watch.fail("balanced", f"{session}: {told}")


def check_added_nothing(world: World, watch: Watch, began: int, ended: int) -> None:
    """Who recovers what was recovered claims, and releases perhaps, and writes nothing else, unless
    somebody who was frozen woke meanwhile and said something. The first recovery was between two
    positions."""
    quiet = {"session_claimed", "session_released"}
    types: set[str] = set()
    is_news = False
    for item in world.landed:
        frame = item.frame
        if item.stored.position > began and isinstance(frame, Frame):
            found = {event.type for event in frame.events} - quiet
            is_news = is_news or (frame.header.is_guest and bool(found))
            types |= found if item.stored.position > ended else set()
    if types and not is_news:
        watch.fail("added nothing", f"recovering again wrote {sorted(types)}")


def check_tables(world: World, watch: Watch) -> None:
    """The tables are what a fold from zero gives, and hold everything that was told saved."""
    fresh = DictStore(world.records, world.signal)
    for item in world.landed:
        fresh.apply(folding.fold(item.frame, item.stored.position, fresh), item.stored.position)
    for difference in differences(world.tables, fresh):
        watch.fail("from zero", str(difference))
        return
    for session, claim, seq, digest in watch.saved:
        if watch.judges[session].applied.get((claim, seq)) != digest:
            watch.fail("saved", f"{session}: seq {seq} of claim {claim} is gone")


def check_worker(world: World, watch: Watch, worker: Worker) -> None:
    """Tables whose frames were torn are the same as those whose frames were not."""
    told = worker.work()
    if told is not None:
        watch.fail("torn frames", told)
        return
    torn = worker.store.rows()
    whole = {key_of(table, row): row for table in TABLES for row in world.tables.scan(table)}
    for key in whole.keys() | {key for key in torn if key[0] != "ids"}:
        if torn.get(key) != whole.get(key):
            watch.fail("torn frames", f"{key}: {torn.get(key)}, not {whole.get(key)}")
            return
