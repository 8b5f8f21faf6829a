"""What a reader of a foreign format gives to the importer, and what both need beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.core.frames import NewEvent
from turnlog.core.shapes import is_object
from turnlog.ingest.lines import Broken, LineFile, Parsed, parse
from turnlog.ingest.outline import Outline
from turnlog.ingest.thread import Data

Json = Any
READER = 1
"""The version of the readers. An import goes on where one of the same version ended; after one of
another version only entries with unknown ids are added."""


def shown(path: Path) -> str:
    """A path as text that an event can hold, whatever bytes its name is made of."""
    return os.fsencode(path).decode(errors="replace")


class Told(NamedTuple):
    """Events that must stand in one frame, the stage they belong to, and the line they come from.

    `under` and `operation` are the leaf and the open operation before them; where the log has
    others, somebody else has written since.
    """

    stage: int
    events: list[NewEvent]
    line: int
    offset: int
    under: str | None = None
    operation: str | None = None


class Session(NamedTuple):
    """A session that a file holds. `created` is the data of its `session_created`.

    `tell` gives its events from the first; the same each time, for the same stages.
    """

    id: str
    created: Data
    stages: Sequence[int]
    tell: Callable[[], Iterator[Told]]


class Spawns(NamedTuple):
    """The calls that started sub-agents: by the agent's id, and by the digest of its prompt."""

    by_agent: Mapping[str, Data]
    by_prompt: Mapping[int, Sequence[Data]]


class Reading(NamedTuple):
    """What is in a file: its own session first, then those of its sub-agents; the calls that may
    have started others, and the digest of its first prompt. `lines` could be read, `ordinals` of
    them go by their ordinals."""

    sessions: Sequence[Session]
    spawns: Spawns = Spawns({}, {})
    prompt: int | None = None
    version: Json = None
    lines: int = 0
    ordinals: int = 0


class Notes:
    """Where a reader says what is wrong with a line: `problem` cost a line, `warning` did not."""

    def __init__(
        self, problem: Callable[[int, str], None], warning: Callable[[int, str], None]
    ) -> None:
        self.problem = problem
        self.warning = warning


class Changed(Exception):
    """The file was changed while it was read."""


class Sheet:
    """The lines of a file by their rows in the outline."""

    def __init__(self, file: LineFile, outline: Outline) -> None:
        self.file = file
        self.outline = outline
        self._last: tuple[int, Parsed] | None = None

    def parsed(self, row: int) -> Parsed:
        """The value of a row's line, and what was put right in it."""
        if self._last is not None and self._last[0] == row:
            return self._last[1]
        try:
            parsed = parse(self.file.at(self.outline.offsets[row]))
        except Broken as error:
            raise Changed(
                f"line {self.outline.numbers[row]} changed while the file was read ({error});"
                " import it again when it is at rest"
            ) from None
        self._last = (row, parsed)
        return parsed

    def line(self, row: int) -> Data:
        """The object of a row's line."""
        value: Json = self.parsed(row).value
        return value if is_object(value) else {"value": value}
