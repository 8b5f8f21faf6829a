"""`turnlog pending`: what waits for somebody, and the command to say next."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import Any

from turnlog.cli.briefs import compact
from turnlog.cli.opening import open_log
from turnlog.cli.plain import brief, counted
from turnlog.cli.terminal import Terminal
from turnlog.core.rows import Head
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.query.pending import pending
from turnlog.query.sessions import find_session, heads
from turnlog.recovery.liveness import holder_of, look_around
from turnlog.tables.view import SessionView

Json = Any
STATE_STYLES = {"open": "yellow", "parked": "bold yellow", "waiting": "cyan", "unknown": "bold red"}


def print_pending(terminal: Terminal, sessions: Sequence[str]) -> None:
    """Print what waits in some sessions, or in all."""
    with open_log(terminal) as log:
        rows = find_pending(log, sessions)
    if terminal.common.json:
        terminal.document(rows)
        return
    for row in rows:
        _print_row(terminal, row)
    if not rows:
        terminal.say("nothing waits for anybody")
        return
    counts = {state: sum(row["state"] == state for row in rows) for state in STATE_STYLES}
    said = ", ".join(f"{number:,} {state}" for state, number in counts.items() if number)
    terminal.say((f"{counted(len(rows), 'thing')}: {said}", "dim"))


def find_pending(log: EmbeddedLog, sessions: Sequence[str]) -> list[dict[str, Json]]:
    """The rows on what waits, as plain data."""
    ambient = Ambient()
    alive = asyncio.run(look_around(log, ambient))
    with log.tables.snapshot() as view:

        def is_held(head: Head) -> bool:
            return holder_of(view, head, alive) is not None

        named = [SessionView(view, find_session(view, one)).head for one in sessions]
        chosen = named or heads(view)
        return list(pending(view, chosen, now=ambient.clock(), is_held=is_held))


def _print_row(terminal: Terminal, row: Json) -> None:
    what = (
        f"{brief(row['tool'] or 'a tool', 40)} ({row['effect']}) "
        if row["dispatch"] is not None
        else f"{row['kind'] or 'operation'} "
    )
    terminal.fit(
        (f"{row['state']:<8}", STATE_STYLES[row["state"]]),
        (f"{brief(row['session'], 512)}  ", "cyan"),
        what,
        (brief(row["dispatch"] or row["operation"], 512), "dim"),
        f"  {age(row['age_s'])}",
        ("  its host is alive" if row["is_held"] else "", "green"),
    )
    terminal.fit("  ", (brief(row["why"], 300), "dim"))
    if row["dispatch"] is not None:
        given = brief(compact(row["args"], terminal.width), terminal.width)
        tries = f"  {row['tries']} tries" if row["tries"] > 1 else ""
        key = f"  key {brief(row['idempotency_key'], 80)}" if row["idempotency_key"] else ""
        terminal.fit(f"  with {given or 'no arguments'}", (tries + key, "dim"))
    for piece in row["evidence"]:
        terminal.fit(
            ("  a late answer says ", "yellow"),
            (piece["status"], "bold yellow"),
            (f", at position {piece['position']}", "dim"),
        )
    if row["rerun_allowed"]:
        terminal.fit(("  may be run once more by the host that resumes the session", "yellow"))
    where = f" --log {shlex.quote(terminal.common.log)}" if terminal.common.log else ""
    for command in row["next"]:
        terminal.print("  → ", (brief(command + where, 1_100), "bold"))


def age(seconds: float) -> str:
    """How long ago, for people: 12 s, 5 min, 3 h, 2 d."""
    for unit, step in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= step:
            return f"{seconds / step:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
