"""The simulation bites: with any rule switched off, it finds that something does not hold.

The histories are those of `test_simulation`, from the first seed on, and no more of them.
"""

from __future__ import annotations

import pytest

from tests.simulation.switches import SWITCHES
from tests.simulation.test_simulation import HISTORIES
from turnlog.testing.simulation import run

MISSED_BY = {
    "t1_rule": ("T1 rule", "one start per T1"),
    "position_check": ("one start per T1",),
}
"""What has to be found where it matters: that an effect started, not what else went wrong."""


@pytest.mark.no_cover  # it would take three times as long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rule", SWITCHES)
def test_a_rule_that_is_switched_off_is_missed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SWITCHES[rule](monkeypatch)
    reports = (report for report in map(run, range(HISTORIES)) if not report.holds)
    found = (report.violations[0].rule for report in reports)
    assert any(name in MISSED_BY.get(rule, (name,)) for name in found), (
        f"{HISTORIES} histories went well without the rule: {SWITCHES[rule].__doc__}"
    )
