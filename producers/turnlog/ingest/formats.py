"""The formats that can be imported, and which files of a folder are sessions of theirs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from turnlog.core.shapes import is_object
from turnlog.ingest import claude_code, pi
from turnlog.ingest.claude_code import ClaudeFile
from turnlog.ingest.cursor import Cursor
from turnlog.ingest.lines import Broken, LineFile, parse
from turnlog.ingest.pi import PiFile
from turnlog.ingest.thread import Data
from turnlog.ingest.told import Notes, Reading, shown
from turnlog.ingest.values import id_at

Json = Any

PEEK_LINES = 200
NO_LINE: Data = {}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_CLAUDE_ASIDE = frozenset(("tool-results", "workflows", "memory", "file-history", "todos"))
_CLAUDE_TYPES = frozenset(("user", "assistant", "system", "summary", "file-history-snapshot"))
_PI_TYPES = frozenset(("session", "message", "model_change", "thinking_level_change", "compaction"))


class Identity(NamedTuple):
    """Which session a file holds, as far as its name and first lines tell.

    `names` are the ids that it may go by, the likeliest first. A sub-agent's file has a `parent`.
    """

    names: tuple[str, ...]
    is_agent: bool = False
    parent: str | None = None
    agent: str | None = None


class Format(NamedTuple):
    """One format. `identify` gives None for a file that is no session of it."""

    name: str
    identify: Callable[[Path, Sequence[Data]], Identity | None]
    read: Callable[[LineFile, Identity, Cursor | None, Sequence[int], Notes], Reading]
    aside: frozenset[str]


def session_files(format_: Format, path: Path) -> Iterator[Path]:
    """The files of a path that may hold sessions: itself, or those of a folder and its folders."""
    if not path.is_dir():
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in format_.aside)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".jsonl"))


def first_objects(file: LineFile) -> list[Data]:
    """The objects among the first lines of a file."""
    found: list[Data] = []
    for raw in file.scan():
        if raw.number > PEEK_LINES:
            break
        try:
            value: Json = parse(raw.body).value if raw.body is not None else None
        except Broken:
            continue
        if is_object(value):
            found.append(value)
    return found


def _identify_claude(path: Path, lines: Sequence[Data]) -> Identity | None:
    if not any(
        line.get("type") in _CLAUDE_TYPES or (line.get("uuid") and line.get("sessionId"))
        for line in lines
    ):
        return None
    told = next((id_ for line in lines if (id_ := id_at(line, "sessionId"))), None)
    stem = PurePath(shown(path)).stem
    if stem.startswith("agent-"):
        parts = PurePath(shown(path)).parts
        inside = "subagents" in parts[1:]
        place = len(parts) - 1 - parts[::-1].index("subagents") if inside else 0
        parent = parts[place - 1] if inside else told or "unknown"
        return Identity((f"{parent}.{stem}",), True, parent, stem.removeprefix("agent-"))
    tree: Data = next((line for line in lines if "parentUuid" in line), NO_LINE)
    names = [stem] if UUID.fullmatch(stem) else []
    if not names and told is None and all(id_at(line, "uuid") is None for line in lines):
        return None  # bookkeeping alone, and nothing yet that says of which session
    names += [told] if told is not None else [stem]
    return Identity(tuple(dict.fromkeys(names)), tree.get("isSidechain") is True)


def _read_claude(
    file: LineFile, identity: Identity, _: Cursor | None, cuts: Sequence[int], notes: Notes
) -> Reading:
    reader = ClaudeFile(file, identity.names, is_agent=identity.is_agent, cuts=cuts, notes=notes)
    return reader.read()


def _identify_pi(path: Path, lines: Sequence[Data]) -> Identity | None:
    if not any(line.get("type") in _PI_TYPES for line in lines):
        return None
    header = lines[0] if lines[0].get("type") == "session" else {}
    stem = PurePath(shown(path)).stem
    found = UUID.findall(stem)
    return Identity((id_at(header, "id") or (found[-1] if found else stem),))


def _read_pi(
    file: LineFile, identity: Identity, cursor: Cursor | None, cuts: Sequence[int], notes: Notes
) -> Reading:
    ordinals = 0
    if cursor is not None:
        ordinals = cursor.lines if cursor.version == 1 and not cuts else cursor.ordinals
    return PiFile(file, identity.names[0], cuts=cuts, notes=notes, ordinals=ordinals).read()


FORMATS: Mapping[str, Format] = {
    claude_code.FORMAT: Format(claude_code.FORMAT, _identify_claude, _read_claude, _CLAUDE_ASIDE),
    pi.FORMAT: Format(pi.FORMAT, _identify_pi, _read_pi, frozenset()),
}
