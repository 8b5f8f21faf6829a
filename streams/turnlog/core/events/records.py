"""The data of records: events that are no node of the tree."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field
from typing_extensions import TypedDict

from turnlog.core.events.parts import (
    MAX_BLOB_PARTS,
    MAX_COUNT,
    Content,
    Count,
    Effect,
    Id,
    Json,
    OperationKind,
    Outcome,
    Status,
    Usage,
    type_checked,
)


@type_checked
class ForkPoint(TypedDict, total=False):
    """The place in the parent session that a fork starts from."""

    entry: Required[Id]
    epoch: Count | None
    seq: Count | None


@type_checked
class SpawnPoint(TypedDict, total=False):
    """The call in the parent session that started a sub-agent."""

    entry: Id | None
    call_index: Count | None
    dispatch: Id | None


@type_checked
class Origin(TypedDict, total=False):
    """Where an imported session came from."""

    format: str | None
    version: Json
    path: str | None
    cursor: Json


@type_checked
class SessionCreated(TypedDict, total=False):
    """Record `session_created`: in the owner's first frame."""

    title: str | None
    cwd: str | None
    agent: str | None
    initial_app_state: dict[str, Json] | None
    parent_session: Id | None
    fork_at: ForkPoint | None
    spawned_by: SpawnPoint | None
    origin: Origin | None


@type_checked
class SessionClaimed(TypedDict, total=False):
    """Record `session_claimed`: makes its writer the owner, where it wins."""

    claim: Required[Id]
    expects: Required[Count]
    host: str | None
    expects_seq: Count | None
    reason: str | None


@type_checked
class SessionReleased(TypedDict, total=False):
    """Record `session_released`: the owner gives the session up."""

    claim: Required[Id]


@type_checked
class Fact(TypedDict, total=False):
    """Record `fact`: a named value; the latest wins."""

    name: Required[Id]
    value: Required[Json]
    replaces: Id | None


@type_checked
class ContextSet(TypedDict, total=False):
    """Record `context_set`: what attempts are asked with."""

    digest: Required[Id]
    system: Json
    tools: Json
    settings: Json
    model: str | None


@type_checked
class OperationAccepted(TypedDict, total=False):
    """Record `operation_accepted`: one unit of work begins."""

    operation: Required[Id]
    kind: Required[OperationKind]
    input_entry: Id | None
    start_leaf: Id | None
    trigger: str | None


@type_checked
class ModelAttempted(TypedDict, total=False):
    """Record `model_attempted`: a model request is about to be sent."""

    operation: Required[Id]
    attempt: Required[Id]
    assistant_entry: Required[Id]
    model: str | None
    context: str | None
    request_digest: str | None


@type_checked
class UsageSettled(TypedDict, total=False):
    """Record `usage_settled`: what one attempt cost, once."""

    operation: Required[Id]
    attempt: Required[Id]
    model: str | None
    usage: Usage | None


@type_checked
class ApprovalAsked(TypedDict, total=False):
    """Record `approval_asked`: a call waits for a person."""

    operation: Required[Id]
    call_id: Required[Id]
    assistant_entry: Required[Id]


@type_checked
class ApprovalDecided(TypedDict, total=False):
    """Record `approval_decided`: the first decision of a call wins."""

    operation: Required[Id]
    call_id: Required[Id]
    assistant_entry: Required[Id]
    decision: Required[Literal["allow", "deny"]]
    by: str | None


ToolDispatched = TypedDict(  # `try` is a keyword, so this one is written as a call
    "ToolDispatched",
    {
        "operation": Required[Id],
        "dispatch": Required[Id],
        "call_index": Required[Count],
        "assistant_entry": Required[Id],
        "result_entry": Required[Id],
        "call_no": Count | None,
        "call_id": str | None,
        "tool": str | None,
        "args": Json,
        "args_hash": str | None,
        "effect": Effect | None,
        "idempotency_key": str | None,
        "try": Annotated[int, Field(ge=1, le=MAX_COUNT)] | None,
    },
    total=False,
)
type_checked(ToolDispatched)
"""Record `tool_dispatched` (T1): before the effect."""


DispatchSettled = TypedDict(  # `try` is a keyword, so this one is written as a call
    "DispatchSettled",
    {
        "dispatch": Required[Id],
        "status": Required[Status],
        "settled_by": Literal["host", "recovery", "person"] | None,
        "by": str | None,
        "note": str | None,
        "try": Annotated[int, Field(ge=1, le=MAX_COUNT)] | None,
    },
    total=False,
)
type_checked(DispatchSettled)
"""Record `dispatch_settled`: an answer without an entry."""


RerunAllowed = TypedDict(  # `try` is a keyword, so this one is written as a call
    "RerunAllowed",
    {
        "dispatch": Required[Id],
        "by": str | None,
        "note": str | None,
        "try": Annotated[int, Field(ge=1, le=MAX_COUNT)] | None,
    },
    total=False,
)
type_checked(RerunAllowed)
"""Record `rerun_allowed`: a person allows one T1 more of an unknown dispatch."""


@type_checked
class InputQueued(TypedDict, total=False):
    """Record `input_queued`: something for the agent to read when it can."""

    input: Required[Id]
    entry: Required[Id]
    content: Required[Content]
    delivery: Literal["steer", "follow_up"] | None


@type_checked
class InputCancelled(TypedDict, total=False):
    """Record `input_cancelled`."""

    input: Required[Id]


@type_checked
class AbortRequested(TypedDict, total=False):
    """Record `abort_requested`."""

    operation: Required[Id]


@type_checked
class OperationParked(TypedDict, total=False):
    """Record `operation_parked`: the operation needs a person."""

    operation: Required[Id]
    reason: str | None


@type_checked
class OperationFinished(TypedDict, total=False):
    """Record `operation_finished`."""

    operation: Required[Id]
    outcome: Required[Outcome]
    error: Json
    inferred: bool | None


@type_checked
class BlobPart(TypedDict, total=False):
    """Record `blob_part`: a slice of a value too large for an event, base64."""

    digest: Required[Id]
    index: Required[Annotated[int, Field(ge=0, lt=MAX_BLOB_PARTS)]]
    of: Required[Annotated[int, Field(ge=1, le=MAX_BLOB_PARTS)]]
    bytes: Required[str]


@type_checked
class Chunk(TypedDict, total=False):
    """Record `chunk`: streaming text for people who watch; no table keeps it."""

    entry: Required[Id]
    attempt: str | None
    part: Json
    deltas: list[Json] | None
    dt: list[Json] | None
