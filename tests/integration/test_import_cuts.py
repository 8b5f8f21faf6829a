"""A file that is imported while it grows comes out as if it had been imported once.

Every file is cut at every line, and in the middle of lines; the part is imported, then the whole.
"""

from pathlib import Path

import pytest

from tests.integration.import_files import (
    REAL,
    Foreign,
    figures,
    needs_samples,
    own_files,
    real_file,
    sessions_of,
)
from tests.unit.ingest.foreign import Desk


def whole(folder: Path, file: Foreign) -> Desk:
    desk = Desk(folder, file.format)
    desk.load(desk.write(file.body, file.name))
    return desk


def cuts(body: bytes) -> list[int]:
    """The end of each line without and with its newline, and places in its middle."""
    found: list[int] = []
    start = 0
    for line in body.splitlines(keepends=True):
        found += [start + len(line) // 2, start + len(line) - 1, start + len(line)]
        start += len(line)
    return found


def check_cuts(folder: Path, file: Foreign, step: int = 1) -> None:
    expected = whole(folder, file)
    sessions = sessions_of(expected)
    for cut in cuts(file.body)[::step]:
        desk = Desk(folder, file.format)
        desk.load(desk.write(file.body[:cut], file.name))
        desk.load(desk.write(file.body, file.name))
        assert sessions_of(desk) == sessions, cut
        for session in sessions:
            assert figures(desk, session) == figures(expected, session), cut
        before = len(desk.events(sessions[0]))
        report = desk.load(desk.write(file.body, file.name))
        assert (report.unchanged, len(desk.events(sessions[0]))) == ([sessions[0]], before), cut


@needs_samples
@pytest.mark.parametrize("name", REAL)
def test_a_real_file_cut_anywhere(name: str, tmp_path: Path, *, proof: bool) -> None:
    large = name.startswith("04")
    check_cuts(tmp_path, real_file(name), 1 if proof or not large else 5)


@pytest.mark.parametrize("number", range(6))
def test_a_file_of_our_own_cut_anywhere(number: int, tmp_path: Path) -> None:
    check_cuts(tmp_path, list(own_files())[number])


@needs_samples
@pytest.mark.parametrize("name", REAL)
def test_a_real_file_imported_line_by_line_tells_no_lies(name: str, tmp_path: Path) -> None:
    """At each line again: nothing is lost, counted twice or damaged. What was unanswered when a
    part of its message came alone may have been called unknown."""
    file = real_file(name)
    expected = whole(tmp_path, file)
    desk = Desk(tmp_path, file.format)
    lines = file.body.splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        desk.load(desk.write(b"".join(lines[:count]), file.name))
    [session] = sessions_of(expected)
    got, wanted = figures(desk, session), figures(expected, session)
    for name in ("usage", "state", "title", "damage", "voids", "quarantined", "corruption"):
        assert got[name] == wanted[name]
    roles = [said["role"] for said in got["conversation"]]
    assert roles == [said["role"] for said in wanted["conversation"]]
