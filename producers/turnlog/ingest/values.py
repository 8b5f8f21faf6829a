"""Foreign values as events hold them: ids, times, counts, prices, and parts of contents.

Whatever stands where a value is expected, an event that turnlog refuses is never made of it: what
does not fit is kept as an opaque part, or left out where it says nothing.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from turnlog.core.events.parts import MAX_COUNT
from turnlog.core.shapes import is_list, is_object
from turnlog.ingest.thread import Call, Data, derived
from turnlog.ingest.turns import ID_MAX

Json = Any


def text_at(data: Data, name: str) -> str | None:
    """The text under a name, or None."""
    value = data.get(name)
    return value if isinstance(value, str) else None


def object_at(data: Data, name: str) -> Data:
    """The object under a name, or an empty one."""
    value = data.get(name)
    return value if is_object(value) else {}


def list_at(data: Data, name: str) -> list[Json]:
    """The list under a name, or an empty one."""
    value = data.get(name)
    return value if is_list(value) else []


def id_at(data: Data, name: str) -> str | None:
    """The foreign id under a name, short enough for an event; None where there is none."""
    value = data.get(name)
    if not isinstance(value, str) or not value:
        return None
    return value if len(value) <= ID_MAX else derived("long", value)


def count_at(data: Data, name: str) -> int | None:
    """The count under a name, or None where it is none."""
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= MAX_COUNT and value == int(value) else None


def price(value: Json) -> str | None:
    """A price as a decimal string, without the noise of a float; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value))
        if not amount.is_finite() or abs(amount) >= 10**15:
            return None
        text = f"{amount.quantize(Decimal('1e-12')):f}"
    except InvalidOperation:
        return None
    text = text.rstrip("0").rstrip(".")
    return "0" if text in ("", "-0", "-") else text


def text_part(text: str) -> Data:
    """A text part."""
    return {"type": "text", "text": text}


def opaque_part(value: Json) -> Data:
    """A part that turnlog does not look into."""
    return {"type": "opaque", "value": value}


def call_part(call_id: Json, name: Json, args: Json, rest: Data) -> tuple[Data, Call | None]:
    """A tool call, or an opaque part where it has no id or no name."""
    if not isinstance(call_id, str) or not call_id or not isinstance(name, str):
        return opaque_part({"call_id": call_id, "name": name, "args": args, **rest}), None
    part = {"type": "tool_call", "call_id": call_id, "name": name, "args": args}
    return with_rest(part, rest), Call(call_id, name)


def image_part(media_type: Json, data: Json, rest: Data) -> Data:
    """An image with its bytes in base64."""
    return with_rest({"type": "image", "media_type": media_type, "data": data}, rest)


def with_rest(part: Data, rest: Data) -> Data:
    """A part, and what else its block held: beside it, so that no name of ours is taken."""
    return {**part, "extra": rest} if rest else part


def marked(parts: list[Data]) -> list[Data]:
    """Parts of a line in which characters were replaced; each that may hold one says so."""
    return [{**part, "normalised": True} if _has_replacement(part) else part for part in parts]


def without(data: Data, names: frozenset[str]) -> Data:
    """An object without some names, and without nulls."""
    return {name: value for name, value in data.items() if name not in names and value is not None}


def _has_replacement(value: Json) -> bool:
    if isinstance(value, str):
        return "\ufffd" in value
    if is_object(value):
        return any(_has_replacement(item) for item in value.values())
    if is_list(value):
        return any(_has_replacement(item) for item in value)
    return False
