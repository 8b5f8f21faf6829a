"""The events of a session in log order, each with what became of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from turnlog.core.frames import Event, Unreadable
from turnlog.core.rows import Entry, Quarantine
from turnlog.query.frames import Judged, judged_frames
from turnlog.tables.store import View

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
        for row in walk.events(judged):
            if not types or row["type"] in types:
                yield row


class _Walk:
    """Rows of entries and of the quarantine, beside the events that they came from."""

    def __init__(self, view: View, session: str) -> None:
        self.session = session
        # in the order of their numbers, which is the order of the log
        self._entries: Iterator[Entry] = view.scan("entries", session)
        self._entry = next(self._entries, None)
        self._quarantine: dict[tuple[int, int], Quarantine] = {
            (row.position, row.event_index): row for row in view.scan("quarantine", session)
        }

    def events(self, judged: Judged) -> Iterator[dict[str, Json]]:
        position, frame = judged.stored.position, judged.frame
        header = frame.header
        about = {
            "session": self.session,
            "position": position,
            "epoch": header.epoch if header is not None else None,
            "seq": header.seq if header is not None else None,
            "writer": header.writer if header is not None else None,
            "frame": judged.standing,
        }
        if isinstance(frame, Unreadable):
            yield {**about, "index": -1, **_nothing(), "quarantine": frame.reason}
            return
        whole = self._quarantine.get((position, -1))
        for index, event in enumerate(frame.events):
            row = whole or self._quarantine.get((position, index))
            yield {
                **about,
                "index": index,
                **_content(event),
                "entry": self._entry_at(position, index),
                "quarantine": row.reason if row is not None else None,
            }

    def _entry_at(self, position: int, index: int) -> dict[str, Json] | None:
        row = self._entry
        while row is not None and (row.position, row.event_index) < (position, index):
            row = self._entry = next(self._entries, None)
        if row is None or (row.position, row.event_index) != (position, index):
            return None
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
