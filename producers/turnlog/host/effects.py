"""Running a tool's own code: whatever it returns or raises becomes an outcome."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from turnlog.core.errors import SchemaError
from turnlog.host.content import Content, content_of
from turnlog.host.errors import Failed, OutcomeUnknown
from turnlog.host.tools import Tool, ToolCall

GRACE_S = 2.0
"""How long a tool that is stopped may take to end, and perhaps still say what it did."""


class Outcome(NamedTuple):
    """How a dispatch is settled, and what the model is told."""

    status: str
    content: Content


def tell(text: str | None) -> Content:
    """A text for the model; None leaves it to what the status means."""
    return Content([], []) if text is None else content_of(text)


async def run_effect(tool: Tool, call: ToolCall) -> Outcome:
    """Run a tool. Raises nothing of its own: cancelled, it stops the tool and says what is known.

    A time limit, a broken connection and a cancelled run leave the outcome unknown, unless the tool
    only reads.
    """
    work = asyncio.get_running_loop().create_task(_run(tool, call))
    stopped = None
    try:
        done, _ = await asyncio.wait([work], timeout=tool.timeout_s)
        if not done:
            stopped = f"It was stopped after its time limit of {tool.timeout_s:g} s."
    except asyncio.CancelledError:
        stopped = "It was stopped while it ran."
    if stopped is not None and not work.done():
        work.cancel()
        await asyncio.wait([work], timeout=GRACE_S)
    return _outcome(tool, work, stopped or "It was stopped while it ran.")


async def _run(tool: Tool, call: ToolCall) -> Content:
    try:
        return content_of(await tool.run(call))
    except SystemExit as error:  # it would stop the whole host
        raise RuntimeError(f"the tool wanted to exit: {error}") from error


def _outcome(tool: Tool, work: asyncio.Task[Content], stopped: str) -> Outcome:
    interrupted = "error" if tool.effect == "read_only" else "unknown"
    if not work.done() or work.cancelled():
        return Outcome(interrupted, tell(stopped))
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
    if isinstance(error, Exception):
        return Outcome("error", tell(f"{type(error).__name__}: {_text(error)}"))
    raise error  # the process is being stopped


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be told"
