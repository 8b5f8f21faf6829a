"""The demo as a page: sections that a person reads from the top."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from turnlog.cli.briefs import heading, style, words
from turnlog.cli.demo.acts_page import print_crash, print_frozen
from turnlog.cli.importing import rates
from turnlog.cli.plain import brief, counted, money, size, tokens
from turnlog.cli.recover import print_report
from turnlog.cli.sessions import title
from turnlog.cli.terminal import Terminal, columns
from turnlog.cli.tree import draw
from turnlog.ingest import Report
from turnlog.query.show import entry_id
from turnlog.tables.view import SessionView

if TYPE_CHECKING:
    from turnlog.cli.demo.run import Shown

COSTS_SHOWN = 12
PROBLEMS_SHOWN = 5


def print_page(terminal: Terminal, shown: Shown) -> None:
    """Print all sections."""
    _came_in(terminal, shown)
    _tree(terminal, shown)
    _surfaces(terminal, shown)
    _open(terminal, shown)
    print_crash(terminal, shown.acts.crash, partial(_section, terminal, 5))
    print_frozen(terminal, shown.acts.frozen, partial(_section, terminal, 6))
    _costs(terminal, shown)
    _checks(terminal, shown)
    _next(terminal, shown)


def _section(terminal: Terminal, number: int, text: str) -> None:
    terminal.print()
    terminal.print((f"{number}  {text}", "bold"))


def _came_in(terminal: Terminal, shown: Shown) -> None:
    terminal.print((f"turnlog demo, in {shown.folder}", "bold"))
    _section(terminal, 1, "What came in")
    for report in shown.imports:
        _import(terminal, report)
    rate = shown.rate
    terminal.fit(f"   large file   {size(rate.bytes):>9}{rates(rate)}")
    kinds = ", ".join(f"{kind} ×{count}" for kind, count in sorted(shown.masked.items()))
    terminal.fit(f"   masked before it was written: {kinds or 'nothing'}")


def _import(terminal: Terminal, report: Report) -> None:
    sessions = len(report.new) + len(report.grown)
    terminal.fit(
        f"   {report.format:<12} {size(report.bytes):>9} in {counted(report.files, 'file')}:"
        f" {counted(sessions, 'session')}, {counted(report.events.total(), 'event')}"
    )
    for problem in report.problems[:PROBLEMS_SHOWN]:
        name = problem.file.rpartition("/")[2]
        terminal.fit((f"     {brief(f'{name}:{problem.line}: {problem.what}', 300)}", "yellow"))
    if len(report.problems) > PROBLEMS_SHOWN:
        terminal.fit((f"     and {len(report.problems) - PROBLEMS_SHOWN:,} more", "yellow"))


def _tree(terminal: Terminal, shown: Shown) -> None:
    _section(terminal, 2, "One session, with what a rewind left behind (◉ is where it goes on)")
    head = shown.view.head
    terminal.fit((f"   {brief(head.session, 512)}  {title(shown.view)}", "cyan"))
    draw(terminal, shown.view, indent="   ")


def _surfaces(terminal: Terminal, shown: Shown) -> None:
    _section(terminal, 3, "What the model sees")
    older = entry_id(shown.view, shown.older) or ""
    for where, number in ((f"at the older entry {older[:8]}", shown.older), ("at the leaf", None)):
        terminal.fit((f"   {where}", "dim"))
        for node in shown.view.nodes(number):
            entry = node.entry
            terminal.fit(
                (f"     {heading(entry):<10}", style(entry)),
                words(entry, node.data, terminal.width),
            )


def _open(terminal: Terminal, shown: Shown) -> None:
    _section(terminal, 4, "What was left open, and what recovery says")
    for recovery in shown.recoveries:
        print_report(terminal, recovery, "   ")
    if not shown.recoveries:
        terminal.print("   nothing")


def _costs(terminal: Terminal, shown: Shown) -> None:
    _section(terminal, 7, "Cost per session (Claude Code writes tokens, and no price)")
    for row in shown.sessions[:COSTS_SHOWN]:
        usage = row["usage"]
        cached = usage["cache_read"] + usage["cache_write"]
        price = money(usage["cost_usd"]) if usage["cost_usd"] != "0" else "–"
        terminal.fit(
            (f"   {brief(row['session'][:8], 8):<8}", "cyan"),
            f" {price:>8} {tokens(usage['input']):>7} in {tokens(usage['output']):>7} out"
            f" {tokens(cached):>7} cached  ",
            ("sub-agent " if row["spawned_by"] is not None else "", "magenta"),
            title(SessionView(shown.tables, row["session"])),
        )
    if len(shown.sessions) > COSTS_SHOWN:
        terminal.print(f"   and {len(shown.sessions) - COSTS_SHOWN:,} more")


def _checks(terminal: Terminal, shown: Shown) -> None:
    _section(terminal, 8, "Are the figures right?")
    wrong = [check for check in shown.checks if not check.ok]
    if not wrong:
        count = counted(len(shown.checks), "figure")
        terminal.print(("   yes: ", "bold green"), f"{count}, each as it must be")
    for check in wrong:
        terminal.print(
            ("   no: ", "bold red"),
            f"{brief(check.what, 200)}: {check.found!r}, and should be {check.expected!r}",
        )


def _next(terminal: Terminal, shown: Shown) -> None:
    terminal.print()
    terminal.print(("Try next", "bold"))
    for command in shown.commands():
        line = f"   {command}"
        if columns(line) > terminal.width:  # to be pasted as it is, so it is not cut
            line = line.replace(" --log ", " \\\n     --log ")
        terminal.print(line)
