"""Text is made well-formed once, where it enters: half characters become U+FFFD."""

from __future__ import annotations

from typing import Any

from turnlog.core.frames import MAX_DEPTH
from turnlog.core.shapes import is_list, is_object


def well_formed(value: Any, *, depth: int = 0) -> tuple[Any, bool]:
    """A JSON value without lone surrogates, and whether anything was replaced.

    Works on text, lists and objects (keys included) of any shape; what was fine is returned as is.
    What is nested deeper than a frame may hold is left alone: `seal` refuses it.
    """
    if isinstance(value, str):
        if value.isascii() or _encodes(value):
            return value, False
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), True
    if depth > MAX_DEPTH:
        return value, False
    depth += 1
    if is_list(value):
        pairs = [well_formed(item, depth=depth) for item in value]
        changed = any(pair[1] for pair in pairs)
        return ([pair[0] for pair in pairs] if changed else value), changed
    if is_object(value):
        items = [(well_formed(k), well_formed(item, depth=depth)) for k, item in value.items()]
        changed = any(name[1] or item[1] for name, item in items)
        return ({name[0]: item[0] for name, item in items} if changed else value), changed
    return value, False


def well_formed_part(part: dict[str, Any]) -> dict[str, Any]:
    """A content part with well-formed text; it says `normalised` where something was replaced."""
    clean, changed = well_formed(part)
    return {**clean, "normalised": True} if changed else part


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def parts_text(content: Any) -> str:
    """The text parts of a content, joined by newlines; sealed content has none."""
    if not is_list(content):
        return ""
    return "\n".join(part.get("text") or "" for part in content if part.get("type") == "text")
