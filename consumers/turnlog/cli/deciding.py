"""`turnlog decide`: a person's decision on a call that waits for one."""

from __future__ import annotations

import asyncio
from typing import cast

from turnlog.cli.opening import open_log
from turnlog.cli.plain import brief
from turnlog.cli.terminal import Terminal
from turnlog.cli.words import head_of, is_held, overtaken, say, who
from turnlog.core.errors import NoEffect, UsageError
from turnlog.core.rows import Approval, Head, Json
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.owner.guest import decide_approval
from turnlog.query.pending import waiting_calls
from turnlog.query.sessions import find_session


def send_decision(
    terminal: Terminal, session: str, call: str | None, *, allow: bool, by: str | None
) -> None:
    """Allow or deny a call that waits."""
    told = asyncio.run(_decide(terminal, session, call, allow=allow, by=by))
    if terminal.common.json:
        terminal.document(told)
        return
    word = "allowed" if told["decision"] == "allow" else "denied"
    heard = (
        "its host goes on"
        if told["is_held"]
        else "no host is at work on it now; the next one that is goes on from there"
    )
    terminal.say(
        f"{brief(told['session'], 512)}: call {brief(told['call_id'], 80)} {word}: {heard}"
    )


async def _decide(
    terminal: Terminal, text: str, call: str | None, *, allow: bool, by: str | None
) -> dict[str, Json]:
    ambient = Ambient()
    async with open_log(terminal) as log:
        head = head_of(log, find_session(log.tables, text))
        row = _to_decide(log, head, call)
        event = decide_approval(
            row.operation,
            ambient,
            assistant_entry=row.assistant_entry,
            call_id=row.call_id,
            decision="allow" if allow else "deny",
            by=who(by),
        )
        position = await say(log, head.session, event, ambient)
        key = ("approvals", head.session, row.operation, row.assistant_entry, row.call_id)
        after = cast("Approval", log.tables.get(key))
        if (after.decision, after.by) != (event.data["decision"], event.data["by"]):
            found = f"{after.by or 'somebody'} was faster and said {after.decision}"
            raise overtaken(head.session, position, found)
        return {
            "session": head.session,
            "operation": row.operation,
            "call_id": row.call_id,
            "decision": after.decision,
            "by": after.by,
            "is_held": await is_held(log, head, ambient),
            "position": position,
        }


def _to_decide(log: EmbeddedLog, head: Head, call: str | None) -> Approval:
    """The call that is meant; raises NoEffect where none waits, UsageError where several do."""
    found = waiting_calls(log.tables, head)
    meant = found if call is None else [row for row in found if row.call_id == call]
    if not meant:
        which = "no call" if call is None else f"no call {call!r}"
        raise NoEffect(
            f"session {head.session!r}: {which} waits for a decision;"
            f" `turnlog pending {head.session}` shows what does"
        )
    if len(meant) > 1:
        named = ", ".join(repr(row.call_id) for row in meant)
        raise UsageError(f"session {head.session!r}: several calls wait ({named}); say which")
    return meant[0]
