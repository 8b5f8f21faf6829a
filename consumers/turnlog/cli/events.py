"""`turnlog events`: everything that a session's log holds, in order."""

from __future__ import annotations

from typing import Any

from turnlog.cli.briefs import compact
from turnlog.cli.opening import reading
from turnlog.cli.plain import brief, when
from turnlog.cli.terminal import Terminal
from turnlog.query.events import list_events
from turnlog.query.sessions import find_session

Json = Any
ODD_STYLES = {
    "fenced": "yellow",
    "duplicate": "yellow",
    "lost_claim": "yellow",
    "foreign": "bold red",
    "gap": "bold red",
    "seq_conflict": "bold red",
    "misfiled": "bold red",
}
"""The frames that are not simply applied."""


def print_events(terminal: Terminal, session: str, *, types: list[str]) -> None:
    """List the events of a session."""
    with reading(terminal) as view:
        found = list_events(view, find_session(view, session), types=frozenset(types))
        if terminal.common.json:
            terminal.rows(found)
            return
        is_empty = True
        for row in found:
            print_event(terminal, row)
            is_empty = False
        if is_empty:
            terminal.say("no events" + (f" of type {', '.join(types)}" if types else ""))


def print_event(terminal: Terminal, row: Json) -> None:
    """One event, as a line."""
    place = f"{row['position']}" + (f".{row['index']}" if row["index"] >= 0 else "")
    standing = row["frame"]
    odd = f"{standing} " if standing in ODD_STYLES else ""
    void = f"void:{row['entry']['void']} " if row["entry"] and row["entry"]["void"] else ""
    kept = f"quarantined: {brief(row['quarantine'], 300)} " if row["quarantine"] else ""
    terminal.fit(
        (f"{place:>9} ", "dim"),
        (f"{when(row['time']):16}  ", "dim"),
        (odd, ODD_STYLES.get(standing, "")),
        (kept + void, "red"),
        (f"{brief(row['type'] or '(unreadable)', 60)} ", "cyan"),
        (f"{brief(row['id'] or '', 40)} ", "dim"),
        brief(compact(row["data"], terminal.width), terminal.width),
    )
