"""What is wrong with a log, or worth knowing: one finding a line, damage told from notes.

Damage is what is missing or wrong in frames in force; it makes a verdict `corrupted`. Everything
else that was kept without being applied is a note: it is as it should be, and somebody may want to
know. `KINDS` is the one table of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from turnlog.core.rows import Dispatch, Entry, Head
from turnlog.core.shapes import is_object
from turnlog.query.frames import LOST_CLAIM, judged_frames
from turnlog.query.sessions import heads
from turnlog.tables.store import View
from turnlog.tables.view import SessionView

POSITIONS_SHOWN = 12


class Kind(NamedTuple):
    """What a kind of finding means."""

    damage: bool
    meaning: str


KINDS: Mapping[str, Kind] = {
    "dangling_parent": Kind(True, "an entry's parent is not in the log"),
    "gap": Kind(True, "frames are missing before this one"),
    "conflict": Kind(True, "an entry id came again with other content"),
    "seq_conflict": Kind(True, "a frame's number came again with other content"),
    "unreadable": Kind(True, "a frame in force cannot be read"),
    "no_header": Kind(True, "a record under the session's key says nothing of itself"),
    "malformed": Kind(True, "an event in force breaks the vocabulary"),
    "misplaced_claim": Kind(True, "a claim stands in an owner's frame"),
    "late_created": Kind(True, "the session's creation came late, or twice and not the same"),
    "cycle": Kind(True, "entries are declared as each other's parents"),
    "overflow": Kind(True, "there is more of it than is kept"),
    "circular_fork": Kind(True, "sessions are declared as each other's forks"),
    "missing_parent_session": Kind(False, "the session that it is a fork of is not in the log"),
    "missing_fork_point": Kind(False, "the entry that it goes on from is not in its parent"),
    "fenced": Kind(False, "a former owner wrote on after it was fenced"),
    "lost_claim": Kind(False, "a claim did not win"),
    "double_answer": Kind(False, "a call was answered again; the first answer stands"),
    "evidence": Kind(False, "a fenced owner tells the outcome of a call that is open"),
    "orphan_result": Kind(False, "a result that answers no call above it"),
    "void_compaction": Kind(False, "a compaction that does not apply"),
    "void_result": Kind(False, "a result that could not be placed"),
    "quarantine": Kind(False, "an event or frame that was not folded, out of force"),
    "corrupted_operation": Kind(False, "an operation's records contradict each other"),
    "usage_conflict": Kind(False, "a model request was counted twice, not the same"),
    "jump": Kind(False, "the leaf moved without a branch event"),
    "newer": Kind(False, "events of a newer turnlog, which this one does not fold"),
    "not_created": Kind(False, "no session_created: the session has defaults"),
    "not_listed": Kind(False, "claimed, and no owner's frame yet"),
    "limit": Kind(False, "a limit of the tables was passed, and more was only counted"),
}


class Finding(NamedTuple):
    """One thing found; `position` is where, or None where it is no single place."""

    session: str
    kind: str
    position: int | None
    detail: str

    @property
    def is_damage(self) -> bool:
        """Whether it is missing or wrong in frames in force."""
        return KINDS[self.kind].damage


def check(view: View, sessions: Iterable[str] | None = None) -> Iterator[Finding]:
    """The findings of some sessions or of all, session by session, each in log order."""
    for head in heads(view) if sessions is None else _heads_of(view, sessions):
        found = list(_check_session(view, head))
        found.sort(key=lambda finding: finding.position or 0)
        yield from found


def _heads_of(view: View, sessions: Iterable[str]) -> Iterator[Head]:
    return (SessionView(view, session).head for session in sessions)


def _check_session(view: View, head: Head) -> Iterator[Finding]:
    session = SessionView(view, head.session)
    for kind, position, detail in session.damage():
        yield Finding(head.session, kind, position, detail)
    yield from _quarantined(session, head)
    yield from _facts(head)
    yield from _fork(view, head)
    yield from _frames(view, head)
    yield from _entries(session, head)
    for row in session.rows("dispatches"):
        yield from _answers(row)
    for row in session.rows("operations"):
        for reason in row.corruption:
            detail = f"operation {row.operation!r}: {reason}"
            yield Finding(head.session, "corrupted_operation", row.position, detail)
    for row in session.rows("attempts"):
        if row.usage_conflict:
            detail = f"attempt {row.attempt!r}: its figures or its request do not match"
            yield Finding(head.session, "usage_conflict", row.position, detail)


def _quarantined(session: SessionView, head: Head) -> Iterator[Finding]:
    """What is in the quarantine, unless the list of damage has it already."""
    told = {(position, detail) for _, position, detail in head.damage}
    for row in session.rows("quarantine"):
        if (row.position, row.reason) in told:
            continue
        what = "the frame" if row.event_index < 0 else f"event {row.event_index}"
        # a list of damage that is full leaves its kind out
        kind = "overflow" if row.damage else "quarantine"
        yield Finding(head.session, kind, row.position, f"{what}: {row.reason} ({row.stage})")


def _facts(head: Head) -> Iterator[Finding]:
    """What the head row says by itself."""
    if head.newer:
        yield Finding(head.session, "newer", None, KINDS["newer"].meaning)
    if not head.listed:
        yield Finding(head.session, "not_listed", None, KINDS["not_listed"].meaning)
    elif not head.created:
        yield Finding(head.session, "not_created", None, KINDS["not_created"].meaning)
    for what, count in head.overflow.items():
        if what != "missing_parents":  # which is damage by itself
            kind = "overflow" if what == "damage" else "limit"
            yield Finding(head.session, kind, None, f"{count} more of {what} than are kept")


def _fork(view: View, head: Head) -> Iterator[Finding]:
    """Whether what a fork goes on from is there."""
    name = head.parent_session
    if name is None or head.fork_at is None:
        return
    point = head.fork_at.get("entry") if is_object(head.fork_at) else head.fork_at
    if view.get(("sessions", name)) is None:
        detail = f"its parent {name!r} is not in this log: what the fork goes on from is unknown"
        yield Finding(head.session, "missing_parent_session", None, detail)
    elif view.get(("ids", name, point)) is None:
        detail = f"its parent {name!r} has no entry {point!r}"
        yield Finding(head.session, "missing_fork_point", None, detail)
    seen: dict[str, None] = {head.session: None}
    while name is not None and name not in seen:
        seen[name] = None
        parent: Head | None = view.get(("sessions", name))
        name = parent.parent_session if parent is not None and parent.fork_at is not None else None
    if name == head.session:  # others lead into a circle, and are not of it
        detail = f"forks in a circle: {' of '.join(map(repr, [*seen, name][:POSITIONS_SHOWN]))}"
        yield Finding(head.session, "circular_fork", None, detail)


def _frames(view: View, head: Head) -> Iterator[Finding]:
    """Where the fenced frames and lost claims stand; only the log itself says."""
    if not head.counts["fenced"] and not head.counts["lost_claims"]:
        return
    places: dict[str, list[int]] = {"fenced": [], LOST_CLAIM: []}
    for judged in judged_frames(view, head.session):
        if judged.standing in places:
            places[judged.standing].append(judged.stored.position)
    for kind, what in (("fenced", "frame(s)"), (LOST_CLAIM, "claim(s)")):
        if positions := places[kind]:
            yield _counted(head.session, kind, positions, what)


def _counted(session: str, kind: str, positions: list[int], what: str) -> Finding:
    """One finding for what may be there many times."""
    shown = ", ".join(map(str, positions[:POSITIONS_SHOWN]))
    more = ", …" if len(positions) > POSITIONS_SHOWN else ""
    return Finding(session, kind, positions[0], f"{len(positions)} {what} at {shown}{more}")


def _answers(row: Dispatch) -> Iterator[Finding]:
    """Answers that came beside the one that stands."""
    for piece in row.evidence:
        by = "a fenced owner" if piece["fenced"] else "an owner"
        detail = f"dispatch {row.dispatch!r} ({row.tool}): {piece['status']} by {by}"
        if row.answer is None:
            yield Finding(row.session, "evidence", piece["position"], f"{detail}; it is open")
        else:
            beside = f"{detail}, beside {row.status} by {row.settled_by}"
            yield Finding(row.session, "double_answer", piece["position"], beside)


def _entries(session: SessionView, head: Head) -> Iterator[Finding]:
    jumps: list[int] = []
    missing: set[str] = set()
    leaf = 0
    for row in session.reader.scan("entries", head.session):
        if row.declared is not None and _is_missing(session, row):
            missing.add(row.declared)
        if row.void is not None:
            yield from _void(row)
            continue
        if row.kind == "message" and row.role == "tool" and row.answers is None:
            yield _unanswering(session, row)
        if row.id in missing:  # it came late, and such an entry never becomes the leaf
            missing.remove(row.id)
            continue
        if row.parent != leaf and row.kind != "branch":
            jumps.append(row.position)
        leaf = row.number
    if head.counts["jumps"]:
        yield _counted(head.session, "jump", jumps or [head.position], "jump(s)")


def _is_missing(session: SessionView, row: Entry) -> bool:
    """Whether an entry was bridged over a parent that was not in the log before it."""
    if row.answers is not None and session.data(row).get("dispatch") is not None:
        return False  # it was placed, wherever it says that it belongs
    number: int | None = session.reader.get(("ids", row.session, row.declared))
    return number is None or number > row.number


def _void(row: Entry) -> Iterator[Finding]:
    detail = f"entry {row.id!r}: {row.void}"
    if row.kind == "compaction":
        yield Finding(row.session, "void_compaction", row.position, detail)
    elif row.void != "late_result":  # which is evidence on its dispatch
        yield Finding(row.session, "void_result", row.position, detail)


def _unanswering(session: SessionView, row: Entry) -> Finding:
    """A result without a dispatch that answers nothing: its call is not there, or is answered."""
    parent = session.entry(row.parent)
    above = parent if parent.role == "assistant" else session.entry(parent.assistant_ref)
    data: dict[str, Any] = session.data(row)
    call = data.get("call_id")
    if call in above.calls:
        detail = f"entry {row.id!r}: call {call!r} was answered before"
        return Finding(row.session, "double_answer", row.position, detail)
    detail = f"entry {row.id!r}: no call {call!r} in the assistant message above it"
    return Finding(row.session, "orphan_result", row.position, detail)
