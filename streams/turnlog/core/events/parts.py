"""What the data of events is made of: ids, counts, content parts, usage."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, Field, StringConstraints, with_config

# pydantic reads TypedDict from typing_extensions on Python below 3.12
from typing_extensions import TypedDict

type_checked = with_config(ConfigDict(strict=True, extra="allow"))

Id = Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""A session, entry, operation, attempt, dispatch, input or claim id: 1 to 512 characters."""
Json = Any
MAX_COUNT = 2**40
"""The most tokens or bytes one field may count: sums of a million of them still fit 64 bits."""
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
MAX_BLOB_PARTS = 4096

Role = Literal["user", "assistant", "tool", "system"]
Status = Literal["ok", "error", "unknown", "not_started"]
Effect = Literal["read_only", "idempotent", "reconcilable", "opaque"]
OperationKind = Literal["prompt", "compaction", "navigation"]
Outcome = Literal["completed", "failed", "aborted", "blocked", "interrupted"]
Money = Annotated[
    str, StringConstraints(pattern=r"^-?[0-9]{1,24}(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?$")
]
"""A decimal number as text, with at most 48 digits and an exponent of at most 99."""


@type_checked
class Sealed(TypedDict, total=False):
    """A value encrypted by the host; no rule looks inside."""

    sealed: Required[str]
    alg: str | None
    nonce: str | None
    ct: str | None


@type_checked
class Part(TypedDict, total=False):
    """One part of a content list; which fields it has depends on its `type`.

    text and reasoning: `text`; tool_call: `call_id`, `name`, `args`; blob: `digest`, `size`,
    `media_type`, `preview`; image and opaque: anything. Unknown types are kept.
    """

    type: Required[str]
    text: str | None
    call_id: str | None
    name: str | None
    args: Json
    digest: str | None
    size: Count | None


Content = list[Part] | Sealed


@type_checked
class Usage(TypedDict, total=False):
    """Tokens of one model request, and its price as a decimal string."""

    input: Count | None
    output: Count | None
    cache_read: Count | None
    cache_write: Count | None
    reasoning: Count | None
    cost_usd: Money | None
