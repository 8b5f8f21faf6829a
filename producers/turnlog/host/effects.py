"""Running a tool's own code: whatever it returns or raises becomes an outcome.

A time limit, a broken connection and a run that was stopped leave the outcome unknown, unless the
tool only reads.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from turnlog.core.errors import SchemaError
from turnlog.host.content import Content, content_of
from turnlog.host.errors import Failed, OutcomeUnknown
from turnlog.host.tools import Tool, ToolCall

STOPPED = "It was stopped while it ran."
GRACE_S = 2.0
"""How long a tool that is stopped may take to end, and perhaps still say what it did."""


class Outcome(NamedTuple):
    """How a dispatch is settled, and what the model is told."""

    status: str
    content: Content


def tell(text: str | None) -> Content:
    """A text for the model; None leaves it to what the status means."""
    return Content([], []) if text is None else content_of(text)


async def run_tool(tool: Tool, call: ToolCall) -> Content:
    """Run a tool's own code; its result as content. Raises whatever the tool raises."""
    try:
        return content_of(await tool.run(call))
    except SystemExit as error:  # it would stop the whole host
        raise RuntimeError(f"the tool wanted to exit: {error}") from error


async def finished(tool: Tool, work: asyncio.Task[Content]) -> Outcome:
    """How a tool's run ends, within its time limit. Cancelled, it leaves the run alone."""
    done, _ = await asyncio.wait([work], timeout=tool.timeout_s)
    if done:
        return _outcome(tool, work, STOPPED)
    return await stopped(tool, work, f"It was stopped after its limit of {tool.timeout_s:g} s.")


async def stopped(tool: Tool, work: asyncio.Task[Content], why: str) -> Outcome:
    """Stop a run; it may still come to an end that says what it did."""
    if not work.done():
        work.cancel()
        await asyncio.wait([work], timeout=GRACE_S)
    return _outcome(tool, work, why)


def _outcome(tool: Tool, work: asyncio.Task[Content], why: str) -> Outcome:
    interrupted = "error" if tool.effect == "read_only" else "unknown"
    if not work.done() or work.cancelled():
        return Outcome(interrupted, tell(why))
    error = work.exception()
    if error is None:
        return Outcome("ok", work.result())
    if isinstance(error, SchemaError):
        return Outcome("error", tell(f"It ran, but its result cannot be kept: {error}"))
    if isinstance(error, OutcomeUnknown):
        return Outcome("unknown", tell(f"Whether it took effect is not known: {_text(error)}"))
    if isinstance(error, (TimeoutError, ConnectionError)):
        return Outcome(interrupted, tell(f"{type(error).__name__}: {_text(error)}"))
    if isinstance(error, Failed):
        return Outcome("error", tell(_text(error)))
    if isinstance(error, KeyboardInterrupt):  # the loop has been told already
        return Outcome(interrupted, tell(STOPPED))
    return Outcome("error", tell(f"{type(error).__name__}: {_text(error)}"))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be told"
