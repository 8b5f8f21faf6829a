"""Running seeds: a report for each, and the smallest part of a failing history that still fails."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from turnlog.testing.simulation.chance import Chance, Fault
from turnlog.testing.simulation.history import HEALERS, History
from turnlog.testing.simulation.scene import draw_scene
from turnlog.testing.simulation.watch import Violation

STEPS_MAX = 50_000


class Report(NamedTuple):
    """One history. `log` is its log as archive lines; it is the same whenever the seed is run with
    the same `without` and `absent`."""

    seed: int
    violations: tuple[Violation, ...]
    log: bytes
    faults: tuple[Fault, ...]
    actors: tuple[str, ...]
    without: frozenset[Fault]
    absent: frozenset[str]
    steps: int
    starts: int

    @property
    def holds(self) -> bool:
        """Whether everything held that must."""
        return not self.violations

    def __str__(self) -> str:
        """What somebody needs who looks for the fault: the seed, what failed, what led there."""
        told = [f"seed {self.seed}: {len(self.log.splitlines())} records, {self.steps} steps"]
        told += [f"  {item.rule}: {item.detail}" for item in self.violations]
        told += [f"  fault {name} #{number}" for name, number in self.faults]
        if self.absent:
            told.append(f"  without {', '.join(sorted(self.absent))}")
        return "\n".join(told)


def run(
    seed: int,
    budget: int = STEPS_MAX,
    *,
    without: Collection[Fault] = (),
    absent: Collection[str] = (),
) -> Report:
    """Play the history of a seed, of at most `budget` callbacks.

    `without` leaves out faults and `absent` actors, by name; shrinking uses them.
    """
    chance = Chance(seed, without)
    scene = draw_scene(chance.stream("scene"))
    history = History(chance, scene, steps_max=budget, absent=absent)
    history.play()
    return Report(
        seed,
        tuple(history.watch.violations[:1]),
        history.log,
        tuple(chance.faults),
        tuple(history.actors),
        frozenset(without),
        frozenset(absent),
        history.loop.steps,
        len(history.cast.outside.starts),
    )


def shrink(report: Report, budget: int = STEPS_MAX) -> Report:
    """The same seed with fewer actors and faults that still breaks the same rule."""
    rule = report.violations[0].rule

    def fails(without: Collection[Fault], absent: Collection[str]) -> Report | None:
        found = run(report.seed, budget, without=without, absent=absent)
        return found if any(item.rule == rule for item in found.violations) else None

    best = report
    for actor in report.actors:
        if actor in HEALERS:
            continue
        best = fails(best.without, {*best.absent, actor}) or best
    size = len(best.faults)
    while size:
        start = 0
        while start < len(best.faults):
            chunk = best.faults[start : start + size]
            smaller = fails({*best.without, *chunk}, best.absent)
            if smaller is not None and len(smaller.faults) < len(best.faults):
                best = smaller
            else:
                start += size
        size //= 2
    return best
