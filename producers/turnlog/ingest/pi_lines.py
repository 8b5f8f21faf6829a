"""What a line of a pi session file says, taken by itself. Pure. Versions 1 to 3 (formats: pi)."""

from __future__ import annotations

from typing import Any

from turnlog.core.shapes import is_list, is_object
from turnlog.ingest.outline import Kind
from turnlog.ingest.thread import Call, Data
from turnlog.ingest.values import (
    call_part,
    count_at,
    image_part,
    object_at,
    opaque_part,
    price,
    text_at,
    text_part,
    with_rest,
    without,
)

Json = Any

BASE = frozenset(("type", "id", "parentId", "timestamp"))
# fmt: off
_MESSAGE = frozenset(
    (
        "role", "content", "timestamp", "stopReason", "usage", "model", "provider", "api",
    )
)
# fmt: on
_STOPS = {"toolUse": "tool_use"}
_TOKENS = {
    "input": "input",
    "output": "output",
    "cacheRead": "cache_read",
    "cacheWrite": "cache_write",
}
CUSTOM_ROLES = ("custom", "hookMessage")


def kind_of(line: Data) -> int:
    """Where a line stands in the tree; a line without a type stands nowhere."""
    type_ = line.get("type")
    if not isinstance(type_, str) or type_ == "session":
        return Kind.RECORD
    if type_ in ("label", "session_info"):
        return Kind.ALIAS
    if type_ == "compaction":
        return Kind.SUMMARY
    if type_ != "message":
        return Kind.OTHER
    role = object_at(line, "message").get("role")
    kinds = {"user": Kind.PROMPT, "assistant": Kind.ASSISTANT, "toolResult": Kind.RESULT}
    return kinds.get(role, Kind.OTHER) if isinstance(role, str) else Kind.OTHER


def content_of(content: Json) -> tuple[list[Data], list[Call]]:
    """A content as parts, with its tool calls in order."""
    if isinstance(content, str):
        return ([text_part(content)] if content else []), []
    parts: list[Data] = []
    calls: list[Call] = []
    for block in content if is_list(content) else []:
        if is_object(block) and block.get("type") == "toolCall":
            rest = without(block, frozenset(("type", "id", "name", "arguments")))
            args: Json = block.get("arguments")
            part, call = call_part(block.get("id"), block.get("name"), args, rest)
            parts.append(part)
            if call is not None:
                calls.append(call)
        else:
            parts.append(_part(block))
    return parts, calls


def stop_of(message: Data) -> str | None:
    """The stop reason in turnlog's words."""
    stop = text_at(message, "stopReason")
    return _STOPS.get(stop, stop) if stop else None


def usage_of(usage: Json) -> Data | None:
    """A usage with its price, or None where there is none."""
    if not is_object(usage):
        return None
    found: Data = {ours: count_at(usage, theirs) for theirs, ours in _TOKENS.items()}
    found["cost_usd"] = price(object_at(usage, "cost").get("total"))
    rest = without(usage, frozenset((*_TOKENS, "cost", "totalTokens")))
    return {**found, "extra": rest} if rest else found


def model_of(message: Data) -> str | None:
    """The model that answered."""
    return text_at(message, "model")


def extra_of(line: Data, message: Data) -> Data:
    """What else a message says, for its entry's `source`."""
    extra = without(line, BASE | {"message"}) | without(message, _MESSAGE)
    for name in ("provider", "api"):
        if message.get(name) is not None:
            extra[name] = message[name]
    return extra


def bash_text(message: Data) -> str:
    """What the model is told of a command that the user ran."""
    output = text_at(message, "output") or "(no output)"
    text = f"Ran `{text_at(message, 'command') or ''}`\n```\n{output}\n```"
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        text += "\n(the command was cancelled)"
    elif code not in (None, 0):
        text += f"\n(the command exited with code {code})"
    return text


def _part(block: Json) -> Data:
    if not is_object(block):
        return opaque_part(block)
    type_ = block.get("type")
    if type_ == "text" and isinstance(block.get("text"), str):
        return with_rest(text_part(block["text"]), without(block, frozenset(("type", "text"))))
    if type_ == "thinking" and isinstance(block.get("thinking"), str):
        part: Data = {"type": "reasoning", "text": block["thinking"]}
        if block.get("thinkingSignature") is not None:
            part["signature"] = block["thinkingSignature"]
        rest = without(block, frozenset(("type", "thinking", "thinkingSignature")))
        return with_rest(part, rest)
    if type_ == "image" and isinstance(block.get("data"), str):
        rest = without(block, frozenset(("type", "data", "mimeType")))
        return image_part(block.get("mimeType"), block["data"], rest)
    return opaque_part(block)
