"""The report: where, what, and how many."""

from pathlib import Path

import pytest

from turnlog.ingest import report as module
from turnlog.ingest.report import Finding, Report


def test_a_finding_names_file_and_line() -> None:
    assert str(Finding("f", 3, "odd")) == "f:3: odd"
    assert str(Finding("f", 0, "odd")) == "f: odd"


def test_findings_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHOWN_MAX", 2)
    report = Report("pi")
    for line in range(5):
        report.problem(Path("f"), line, "odd")
    report.warning(Path("f"), 1, "odd")
    assert (len(report.problems), len(report.warnings), report.more, report.ok) == (2, 1, 3, False)
    assert report.as_data()["more"] == 3
    assert report.as_data()["problems"][0] == {"file": "f", "line": 0, "what": "odd"}
