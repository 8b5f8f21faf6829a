"""The demo's hosts as a page: what was open, what recovery did and why, what the world counted."""

from __future__ import annotations

import signal
from collections.abc import Callable

from turnlog.cli.briefs import compact
from turnlog.cli.demo.crash import Call, Crash
from turnlog.cli.demo.frozen import Frozen
from turnlog.cli.plain import brief, counted
from turnlog.cli.recover import VERDICT_STYLES
from turnlog.cli.sessions import title
from turnlog.cli.terminal import Terminal
from turnlog.cli.tree import draw
from turnlog.owner import places

Section = Callable[[str], None]
STATUS_STYLES = {"ok": "green", "open": "yellow"}
"""The colour of a call's status; any other calls for a person."""
KEY_SHOWN = 8
WHERE = {
    places.T1_SENT: "frozen after its call was in the log, before the call could run",
    places.EFFECT_DONE: "frozen after its call had run, before that was in the log",
}


def print_crash(terminal: Terminal, found: Crash, section: Section) -> None:
    """The killed host, and the one that took over."""
    section("A host is killed between the start and the end of four calls")
    terminal.fit((f"   {found.view.session}  {title(found.view)}", "cyan"))
    draw(terminal, found.view, indent="   ")
    for helper in found.helpers:
        said = brief(title(helper), 40)
        terminal.fit("   The helper works in a session of its own: ", (said, "cyan"))
    verdict = found.report.verdict
    terminal.fit(
        f"   After {signal.Signals(found.signal).name}: ",
        (verdict.name, VERDICT_STYLES.get(verdict.name, "")),
        f": {verdict.why}",
    )
    for call in found.calls:
        terminal.fit(
            (f"     {call.tool:<12}", "bold"),
            f" {call.row.effect:<13}",
            (f" key {(call.row.key or '')[:KEY_SHOWN]}…  ", "dim"),
            compact(call.args, terminal.width) or "(no arguments)",
        )
    _done(terminal, found)


def _done(terminal: Terminal, found: Crash) -> None:
    terminal.print("   What the second host did about each, and why")
    for call in found.calls:
        status = call.row.status
        terminal.fit(
            (f"     {call.tool:<12}", "bold"),
            (f" {status:<9}", STATUS_STYLES.get(status, "bold red")),
            did(call),
        )
    terminal.print(f"{'   What the receiver counted':<30}{'requests':>10}{'effects':>10}")
    for call in found.calls:
        number = call.fate.counted
        effects = "–" if call.row.effect == "read_only" else str(number.effects)
        terminal.print((f"     {call.tool:<25}", "bold"), f"{number.requests:>10}{effects:>10}")


def did(call: Call) -> str:
    """What recovery did about a call and why, from what is in the log of it."""
    again = len(call.row.tries) > 1
    if call.row.effect == "read_only" and again:
        return "run again: it changes nothing"
    if again:
        return "run again with the same key: it takes effect once"
    if call.fate.counted.probes:
        return "asked the receiver about the key: it had happened"
    return "not run again: nobody knows, and the model is told so"


def print_frozen(terminal: Terminal, some: list[Frozen], section: Section) -> None:
    """The hosts that froze and woke."""
    section("A host freezes, another one takes over, and the first one wakes")
    for found in some:
        terminal.fit((f"   {found.row.session}  ", "cyan"), WHERE[found.place.place])
        _frozen(terminal, found)


def _frozen(terminal: Terminal, found: Frozen) -> None:
    row, evidence = found.row, ", ".join(found.evidence)
    requests = found.counted.requests
    terminal.fit(
        "     SIGSTOP: another host takes over; its model is told: ",
        (row.status, STATUS_STYLES.get(row.status, "bold red")),
    )
    terminal.fit("     SIGCONT: the woken host is told: ", (found.woken["ended"], "bold"))
    what = "the answer came too late" if requests else "the call never started"
    terminal.fit(
        f"     The receiver got {counted(requests, 'request')}: {what}; evidence: ",
        (evidence or "none", "yellow"),
    )
