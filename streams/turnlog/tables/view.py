"""One session as its tables and its log show it: path, surface, state, context and evidence.

Everything is read from rows and from the bodies of the frames they point to; nothing is kept, so
a view shows the session as it is at each call. Answers are given at the leaf or at any entry.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Protocol, cast

from turnlog.core.context import Answer, Node, balanced
from turnlog.core.errors import EntryNotFound, SessionNotFound, StateError
from turnlog.core.fold.entries import ROOT
from turnlog.core.fold.surfaces import path_to, surface_at
from turnlog.core.frames import Frame, decode
from turnlog.core.rows import AppState, Blob, Dispatch, Entry, Head, Json, Operation
from turnlog.core.shapes import is_list
from turnlog.tables.store import Stored

KEPT_FRAMES = 64


class Reader(Protocol):
    """What a view needs of a store."""

    def get(self, key: tuple[Any, ...], /) -> Any:
        """The row of a key, or None."""
        ...

    def scan(self, table: str, session: str) -> Iterator[Any]:
        """The rows of one session in key order."""
        ...

    def find(self, table: str, session: str, field: str, value: str) -> Iterator[Any]:
        """The rows of one session with a value in an indexed field."""
        ...

    def record(self, session: str, position: int) -> Stored | None:
        """The record of a session at a position."""
        ...


class SessionView:
    """A session that exists. Raises SessionNotFound where it does not; `is_known`: it does."""

    def __init__(self, reader: Reader, session: str, *, is_known: bool = False) -> None:
        self.reader = reader
        self.session = session
        self._frames: dict[int, Frame] = {}
        if not is_known and reader.get(("sessions", session)) is None:
            raise SessionNotFound(
                f"no session {session!r} is in this log; `turnlog sessions` lists those that are"
            )

    @property
    def head(self) -> Head:
        """The session's head row."""
        return cast("Head", self.reader.get(("sessions", self.session)))

    def entry(self, number: int) -> Entry:
        """The entry of a number; 0 is the root position."""
        return cast("Entry", self.reader.get(("entries", self.session, number))) if number else ROOT

    def number(self, id_: str) -> int:
        """The number of an entry id. Raises EntryNotFound."""
        number: int | None = self.reader.get(("ids", self.session, id_))
        if number is None:
            raise EntryNotFound(
                f"session {self.session!r} has no entry {id_!r};"
                f" `turnlog events {self.session}` lists its entries"
            )
        return number

    def rows(self, table: str) -> list[Any]:
        """All rows of the session in one table."""
        return list(self.reader.scan(table, self.session))

    def data(self, entry: Entry) -> dict[str, Json]:
        """The data of an entry's event, from the log."""
        return self.event_data(entry.position, entry.event_index)

    def event_data(self, position: int, index: int) -> dict[str, Json]:
        """The data of the event at a place in the log."""
        return self.frame(position).events[index].data

    def frame(self, position: int) -> Frame:
        """The frame at a position, which a row points to. Raises StateError where it is gone."""
        frame = self._frames.get(position)
        if frame is None:
            stored = self.reader.record(self.session, position)
            found = None if stored is None else decode(stored.record)
            if not isinstance(found, Frame):
                reason = "the log holds nothing there" if found is None else found.reason
                raise StateError(
                    f"session {self.session!r}: the frame at position {position} can no longer be"
                    f" read ({reason}); run `turnlog fsck`, then `turnlog rebuild`"
                )
            if len(self._frames) >= KEPT_FRAMES:
                self._frames.pop(next(iter(self._frames)))
            frame = self._frames[position] = found
        return frame

    def blob(self, digest: str) -> bytes | None:
        """The bytes of a blob of this session or one it was forked from, or None where a slice is
        missing."""
        row: Blob | None = self.reader.get(("blobs", self.session, digest))
        if row is None or len(row.positions) < row.of:
            return self._blob_of_parents(digest)
        slices = (self.event_data(*row.positions[str(index)]) for index in range(row.of))
        return b"".join(base64.b64decode(data["bytes"]) for data in slices)

    def _blob_of_parents(self, digest: str) -> bytes | None:
        seen, parent = {self.session}, self.parent()
        while parent is not None and parent[0].session not in seen:
            view = parent[0]
            seen.add(view.session)
            row: Blob | None = view.reader.get(("blobs", view.session, digest))
            if row is not None and len(row.positions) == row.of:
                return view.blob(digest)
            parent = view.parent()
        return None

    def path(self, number: int | None = None) -> list[Entry]:
        """The entries from the root to one (the leaf by default)."""
        return path_to(self.entry, self.head.leaf if number is None else number)

    def surface(self, number: int | None = None) -> list[int]:
        """The entry numbers of the surface at an entry; 0 is the parent's surface of a fork."""
        head = self.head
        if number is None or number == head.leaf:
            pages = (
                self.reader.get(("surfaces", self.session, page)) for page in range(head.pages)
            )
            return [node for page in pages for node in page.nodes]
        return surface_at(self.entry, self.real(number), fork=head.fork_at is not None)

    def nodes(self, number: int | None = None) -> list[Node]:
        """The surface with bodies, a fork's reference followed into its parents."""
        parts: list[list[Node]] = []
        view, at = self, number
        seen: set[str] = set()
        while True:
            seen.add(view.session)
            surface = view.surface(at)
            follows = bool(surface) and surface[0] == 0
            rows = [view.entry(node) for node in surface if node]
            parts.append([view.node(row) for row in rows])
            if not follows:
                break
            parent = view.parent()
            if parent is None or parent[0].session in seen:
                parts.append([_missing(view.head)])
                break
            view, at = parent
        return [node for part in reversed(parts) for node in part]

    def node(self, row: Entry) -> Node:
        """A surface node with its body; a prune has tool, call id and status of what it trims."""
        data = self.data(row)
        if row.kind != "compaction" or row.role != "tool":
            return Node(row, data)
        trimmed = row
        while trimmed.replaces is not None:
            trimmed = self.entry(trimmed.replaces[0])
        said = self.data(trimmed)
        kept = {name: said.get(name) for name in ("tool", "call_id", "status")}
        return Node(row, {**data, **kept})

    def parent(self) -> tuple[SessionView, int] | None:
        """A fork's parent and the entry it forked at, where both are in this log."""
        head = self.head
        name, fork_at = head.parent_session, head.fork_at
        if name is None or fork_at is None or self.reader.get(("sessions", name)) is None:
            return None
        view = SessionView(self.reader, name)
        number: int | None = self.reader.get(("ids", name, fork_at["entry"]))
        return None if number is None else (view, number)

    def state(self, number: int | None = None) -> dict[str, Json]:
        """The app state at an entry (the leaf by default)."""
        row: AppState | None = self.reader.get(("app_states", self.session))
        if number is None or number == self.head.leaf:
            return dict(row.value) if row is not None else {}
        entry = self.entry(self.real(number))
        if entry.state_ref:
            return dict(self.entry(entry.state_ref).value)
        return dict(row.initial) if row is not None else {}

    def context(self, number: int | None = None) -> list[dict[str, Json]]:
        """What is to be sent to the model: the balanced surface."""
        return balanced(self.nodes(number), _Answers(self).answer)

    def damage(self) -> list[tuple[str, int, str]]:
        """What is missing or wrong in frames in force, as (kind, position, detail)."""
        head = self.head
        found = [(kind, position, detail) for kind, position, detail in head.damage]
        found.extend(
            ("dangling_parent", position, f"parent {id_!r} is not in the log")
            for id_, position in head.missing_parents.items()
        )
        return sorted(found, key=lambda item: item[1])

    def dispatches_of(self, operation: str) -> list[Dispatch]:
        """The dispatches of one operation."""
        return list(self.reader.find("dispatches", self.session, "operation", operation))

    def reruns(self) -> list[Dispatch]:
        """The dispatches that a person allowed to be started once more."""
        found = self.reader.find("dispatches", self.session, "status", "unknown")
        return [row for row in found if row.rerun]

    def real(self, number: int) -> int:
        """The entry that one stands for: a void entry stands for its parent."""
        entry = self.entry(number)
        return entry.parent if entry.void is not None else number

    def dispatch_answer(self, row: Dispatch) -> Answer:
        """The answer of a dispatch, with the content of its result where there is one."""
        answer = row.answer
        if answer is None or answer["type"] != "message":
            return Answer(row.status)
        return Answer(row.status, _parts(self.event_data(answer["position"], answer["index"])))

    def proves_absence(self, entry: Entry) -> bool:
        """Whether a missing T1 proves that a call was not started: not after an import or a gap."""
        return not entry.imported and not any(kind == "gap" for kind, _, _ in self.head.damage)

    def operation(self, id_: str) -> Operation | None:
        """The row of one operation."""
        return cast("Operation | None", self.reader.get(("operations", self.session, id_)))


class _Answers:
    """What is known of calls without a result on the surface. Looked up once for each session,
    and only where there is such a call."""

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._of: dict[str, _Known] = {}

    def answer(self, entry: Entry, index: int) -> Answer:
        known = self._of.get(entry.session)
        if known is None:
            view = self._view
            if entry.session != view.session:  # a fork's parent
                view = SessionView(view.reader, entry.session)
            known = self._of[entry.session] = _Known(view)
        return known.answer(entry, index)


class _Known:
    """The dispatches and results of one session by the call they are about."""

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._dispatches: dict[tuple[str, int], Dispatch] = {}
        self._results: dict[tuple[int, int], Entry] = {}
        for row in sorted(view.rows("dispatches"), key=_weight):
            self._dispatches[(row.assistant_entry, row.call_index)] = row
        for entry in view.reader.scan("entries", view.session):
            if entry.answers is not None and entry.kind == "message":
                self._results.setdefault(entry.answers, entry)

    def answer(self, entry: Entry, index: int) -> Answer:
        view = self._view
        dispatch = self._dispatches.get((entry.id, index))
        if dispatch is not None:
            return view.dispatch_answer(dispatch)
        elsewhere = self._results.get((entry.number, index))
        if elsewhere is not None:
            data = view.data(elsewhere)
            return Answer(data.get("status") or "ok", _parts(data))
        return Answer("not_started" if view.proves_absence(entry) else "unknown")


def _weight(row: Dispatch) -> tuple[int, int]:
    """Of several dispatches of one call the model is told of the one that did most."""
    return ("not_started", "unknown", "open", "error", "ok").index(row.status), row.position


def _parts(data: dict[str, Json]) -> list[Json] | None:
    content = data.get("content")
    return content if is_list(content) and content else None


def _missing(head: Head) -> Node:
    """What stands for a fork's parent that is not in this log, or that leads back to the fork."""
    text = f"[This session was forked from {head.parent_session!r}, which cannot be followed here]"
    entry = ROOT._replace(session=head.session, id=head.fork_at["entry"], kind="fork", role="user")
    return Node(entry, {"content": [{"type": "text", "text": text}]})
