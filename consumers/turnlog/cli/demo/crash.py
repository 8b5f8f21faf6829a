"""A host is killed between T1 and T2 of four calls; another one takes over and finishes the turn.

The receiver holds its answers back, so the calls have started and taken effect, and no host knows
of it when the first one is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from turnlog.cli.demo.checks import Check, compare
from turnlog.cli.demo.host import Task
from turnlog.cli.demo.processes import Hosts
from turnlog.cli.demo.receiver import Counted, Receiver
from turnlog.cli.demo.script import DAY, TIDES, TOKENS
from turnlog.cli.opening import catch_up
from turnlog.core.rows import Dispatch, Head
from turnlog.core.text import parts_text
from turnlog.log import EmbeddedLog
from turnlog.query.dispatches import arguments
from turnlog.recovery.dry_run import as_data as report_data
from turnlog.tables.evidence import Report, reports_of
from turnlog.tables.view import SessionView

Json = Any


class Fate(NamedTuple):
    """What became of one call: `plan` is what recovery says about it, `tries` counts its T1s, and
    `counted` is what the receiver did."""

    effect: str
    plan: str
    status: str
    tries: int
    counted: Counted

    def as_data(self) -> dict[str, Json]:
        """It as plain data."""
        return {**self._asdict(), "counted": self.counted._asdict()}


EXPECTED = {
    "read_gauge": Fate("read_only", "run_again", "ok", 2, Counted(2, 0, 0)),
    "book_berth": Fate("idempotent", "run_again", "ok", 2, Counted(2, 1, 0)),
    "order_fuel": Fate("reconcilable", "probe", "ok", 1, Counted(1, 1, 1)),
    "send_notice": Fate("opaque", "answer", "unknown", 1, Counted(1, 1, 0)),
}
ANSWERED = 8
"""How often the model answered on the day, in whatever turn; the helper's not counted."""


class Call(NamedTuple):
    """One of the four calls: its row now, its arguments and answer, and every key that the receiver
    was given for it."""

    row: Dispatch
    args: Json
    answer: str
    keys: list[str]
    fate: Fate

    @property
    def tool(self) -> str:
        """Its tool."""
        return self.row.tool or ""


class Crash(NamedTuple):
    """All that this part of the demo shows. `report` is that at the time of the kill, as a host
    that takes over sees it; `output` what the command gave."""

    view: SessionView
    signal: int
    report: Report
    calls: list[Call]
    ended: str
    output: str
    helpers: list[SessionView]


def crash(log: EmbeddedLog, hosts: Hosts, receiver: Receiver, folder: Path) -> Crash:
    """Let it happen, and gather what came of it. Raises StateError where a host fails."""
    task = Task(
        log.url, DAY, "first host", "A day at the harbour", str(folder), receiver.port, "day"
    )
    receiver.hold()
    first = hosts.start(task)
    receiver.wait_for(set(EXPECTED), first.check)
    signal = first.kill()
    catch_up(log)
    with log.tables.snapshot() as then:
        report = reports_of(SessionView(then, DAY), "host")[0]
    receiver.release()
    ended = hosts.start(task._replace(host="second host", act="go on")).ended()["ended"]
    catch_up(log)
    view = SessionView(log.tables, DAY)
    calls = [_call(view, row, report, receiver) for row in report.evidence.dispatches]
    commands = (row for row in view.rows("dispatches") if row.tool == "run_command")
    heads: Iterator[Head] = log.tables.scan("sessions", None)
    return Crash(
        view,
        signal,
        report,
        sorted(calls, key=lambda call: call.row.call_index),
        ended,
        "".join(_answer(view, row) for row in commands),
        [SessionView(log.tables, head.session) for head in heads if head.parent_session == DAY],
    )


def check_crash(found: Crash) -> Iterator[Check]:
    """Each figure of it."""
    yield compare("crash: the signal that ended the first host", 9, found.signal)
    yield compare("crash: the verdict", "indeterminate_tool", found.report.verdict.name)
    yield compare("crash: calls that were open", list(EXPECTED), [one.tool for one in found.calls])
    for call in found.calls:
        expected = EXPECTED.get(call.tool)
        wanted = None if expected is None else expected.as_data()
        yield compare(f"crash: {call.tool}", wanted, call.fate.as_data())
        yield compare(f"crash: keys of {call.tool}", [call.row.key], call.keys)
    yield compare("crash: how the turn ended", "completed", found.ended)
    yield from _check_day(found)


def _check_day(found: Crash) -> Iterator[Check]:
    """What came before the crash is as it was."""
    head = found.view.head
    lowest_first = sorted(TIDES.splitlines(), key=lambda line: int(line.partition(",")[2]))
    yield compare("crash: what the command gave", lowest_first, found.output.splitlines())
    yield compare("crash: epoch and status", [2, "idle"], [head.epoch, head.status])
    yield compare("crash: branches", 2, len(found.view.rows("branches")))
    kinds = [node.entry.kind for node in found.view.nodes()]
    yield compare("crash: summaries on the surface", 1, kinds.count("compaction"))
    ends = [view.rows("operations")[0].outcome for view in found.helpers]
    yield compare("crash: sessions of helpers", ["completed"], ends)
    tokens = {name: count * ANSWERED for name, count in TOKENS.items()}
    yield compare("crash: tokens", tokens, {name: head.usage[name] for name in tokens})


def as_data(found: Crash) -> dict[str, Json]:
    """It as plain data: the session, what was open when its host was killed, and each call."""
    return {
        "session": found.view.session,
        "helpers": [view.session for view in found.helpers],
        "signal": found.signal,
        "ended": found.ended,
        "recovery": report_data(found.report),
        "calls": [
            {
                "tool": call.tool,
                "dispatch": call.row.dispatch,
                "idempotency_key": call.row.key,
                "settled_by": call.row.settled_by,
                "answer": call.answer,
                **call.fate.as_data(),
            }
            for call in found.calls
        ],
    }


def _call(view: SessionView, before: Dispatch, report: Report, receiver: Receiver) -> Call:
    steps = {step.get("dispatch"): step["do"] for step in report.instructions}
    row = cast("Dispatch", view.reader.get(("dispatches", view.session, before.dispatch)))
    counted = receiver.counted(row.tool, row.key)
    plan = steps.get(row.dispatch, "")
    return Call(
        row,
        arguments(view, row),
        _answer(view, row),
        receiver.keys(row.tool),
        Fate(row.effect, plan, row.status, len(row.tries), counted),
    )


def _answer(view: SessionView, row: Dispatch) -> str:
    """What the model was told."""
    return parts_text(view.dispatch_answer(row).content)
