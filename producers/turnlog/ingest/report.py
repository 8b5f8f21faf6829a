"""What an import did: counts, and everything that a person may have to look at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnlog.ingest.told import shown

SHOWN_MAX = 10_000
"""Problems and warnings that are kept word for word; more are only counted."""


@dataclass(frozen=True)
class Finding:
    """Something about a file. `line` 0 is the file as a whole."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.what}"


@dataclass
class Report:
    """The outcome of an import. `problems` cost something: a line, a file or a session was left
    out; `warnings` did not. `seconds` and `bytes` are of the files that were read."""

    format: str
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    new: list[str] = field(default_factory=list[str])
    grown: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])
    events: Counter[str] = field(default_factory=Counter[str])
    masked: Counter[str] = field(default_factory=Counter[str])
    problems: list[Finding] = field(default_factory=list[Finding])
    warnings: list[Finding] = field(default_factory=list[Finding])
    more: int = 0
    """Findings beyond those that are kept."""

    @property
    def ok(self) -> bool:
        """Whether nothing was left out."""
        return not self.problems

    def problem(self, file: Path, line: int, what: str) -> None:
        """Something was left out."""
        self._find(self.problems, file, line, what)

    def warning(self, file: Path, line: int, what: str) -> None:
        """Something was changed or is odd; nothing was left out."""
        self._find(self.warnings, file, line, what)

    def forget(self, file: Path) -> None:
        """Drop what was found in a file, which is read again."""
        name = shown(file)
        for findings in (self.problems, self.warnings):
            findings[:] = [finding for finding in findings if finding.file != name]

    def as_data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "format": self.format,
            "files": self.files,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
            "sessions": {
                "new": self.new,
                "grown": self.grown,
                "unchanged": self.unchanged,
                "left": self.left,
            },
            "events": dict(sorted(self.events.items())),
            "masked": dict(sorted(self.masked.items())),
            "problems": [vars(finding) for finding in self.problems],
            "warnings": [vars(finding) for finding in self.warnings],
            "more": self.more,
        }

    def _find(self, findings: list[Finding], file: Path, line: int, what: str) -> None:
        if len(findings) < SHOWN_MAX:
            findings.append(Finding(shown(file), line, what))
        else:
            self.more += 1
