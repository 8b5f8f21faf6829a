"""`turnlog import`: session files of other agents into a log."""

from __future__ import annotations

import asyncio
import platform
import re
from collections.abc import Sequence
from pathlib import Path

from turnlog.cli.guard import FAILED
from turnlog.cli.opening import open_log
from turnlog.cli.plain import brief, counted, size
from turnlog.cli.settings import settings
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import UsageError
from turnlog.ingest import FORMATS, Masker, Report, import_files
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.owner.heartbeat import pulse_of

FINDINGS_SHOWN = 20


def import_sessions(
    terminal: Terminal, format_: str, paths: Sequence[Path], *, masks: Sequence[str], mask: bool
) -> None:
    """Import files, and those in folders; the command fails where anything was left out."""
    check_request(format_, paths)
    masker = Masker({**settings()["mask"].value, **named_masks(masks)}) if mask else None
    if masks and not mask:
        raise UsageError("import: --mask and --no-mask exclude each other")
    with open_log(terminal, create=True) as log:
        report = run_import(terminal, log, format_, paths, masker)
    if not report.ok:
        terminal.status = FAILED
    if terminal.common.json:
        terminal.document({"log": log.url, **report.as_data()})
        return
    tell(terminal, report)
    terminal.say(("log: ", "dim"), log.url)


def run_import(
    terminal: Terminal,
    log: EmbeddedLog,
    format_: str,
    paths: Sequence[Path],
    masker: Masker | None,
) -> Report:
    """Import with a progress bar."""
    ambient = Ambient()
    host = f"turnlog import on {platform.node() or 'this machine'}"

    async def work() -> Report:
        # a recovery that looks meanwhile is to see that somebody is at work on these sessions
        async with pulse_of(log, host, ambient=ambient):
            return await import_all()

    async def import_all() -> Report:
        with terminal.steps(f"importing {format_}", are_bytes=True) as progress:
            return await import_files(
                log,
                format_,
                paths,
                ambient=ambient,
                host=host,
                masker=masker,
                progress=progress,
            )

    return asyncio.run(work())


def check_request(format_: str, paths: Sequence[Path]) -> None:
    """What the importer would refuse is refused before a log is made for it."""
    if format_ not in FORMATS:
        known = " and ".join(sorted(FORMATS))
        raise UsageError(f"import: there is no format {format_!r}; there are {known}")
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")


def named_masks(masks: Sequence[str]) -> dict[str, str]:
    """The masks of NAME=REGEX options. Raises UsageError."""
    found: dict[str, str] = {}
    for mask in masks:
        name, equals, pattern = mask.partition("=")
        if not name or not equals or not pattern:
            raise UsageError(f"import: --mask {mask!r} is not of the form NAME=REGEX")
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(
                f"import: --mask {name}: no regular expression: {error}; correct the option"
            ) from error
        found[name] = pattern
    return found


def tell(terminal: Terminal, report: Report) -> None:
    """What came in, at which rate, what was masked, and what a person should look at."""
    for style, findings in (("bold red", report.problems), ("yellow", report.warnings)):
        for finding in findings[:FINDINGS_SHOWN]:
            terminal.say((brief(str(finding), 1000), style))
        if len(findings) > FINDINGS_SHOWN:
            terminal.say((f"and {len(findings) - FINDINGS_SHOWN:,} more", style))
    for line in summary(report):
        terminal.say(line)


def summary(report: Report) -> list[str]:
    """A report in a few lines."""
    counts = [
        (len(report.new), "new"),
        (len(report.grown), "grown"),
        (len(report.unchanged), "unchanged"),
        (len(report.left), "left out"),
    ]
    told = ", ".join(f"{count:,} {word}" for count, word in counts if count) or "none"
    events = report.events.total()
    lines = [
        f"{report.format}: {counted(report.files, 'file')}, {size(report.bytes)};"
        f" sessions: {told}; {counted(events, 'event')}{rates(report)}"
    ]
    if report.masked:
        kinds = ", ".join(f"{kind} ×{count}" for kind, count in sorted(report.masked.items()))
        lines.append(f"masked: {kinds}")
    return lines


def rates(report: Report) -> str:
    """In which time, and how much of it in a second."""
    if report.seconds <= 0:
        return ""
    return (
        f" in {report.seconds:.2f} s ({size(int(report.bytes / report.seconds))}/s,"
        f" {report.events.total() / report.seconds:,.0f} events/s)"
    )
