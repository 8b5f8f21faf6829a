"""The plan: lanes, runs and stages of rows, without any content."""

from collections.abc import Sequence

from turnlog.ingest.outline import Facts, Kind, Outline
from turnlog.ingest.plan import ROOT, Plan

P, A, R, T, N = Kind.PROMPT, Kind.ASSISTANT, Kind.RESULT, Kind.OTHER, Kind.RECORD
Line = tuple[int, str | None, str | None]


def planned(*stages: Sequence[Line], exact: bool = False) -> tuple[Plan, Outline]:
    outline = Outline()
    plan = Plan(outline, exact=exact)
    number = 0
    for stage in stages:
        for kind, id_, parent in stage:
            number += 1
            group = id_.partition("/")[0] if id_ and kind == A and "/" in id_ else None
            outline.add(number, number * 10, Facts(kind, id_, parent, group))
        plan.close_stage(number * 10 + 10)
    return plan, outline


def rows(plan: Plan) -> list[list[int]]:
    return [list(stage.rows) for stage in plan.tracks[0].stages]


def test_a_chain_is_one_lane_in_the_order_of_the_file() -> None:
    plan, _ = planned([(P, "u", None), (A, "a", "u"), (N, None, None), (T, "s", "a")])
    assert rows(plan) == [[1, 2, 3, 4]]
    assert len(plan.lanes) == 2
    assert plan.tracks[0].stages[0].leaf == 4


def test_a_fork_is_a_lane_under_the_row_it_leaves() -> None:
    plan, _ = planned([(P, "u", None), (A, "a", "u"), (P, "v", "a"), (P, "w", "a"), (P, "x", None)])
    assert [lane.start for lane in plan.lanes[1:]] == [0, 2, ROOT]
    assert list(plan.lane_of) == [0, 1, 1, 1, 2, 3]


def test_runs_are_told_whole() -> None:
    lines = [
        (P, "u", None),
        (P, "v", "u"),
        (P, "w", "u"),
        (A, "va", "v"),
        (A, "wa", "w"),
        (R, "vr", "va"),
    ]
    plan, _ = planned(lines)
    assert rows(plan) == [[1, 2, 4, 6, 3, 5]]
    stage = plan.tracks[0].stages[0]
    assert (stage.leaf, stage.exact) == (6, False)


def test_an_exact_plan_keeps_the_order_of_the_file() -> None:
    lines = [(P, "u", None), (T, "v", "u"), (T, "w", "u"), (T, "x", "v")]
    plan, _ = planned(lines, exact=True)
    assert rows(plan) == [[1, 2, 3, 4]]
    assert list(plan.lane_of) == [0, 1, 1, 2, 1]


def test_parts_of_a_message_have_no_place_of_their_own() -> None:
    lines = [(P, "u", None), (A, "m/1", "u"), (R, "r", "m/1"), (A, "m/2", "r"), (A, "b", "m/2")]
    plan, _ = planned(lines)
    assert rows(plan) == [[1, 2, 3, 5]]
    assert (plan.parts(2), plan.resolve(4)) == ([2, 4], 2)
    assert plan.continues == {}


def test_a_stage_sees_only_what_came_before_its_end() -> None:
    """An old part is planned as it was planned when it was imported."""
    first = [(P, "u", None), (A, "m/1", "u"), (P, "x", "late")]
    plan, outline = planned(first, [(A, "m/2", "m/1"), (P, "late", "u")])
    assert rows(plan) == [[1, 2, 3], [4, 5]]
    assert plan.continues == {4: 2}
    assert plan.dangling == {3}
    assert not outline.kinds[3] & Kind.LOST  # its parent is there now


def test_an_alias_stands_for_its_parent() -> None:
    lines = [
        (P, "u", None),
        (Kind.ALIAS, "l", "u"),
        (Kind.ALIAS, "k", "l"),
        (A, "a", "k"),
        (Kind.ALIAS, "z", None),
    ]
    plan, _ = planned(lines, exact=True)
    assert (plan.resolve(2), plan.resolve(3), plan.resolve(5)) == (1, 1, ROOT)
    assert rows(plan) == [[1, 2, 3, 4, 5]]
    assert list(plan.lane_of) == [0, 1, 0, 0, 1, 0]
    assert plan.tracks[0].stages[0].leaf == ROOT


def test_only_a_member_of_a_cycle_is_taken_out_of_it() -> None:
    plan, _ = planned([(P, "z", "y"), (P, "x", "y"), (P, "y", "x"), (P, "s", "s")])
    assert plan.broken == [2, 4]
    assert rows(plan) == [[2, 3, 1, 4]]
