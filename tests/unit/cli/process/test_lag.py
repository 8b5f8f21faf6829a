"""Marten's rule: unwell is who lags and stands still, never one of the two alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnlog.cli.process.lag import LAG_MAX, STILL_S, Lag

FAR = 10 * LAG_MAX


def test_lagging_and_moving_is_a_catch_up() -> None:
    lag = Lag(0)
    assert all(lag.look(n, FAR * 10, n * STILL_S * 0.9) is None for n in range(50))


def test_standing_still_without_a_lag_is_a_quiet_log() -> None:
    lag = Lag(0)
    assert all(lag.look(5, 5 + LAG_MAX, n * STILL_S) is None for n in range(50))


def test_lagging_and_standing_still_is_unwell_until_it_moves() -> None:
    lag = Lag(0)
    assert lag.look(5, FAR, 1) is None
    assert lag.look(5, FAR + 5, STILL_S) is None
    said = lag.look(5, FAR + 5, STILL_S + 1)
    assert said == f"{FAR:,} behind, and at position 5 for {STILL_S:.0f} s"
    assert lag.look(6, FAR + 5, STILL_S + 2) is None
    assert lag.look(6, FAR + 5, 2 * STILL_S + 2) is not None


def test_who_never_moves_at_all_is_unwell_too() -> None:
    lag = Lag(0)
    assert lag.look(0, FAR, 0) is None
    assert lag.look(0, FAR, STILL_S) is not None


def test_an_end_that_goes_back_is_unwell_for_good() -> None:
    lag = Lag(0)
    assert lag.look(10, 10, 0) is None
    for now in (1, 2, 1_000):
        assert lag.look(10, 9, now) == "the log's end went back from 10 to 9: it has lost records"
    assert lag.look(10, 10, 1_001) is None


looks = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, LAG_MAX), st.floats(0, STILL_S)), max_size=30
)


@given(looks)
def test_against_the_rule_as_it_reads(steps: list[tuple[int, int, float]]) -> None:
    """Unwell at a look, where for STILL_S every look found the same position and a lag over N."""
    lag = Lag(0.0)
    position, end, now = 0, 0, 0.0
    well_s = 0.0
    before = -1
    for moved, grown, passed in steps:
        position += moved
        end += grown + moved
        now += passed
        if position != before or end - position <= LAG_MAX:
            well_s = now
        before = position
        assert (lag.look(position, end, now) is not None) == (now - well_s >= STILL_S)
