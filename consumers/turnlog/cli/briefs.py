"""What an entry says, in a line: for lists and trees, where nobody reads whole messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnlog.cli.plain import brief, size
from turnlog.core.context import text_of
from turnlog.core.rows import Entry
from turnlog.core.shapes import is_list, is_object

Json = Any
ARGS_LENGTH = 60
STYLES = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "magenta"}
"""The colour of each role; whatever has none is dim."""


def heading(entry: Entry) -> str:
    """What an entry is, in a word."""
    if entry.kind == "message":
        return entry.role or "message"
    return {"app_state": "state", "compaction": "summary"}.get(entry.kind, entry.kind)


def style(entry: Entry) -> str:
    """The colour of an entry."""
    return STYLES.get(entry.role or "", "dim") if entry.kind == "message" else "dim"


def words(entry: Entry, data: dict[str, Json], length: int) -> str:
    """An entry in one line of at most so many code points."""
    return brief(_words(entry, data, length), length)


def _words(entry: Entry, data: dict[str, Json], length: int) -> str:
    if entry.kind in ("message", "compaction"):
        text = _content(data.get("content"), length)
        status = data.get("status")
        if entry.role == "tool" and status not in (None, "ok"):
            return f"[{status}] {text}"
        return text
    if entry.kind == "app_state":
        return compact(data.get("value"), length)
    if entry.kind == "branch":
        summary = text_of(entry, data)
        return f"goes back: {summary}" if summary else "goes back"
    if entry.kind == "custom":
        return f"{data.get('kind')} {text_of(entry, data) or compact(data.get('value'), length)}"
    return compact({name: item for name, item in data.items() if name != "parent"}, length)


def _content(content: Json, length: int) -> str:
    if is_object(content):
        return "[sealed]"
    if not is_list(content):
        return ""
    said: list[str] = []
    room = length
    for part in _parts(content):
        if room <= 0:
            break
        said.append(part[:room])
        room -= len(part)
    return " ".join(said)


def _parts(content: list[Json]) -> Iterator[str]:
    told = [part for part in content if part.get("type") != "reasoning"]
    for part in told or content:
        type_ = part.get("type")
        if type_ == "text":
            yield part.get("text") or ""
        elif type_ == "tool_call":
            yield f"→ {part.get('name')}({compact(part.get('args'), ARGS_LENGTH)})"
        elif type_ == "blob":
            yield f"[{part.get('media_type') or 'blob'}, {size(part.get('size') or 0)}]"
        elif type_ == "reasoning":
            yield f"(thinks) {part.get('text') or ''}"
        else:
            yield f"[{type_}]"


def compact(value: Json, length: int) -> str:
    """A JSON value in short; the outer braces of an object say nothing."""
    import orjson

    if value is None or value == {}:
        return ""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if is_object(value):
        text = text[1:-1]
    return text if len(text) <= length else text[: length - 1] + "…"
