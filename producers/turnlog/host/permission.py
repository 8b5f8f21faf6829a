"""Before a call is dispatched: are its arguments valid, and may it run?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from turnlog.core.blobs import is_reference
from turnlog.core.fold.operations import waiting_key
from turnlog.core.frames import canonical
from turnlog.core.rows import Approval
from turnlog.core.shapes import is_object
from turnlog.host.errors import told
from turnlog.host.tools import Ask, Denied, Tool, ToolCall

if TYPE_CHECKING:
    from turnlog.host.calls import ModelCall
    from turnlog.host.turn import Turn

Json = Any
_T = TypeVar("_T")


def validated(tool: Tool, args: Json) -> dict[str, Json] | str:
    """The arguments to use, or what to tell the model."""
    if not is_object(args) or is_reference(args):
        return f"The arguments are no JSON object: {args!r:.200}"
    own = deepcopy(args)  # whoever changes them changes nothing of the message
    if tool.validate is None:
        return own
    try:
        found: Json = tool.validate(own)
        canonical(found)
    except (Exception, SystemExit) as error:
        return f"The arguments are not valid: {told(error)['message']}"
    if not is_object(found):
        return f"The arguments are not valid: their check gave {found!r:.200}"
    return found


async def denial(turn: Turn, call: ModelCall, tool: Tool, proposed: ToolCall) -> str | None:
    """None where the call may run, else what to tell the model."""
    decision = None
    if _has_own_id(turn, call):
        decision = _decision(turn, call)
        if decision is None and _is_waiting(turn, call):
            decision = await _ask(turn, call)
    if decision is None and tool.permit is not None:
        answer = await asked(tool.permit, proposed)
        if isinstance(answer, BaseException):
            why = told(answer)["message"]
            return f"Whether it is permitted could not be found out: {why}"
        if isinstance(answer, Denied):
            return f"Not permitted: {answer.reason}"
        if isinstance(answer, Ask):
            if not _has_own_id(turn, call):
                return "Not permitted: other calls have its id, so nobody can be asked about it."
            decision = await _ask(turn, call)
        elif answer is not True:
            return "Not permitted."
    return None if decision in (None, "allow") else "A person did not permit it."


async def asked(ask: Callable[[ToolCall], Awaitable[_T]], call: ToolCall) -> _T | BaseException:
    """What a tool's own code says, or what it raises. Only cancelling this task is raised."""
    try:
        answer: Json = ask(call)
        found: _T = await answer if isawaitable(answer) else answer  # it may be a plain def
        return found
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return error  # its own: nobody has cancelled this task
    except (Exception, SystemExit) as error:
        return error


async def _ask(turn: Turn, call: ModelCall) -> str:
    """Wait until a person has decided; meanwhile the session requires action."""
    link = turn.link
    data = {
        "operation": turn.operation,
        "call_id": call.call_id,
        "assistant_entry": call.entry,
    }
    await link.write_now([link.event("approval_asked", data)])
    while (decision := _decision(turn, call)) is None:
        await link.news()
        link.check()
    return decision


def _has_own_id(turn: Turn, call: ModelCall) -> bool:
    """Whether a person's decision, which names the call's id, can mean this call alone."""
    view = turn.link.view()
    return view.entry(view.number(call.entry)).calls.count(call.call_id) == 1


def _is_waiting(turn: Turn, call: ModelCall) -> bool:
    """Whether a person was asked already, by whatever host."""
    key = waiting_key(turn.operation, call.entry, call.call_id)
    return key in turn.link.view().head.waiting


def _decision(turn: Turn, call: ModelCall) -> str | None:
    key = ("approvals", turn.link.id, turn.operation, call.entry, call.call_id)
    row: Approval | None = turn.link.view().reader.get(key)
    return row.decision if row is not None else None
