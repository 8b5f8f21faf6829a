"""What kind of history a seed makes: who takes part, and how bad things get.

Every history is drawn by this one function. Some are biased towards one sort of trouble, because
trouble that needs three rare things at once would else hardly ever be met.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnlog.owner import places
from turnlog.testing.simulation.world import Weather

HOST_PLACES = (
    places.CLAIM_SAVED,
    places.T1_READY,
    places.T1_SENT,
    places.T1_CHECKED,
    places.EFFECT_DONE,
    places.T2_SAVED,
    places.ATTEMPT_STARTED,
    places.ANSWER_READY,
    places.FINISH_READY,
    places.COMPACTION_STARTED,
    places.RECOVERY_READY,
)
"""Where a biased history kills or freezes."""


class Trouble(NamedTuple):
    """How likely a host dies or freezes at any place of the protocol, and at the one in focus."""

    kill: float
    freeze: float
    focus: str
    focused: float
    frozen_s: float
    """How long, on average."""


class Scene(NamedTuple):
    """Who takes part in a history."""

    hosts: int
    """How many runs of hosts there are; later ones take over from earlier ones."""
    by_hand: float
    """How many of them are written straight on the owner."""
    turns: int
    recoveries: int
    people: int
    hasty: int
    """How many claim by what they heard is about to be in the log."""
    has_worker: bool
    clone_after: int | None
    """A copy of the first host goes on by itself after this many of its appends."""
    weather: Weather
    trouble: Trouble


def draw_scene(draw: Random) -> Scene:
    """The scene of a history."""
    bad = draw.random() ** 2
    focus = draw.choice(HOST_PLACES)
    trouble = Trouble(
        kill=0.01 + 0.03 * bad,
        freeze=0.01 + 0.03 * bad,
        focus=focus,
        focused=draw.choice((0.0, 0.2, 0.5)),
        frozen_s=draw.choice((1.0, 5.0, 15.0)),
    )
    weather = Weather(
        lost=0.08 * bad,
        dropped=0.04 * bad,
        late=draw.choice((0.0, 0.05, 0.15)),
        repeated=draw.choice((0.0, 0.05, 0.2)),
        refused=0.03 * bad,
        cut=draw.choice((0.0, 0.0, 0.02)),
        slow=draw.choice((1.0, 1.0, 20.0)),
        lags=draw.random() < 0.7,
        strict=draw.random() < 0.3,
    )
    return Scene(
        hosts=draw.randrange(2, 5),
        by_hand=draw.choice((0.0, 0.5, 1.0)),
        turns=draw.randrange(1, 3),
        recoveries=draw.randrange(3),
        people=draw.randrange(2),
        hasty=draw.choice((0, 0, 0, 1)),
        has_worker=draw.random() < 0.3,
        clone_after=draw.randrange(3, 9) if draw.random() < 0.1 else None,
        weather=weather,
        trouble=trouble,
    )
