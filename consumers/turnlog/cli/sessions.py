"""`turnlog sessions`: which sessions there are."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from turnlog.cli.briefs import words
from turnlog.cli.opening import reading
from turnlog.cli.plain import brief, counted, money, when
from turnlog.cli.terminal import Terminal
from turnlog.query.outline import telling_length
from turnlog.query.sessions import list_sessions
from turnlog.tables.store import View
from turnlog.tables.view import SessionView

Json = Any
TITLE_LENGTH = 200
STATUS_STYLES = {"open": "yellow", "requires_action": "bold yellow", "idle": "dim"}


def print_sessions(
    terminal: Terminal,
    *,
    cwd: Path | None,
    agent: str | None,
    status: str | None,
    limit: int | None,
) -> None:
    """List sessions, the newest first."""
    folder = str(cwd.expanduser().absolute()) if cwd is not None else None
    with reading(terminal) as view:
        rows = list_sessions(view, cwd=folder, agent=agent, status=status, limit=limit)
        if terminal.common.json:
            terminal.document(rows)
            return
        if not rows:
            terminal.say("no sessions; `turnlog import` brings some in")
        short = _short_length(rows) if terminal.is_narrow and not terminal.common.verbose else None
        for row in rows:
            # a sub-agent's session is called by its parent's whole id and more
            is_short = short is not None and row["spawned_by"] is None
            print_session(terminal, view, row, short if is_short else None)
        terminal.say((_total(rows), "dim"))


def print_session(terminal: Terminal, view: View, row: Json, short: int | None) -> None:
    """One line: id, time, size, cost, what is the matter, title. `short` cuts the id."""
    id_ = brief(row["session"], 512)
    if short is not None:
        id_ = f"{id_[:short]:<8}"
    flags: list[tuple[str, str]] = []
    if row["status"] != "idle":
        flags.append((f"{row['status']} ", STATUS_STYLES[row["status"]]))
    if row["damage"]:
        flags.append((f"damage:{row['damage']} ", "bold red"))
    if row["spawned_by"] is not None:
        flags.append(("sub-agent ", "magenta"))
    elif row["fork_at"] is not None:
        flags.append(("fork ", "magenta"))
    line = terminal.fit if terminal.is_narrow else terminal.print
    line(
        (id_, "cyan"),
        (f"  {when(row['last_time']):16}", "dim"),
        f" {row['entries']:>6,}",
        f" {money(row['usage']['cost_usd']):>8}  ",
        *flags,
        title(SessionView(view, row["session"])),
    )


def title(view: SessionView) -> str:
    """A session's title, else the first thing that its user said."""
    if view.head.title:
        return brief(view.head.title, TITLE_LENGTH)
    for entry in islice(view.reader.scan("entries", view.session), 8):
        if entry.role == "user" and entry.kind == "message":
            return words(entry, view.data(entry), TITLE_LENGTH)
    return "(untitled)"


def _short_length(rows: list[Json]) -> int:
    return telling_length([row["session"] for row in rows if row["spawned_by"] is None])


def _total(rows: list[Json]) -> str:
    from decimal import Decimal

    cost = sum((Decimal(row["usage"]["cost_usd"]) for row in rows), Decimal(0))
    entries = counted(sum(row["entries"] for row in rows), "entry", "entries")
    return f"{counted(len(rows), 'session')}, {entries}, {money(str(cost))}"
