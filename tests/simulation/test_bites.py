"""The simulation bites: with any rule switched off, it finds that something does not hold.

The histories are those of `test_simulation`, from the first seed on, and no more of them.
"""

from __future__ import annotations

import pytest

from tests.simulation.known import is_known
from tests.simulation.switches import SWITCHES
from tests.simulation.test_simulation import HISTORIES
from turnlog.testing.simulation import run


@pytest.mark.no_cover  # it would take three times as long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rule", SWITCHES)
def test_a_rule_that_is_switched_off_is_missed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SWITCHES[rule](monkeypatch)
    reports = map(run, range(HISTORIES))
    assert any(not report.holds and not is_known(report) for report in reports), (
        f"{HISTORIES} histories went well without the rule: {SWITCHES[rule].__doc__}"
    )
