"""`turnlog settle` and `turnlog rerun`: a person's word on a call whose outcome nobody knows."""

from __future__ import annotations

import asyncio
from typing import Literal, cast

from turnlog.cli.opening import open_log
from turnlog.cli.plain import brief
from turnlog.cli.terminal import Terminal
from turnlog.cli.words import head_of, overtaken, say, who
from turnlog.core.errors import NoEffect
from turnlog.core.frames import NewEvent
from turnlog.core.rows import Dispatch, Json
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.owner.guest import allow_rerun, settle_dispatch
from turnlog.query.dispatches import evidence_of_effect, find_dispatch
from turnlog.query.sessions import find_session


def settle(
    terminal: Terminal,
    dispatch: str,
    status: Literal["ok", "error"],
    *,
    session: str | None,
    by: str | None,
    note: str | None,
) -> None:
    """Say what became of a call."""
    row, position = asyncio.run(_settle(terminal, dispatch, status, session, (by, note)))
    _tell(terminal, row, position, f"is {status} now, as you say")


def rerun(
    terminal: Terminal, dispatch: str, *, session: str | None, by: str | None, note: str | None
) -> None:
    """Allow one start more of a call."""
    row, position = asyncio.run(_rerun(terminal, dispatch, session, (by, note)))
    _tell(
        terminal,
        row,
        position,
        f"may be started once more, as try {row.tries[-1]['try'] + 1}, by the host that resumes"
        f" session {brief(row.session, 512)}",
    )


Said = tuple[str | None, str | None]
"""By whom, and a note."""


async def _settle(
    terminal: Terminal,
    text: str,
    status: Literal["ok", "error"],
    session: str | None,
    said: Said,
) -> tuple[Dispatch, int]:
    ambient = Ambient()
    async with open_log(terminal) as log:
        row = _unknown(log, text, session, "settled")
        last = row.tries[-1]["try"]
        event = settle_dispatch(
            row.dispatch, status, ambient, by=who(said[0]), note=said[1], try_=last
        )
        return await _say(log, row, event, ambient)


async def _rerun(
    terminal: Terminal, text: str, session: str | None, said: Said
) -> tuple[Dispatch, int]:
    ambient = Ambient()
    async with open_log(terminal) as log:
        row = _unknown(log, text, session, "run again")
        happened = evidence_of_effect(row)
        if happened is not None:
            raise NoEffect(
                f"dispatch {row.dispatch!r} of session {row.session!r} cannot be run again: a late"
                f" answer at position {happened['position']} says that it took effect"
                f" ({happened['status']}); say so: turnlog settle {row.dispatch}"
                f" --as {happened['status']}"
            )
        if row.rerun:
            raise NoEffect(
                f"dispatch {row.dispatch!r} of session {row.session!r} may already be run again;"
                " the host that resumes the session does it"
            )
        last = row.tries[-1]["try"]
        event = allow_rerun(row.dispatch, ambient, by=who(said[0]), note=said[1], try_=last)
        return await _say(log, row, event, ambient)


def _unknown(log: EmbeddedLog, text: str, session: str | None, what: str) -> Dispatch:
    """The dispatch that is meant. Raises NoEffect where its outcome is not unknown."""
    where = find_session(log.tables, session) if session is not None else None
    row = find_dispatch(log.tables, text, where)
    head_of(log, row.session)
    if row.status == "unknown":
        return row
    if row.status == "open":
        reason = f"its host may still answer; turnlog pending {row.session} says what to do"
    else:
        reason = (
            f"its {row.settled_by or 'host'} has settled it, and only `unknown` can be replaced"
        )
    raise NoEffect(
        f"dispatch {row.dispatch!r} of session {row.session!r} cannot be {what}: it is"
        f" {row.status}, not unknown: {reason}"
    )


async def _say(
    log: EmbeddedLog, row: Dispatch, event: NewEvent, ambient: Ambient
) -> tuple[Dispatch, int]:
    """Write a word on a dispatch and see that it took effect."""
    position = await say(log, row.session, event, ambient)
    after = cast("Dispatch", log.tables.get(("dispatches", row.session, row.dispatch)))
    note = next((note for note in after.notes if note["event"] == event.id), None)
    if note is None:
        raise overtaken(row.session, position, f"{len(after.notes)} words on it are kept already")
    if not note["applied"]:
        raise overtaken(row.session, position, f"the dispatch is {after.status} meanwhile")
    return after, position


def _tell(terminal: Terminal, row: Dispatch, position: int, what: str) -> None:
    if terminal.common.json:
        terminal.document(_as_data(row, position))
        return
    terminal.say(f"{brief(row.tool or 'dispatch', 40)} {brief(row.dispatch, 512)} {what}")


def _as_data(row: Dispatch, position: int) -> dict[str, Json]:
    return {
        "session": row.session,
        "operation": row.operation,
        "dispatch": row.dispatch,
        "status": row.status,
        "settled_by": row.settled_by,
        "rerun_allowed": row.rerun,
        "by": row.notes[-1]["by"],
        "note": row.notes[-1]["note"],
        "position": position,
    }
