"""Tools as a host registers them: what they do, and what a crash means for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

Json = Any
Effect = Literal["read_only", "idempotent", "reconcilable", "opaque"]
STRICTNESS: tuple[Effect, ...] = ("read_only", "idempotent", "reconcilable", "opaque")
"""From what may always run again to what never may."""


class ToolCall(NamedTuple):
    """One call as a tool receives it.

    `idempotency_key` is the same for every try of the call, on whatever host. `permit` is asked
    before there is a dispatch: `dispatch` and `idempotency_key` are empty then, and `try_number` 0.
    """

    session: str
    operation: str
    tool: str
    call_id: str
    args: dict[str, Json]
    dispatch: str = ""
    try_number: int = 0
    idempotency_key: str = ""


class Denied(NamedTuple):
    """What `permit` gives to refuse a call; the model is told the reason."""

    reason: str


class Ask(NamedTuple):
    """What `permit` gives to let a person decide; the call waits for `approval_decided`."""


class Happened(NamedTuple):
    """What `probe` gives where the effect took place, with its result where that is known."""

    result: Json = None


class Never(NamedTuple):
    """What `probe` gives where the effect never took place and can no longer, so it may run."""


class Unsure(NamedTuple):
    """What `probe` gives where it cannot tell."""


Permit = Callable[[ToolCall], Awaitable[bool | Denied | Ask]]
Probe = Callable[[ToolCall], Awaitable[Happened | Never | Unsure]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a host.

    `run` gives text, JSON, or a list of content parts. `effect` says what may happen after a crash:
    read_only and idempotent calls run again, a reconcilable one is probed first, an opaque one is
    never run again by itself. `validate` gives the arguments to use, or raises ValueError with what
    to tell the model. `permit` gives True, False, `Denied` or `Ask`. `timeout_s` limits one run.
    """

    name: str
    run: Callable[[ToolCall], Awaitable[Json]]
    effect: Effect = "opaque"
    validate: Callable[[dict[str, Json]], dict[str, Json]] | None = None
    permit: Permit | None = None
    probe: Probe | None = None
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if self.effect not in STRICTNESS:
            raise ValueError(f"tool {self.name!r}: effect {self.effect!r} is none of {STRICTNESS}")
        if self.effect == "reconcilable" and self.probe is None:
            raise ValueError(f"tool {self.name!r} is reconcilable and so needs a probe")


Tools = Mapping[str, Tool]


def toolbox(tools: Iterable[Tool] | Tools) -> Tools:
    """Tools by name. Raises ValueError where two have one name."""
    if isinstance(tools, Mapping):
        return cast("Tools", tools)
    found: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in found:
            raise ValueError(f"two tools are named {tool.name!r}")
        found[tool.name] = tool
    return found


def stricter(one: str, other: str) -> Effect:
    """The stricter of two effect classes; one that is not known counts as opaque."""
    first, second = _known(one), _known(other)
    return first if STRICTNESS.index(first) >= STRICTNESS.index(second) else second


def _known(effect: str) -> Effect:
    for name in STRICTNESS:
        if name == effect:
            return name
    return "opaque"
