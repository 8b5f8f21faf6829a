"""`turnlog fsck`: what is wrong with a log, and what is worth knowing of it."""

from __future__ import annotations

from collections import Counter

from turnlog.cli.guard import FAILED
from turnlog.cli.opening import reading
from turnlog.cli.plain import brief, counted
from turnlog.cli.terminal import Terminal
from turnlog.query.fsck import KINDS, Finding, check
from turnlog.query.sessions import find_session


def print_findings(terminal: Terminal, sessions: list[str], *, only_damage: bool) -> None:
    """Print what is found; the command fails where any of it is damage."""
    with reading(terminal) as view:
        names = [find_session(view, session) for session in sessions] or None
        found = [finding for finding in check(view, names) if finding.is_damage or not only_damage]
        count = sum(1 for _ in view.scan("sessions")) if names is None else len(names)
    if any(finding.is_damage for finding in found):
        terminal.status = FAILED
    if terminal.common.json:
        terminal.document([finding._asdict() for finding in found])
        return
    session = None
    for finding in found:
        if finding.session != session:
            session = finding.session
            terminal.fit((brief(session, 512), "bold cyan"))
        _print_finding(terminal, finding)
    _print_totals(terminal, found, count)


def _print_finding(terminal: Terminal, finding: Finding) -> None:
    place = "" if finding.position is None else str(finding.position)
    style = "bold red" if finding.is_damage else "yellow"
    terminal.print(
        (f"  {place:>8}  ", "dim"), (f"{finding.kind:<20} ", style), brief(finding.detail, 400)
    )


def _print_totals(terminal: Terminal, found: list[Finding], count: int) -> None:
    for kind, number in Counter(finding.kind for finding in found).most_common():
        told = "damage" if KINDS[kind].damage else "note"
        terminal.note(f"{number:>6}  {kind}: {KINDS[kind].meaning} ({told})")
    damage = sum(finding.is_damage for finding in found)
    notes = len(found) - damage
    said = f"damage in {counted(damage, 'place')}" if damage else "no damage"
    terminal.say(
        f"{counted(count, 'session')}: ",
        (said, "bold red" if damage else "green"),
        f", {counted(notes, 'note')}",
    )
