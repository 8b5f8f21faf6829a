"""The context that the model sees: a surface, balanced.

Results stand right after their call. A call without a result on the surface is answered in the
view; a result whose call is not on the surface is told as text, so that nothing is lost and no
request is refused for a dangling call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from turnlog.core.rows import Entry
from turnlog.core.shapes import is_list, is_object
from turnlog.core.text import parts_text

Json = Any

TELL = {
    "open": "This call has not been answered yet; it may be running or may still start.",
    "ok": "This call was completed. Its result is not in this context.",
    "error": "This call failed. Its result is not in this context.",
    "unknown": (
        "The outcome of this call is not known: it may have taken effect. Check before you repeat"
        " it, or ask."
    ),
    "not_started": "This call was not started. Repeat it if it is still needed.",
}
"""What the model is told where a result has no content of its own, by status."""


class Node(NamedTuple):
    """A surface node with its body: `data` is the event's data."""

    entry: Entry
    data: dict[str, Json]


class Answer(NamedTuple):
    """What is known of a call that has no result on the surface."""

    status: str
    content: list[Json] | None = None


def text_of(entry: Entry, data: dict[str, Json]) -> str:
    """The text of an entry: its text parts, or what stands for them."""
    if entry.kind == "branch":
        summary = data.get("summary")
        return summary if isinstance(summary, str) else ""
    if entry.kind == "custom":
        value = data.get("value")
        if isinstance(value, str):
            return value
        return parts_text(value["content"]) if is_object(value) and "content" in value else ""
    return parts_text(data.get("content"))


def balanced(
    nodes: Sequence[Node], answer: Callable[[Entry, int], Answer]
) -> list[dict[str, Json]]:
    """The messages of a surface, each {"role", "content", "entry"}; tool messages also have
    "call_id", "tool" and "status", and "entry" None where the answer is made in the view."""
    results: dict[tuple[str, int, int], Node] = {}
    on_surface = {(node.entry.session, node.entry.number) for node in nodes}
    for node in nodes:
        if node.entry.answers is not None:
            # a later result of the same call was allowed by a person, and stands
            results[(node.entry.session, *node.entry.answers)] = node
    messages: list[dict[str, Json]] = []
    for node in nodes:
        entry = node.entry
        if entry.role != "tool":
            messages.append(_message(node))
            for index in range(len(entry.calls)):
                result = results.get((entry.session, entry.number, index))
                messages.append(
                    _result(node, index, result)
                    if result is not None
                    else _view(node, index, answer(entry, index))
                )
        elif entry.answers is None or (entry.session, entry.answers[0]) not in on_surface:
            messages.append(_orphan(node))
    return messages


def _message(node: Node) -> dict[str, Json]:
    entry, data = node.entry, node.data
    if entry.kind in ("branch", "custom"):
        content: Json = [{"type": "text", "text": text_of(entry, data)}]
    else:
        content = data["content"]
    return {"role": entry.role, "content": content, "entry": entry.id}


def _result(call: Node, index: int, result: Node) -> dict[str, Json]:
    part = _call_part(call, index)
    status = result.data.get("status") or "ok"
    content = result.data["content"]
    return {
        "role": "tool",
        "call_id": part.get("call_id"),
        "tool": part.get("name"),
        "status": status,
        "content": content or [{"type": "text", "text": TELL[status]}],
        "entry": result.entry.id,
    }


def _view(call: Node, index: int, answer: Answer) -> dict[str, Json]:
    part = _call_part(call, index)
    return {
        "role": "tool",
        "call_id": part.get("call_id"),
        "tool": part.get("name"),
        "status": answer.status,
        "content": answer.content or [{"type": "text", "text": TELL[answer.status]}],
        "entry": None,
    }


def _orphan(node: Node) -> dict[str, Json]:
    tool, call_id = node.data.get("tool") or "a tool", node.data.get("call_id")
    head = {"type": "text", "text": f"[Result of {tool}, call {call_id}, made before this context]"}
    content = node.data["content"]
    parts = content if is_list(content) else [content]
    return {"role": "user", "content": [head, *parts], "entry": node.entry.id}


def _call_part(call: Node, index: int) -> dict[str, Json]:
    parts = [part for part in call.data["content"] if part["type"] == "tool_call"]
    part: dict[str, Json] = parts[index]
    return part
