"""One tool call: validate, permit, T1, effect, T2, whatever the tool, the log or the caller does.

A call ends with a result in the log. Only the log's own errors are raised, Fenced among them, and
cancelling; what a cancelled call leaves is settled behind its caller.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.core.errors import Fenced, SchemaError, TurnlogError
from turnlog.core.frames import NewEvent, canonical, digest_of
from turnlog.core.recovery import closing_entry, idempotency_key
from turnlog.core.rows import Dispatch
from turnlog.core.text import well_formed
from turnlog.host.content import Content, content_of
from turnlog.host.effects import (
    STOPPED,
    NotBegun,
    Outcome,
    finished,
    not_known,
    run_tool,
    stopped,
    tell,
)
from turnlog.host.errors import told
from turnlog.host.evidence import testify
from turnlog.host.permission import asked, denial, validated
from turnlog.host.tools import Happened, Never, Tool, ToolCall, stricter
from turnlog.owner import places
from turnlog.owner.owner import CHECK_S, Start

if TYPE_CHECKING:
    from turnlog.host.turn import Turn

Json = Any
MAX_OPEN = 256
"""Open dispatches of a session: what closes them must fit one frame."""
WITHDRAWN = "The call was given up before it started."
_UNKNOWN = Outcome("unknown", tell(None))


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A tool call of an assistant message: `index` is its place among that message's calls."""

    entry: str
    index: int
    call_id: str
    tool: str
    args: Json


class Result(NamedTuple):
    """How a call ended, as the model is told: `status` is ok, error, unknown or not_started.

    `dispatch` is None where nothing was dispatched.
    """

    call_id: str
    tool: str
    status: str
    content: list[dict[str, Json]]
    dispatch: str | None


class Start1(NamedTuple):
    """A T1 about to be written: its data, and the arguments that the tool gets."""

    data: dict[str, Json]
    args: dict[str, Json]


async def run_call(turn: Turn, call: ModelCall) -> Result:
    """Run a call that has no T1 yet."""
    tool = turn.tools.get(call.tool)
    if tool is None:
        names = ", ".join(sorted(turn.tools)) or "none"
        return await refuse(
            turn, call, "error", f"There is no tool {call.tool!r}; there are: {names}"
        )
    args = validated(tool, call.args)
    if isinstance(args, str):
        return await refuse(turn, call, "error", args)
    proposed = ToolCall(turn.link.id, turn.operation, call.tool, call.call_id, args)
    denied = await denial(turn, call, tool, proposed)
    if denied is not None:
        return await refuse(turn, call, "not_started", denied)
    if turn.open_dispatches >= MAX_OPEN:
        text = f"{MAX_OPEN} calls are open; this one was not started."
        return await refuse(turn, call, "not_started", text)
    turn.check_open()
    try:
        return await _start(turn, tool, _first(turn, call, tool, args))
    except SchemaError as error:  # of T1: what comes after it is told in its answer
        return await refuse(turn, call, "error", f"The arguments cannot be kept: {error}")


async def run_again(turn: Turn, row: Dispatch, args: dict[str, Json]) -> Result:
    """Start a dispatch again that a former owner left open (rule 9)."""
    tool = turn.tools[row.tool or ""]
    return await _start(turn, tool, Start1(_next(turn, row, row.result_entry), args))


async def run_allowed(turn: Turn, row: Dispatch, args: dict[str, Json]) -> Result:
    """Start a dispatch again whose outcome is unknown, because a person allowed it (rule 9)."""
    tool = turn.tools[row.tool or ""]
    data = _next(turn, row, turn.link.ambient.ids())
    return await _start(turn, tool, Start1(data, args))


async def probe(turn: Turn, row: Dispatch, args: dict[str, Json]) -> Result:
    """Ask the tool whether a dispatch took effect; only where it never did may it run."""
    tool = turn.tools[row.tool or ""]
    assert tool.probe is not None
    probed = _call_of(turn, _next(turn, row, row.result_entry), args)
    found = await asked(tool.probe, probed)
    if isinstance(found, BaseException):
        why = f"The probe failed: {told(found)['message']}"
        return await answer_dispatch(turn, row, not_known(why))
    if isinstance(found, Happened):
        if found.result is None:
            content = tell("It took effect before the crash; its result is not known.")
        else:
            content = _content(found.result)
        return await answer_dispatch(turn, row, Outcome("ok", content))
    if not isinstance(found, Never):
        return await answer_dispatch(turn, row, Outcome("unknown", tell(None)))
    is_opaque = stricter(row.effect, tool.effect) == "opaque"
    if is_opaque or row.tries[-1]["try"] >= turn.link.settings.policy.max_tries:
        # no second start; that it never happened is an answer
        return await answer_dispatch(turn, row, Outcome("not_started", tell(None)))
    return await run_again(turn, row, args)


async def refuse(turn: Turn, call: ModelCall, status: str, text: str) -> Result:
    """Answer a call that is not dispatched. Its result has an id made from the call, unless it was
    answered so before and the leaf has been moved back to before that."""
    turn.check_open()
    link = turn.link
    parts = content_of(well_formed(text)[0]).parts
    data = {
        "role": "tool",
        "content": parts,
        "call_id": call.call_id,
        "tool": call.tool,
        "status": status,
        "settled_by": "host",
    }
    id_: str | None = closing_entry(call.entry, call.index)
    if link.view().reader.get(("ids", link.id, id_)) is not None:
        id_ = None
    await link.add_entry("message", data, id_)
    return Result(call.call_id, call.tool, status, parts, None)


async def answer_dispatch(turn: Turn, row: Dispatch, outcome: Outcome) -> Result:
    """Write the answer of a dispatch that a former owner left open."""
    data = {
        "dispatch": row.dispatch,
        "result_entry": row.result_entry,
        "call_id": row.call_id,
        "tool": row.tool,
        "try": row.tries[-1]["try"],
    }
    return await _answer(turn, data, outcome)


def _first(turn: Turn, call: ModelCall, tool: Tool, args: dict[str, Json]) -> Start1:
    ids, call_no = turn.link.ambient.ids, turn.next_call_no()
    data: dict[str, Json] = {
        "operation": turn.operation,
        "dispatch": ids(),
        "call_no": call_no,
        "try": 1,
        "call_id": call.call_id,
        "call_index": call.index,
        "tool": call.tool,
        "args_hash": digest_of(canonical(args)),
        "assistant_entry": call.entry,
        "result_entry": ids(),
        "effect": tool.effect,
        "idempotency_key": idempotency_key(turn.link.id, turn.operation, call_no),
    }
    if canonical(args) != canonical(call.args):
        data["args"] = args
    return Start1(data, args)


def _next(turn: Turn, row: Dispatch, result_entry: str) -> dict[str, Json]:
    """T1 of the next try: the same call, the same key, the same arguments."""
    last = turn.link.view().event_data(row.tries[-1]["position"], row.tries[-1]["index"])
    return {**last, "try": row.tries[-1]["try"] + 1, "result_entry": result_entry}


async def _start(turn: Turn, tool: Tool, start: Start1) -> Result:
    """T1, the effect if it may start, T2."""
    link, id_ = turn.link, start.data["dispatch"]
    turn.busy.add(id_)
    try:
        link.check()
        link.ambient.reach(places.T1_READY)
        began = link.ambient.uptime()
        sent = link.batch.send([link.event("tool_dispatched", start.data)], withdraw=True)
        try:
            verdict = await _verdict(turn, id_, await asyncio.shield(sent), began)
        except asyncio.CancelledError:
            link.behind(_give_up(turn, sent, start.data))
            raise
        if verdict != "start":
            return await _answer(turn, start.data, Outcome(verdict, tell(None)))
        link.ambient.reach(places.T1_CHECKED)
        outcome = await _effect(turn, tool, start, began)
        link.ambient.reach(places.EFFECT_DONE)
        return await _answer(turn, start.data, outcome)
    finally:
        turn.busy.discard(id_)


async def _verdict(turn: Turn, dispatch: str, position: int, began: float) -> Start:
    """The T1 rule, once T1 is acknowledged at a position."""
    link = turn.link
    link.ambient.reach(places.T1_SENT)
    verdict = await link.owner.check_start(dispatch, position, began)
    if link.owner.is_lost:
        link.lose(link.owner.loss())
    return verdict


async def _give_up(turn: Turn, sent: asyncio.Future[int], data: dict[str, Json]) -> None:
    """The caller was cancelled while T1 was under way: nothing will run, and the log says so."""
    try:
        verdict = await _verdict(turn, data["dispatch"], await sent, turn.link.ambient.uptime())
        is_known = verdict != "unknown" and data["try"] == 1  # an earlier try may have started
        await _answer(turn, data, Outcome("not_started", tell(WITHDRAWN)) if is_known else _UNKNOWN)
    except TurnlogError as error:
        turn.link.fail(error)


async def _effect(turn: Turn, tool: Tool, start: Start1, began: float) -> Outcome:
    """Run the tool in a task of its own, so that it can be stopped without this one."""
    work = asyncio.get_running_loop().create_task(_begin(turn, tool, start, began))
    try:
        return await finished(tool, work)
    except asyncio.CancelledError:
        turn.link.behind(_after_cancel(turn, work, tool, start.data))
        raise


async def _begin(turn: Turn, tool: Tool, start: Start1, began: float) -> Content:
    """The start itself. The bound holds up to here: since the check another tool may have blocked
    the event loop, or the process was frozen."""
    if turn.link.ambient.uptime() - began > CHECK_S:
        raise NotBegun(is_first=start.data["try"] == 1)
    return await run_tool(tool, _call_of(turn, start.data, start.args))


async def _after_cancel(
    turn: Turn, work: asyncio.Task[Content], tool: Tool, data: dict[str, Json]
) -> None:
    """Settle a call whose caller was cancelled: by its outcome, where it still came to one."""
    try:
        await _answer(turn, data, await stopped(tool, work, STOPPED))
    except TurnlogError as error:
        turn.link.fail(error)


async def _answer(turn: Turn, data: dict[str, Json], outcome: Outcome) -> Result:
    """Write T2, whoever gives up waiting for it."""
    if outcome.content.blobs:  # more than one write: none of them may be left out
        return await asyncio.shield(turn.link.behind(_write_answer(turn, data, outcome)))
    return await _write_answer(turn, data, outcome)


async def _write_answer(turn: Turn, data: dict[str, Json], outcome: Outcome) -> Result:
    """What cannot be written as it is is told in words; nothing leaves a call open."""
    link = turn.link
    status, parts = outcome.status, outcome.content.parts
    event: NewEvent | None = None
    if _is_answered(turn, data):  # the turn has ended meanwhile: what became of it is evidence
        data = {**data, "result_entry": link.ambient.ids()}
    try:
        await link.blobs(outcome.content)
        event = _result_event(turn, data, status, parts)
        try:
            await link.write_now([event], leaf=event.id)
        except SchemaError as error:
            status, parts = "error", tell(f"It ran, but its result cannot be kept: {error}").parts
            event = _result_event(turn, data, status, parts)
            await link.write_now([event], leaf=event.id)
    except Fenced as error:
        if event is None or event not in error.unsaved:
            event = event or _result_event(turn, data, status, parts)
            await asyncio.shield(link.behind(testify(link, [event])))
        raise
    link.ambient.reach(places.T2_SAVED)
    link.look_up_leaf()  # an answer that was not placed is no leaf
    return Result(data["call_id"], data["tool"], status, parts, data["dispatch"])


def _is_answered(turn: Turn, data: dict[str, Json]) -> bool:
    row: Dispatch | None = turn.link.view().reader.get(
        ("dispatches", turn.link.id, data["dispatch"])
    )
    return row is not None and row.status != "open"


def _result_event(
    turn: Turn, data: dict[str, Json], status: str, parts: list[dict[str, Json]]
) -> NewEvent:
    said = {
        "parent": turn.link.leaf,
        "role": "tool",
        "content": parts,
        "call_id": data["call_id"],
        "tool": data["tool"],
        "dispatch": data["dispatch"],
        "status": status,
        "settled_by": "host",
    }
    return turn.link.event("message", said, data["result_entry"])


def _call_of(turn: Turn, data: dict[str, Json], args: dict[str, Json]) -> ToolCall:
    return ToolCall(
        session=turn.link.id,
        operation=turn.operation,
        tool=data["tool"],
        call_id=data["call_id"],
        args=args,
        dispatch=data["dispatch"],
        try_number=data["try"],
        idempotency_key=data["idempotency_key"],
    )


def _content(result: Json) -> Content:
    try:
        return content_of(result)
    except SchemaError as error:
        return tell(f"Its result cannot be kept: {error}")
