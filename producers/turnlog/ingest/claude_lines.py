"""What a line of a Claude Code session file says, taken by itself. Pure.

The format is internal to Claude Code and changes without notice: nothing here takes a field for
granted, and what is not known is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from turnlog.core.shapes import is_list, is_object
from turnlog.ingest.outline import Kind
from turnlog.ingest.thread import Call, Data
from turnlog.ingest.values import (
    call_part,
    count_at,
    id_at,
    image_part,
    list_at,
    object_at,
    opaque_part,
    price,
    text_at,
    text_part,
    with_rest,
    without,
)

Json = Any

INTERRUPTED = "[Request interrupted by user"
_OUTPUT = ("<local-command-", "<bash-stdout>", "<bash-stderr>", INTERRUPTED)
_COMMANDS = ("<command-name>", "<command-message>", "<bash-input>")
# fmt: off
_ENVELOPE = frozenset(
    (
        "uuid", "parentUuid", "logicalParentUuid", "sessionId", "timestamp", "type",
        "cwd", "gitBranch", "version", "userType", "isSidechain", "message", "isMeta",
        "requestId", "toolUseResult", "isCompactSummary", "entrypoint", "agentId", "slug",
    )
)
# fmt: on
# fmt: off
_MESSAGE = frozenset(
    (
        "id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "usage",
    )
)
# fmt: on
_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_TOKENS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}
_NODES = ("user", "assistant")


def kind_of(line: Data) -> int:
    """Where a line stands in the tree."""
    type_ = line.get("type")
    has_message = type_ in _NODES and is_object(line.get("message"))
    if not has_message:
        if id_at(line, "uuid") is None:
            return Kind.RECORD
        weak = id_at(line, "logicalParentUuid") is not None and line.get("parentUuid") is None
        return Kind.OTHER | Kind.WEAK if weak else Kind.OTHER
    kind = Kind.ASSISTANT if type_ == "assistant" else _user_kind(line)
    named = id_at(line, "uuid") is not None and "parentUuid" in line
    return kind if named else kind | Kind.WEAK


def parent_of(line: Data) -> str | None:
    """The id of the parent, the logical one where a boundary cuts the chain."""
    return id_at(line, "parentUuid") or id_at(line, "logicalParentUuid")


def group_of(line: Data) -> str | None:
    """What the lines of one answer share."""
    if line.get("type") != "assistant":
        return None
    return id_at(object_at(line, "message"), "id") or id_at(line, "requestId")


def content_of(line: Data) -> tuple[list[Data], list[Call]]:
    """The content of a message as parts, with its tool calls in order; no tool results."""
    content: Json = object_at(line, "message").get("content")
    if isinstance(content, str):
        return ([text_part(content)] if content else []), []
    parts: list[Data] = []
    calls: list[Call] = []
    for block in content if is_list(content) else []:
        if is_object(block) and block.get("type") == "tool_use" and line["type"] == "assistant":
            rest = without(block, frozenset({"type", "id", "name", "input"}))
            part, call = call_part(block.get("id"), block.get("name"), block.get("input"), rest)
            parts.append(part)
            if call is not None:
                calls.append(call)
        elif not is_object(block) or block.get("type") != "tool_result":
            parts.append(_part(block))
    return parts, calls


class Result(NamedTuple):
    """A tool result of a line."""

    call_id: str | None
    content: list[Data]
    status: str


def results_of(line: Data) -> list[Result]:
    """The tool results of a user line, in order."""
    found: list[Result] = []
    for block in list_at(object_at(line, "message"), "content"):
        if not is_object(block) or block.get("type") != "tool_result":
            continue
        content: Json = block.get("content")
        if isinstance(content, str):
            parts = [text_part(content)] if content else []
        elif is_list(content):
            parts = [_part(item) for item in content]
        else:
            parts = [] if content is None else [opaque_part(content)]
        status = "error" if block.get("is_error") is True else "ok"
        if line.get("toolDenialKind") is not None:
            status = "not_started"
        found.append(Result(text_at(block, "tool_use_id"), parts, status))
    return found


def details_of(line: Data, results: list[Result]) -> Json:
    """The structured copy of a result, unless the result says it all."""
    details: Json = line.get("toolUseResult")
    if isinstance(details, str) and any(
        details.removeprefix("Error: ") in (part.get("text") or "")
        for result in results
        for part in result.content
    ):
        return None
    return details


def stop_of(line: Data) -> str | None:
    """The stop reason in turnlog's words; one that is not known is kept as it is."""
    if line.get("isApiErrorMessage") is True:
        return "error"
    if line.get("isAbortedMidStream") is True:
        return "aborted"
    stop = text_at(object_at(line, "message"), "stop_reason")
    return _STOPS.get(stop, stop) if stop else None


def usage_of(line: Data) -> Data | None:
    """The usage of an answer, or None where the line has none."""
    raw: Json = object_at(line, "message").get("usage")
    if not is_object(raw):
        return None
    usage: Data = {ours: count_at(raw, theirs) for theirs, ours in _TOKENS.items()}
    usage["cost_usd"] = price(line.get("costUSD"))
    return usage | without(raw, frozenset([*_TOKENS, *usage, "reasoning"]))


def usage_since(before: Data | None, usage: Data) -> Data:
    """What a later part of a message adds to the usage that was counted for its earlier part."""
    if before is None:
        return usage
    added = dict(usage)
    for name in _TOKENS.values():
        if usage[name] is not None:
            added[name] = max(0, usage[name] - (before[name] or 0))
    return added


def first_text(line: Data) -> str:
    """The first text of a message."""
    content: Json = object_at(line, "message").get("content")
    if isinstance(content, str):
        return content
    for block in content if is_list(content) else []:
        if is_object(block) and block.get("type") == "text":
            return text_at(block, "text") or ""
    return ""


def extra_of(line: Data) -> Data:
    """What else a line says, for its entry's `source`."""
    extra = without(line, _ENVELOPE)
    message = without(object_at(line, "message"), _MESSAGE)
    for name, value in (
        ("request", line.get("requestId")),
        ("message", object_at(line, "message").get("id")),
        ("meta", line.get("isMeta") or None),
        ("message_extra", message or None),
    ):
        if value is not None:
            extra[name] = value
    return extra


def bare(line: Data) -> Data:
    """A line that is no message, without the fields that every line has."""
    return without(line, _ENVELOPE - {"message", "requestId", "toolUseResult", "agentId"})


def _user_kind(line: Data) -> int:
    if line.get("isCompactSummary") is True:
        return Kind.SUMMARY
    if line.get("isVisibleInTranscriptOnly") is True:
        return Kind.OTHER
    content: Json = object_at(line, "message").get("content")
    blocks = content if is_list(content) else []
    if any(is_object(block) and block.get("type") == "tool_result" for block in blocks):
        return Kind.RESULT
    text = first_text(line).lstrip()
    if line.get("isMeta") is True or text.startswith(_OUTPUT):
        return Kind.USER
    if text.startswith(_COMMANDS):
        return Kind.COMMAND
    return Kind.PROMPT if content else Kind.USER


def _part(block: Json) -> Data:
    if not is_object(block):
        return opaque_part(block)
    type_ = block.get("type")
    if type_ == "text" and isinstance(block.get("text"), str):
        return with_rest(text_part(block["text"]), without(block, frozenset(("type", "text"))))
    if type_ == "thinking" and isinstance(block.get("thinking"), str):
        part = {"type": "reasoning", "text": block["thinking"]}
        if block.get("signature") is not None:
            part["signature"] = block["signature"]
        return with_rest(part, without(block, frozenset(("type", "thinking", "signature"))))
    if type_ == "redacted_thinking":
        part = {"type": "reasoning", "encrypted_content": block.get("data")}
        return with_rest(part, without(block, frozenset(("type", "data"))))
    source: Json = block.get("source")
    if type_ == "image" and is_object(source) and isinstance(source.get("data"), str):
        rest = without(block, frozenset(("type", "source")))
        return image_part(source.get("media_type"), source["data"], rest)
    return opaque_part(block)
