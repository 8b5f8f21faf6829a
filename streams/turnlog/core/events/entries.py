"""The data of entries: events that are nodes of the session tree."""

from __future__ import annotations

from typing import Literal, Required

from typing_extensions import TypedDict

from turnlog.core.events.parts import (
    Content,
    Count,
    Id,
    Json,
    Role,
    Sealed,
    Status,
    Usage,
    type_checked,
)


@type_checked
class Message(TypedDict, total=False):
    """Entry `message`: what a user, assistant, tool or system said."""

    parent: Required[Id | None]
    role: Required[Role]
    content: Required[Content]
    attempt: Id | None
    stop_reason: str | None
    call_id: str | None
    tool: str | None
    dispatch: Id | None
    status: Status | None
    settled_by: Literal["host", "recovery", "import"] | None


@type_checked
class AppState(TypedDict, total=False):
    """Entry `app_state`: the whole state of the application, an object."""

    parent: Required[Id | None]
    value: Required[dict[str, Json]]


@type_checked
class Replaces(TypedDict, total=False):
    """A span of surface entries, both ends included."""

    first: Required[Id]
    last: Required[Id]


@type_checked
class Compaction(TypedDict, total=False):
    """Entry `compaction`: a summary in the place of a span, or one trimmed tool result."""

    parent: Required[Id | None]
    kind: Required[Literal["summary", "prune"]]
    replaces: Required[Replaces]
    content: Required[Content]
    prepared_at: Id | None
    operation: Id | None
    tokens_before: Count | None
    tokens_after: Count | None
    usage: Usage | None


Branch = TypedDict(  # `from` is a keyword, so this one is written as a call
    "Branch",
    {
        "parent": Required[Id | None],
        "from": Id | None,
        "operation": Id | None,
        "label": str | None,
        "summary": str | Sealed | None,
    },
    total=False,
)
type_checked(Branch)
"""Entry `branch`: the leaf moves to `parent`."""


@type_checked
class Custom(TypedDict, total=False):
    """Entry `custom`: state of an extension that rides on the tree."""

    parent: Required[Id | None]
    kind: Required[Id]
    value: Required[Json]
    in_context: bool | None
