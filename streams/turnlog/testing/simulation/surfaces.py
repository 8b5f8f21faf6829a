"""A second opinion on what the model sees, made from the path alone, entry by entry."""

from __future__ import annotations

from typing import Any

from turnlog.core.rows import Entry
from turnlog.core.shapes import is_list
from turnlog.tables.view import Reader, SessionView


def check_surface(reader: Reader, session: str) -> str | None:
    """What is wrong with a session's surface, or None.

    Every message on the path is on the surface or covered by a compaction that is; a compaction
    covers calls together with their results; a result on the surface is one of a call on the path.
    """
    view = SessionView(reader, session)
    path = view.path()
    on_path = {row.number for row in path}
    nodes: list[int] = []
    for row in path:
        if row.replaces is not None:
            told = _replace(view, nodes, row)
            if told is not None:
                return told
        elif row.node:
            nodes.append(row.number)
        if row.answers is not None and row.answers[0] not in on_path:
            return f"{row.id!r} answers a call that is not on the path"
    if nodes != view.surface():
        return f"the surface is {view.surface()}, the path gives {nodes}"
    for row in path:
        if row.kind == "message" and row.role == "tool" and row.answers is None:
            return f"the result {row.id!r} answers no call"
    return None


def _replace(view: SessionView, nodes: list[int], row: Entry) -> str | None:
    first, last = row.replaces or (0, 0)
    if first not in nodes or last not in nodes or nodes.index(first) > nodes.index(last):
        return f"compaction {row.id!r} replaces what is not on the surface"
    span = nodes[nodes.index(first) : nodes.index(last) + 1]
    calls = {(n, index) for n in span for index in range(len(view.entry(n).calls))}
    answers = {view.entry(n).answers for n in span} - {None}
    is_prune = view.data(row)["kind"] == "prune"
    if is_prune and (len(span) != 1 or view.entry(span[0]).role != "tool"):
        return f"prune {row.id!r} trims something else than one result"
    if not is_prune and calls != answers:
        return f"compaction {row.id!r} covers calls without their results, or the reverse"
    nodes[nodes.index(first) : nodes.index(last) + 1] = [row.number]
    return None


def unbalanced(messages: list[dict[str, Any]]) -> str | None:
    """Where a context is not balanced: a call whose results do not follow at once, an orphan."""
    awaited: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if not awaited or message["call_id"] != awaited.pop(0):
                return f"message {number} is a result without its call"
            if not message["content"]:
                return f"message {number} tells the model nothing"
            continue
        if awaited:
            return f"message {number} comes before the results of {awaited}"
        content = message["content"]
        if message["role"] == "assistant" and is_list(content):
            awaited = [part["call_id"] for part in content if part["type"] == "tool_call"]
    return f"the results of {awaited} are missing" if awaited else None
