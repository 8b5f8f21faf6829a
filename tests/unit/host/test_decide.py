"""What a plan becomes by the tools and the policy of one host."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import pytest

from tests.unit.host.scene import EFFECTS, Ledger, MoodyLog, crashed_turn, head_of, view_of
from turnlog.host.decide import decide
from turnlog.host.messages import args_of
from turnlog.host.policy import Policy
from turnlog.tables.evidence import reports_of


async def decided(
    log: MoodyLog, busy: Set[Any] = frozenset(), claim: str = "mine", **given: Any
) -> list[dict[str, Any]]:
    view = view_of(log)
    (report,) = reports_of(view, "host")
    given.setdefault("tools", {made.name: made for made in Ledger().tools()})
    given.setdefault("policy", Policy())
    return decide(report, claim=claim, busy=busy, args_of=lambda row: args_of(view, row), **given)


def doing(steps: list[dict[str, Any]]) -> dict[str | None, str]:
    return {step.get("tool"): step["do"] for step in steps}


async def test_a_host_with_the_tools_does_what_the_table_says() -> None:
    log = await crashed_turn(Ledger())
    assert doing(await decided(log)) == {
        "read_only": "run_again",
        "idempotent": "run_again",
        "reconcilable": "probe",
        "opaque": "answer",
        None: "continue",
    }


async def test_a_dispatch_of_ones_own_claim_is_never_started_again() -> None:
    log = await crashed_turn(Ledger())
    steps = await decided(log, claim=head_of(log).claim or "")
    assert doing(steps) == {**dict.fromkeys(EFFECTS, "answer"), None: "continue"}


async def test_nothing_is_said_of_what_is_being_worked_on() -> None:
    log = await crashed_turn(Ledger())
    (report,) = reports_of(view_of(log), "host")
    by_id = {row.dispatch for row in report.evidence.dispatches}
    by_call = {(row.assistant_entry, row.call_index) for row in report.evidence.dispatches}
    for busy in (by_id, by_call):
        assert doing(await decided(log, busy)) == {None: "continue"}


@pytest.mark.parametrize("tools", [{}, None])
async def test_without_a_tool_its_calls_are_answered(tools: Any) -> None:
    log = await crashed_turn(Ledger())
    steps = await decided(log, tools=tools or {})
    assert doing(steps) == {**dict.fromkeys(EFFECTS, "answer"), None: "continue"}
    assert all("no tool" in step["why"] for step in steps if step.get("tool") != None)  # noqa: E711


async def test_deciding_again_decides_the_same() -> None:
    log = await crashed_turn(Ledger())
    assert await decided(log) == await decided(log)
