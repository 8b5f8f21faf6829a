"""`turnlog copy`: sessions from one log into another, and proof that both now say the same."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from turnlog.cli.opening import check_options, open_log
from turnlog.cli.plain import counted
from turnlog.cli.restore import move, present, summary
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import StateError, UsageError
from turnlog.log import EmbeddedLog
from turnlog.query.compare import differing_rows
from turnlog.query.sessions import find_session
from turnlog.query.transfer import Plan, examine, lines_of


def copy_log(terminal: Terminal, source: str, target: str, sessions: list[str]) -> None:
    """Copy some sessions or all."""
    check_options(terminal.common, [source, target])
    asyncio.run(_copy(terminal, source, target, sessions))


async def _copy(terminal: Terminal, source: str, target: str, sessions: list[str]) -> None:
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(open_log(terminal, source))
        there = present(terminal, target)
        if there is not None:
            await stack.enter_async_context(there)
            if there.url == origin.url:
                raise UsageError(f"copy: {source} and {target} are the same log")
        names = {find_session(origin.tables, session) for session in sessions}
        lines = await lines_of(origin, names)
        with terminal.meter("reading") as tick:
            plan = await examine(lines, there, tick)
        copy = there
        if copy is None:
            copy = await stack.enter_async_context(open_log(terminal, target, create=True))
        await move(terminal, lines, copy, plan)
        grown = _compare_tables(terminal, origin, copy, plan)
    _tell(terminal, origin, copy, plan, grown)


def _compare_tables(terminal: Terminal, origin: EmbeddedLog, copy: EmbeddedLog, plan: Plan) -> int:
    """Compare the rows of each session. Gives how many have grown meanwhile and were left out."""
    grown = 0
    with (
        terminal.steps("comparing tables") as progress,
        origin.tables.snapshot() as one,
        copy.tables.snapshot() as other,
    ):
        for done, (name, session) in enumerate(plan.sessions.items()):
            progress(done, len(plan.sessions))
            if sum(1 for _ in one.records(name)) != session.frames:
                grown += 1
                continue
            key = next(differing_rows(one, other, name), None)
            if key is not None:
                raise StateError(
                    f"session {name!r}: its frames are equal, its tables are not: {key[0]} row"
                    f" {key[2:]!r}; run `turnlog verify` on both logs"
                )
    return grown


def _tell(
    terminal: Terminal, origin: EmbeddedLog, copy: EmbeddedLog, plan: Plan, grown: int
) -> None:
    if terminal.common.json:
        terminal.document(
            {
                "from": origin.url,
                "to": copy.url,
                "sessions": [row._asdict() for row in plan.moved()],
                "verified": len(plan.sessions) - grown,
                "grown": grown,
            }
        )
        return
    terminal.say(summary(plan.moved(), f"{origin.url}: copied to {copy.url}"))
    terminal.say(
        f"verified: {counted(plan.frames, 'frame')} of {counted(len(plan.sessions), 'session')}"
        " are equal in both logs, and the tables but for positions",
    )
    if grown:
        terminal.say(
            f"{counted(grown, 'session')} went on meanwhile; the same command brings the rest over"
        )
