"""The standing of frames agrees with what the fold counted, for any history."""

from collections import Counter

import pytest

from tests.unit.query.logs import random_session, stored
from turnlog.query.frames import judged_frames


@pytest.mark.parametrize("seed", range(60))
def test_the_counts_are_those_of_the_fold(seed: int) -> None:
    view = stored(random_session(seed, "s")).tables
    head = view.get(("sessions", "s"))
    counts = Counter(judged.standing for judged in judged_frames(view, "s"))
    assert counts["fenced"] == head.counts["fenced"]
    assert counts["lost_claim"] == head.counts["lost_claims"]
    assert sum(counts.values()) == head.counts["frames"]
    assert counts["claim"] == head.epoch
