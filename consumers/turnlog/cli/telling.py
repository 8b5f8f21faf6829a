"""`turnlog input` and `turnlog abort`: what a person tells a session that others work on."""

from __future__ import annotations

import asyncio
from typing import cast

from turnlog.cli.opening import open_log
from turnlog.cli.plain import brief, counted
from turnlog.cli.terminal import Terminal
from turnlog.cli.words import head_of, is_held, overtaken, say
from turnlog.core.errors import NoEffect, UsageError
from turnlog.core.fold.inputs import MAX_PENDING_INPUTS
from turnlog.core.rows import Head, Input, Json, Operation
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.owner.guest import Delivery, queue_input, request_abort
from turnlog.query.sessions import find_session


def send_input(terminal: Terminal, session: str, text: str, delivery: Delivery) -> None:
    """Queue a text for the agent to read."""
    if not text.strip():
        raise UsageError("input: the text is empty; nothing was written")
    told = asyncio.run(_input(terminal, session, text, delivery))
    if terminal.common.json:
        terminal.document(told)
        return
    heard = (
        "its host reads it when it can"
        if told["is_held"]
        else "no host is at work on it now; the next one that is reads it"
    )
    terminal.say(f"queued for {brief(told['session'], 512)} as {told['input']}: {heard}")


def send_abort(terminal: Terminal, session: str) -> None:
    """Ask for the work that is open to be stopped."""
    told = asyncio.run(_abort(terminal, session))
    if terminal.common.json:
        terminal.document(told)
        return
    asked = "was asked before" if told["position"] is None else "is asked"
    terminal.say(
        f"{brief(told['session'], 512)}: {told['kind']} {brief(told['operation'], 512)} {asked}"
        " to stop"
    )
    if not told["is_held"]:
        terminal.say(
            "no host is at work on it to hear that; to end what is open, run"
            f" turnlog recover {brief(told['session'], 512)} --close"
        )


async def _input(terminal: Terminal, text: str, said: str, delivery: Delivery) -> dict[str, Json]:
    ambient = Ambient()
    async with open_log(terminal) as log:
        head = head_of(log, find_session(log.tables, text))
        _check_queue(log, head, delivery)
        event = queue_input(said, ambient, delivery=delivery)
        position = await say(log, head.session, event, ambient)
        id_ = event.data["input"]
        row = cast("Input | None", log.tables.get(("inputs", head.session, id_)))
        if row is None or row.status == "refused":
            raise overtaken(head.session, position, "others have filled the queue meanwhile")
        return {
            "session": head.session,
            "input": id_,
            "entry": row.entry,
            "delivery": delivery,
            "status": row.status,
            "is_held": await is_held(log, head, ambient),
            "position": position,
        }


def _check_queue(log: EmbeddedLog, head: Head, delivery: Delivery) -> None:
    """Raise NoEffect where the input would be refused, or nobody would be steered by it."""
    waiting = len(head.pending_inputs)
    if waiting >= MAX_PENDING_INPUTS:
        raise NoEffect(
            f"session {head.session!r}: {counted(waiting, 'input')} wait to be read already, and"
            " no more are taken; wait until its host has read some"
        )
    if delivery != "steer":
        return
    for operation in _open_operations(log, head):
        if operation.aborting:
            raise NoEffect(
                f"session {head.session!r}: {operation.kind} {operation.operation!r} was asked to"
                " stop, so it cannot be steered; send it with --delivery follow_up"
            )


async def _abort(terminal: Terminal, text: str) -> dict[str, Json]:
    ambient = Ambient()
    async with open_log(terminal) as log:
        head = head_of(log, find_session(log.tables, text))
        operation = _to_abort(log, head)
        position = None
        if not operation.aborting:
            event = request_abort(operation.operation, ambient)
            position = await say(log, head.session, event, ambient)
            after = _operation(log, head.session, operation.operation)
            if not after.aborting:
                outcome = after.outcome or "superseded"
                raise overtaken(head.session, position, f"it has ended meanwhile ({outcome})")
        return {
            "session": head.session,
            "operation": operation.operation,
            "kind": operation.kind or "operation",
            "aborting": True,
            "is_held": await is_held(log, head, ambient),
            "position": position,
        }


def _to_abort(log: EmbeddedLog, head: Head) -> Operation:
    """The open prompt, in which everything else lies; else what else is open."""
    found = _open_operations(log, head)
    if not found:
        raise NoEffect(f"session {head.session!r}: nothing is open that could be stopped")
    return next((row for row in found if row.kind == "prompt"), found[0])


def _open_operations(log: EmbeddedLog, head: Head) -> list[Operation]:
    return [_operation(log, head.session, id_) for id_ in head.open_operations]


def _operation(log: EmbeddedLog, session: str, id_: str) -> Operation:
    return cast("Operation", log.tables.get(("operations", session, id_)))
