"""What people, models and tools give, as content parts that the log takes.

Text is made well-formed, what is too large for an event becomes a blob, and what is no JSON is
refused with a reason, before anything is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson

from turnlog.core.blobs import externalise
from turnlog.core.errors import SchemaError
from turnlog.core.frames import MAX_DEPTH, MAX_PART_BYTES
from turnlog.core.shapes import is_list, is_object
from turnlog.core.text import well_formed, well_formed_part

Json = Any
MAX_CONTENT_BYTES = 512 * 1024
"""Beyond this much the largest parts of a content become blobs, so that a frame has room."""
SMALL_BYTES = 1024


class Content(NamedTuple):
    """Content parts, and the data of the blob parts that go before them."""

    parts: list[dict[str, Json]]
    blobs: list[dict[str, Json]]


class Answer(NamedTuple):
    """A model's answer: its parts and why it stopped."""

    content: Content
    stop_reason: str
    said: list[dict[str, Json]]
    """The parts before any of them became blobs."""


def content_of(value: Json) -> Content:
    """Text, a list of content parts, or any other JSON value (told as JSON text).

    Raises SchemaError for what is no JSON.
    """
    if value is None:
        return Content([{"type": "text", "text": ""}], [])
    if isinstance(value, str):
        parts: list[dict[str, Json]] = [{"type": "text", "text": value}]
    elif _is_parts(value):
        parts = value
    else:
        parts = [_told_as_json(value)]
    return fitting([_checked(part) for part in parts])


def answer_of(message: Json) -> Answer:
    """A model's message: text, parts, or an object with `content` and perhaps `stop_reason`.

    A tool call without an id gets one that its message has not. Raises SchemaError for anything
    else.
    """
    stop: Json = None
    content: Json = message
    if isinstance(message, Mapping):
        given = cast("Mapping[str, Json]", message)
        content, stop = given.get("content"), given.get("stop_reason")
    if content is None:
        content = []
    if not isinstance(content, str) and not (
        is_list(content) and (not content or _is_parts(content))
    ):
        raise SchemaError(
            f"the model's answer is no message: its content is {_short(content)};"
            " give text, or a list of parts that each have a type"
        )
    if stop is not None and not isinstance(stop, str):
        raise SchemaError(
            f"the model's answer has the stop reason {_short(stop)}, which is no text"
        )
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    said = [_checked(part) for part in _with_ids(cast("list[dict[str, Json]]", content))]
    calls = any(part["type"] == "tool_call" for part in said)
    return Answer(fitting(said), stop or ("tool_use" if calls else "stop"), said)


def _is_parts(value: Json) -> bool:
    return (
        is_list(value)
        and bool(value)
        and all(is_object(part) and isinstance(part.get("type"), str) for part in value)
    )


def _with_ids(parts: list[dict[str, Json]]) -> list[dict[str, Json]]:
    taken = {part.get("call_id") for part in parts if part["type"] == "tool_call"}
    found: list[dict[str, Json]] = []
    for index, part in enumerate(parts):
        if part["type"] != "tool_call" or part.get("call_id"):
            found.append(part)
            continue
        id_ = f"call-{index}"
        while id_ in taken:
            id_ += "-"
        found.append({**part, "call_id": id_})
    return found


def _as_json(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, RecursionError) as error:
        raise SchemaError(f"{_short(value)} is no JSON value: {error}") from error


def _told_as_json(value: Json) -> dict[str, Json]:
    """Any JSON value as a text part."""
    try:
        text = _as_json(value)
    except SchemaError as error:
        if "surrogate" not in str(error):
            raise
        return {"type": "text", "text": _as_json(well_formed(value)[0]), "normalised": True}
    if "null" in text and _has_no_number(value):
        raise SchemaError(f"{_short(value)} is no JSON value: it holds NaN or an infinity")
    return {"type": "text", "text": text}


def _has_no_number(value: Json) -> bool:
    """Whether a float anywhere is none: the encoder makes it null."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if is_object(value):
        return any(_has_no_number(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(
        _has_no_number(item) for item in cast("Sequence[Json]", value)
    )


def _checked(part: dict[str, Json]) -> dict[str, Json]:
    """A part that can be encoded; deeper than a frame may hold it is told as text."""
    try:
        orjson.dumps(part)
    except (TypeError, RecursionError) as error:
        if "ecursion" in str(error):
            return _too_deep()
        if "surrogate" not in str(error):
            raise SchemaError(f"{_short(part)} is no JSON value: {error}") from error
        part = well_formed_part(part)
        _as_json(part)
    return _too_deep() if _depth(part) > MAX_DEPTH - 8 else part


def _too_deep() -> dict[str, Json]:
    return {"type": "text", "text": f"[left out: nested deeper than {MAX_DEPTH}]"}


def _depth(value: Json) -> int:
    """How deep a value is nested, without recursion."""
    deepest, level = 0, [value]
    while level and deepest <= MAX_DEPTH:
        deepest += 1
        level = [
            item
            for outer in level
            if is_object(outer) or is_list(outer)
            for item in (outer.values() if is_object(outer) else outer)
        ]
    return deepest


def fitting(parts: list[dict[str, Json]]) -> Content:
    """Parts that fit an event, the largest of them in blobs."""
    blobs: list[dict[str, Json]] = []
    sizes = [len(orjson.dumps(part)) for part in parts]
    while max(sizes, default=0) > MAX_PART_BYTES - 64 or sum(sizes) > MAX_CONTENT_BYTES:
        largest = sizes.index(max(sizes))
        if sizes[largest] <= SMALL_BYTES:
            raise SchemaError(f"{len(parts):,} parts are too many for one message")
        slices, part = externalise(parts[largest])
        blobs.extend(slices)
        parts = [*parts[:largest], part, *parts[largest + 1 :]]
        sizes[largest] = len(orjson.dumps(part))
    return Content(parts, blobs)


def _short(value: Json) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
