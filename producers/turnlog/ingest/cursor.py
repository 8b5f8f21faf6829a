"""How far the import of a session is: a fact of the session itself, in every frame that it wrote.

A session's events follow from its file and from the *cuts*, the places where the imports so far
found its end. So an import that was killed, or a file that has grown, is gone on with by telling
the session again and leaving out as many units as the cursor counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from turnlog.core.shapes import is_list, is_object

Json = Any

FACT = "ingest_cursor"
CUTS_MAX = 100_000


class Cursor(NamedTuple):
    """See the module's text.

    `digest` is that of the file up to the last cut, and `end` never moves back. `units` of the
    stage that ends there are in the log, all of them where it is `done`. `changed` says that the
    file was no longer what had been imported, so that units do not count and only entries with
    unknown ids were added. `merged` says so ever after: the log may hold what the file has not, and
    what comes may be there already.
    """

    format: str
    reader: int
    file: str
    cuts: tuple[int, ...]
    digest: str
    units: int
    done: bool
    changed: bool = False
    version: Json = None
    lines: int = 0
    ordinals: int = 0
    merged: bool = False

    @property
    def end(self) -> int:
        """Where the file ended for the last import."""
        return self.cuts[-1] if self.cuts else 0

    def value(self) -> Json:
        """The value of the fact."""
        return {**self._asdict(), "cuts": list(self.cuts)}


def read_cursor(value: Json) -> Cursor | None:
    """The cursor of a fact's value, or None where it is none."""
    if not is_object(value):
        return None
    cuts: Json = value.get("cuts")
    if not _are_cuts(cuts) or not isinstance(value.get("digest"), str):
        return None
    return Cursor(
        str(value.get("format")),
        _count(value.get("reader")),
        str(value.get("file")),
        tuple(cuts),
        value["digest"],
        _count(value.get("units")),
        value.get("done") is True,
        value.get("changed") is True,
        value.get("version"),
        _count(value.get("lines")),
        _count(value.get("ordinals")),
        value.get("merged") is True,
    )


def _are_cuts(cuts: Json) -> bool:
    if not is_list(cuts) or not 0 < len(cuts) <= CUTS_MAX:
        return False
    numbers: Sequence[Json] = cuts
    return all(type(cut) is int and cut > 0 for cut in numbers) and list(cuts) == sorted(set(cuts))


def _count(value: Json) -> int:
    return value if type(value) is int and value >= 0 else 0
