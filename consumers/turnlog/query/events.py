"""The events of a session in log order, each with what became of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, cast

from turnlog.core.frames import Event, Unreadable
from turnlog.core.rows import Entry, Quarantine
from turnlog.query.frames import Judge, Judged, judged_frames
from turnlog.tables.store import Stored, View

Json = Any


def list_events(
    view: View, session: str, *, types: Collection[str] = ()
) -> Iterator[dict[str, Json]]:
    """Every event of a session as plain data, `types` alone where some are given.

    `frame` says what its frame was (applies, gap, duplicate, seq_conflict, fenced, foreign, guest,
    claim, lost_claim or misfiled). `entry` is the entry that the event became, with `void` where
    that moved nothing; `quarantine` is why it could not be folded. A record that cannot be read is
    one object with `index` -1 and no type.
    """
    walk = _Walk(view, session)
    for judged in judged_frames(view, session):
        for row in _rows(session, judged, walk):
            if not types or row["type"] in types:
                yield row


class NewEvents:
    """The events of a session's records as these come: the same objects as `list_events` gives.

    Every record of the session goes through it once, in order and from the first on, and is in the
    tables by then.
    """

    def __init__(self, view: View, session: str) -> None:
        self._view = view
        self._session = session
        self._judge = Judge(session)

    def skip(self, stored: Stored) -> None:
        """A record whose events nobody wants."""
        self._judge.judge(stored)

    def of(self, stored: Stored) -> list[dict[str, Json]]:
        """The events of a record."""
        return list(_rows(self._session, self._judge.judge(stored), self))

    def entry(self, position: int, index: int, id_: str) -> Entry | None:
        """The entry that an event became."""
        number = self._view.get(("ids", self._session, id_))
        row: Any = None
        if number is not None:
            row = self._view.get(("entries", self._session, number))
        if row is None or (row.position, row.event_index) != (position, index):
            return None  # another event of that id
        return cast("Entry", row)

    def quarantine(self, position: int, index: int) -> Quarantine | None:
        """Why an event, or with -1 a frame, could not be folded."""
        key = ("quarantine", self._session, position, index)
        return cast("Quarantine | None", self._view.get(key))


class _Walk:
    """Rows of entries and of the quarantine, beside the events that they came from."""

    def __init__(self, view: View, session: str) -> None:
        # in the order of their numbers, which is the order of the log
        self._entries: Iterator[Entry] = view.scan("entries", session)
        self._entry = next(self._entries, None)
        self._quarantine: dict[tuple[int, int], Quarantine] = {
            (row.position, row.event_index): row for row in view.scan("quarantine", session)
        }

    def entry(self, position: int, index: int, id_: str) -> Entry | None:
        del id_
        row = self._entry
        while row is not None and (row.position, row.event_index) < (position, index):
            row = self._entry = next(self._entries, None)
        return None if row is None or (row.position, row.event_index) != (position, index) else row

    def quarantine(self, position: int, index: int) -> Quarantine | None:
        return self._quarantine.get((position, index))


def _rows(session: str, judged: Judged, found: _Walk | NewEvents) -> Iterator[dict[str, Json]]:
    position, frame = judged.stored.position, judged.frame
    header = frame.header
    about = {
        "session": session,
        "position": position,
        "epoch": header.epoch if header is not None else None,
        "seq": header.seq if header is not None else None,
        "writer": header.writer if header is not None else None,
        "frame": judged.standing,
    }
    if isinstance(frame, Unreadable):
        yield {**about, "index": -1, **_nothing(), "quarantine": frame.reason}
        return
    whole = found.quarantine(position, -1)
    for index, event in enumerate(frame.events):
        row = whole or found.quarantine(position, index)
        entry = found.entry(position, index, event.id)
        yield {
            **about,
            "index": index,
            **_content(event),
            "entry": _shown(entry) if entry is not None else None,
            "quarantine": row.reason if row is not None else None,
        }


def _shown(row: Entry) -> dict[str, Json]:
    return {"number": row.number, "parent": row.parent, "depth": row.depth, "void": row.void}


def _content(event: Event) -> dict[str, Json]:
    return {
        "type": event.type,
        "v": event.v,
        "id": event.id,
        "time": event.time,
        "data": event.data,
    }


def _nothing() -> dict[str, Json]:
    return {"type": None, "v": None, "id": None, "time": None, "data": None, "entry": None}
