"""Writing the frames of one session by hand: sealed where they are valid, as raw JSON where not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from tests.model.ownership import Record as Readable
from turnlog.core.errors import SchemaError
from turnlog.core.frames import Data, Header, NewEvent, Record, Unreadable, decode, seal

SESSION = "s"


class Item(NamedTuple):
    """A record of the log, and what is read of it."""

    position: int
    record: Record
    frame: Readable


class History(list[Item]):
    """A log of one session; its repr is short enough to be read when a property fails."""

    def __repr__(self) -> str:
        return "\n".join(["", *(line for item in self for line in _told(item))])

    @property
    def frames(self) -> list[tuple[int, Readable]]:
        """What a fold takes."""
        return [(item.position, item.frame) for item in self]


def _told(item: Item) -> Iterator[str]:
    header, frame = item.record.header, item.frame
    under = "no header" if header is None else (header.claim, header.epoch, header.seq)
    if isinstance(frame, Unreadable):
        yield f"@{item.position} {under} unreadable: {frame.reason}"
        return
    yield f"@{item.position} {under}"
    for new in frame.events:
        said = {name: value for name, value in new.data.items() if value is not None}
        fault = "" if new.fault is None else f" FAULT {new.fault}"
        yield f"    {new.type}{' v2' if new.newer else ''} {new.id} {said}{fault}"


def event(type_: str, id_: str, /, **data: Any) -> Data:
    """An event in its raw form. A trailing underscore of a field is dropped (`from_`, `try_`)."""
    named = {name.rstrip("_"): value for name, value in data.items()}
    return {"type": type_, "v": 1, "id": id_, "time": None, "data": named}


def of_version(v: int, raw: Data) -> Data:
    """The same event in another version."""
    return {**raw, "v": v}


def text(words: str) -> list[Data]:
    """A content of one text part."""
    return [{"type": "text", "text": words}]


def calls(*call_ids: str) -> list[Data]:
    """A content of tool calls."""
    return [{"type": "tool_call", "call_id": id_, "name": "tool", "args": {}} for id_ in call_ids]


def user(id_: str, parent: str | None) -> Data:
    """A user message."""
    return event("message", id_, parent=parent, role="user", content=text(id_))


def assistant(id_: str, parent: str | None, *call_ids: str, **data: Any) -> Data:
    """An assistant message with tool calls."""
    content = [*text(id_), *calls(*call_ids)]
    return event("message", id_, parent=parent, role="assistant", content=content, **data)


def result(id_: str, parent: str | None, **data: Any) -> Data:
    """A tool result."""
    return event("message", id_, parent=parent, role="tool", content=text(id_), **data)


class Script:
    """A log of one session that grows record by record, and knows the next seq of each claim."""

    def __init__(self, session: str = SESSION, position: int = 1, step: int = 1) -> None:
        self.session = session
        self.items = History()
        self.position = position
        self.step = step
        self.epochs: dict[str, int] = {}
        self.seqs: dict[str, int] = {}

    @property
    def frames(self) -> list[tuple[int, Readable]]:
        """What a fold takes."""
        return self.items.frames

    def append(self, record: Record) -> Item:
        """File a record, whatever it is."""
        item = Item(self.position, record, decode(record))
        self.items.append(item)
        self.position += self.step
        return item

    def write(self, header: Header, events: Iterable[Any]) -> Item:
        """Append events under a header."""
        return self.append(record_of(header, list(events)))

    def claim(self, claim: str, expects: int | None = None, **data: Any) -> Item:
        """Claim the session; the epoch is taken to be the next one."""
        epoch = max(self.epochs.values(), default=0)
        self.epochs[claim] = (epoch if expects is None else expects) + 1
        self.seqs[claim] = 0
        claimed = event(
            "session_claimed",
            f"claimed-{claim}",
            claim=claim,
            expects=epoch if expects is None else expects,
            host=f"host-{claim}",
            **data,
        )
        return self.guest(claimed)

    def guest(self, *events: Any) -> Item:
        """Append a guest frame."""
        return self.write(Header(self.session, None, None, None, "guest"), events)

    def owner(self, claim: str, *events: Any, skip: int = 0) -> Item:
        """Append the next frame of a claim; `skip` leaves a gap."""
        self.seqs[claim] += 1 + skip
        header = Header(self.session, claim, self.epochs[claim], self.seqs[claim], claim)
        return self.write(header, events)


def record_of(header: Header, events: list[Any]) -> Record:
    """A record of these events: sealed, or by hand where they are not valid."""
    try:
        return seal(header, [_new_event(raw) for raw in events]).record
    except (SchemaError, KeyError, TypeError):
        return Record(header.session, header, body_of(header, events))


def body_of(header: Header, events: list[Any], **other: Any) -> bytes:
    """The JSON of a frame that nobody checked."""
    return orjson.dumps({**header._asdict(), "events": events, **other})


def _new_event(raw: Mapping[str, Any]) -> NewEvent:
    return NewEvent(raw["type"], raw["id"], raw["time"], raw["data"], raw["v"])
