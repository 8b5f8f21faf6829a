"""Are the demo's figures right? What was imported, beside what was counted when it was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from turnlog.core.errors import SessionNotFound
from turnlog.ingest import Report
from turnlog.ingest.samples import Sample
from turnlog.ingest.samples.claude_files import EXAMPLE_KEY
from turnlog.log import EmbeddedLog
from turnlog.query.fsck import check as fsck
from turnlog.query.sessions import heads
from turnlog.tables.store import View
from turnlog.tables.view import SessionView

Json = Any


class Check(NamedTuple):
    """One figure: what it is of, what it should be and what it is."""

    what: str
    expected: Json
    found: Json
    ok: bool


def compare(what: str, expected: Json, found: Json) -> Check:
    """A figure beside what it should be."""
    return Check(what, expected, found, expected == found)


def check_sample(view: View, sample: Sample) -> Iterator[Check]:
    """Each figure that is known of a sample's session."""
    try:
        session = SessionView(view, sample.session)
    except SessionNotFound:
        yield compare(f"{sample.session}: in the log", True, False)
        return
    found = figures(session, [str(name) for name in sample.expects.get("usage", {})])
    for name, expected in sample.expects.items():
        yield compare(f"{sample.session}: {name}", expected, found.get(name))


def figures(session: SessionView, usage: Sequence[str]) -> dict[str, Json]:
    """The figures of a session, under the names that samples use."""
    outcomes = Counter(row.outcome or "open" for row in session.rows("operations"))
    return {
        "usage": {name: session.head.usage[name] for name in usage},
        "branches": len(session.rows("branches")),
        "unanswered": _unanswered(session),
        "outcomes": dict(outcomes),
        "surface": [node.entry.role for node in session.nodes()],
    }


def check_torn(samples: Sequence[Sample], reports: Sequence[Report]) -> Iterator[Check]:
    """A line that was cut off is named, and nothing else is."""
    torn = [str(one.path) for one in samples if not one.path.read_bytes().endswith(b"\n")]
    files = {str(one.path) for one in samples}
    named = [
        problem.file for report in reports for problem in report.problems if problem.file in files
    ]
    yield compare("files with a line that is cut off", torn, named)


def check_secrets(view: View, reports: Sequence[Report]) -> Iterator[Check]:
    """The key in a sample is nowhere in the log."""
    key = EXAMPLE_KEY.encode()
    holding = [
        head.session
        for head in heads(view)
        if any(key in stored.record.body for stored in view.records(head.session))
    ]
    yield compare("sessions with a secret left in them", [], holding)
    yield compare("secrets were masked", True, any(report.masked for report in reports))


def check_log(view: View, log: EmbeddedLog) -> Iterator[Check]:
    """The log is whole, and its tables are a fold of it."""
    damaged = [finding.session for finding in fsck(view) if finding.is_damage]
    yield compare("sessions with damage", [], damaged)
    yield compare("rows that differ from a fresh fold", 0, sum(1 for _ in log.verify()))


def _unanswered(session: SessionView) -> int:
    path = session.path()
    answered = {row.answers for row in path}
    calls = [(row.number, index) for row in path for index in range(len(row.calls))]
    return sum(call not in answered for call in calls)
