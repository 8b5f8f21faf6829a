"""Older versions of events, raised step by step to the one this release knows.

The table is empty while version 1 is the only one. A function takes the data of one version and
gives that of the next; it must not change its argument, and what is missing gets its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from turnlog.core.events import VERSIONS

Upcasters: TypeAlias = Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]

UPCASTERS: Upcasters = {}


def upcast(type_: str, v: int, data: dict[str, Any], table: Upcasters) -> dict[str, Any] | None:
    """Data of version `v` in the current form, or None where a step is missing."""
    while v < VERSIONS[type_]:
        step = table.get((type_, v))
        if step is None:
            return None
        data, v = step(data), v + 1
    return data
