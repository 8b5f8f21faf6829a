"""Events made fit for the log: secrets masked, large parts moved out as blobs, frames filled.

What must stand together stays together. Blob parts go before the event that names them, in frames
of their own where they do not fit beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from turnlog.core.blobs import externalise, externalise_value, is_reference
from turnlog.core.frames import MAX_PART_BYTES, NewEvent
from turnlog.core.shapes import is_list, is_object
from turnlog.ingest.secrets import Masker
from turnlog.ingest.thread import Data

Json = Any

FRAME_BYTES = 500_000
FRAME_EVENTS = 500
EVENT_BYTES = 700_000
"""Above this even an event with small parts only is made smaller: a frame holds 900 KB."""
_SMALL_BYTES = 200_000
_WORTH_BYTES = 8_192
_MOVED_MAX = 64
# fmt: off
_NAMES = frozenset(
    (
        "parent", "from", "attempt", "operation", "assistant_entry", "input_entry",
        "start_leaf", "dispatch", "replaces", "call_id", "role", "kind", "status",
        "settled_by", "stop_reason", "tool", "name", "in_context", "usage", "model",
    )
)
# fmt: on


class Fitted:
    """A unit of events as it goes into the log, and its size there."""

    def __init__(self) -> None:
        self.blobs: list[tuple[NewEvent, int]] = []
        self.events: list[NewEvent] = []
        self.bytes = 0


def fit(events: Sequence[NewEvent], masker: Masker | None, warn: Callable[[str], None]) -> Fitted:
    """Mask and shrink the events of a unit. `warn` is told what had to be cut."""
    fitted = Fitted()
    for event in events:
        data = event.data
        encoded = orjson.dumps(data)
        if masker is not None and masker.suspects(encoded):
            masked = masker.mask(data)
            if masked is not data:
                data, encoded = masked, orjson.dumps(masked)
        size = len(encoded)
        if size > _SMALL_BYTES:
            data, slices = _shrunk(data, warn)
            size = len(orjson.dumps(data))
            for index, blob in enumerate(slices):
                part = NewEvent("blob_part", f"{event.id}.blob-{index}", event.time, blob)
                fitted.blobs.append((part, len(blob["bytes"]) + 300))
        fitted.events.append(event if data is event.data else event._replace(data=data))
        fitted.bytes += size + len(event.id) + 120
    return fitted


class Packer:
    """Fills frames. Each frame ends with the cursor that says how far the import is then."""

    def __init__(self, cursor: Callable[[], NewEvent]) -> None:
        self._cursor = cursor
        self._frame: list[NewEvent] = []
        self._bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._frame

    def add(self, fitted: Fitted) -> Iterator[list[NewEvent]]:
        """Frames that are full before this unit is in; the unit itself waits for the next.

        The cursor of a frame speaks of the units before the one being added, so the caller counts
        a unit after it was added.
        """
        for blob, size in fitted.blobs:
            if self._is_full(size, 1):
                yield self.flush()
            self._put([blob], size)
        if self._is_full(fitted.bytes, len(fitted.events)):
            yield self.flush()
        self._put(fitted.events, fitted.bytes)

    def flush(self) -> list[NewEvent]:
        """The frame as it is, with its cursor."""
        frame = [*self._frame, self._cursor()]
        self._frame, self._bytes = [], 0
        return frame

    def _is_full(self, size: int, count: int) -> bool:
        return bool(self._frame) and (
            self._bytes + size > FRAME_BYTES or len(self._frame) + count > FRAME_EVENTS
        )

    def _put(self, events: Sequence[NewEvent], size: int) -> None:
        self._frame.extend(events)
        self._bytes += size


def _shrunk(data: Data, warn: Callable[[str], None]) -> tuple[Data, list[Data]]:
    """Data whose large values are references, and the slices of their bytes."""
    data = dict(data)
    slices: list[Data] = []
    content: Json = data.get("content")
    if is_list(content):
        content = data["content"] = list(content)
        for index, part in enumerate(content):
            if is_object(part) and _size(part) > MAX_PART_BYTES:
                content[index] = _moved(externalise(part), slices, warn)
    for name, value in data.items():
        if name not in _NAMES and name != "content" and _size(value) > MAX_PART_BYTES:
            data[name] = _moved(externalise_value(value), slices, warn)
    if _size(data) > EVENT_BYTES:
        _shrink_largest(data, slices, warn)
    return data, slices


def _shrink_largest(data: Data, slices: list[Data], warn: Callable[[str], None]) -> None:
    """Move the largest values that are still in the event out of it, until it fits."""
    content: Json = data.get("content")
    parts: list[Json] = content if is_list(content) else []
    candidates: list[tuple[int, int | str]] = [
        (_size(part), index) for index, part in enumerate(parts) if not _is_moved(part)
    ]
    candidates += [
        (_size(value), name)
        for name, value in data.items()
        if name not in _NAMES and name != "content" and not is_reference(value)
    ]
    total = _size(data)
    candidates.sort(key=lambda candidate: candidate[0], reverse=True)
    for size, where in candidates[:_MOVED_MAX]:
        if total <= EVENT_BYTES or size < _WORTH_BYTES:
            break
        if isinstance(where, int):
            moved = parts[where] = _moved(externalise(parts[where]), slices, warn)
        else:
            moved = data[where] = _moved(externalise_value(data[where]), slices, warn)
        total -= size - _size(moved)
    if total > EVENT_BYTES:
        _join_parts(data, parts, slices, warn)


def _join_parts(
    data: Data, parts: list[Json], slices: list[Data], warn: Callable[[str], None]
) -> None:
    """Very many parts: all but the calls become one blob."""
    calls = [part for part in parts if part.get("type") == "tool_call"]
    rest = [part for part in parts if part.get("type") != "tool_call"]
    if len(rest) > 1:
        data["content"] = [_moved(externalise_value(rest), slices, warn), *calls]


def _moved(moved: tuple[list[Data], Data], slices: list[Data], warn: Callable[[str], None]) -> Data:
    parts, value = moved
    slices.extend(parts)
    reference: Data = value["args"] if value["type"] == "tool_call" else value
    if reference.get("truncated") is True:
        warn(
            f"a value of {reference['size']:,} bytes is too large to be kept;"
            " its beginning and its digest were"
        )
    return value


def _is_moved(part: Json) -> bool:
    return is_reference(part) or is_reference(part.get("args"))


def _size(value: Json) -> int:
    return len(orjson.dumps(value))
