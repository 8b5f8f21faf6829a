"""Pruning: long tool results are trimmed to their head and tail. No model is asked.

Each prune stands in the place of one result and says how much it leaves out; the whole result stays
in the log. Start, prunes and end of the operation are one frame, so no crash is seen in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from turnlog.core.blobs import resolve
from turnlog.core.errors import SchemaError, UsageError
from turnlog.core.frames import NewEvent, canonical
from turnlog.core.rows import Entry
from turnlog.core.shapes import is_list
from turnlog.host.compaction import leaf_of, make_way
from turnlog.host.cuts import Meter, characters, spots_of
from turnlog.host.link import Link
from turnlog.tables.view import SessionView

Json = Any
THRESHOLD = 8192
HEAD = 4096
TAIL = 1024
MARKER = "\n[… {left_out} characters are left out here …]\n"
MARKER_LENGTH = len(MARKER) + 20
MAX_EVENTS = 500
MAX_BYTES = 512 * 1024
"""How much goes into one frame: half of what it may hold."""


@dataclass(frozen=True, slots=True)
class Trim:
    """How results are trimmed; every length is in characters (code points).

    A result longer than `threshold` keeps its `head` and `tail`; the newest `keep` results stay as
    they are. Raises UsageError where what is kept could be longer than the threshold.
    """

    threshold: int = THRESHOLD
    head: int = HEAD
    tail: int = TAIL
    keep: int = 0

    def __post_init__(self) -> None:
        if min(self.head, self.tail, self.keep) < 0:
            raise UsageError("prune: head, tail and keep are 0 or more")
        if self.head + self.tail + MARKER_LENGTH > self.threshold:
            raise UsageError(
                f"prune: head {self.head}, tail {self.tail} and a marker of {MARKER_LENGTH} are"
                f" more than the threshold {self.threshold}"
            )


async def prune(link: Link, how: Trim, meter: Meter = characters) -> list[str]:
    """See `Session.prune`."""
    made: list[str] = []
    while True:
        await make_way(link)
        events = _frame(link, how, meter)
        if not events:
            return made
        entries = [event.id for event in events if event.type == "compaction"]
        await link.write_now(events, leaf=entries[-1])
        made += entries


def _frame(link: Link, how: Trim, meter: Meter) -> list[NewEvent]:
    """The events of one operation over the results that are to be trimmed: all, or as many as fit.
    An empty list where there are none."""
    view = link.view()
    start = leaf = leaf_of(view)
    operation, size = link.ambient.ids(), 0
    entries: list[NewEvent] = []
    for row, whole, content in _trimmed(view, how):
        before, after = (_measure(row, said, meter) for said in (whole, content))
        if after >= before:
            continue
        data = {
            "parent": leaf,
            "kind": "prune",
            "replaces": {"first": row.id, "last": row.id},
            "content": content,
            "prepared_at": start,
            "operation": operation,
            "tokens_before": before,
            "tokens_after": after,
        }
        size += len(canonical(data))
        if entries and (size > MAX_BYTES or len(entries) == MAX_EVENTS):
            break
        entries.append(link.event("compaction", data))
        leaf = entries[-1].id
    if not entries:
        return []
    accepted = {"operation": operation, "kind": "compaction", "trigger": "manual"}
    finished = {"operation": operation, "outcome": "completed"}
    return [
        link.event("operation_accepted", {**accepted, "start_leaf": start}),
        *entries,
        link.event("operation_finished", finished),
    ]


def _trimmed(view: SessionView, how: Trim) -> Iterator[tuple[Entry, list[Json], list[Json]]]:
    """The results of the surface that are too long, each with its content now and trimmed."""
    rows = [spot.row for spot in spots_of(view)]
    results = [row for row in rows if row is not None and row.role == "tool"]
    for row in results[: len(results) - how.keep] if how.keep else results:
        text, others = _split(view, _content(view, row))
        if len(text) <= how.threshold:
            continue
        before = [*_text(text), *others]
        # of a result that was trimmed before, the whole of it says what is left out
        text, others = _split(view, _content(view, _whole(view, row)))
        tail = text[len(text) - how.tail :]
        marker = MARKER.format(left_out=f"{len(text) - how.head - how.tail:,}")
        yield row, before, [*_text(text[: how.head] + marker + tail), *others]


def _whole(view: SessionView, row: Entry) -> Entry:
    """The result that a prune, or a prune of a prune, trims."""
    while row.replaces is not None:
        row = view.entry(row.replaces[0])
    return row


def _content(view: SessionView, row: Entry) -> Json:
    return view.data(row)["content"]


def _split(view: SessionView, content: Json) -> tuple[str, list[Json]]:
    """The text of a content, that in blobs included, and its other parts."""
    texts: list[str] = []
    others: list[Json] = []
    for part in content if is_list(content) else []:
        whole = _resolved(view, part)
        if whole["type"] == "text":
            texts.append(whole.get("text") or "")
        else:
            others.append(part)
    return "\n".join(texts), others


def _resolved(view: SessionView, part: dict[str, Json]) -> dict[str, Json]:
    try:
        return resolve(part, view.blob)
    except SchemaError:  # its bytes are damaged; that is told elsewhere
        return part


def _text(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def _measure(row: Entry, content: Json, meter: Meter) -> int:
    return meter({"role": "tool", "content": content, "entry": row.id})
