"""The vocabulary, version 1: the data of every event type, as pydantic reads it at the wire.

A version-1 log stays readable for ever, so nothing here may be narrowed or renamed. Data stays a
plain JSON object everywhere; the classes in this package only describe and check it. Unknown fields
are kept, and every field may be null or absent except ids, `parent` (null allowed), `role`, `kind`,
`content`, `value`, `replaces`, and what names another event (design, "Events, version 1").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnlog.core.events import entries, records

ENTRY_TYPES: Mapping[str, Any] = {
    "message": entries.Message,
    "app_state": entries.AppState,
    "compaction": entries.Compaction,
    "branch": entries.Branch,
    "custom": entries.Custom,
}
RECORD_TYPES: Mapping[str, Any] = {
    "session_created": records.SessionCreated,
    "session_claimed": records.SessionClaimed,
    "session_released": records.SessionReleased,
    "fact": records.Fact,
    "context_set": records.ContextSet,
    "operation_accepted": records.OperationAccepted,
    "model_attempted": records.ModelAttempted,
    "usage_settled": records.UsageSettled,
    "approval_asked": records.ApprovalAsked,
    "approval_decided": records.ApprovalDecided,
    "tool_dispatched": records.ToolDispatched,
    "dispatch_settled": records.DispatchSettled,
    "rerun_allowed": records.RerunAllowed,
    "input_queued": records.InputQueued,
    "input_cancelled": records.InputCancelled,
    "abort_requested": records.AbortRequested,
    "operation_parked": records.OperationParked,
    "operation_finished": records.OperationFinished,
    "blob_part": records.BlobPart,
    "chunk": records.Chunk,
}
TYPES: Mapping[str, Any] = {**ENTRY_TYPES, **RECORD_TYPES}
GUEST_TYPES = frozenset(
    (
        "session_claimed",
        "input_queued",
        "input_cancelled",
        "abort_requested",
        "approval_decided",
        "fact",
        "rerun_allowed",
        "dispatch_settled",
    )
)
"""What may stand in a frame that is not the owner's (design, "Who owns a session")."""
VERSIONS: Mapping[str, int] = dict.fromkeys(TYPES, 1)
"""The version of each type that this release writes; what is newer is read as opaque."""
