"""Running a tool's own code: whatever it returns or raises becomes an outcome.

A time limit, a broken connection and a run that was stopped leave the outcome unknown, unless the
tool only reads.
"""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import Any, NamedTuple

from turnlog.core.context import TELL
from turnlog.core.errors import SchemaError
from turnlog.host.content import Content, content_of
from turnlog.host.errors import Failed, OutcomeUnknown
from turnlog.host.tools import Tool, ToolCall

Json = Any
STOPPED = "It was stopped while it ran."
GRACE_S = 2.0
"""How long a tool that is stopped may take to end, and perhaps still say what it did."""


class Outcome(NamedTuple):
    """How a dispatch is settled, and what the model is told."""

    status: str
    content: Content


class NotBegun(Exception):
    """The tool's own code was not begun. Of a later try an earlier one may have started."""

    def __init__(self, *, is_first: bool) -> None:
        super().__init__("it was not begun")
        self.status = "not_started" if is_first else "unknown"


def tell(text: str | None) -> Content:
    """A text for the model; None leaves it to what the status means."""
    return Content([], []) if text is None else content_of(text)


def not_known(why: str) -> Outcome:
    """An outcome that nobody knows; the model is told so, since it would else call once more."""
    return Outcome("unknown", tell(f"{why}\n{TELL['unknown']}".lstrip()))


async def run_tool(tool: Tool, call: ToolCall) -> Content:
    """Run a tool's own code; its result as content. Raises whatever the tool raises."""
    try:
        result: Json = tool.run(call)
        return content_of(await result if isawaitable(result) else result)  # it may be a plain def
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
    if not work.done() or work.cancelled():
        return _interrupted(tool, why)
    error = work.exception()
    if error is None:
        return Outcome("ok", work.result())
    if isinstance(error, NotBegun):
        return Outcome(error.status, tell(None))
    if isinstance(error, SchemaError):
        return Outcome("error", tell(f"It ran, but its result cannot be kept: {error}"))
    if isinstance(error, OutcomeUnknown):
        return not_known(_text(error))
    if isinstance(error, (TimeoutError, ConnectionError)):
        return _interrupted(tool, f"{type(error).__name__}: {_text(error)}")
    if isinstance(error, KeyboardInterrupt):  # the loop has been told already
        return _interrupted(tool, STOPPED)
    name = "" if isinstance(error, Failed) else f"{type(error).__name__}: "
    return Outcome("error", tell(name + _text(error)))


def _interrupted(tool: Tool, why: str) -> Outcome:
    return Outcome("error", tell(why)) if tool.effect == "read_only" else not_known(why)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be told"
