"""Honest histories: nothing that must hold fails, and a seed always gives the same history."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count

import pytest

from turnlog.testing.simulation import Report, run, shrink

HISTORIES = 2_000
PROVEN = 200_000
CHUNKS = 4
"""The histories are split, so that several processes can share them."""


def check(seeds: range) -> None:
    for seed in seeds:
        report = run(seed)
        if not report.holds:
            pytest.fail(f"{report}\n\nshrunk:\n{shrink(report)}", pytrace=False)


@pytest.mark.no_cover  # it would take three times as long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_must_hold_holds(chunk: int) -> None:
    size = HISTORIES // CHUNKS
    check(range(chunk * size, (chunk + 1) * size))


@pytest.mark.proof
@pytest.mark.timeout(3 * 3_600)
@pytest.mark.parametrize("chunk", range(40))
def test_it_holds_in_many_more(chunk: int) -> None:
    size = PROVEN // 40
    check(range(HISTORIES + chunk * size, HISTORIES + (chunk + 1) * size))


def test_a_seed_gives_the_same_history_each_time() -> None:
    for seed in range(20):
        first, second = run(seed), run(seed)
        assert first == second
        assert first.log


def test_a_history_does_not_depend_on_how_this_process_hashes() -> None:
    script = (
        "from hashlib import sha256; from turnlog.testing.simulation import run;"
        "print(sha256(b''.join(run(seed).log for seed in range(12))).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in (1, 2)
    }
    assert len(found) == 1


def test_histories_are_about_something() -> None:
    """What a generator no longer makes is not tested either, and nothing else would tell."""
    reports = [run(seed) for seed in range(200)]
    log = b"".join(report.log for report in reports)
    for type_ in (
        "compaction",
        "branch",
        "app_state",
        "input_queued",
        "abort_requested",
        "rerun_allowed",
        "approval_asked",
        "approval_decided",
        "dispatch_settled",
        "operation_parked",
        "session_released",
        "session_claimed",
    ):
        assert log.count(b'"type":"%s"' % type_.encode()) >= 10, type_
    names = [name.split(":")[0] for report in reports for name, _ in report.faults]
    for fault in ("kill", "freeze", "lost", "dropped", "late", "repeated", "refused", "cut"):
        assert names.count(fault) >= 10, fault
    assert sum(report.starts for report in reports) >= 400


def test_a_failure_is_told_shrinks_and_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.simulation.switches import SWITCHES

    SWITCHES["first_answer_wins"](monkeypatch)
    report = next(found for seed in count() if not (found := run(seed)).holds)
    assert f"seed {report.seed}" in str(report)
    assert report.violations[0].rule in str(report)
    small = shrink(report)
    assert small.violations[0].rule == report.violations[0].rule
    assert len(small.faults) <= len(report.faults)
    assert again(small) == small


def again(report: Report) -> Report:
    return run(report.seed, without=report.without, absent=report.absent)
