"""`turnlog demo`: the main job from end to end, on session files and agent hosts of our own making.

The figures are checked against what was counted when the files were written, and against what must
come of each crash; the command fails where any of them is another one.
"""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.cli.demo.acts import Acts, play
from turnlog.cli.demo.checks import Check, check_log, check_sample, check_secrets, check_torn
from turnlog.cli.guard import FAILED
from turnlog.cli.importing import run_import
from turnlog.cli.opening import catch_up, open_log
from turnlog.cli.plain import size
from turnlog.cli.settings import kafka_values
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import StateError, UsageError
from turnlog.ingest import Masker, Report
from turnlog.ingest.samples import Sample, big_claude_file, write_samples
from turnlog.log import EmbeddedLog, topics
from turnlog.query.sessions import heads, list_sessions, shortest
from turnlog.query.show import entry_id, show_session
from turnlog.recovery.dry_run import as_data as report_data
from turnlog.recovery.dry_run import dry_run
from turnlog.tables.evidence import Report as Recovery
from turnlog.tables.store import View
from turnlog.tables.view import SessionView

Json = Any
PARTITIONS = 3
"""Of a topic that is made for the demo; its sessions lie in all of them."""
LARGE_MB = 8
"""Enough for a rate that means something, and still a second or so."""
ID_SHOWN = 8
"""So much of a dispatch's id names it."""
OWN = {"claude-code": ".claude/projects", "pi": ".pi/agent/sessions"}
"""Where people's own sessions lie, in their home."""


class Shown(NamedTuple):
    """All that the demo shows, gathered before anything of it is printed."""

    folder: Path
    url: str
    imports: list[Report]
    rate: Report
    tables: View
    view: SessionView
    older: int
    recoveries: list[Recovery]
    sessions: list[dict[str, Json]]
    acts: Acts
    checks: list[Check]

    @property
    def ok(self) -> bool:
        """Whether every figure is right."""
        return all(check.ok for check in self.checks)

    @property
    def masked(self) -> Counter[str]:
        """How many secrets were masked, by kind."""
        return sum((report.masked for report in (*self.imports, self.rate)), Counter[str]())

    def commands(self) -> list[str]:
        """What to try next; each can be pasted as it is."""
        log = f"--log {shlex.quote(self.url)}"
        session = shlex.quote(shortest(self.tables, self.view.session))
        older = entry_id(self.view, self.older) or ""
        return [
            f"turnlog sessions {log}",
            f"turnlog show {session} --surface {log}",
            f"turnlog show {session} --at {shlex.quote(older)} --state {log}",
            f"turnlog show {shlex.quote(self.acts.crash.view.session)} {log}",
            f"turnlog pending {log}",
            *(f"turnlog {words} {log}" for words in self._words()),
            f"turnlog fsck -v {log}",
            f"turnlog dump -o demo.ndjson.zst {log}",
            "turnlog import claude-code ~/.claude/projects",
        ]

    def _words(self) -> Iterator[str]:
        """What a person may say of the calls whose outcome is unknown."""
        rows = [call.row for call in self.acts.crash.calls if call.row.status == "unknown"]
        for row in rows:
            yield f"settle {row.dispatch[:ID_SHOWN]} --as ok --note 'it is on the board'"
        for one in self.acts.frozen:
            if one.evidence == ["not_started"]:
                yield f"rerun {one.row.dispatch[:ID_SHOWN]} --note 'it never started'"


def run_demo(terminal: Terminal, *, keep: Path | None, mine: bool, yes: bool) -> None:
    """Write the files, import them, let the hosts run, show what came of it."""
    url = terminal.common.log
    if url is not None and url.startswith("memory:"):
        raise UsageError("demo: its hosts are processes and share no memory; name another log")
    folder = _folder(keep)
    own = [found for found in _own() if _consents(terminal, found, yes=yes)] if mine else []
    if url is not None and url.startswith("kafka:"):
        topics.create(url, partitions=PARTITIONS, kafka=kafka_values())
    samples = write_samples(folder)
    big_claude_file(folder / "large" / "large.jsonl", LARGE_MB)
    with open_log(terminal, url or f"sqlite:{folder / 'log.db'}", create=True) as log:
        if any(log.tables.position(partition) for partition in range(log.partitions)):
            # its sessions have the same names each time, and all is counted
            raise UsageError(f"demo: {log.url} is not empty; name a new log")
        imports, rate = _import(terminal, log, folder, own)
        with terminal.steps("hosts at work") as tick:
            acts = play(log, folder / "host", tick)
        catch_up(log)
        with log.tables.snapshot() as view:
            shown = _gather(view, log, folder, samples, (imports, rate, acts))
            if not shown.ok:
                terminal.status = FAILED
            if terminal.common.json:
                terminal.document(as_data(shown))
            else:
                from turnlog.cli.demo.page import print_page

                print_page(terminal, shown)


def _import(
    terminal: Terminal, log: EmbeddedLog, folder: Path, own: Sequence[tuple[str, Path]]
) -> tuple[list[Report], Report]:
    """The reports on each import, and on the large file, whose rate is shown."""
    reports = [run_import(terminal, log, format_, [folder / format_], Masker()) for format_ in OWN]
    rate = run_import(terminal, log, "claude-code", [folder / "large"], Masker())
    reports += [run_import(terminal, log, format_, [path], Masker()) for format_, path in own]
    return reports, rate


def _gather(
    view: View,
    log: EmbeddedLog,
    folder: Path,
    samples: list[Sample],
    came: tuple[list[Report], Report, Acts],
) -> Shown:
    imports, rate, acts = came
    checks = [check for sample in samples for check in check_sample(view, sample)]
    checks += [*check_torn(samples, imports), *check_secrets(view, imports)]
    checks += [*acts.checks(), *check_log(view, log)]
    chosen = _chosen(view, samples)
    return Shown(
        folder,
        log.url,
        imports,
        rate,
        view,
        chosen,
        _older(chosen),
        list(dry_run(view, heads(view))),
        list_sessions(view),
        acts,
        checks,
    )


def as_data(shown: Shown) -> dict[str, Json]:
    """The demo as plain data.

    `ok`, `folder`, `log`, `imports`, `rate`, `masked`, `session` and `older` (as `turnlog show`
    gives them, now and at an older entry), `recovery` (as `turnlog recover --dry-run`), `costs`,
    `crash` and `frozen` (`crash.as_data`, and `frozen.as_data` by the place where a host froze),
    `checks` (`what`, `expected`, `found`, `ok`) and `next`, the commands to try.
    """
    older = entry_id(shown.view, shown.older)
    return {
        "ok": shown.ok,
        "folder": str(shown.folder),
        "log": shown.url,
        "imports": [report.as_data() for report in shown.imports],
        "rate": shown.rate.as_data(),
        "masked": dict(shown.masked),
        "session": show_session(shown.view),
        "older": show_session(shown.view, older),
        "recovery": [report_data(recovery) for recovery in shown.recoveries],
        "costs": [
            {"session": row["session"], "title": row["title"], "usage": row["usage"]}
            for row in shown.sessions
        ],
        **shown.acts.as_data(),
        "checks": [check._asdict() for check in shown.checks],
        "next": shown.commands(),
    }


def _folder(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="turnlog-demo-"))
    folder = keep.expanduser().absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"demo: {keep} is not an empty folder; name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _own() -> list[tuple[str, Path]]:
    """The folders of the person's own sessions that are there."""
    home = Path.home()
    return [(format_, home / part) for format_, part in OWN.items() if (home / part).is_dir()]


def _consents(terminal: Terminal, found: tuple[str, Path], *, yes: bool) -> bool:
    """Ask before anybody's own sessions are read."""
    _, path = found
    if yes:
        return True
    files = [file.stat().st_size for file in path.rglob("*.jsonl") if file.is_file()]
    terminal.err.print(
        f"Import your own {len(files):,} files ({size(sum(files))}) in {path}, too? [y/N] ", end=""
    )
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:  # nobody to ask
        terminal.say()
        return False


def _chosen(view: View, samples: list[Sample]) -> SessionView:
    """The session whose tree is shown: with branches, and with a compaction if one has both."""
    views = [
        SessionView(view, sample.session)
        for sample in samples
        if view.get(("sessions", sample.session)) is not None
    ]
    if not views:
        raise StateError("demo: none of the sample sessions is in the log after its import")
    return max(
        views,
        key=lambda one: (
            len(one.rows("branches")) > 1,
            bool(one.entry(one.head.leaf).compaction_ref),
        ),
    )


def _older(view: SessionView) -> int:
    """Where its first rewind went back to."""
    return next((row.fork_point for row in view.rows("branches") if row.fork_point), view.head.leaf)
