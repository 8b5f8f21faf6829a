"""What a bench says: a figure, the reference of the same run, and the goal it is held to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured figure. `goal` reads like `>= 0.6`; an empty one is only for information."""

    name: str
    value: float
    unit: str
    goal: str = ""
    reference: str = ""

    @property
    def holds(self) -> bool:
        if not self.goal:
            return True
        sign, bound = self.goal.split()
        return self.value >= float(bound) if sign == ">=" else self.value <= float(bound)


def report(figures: Iterable[Figure]) -> bool:
    """Print a table; whether every goal was reached."""
    rows = list(figures)
    for row in rows:
        mark = "" if not row.goal else "ok " if row.holds else "MISSED"
        value = f"{row.value:,.0f}" if abs(row.value) >= 100 else f"{row.value:.3g}"
        goal = f"goal {row.goal}" if row.goal else ""
        print(f"{mark:7}{row.name:58} {value:>10} {row.unit:10} {goal:16} {row.reference}")
    return all(row.holds for row in rows)
