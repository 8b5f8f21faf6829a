"""Session files of pi, versions 1 to 3: a header, then a tree of entries, one a line.

Version 1 is linear and has no ids: an entry goes by its ordinal among the lines that can be read,
the header counted, which is also how a compaction there names the first kept one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turnlog.core.shapes import is_object
from turnlog.ingest.lines import Broken, LineFile, parse
from turnlog.ingest.outline import Facts, Kind, Outline
from turnlog.ingest.pi_lines import kind_of
from turnlog.ingest.pi_teller import PiTeller, state_of
from turnlog.ingest.plan import Plan
from turnlog.ingest.thread import Data
from turnlog.ingest.told import Notes, Reading, Session, Sheet, Told
from turnlog.ingest.values import id_at, text_at

Json = Any

FORMAT = "pi"


class PiFile:
    """One file. `ordinals` of its first lines go by their ordinals although they have ids: they
    were imported as version 1, and pi has since given them ids."""

    def __init__(
        self, file: LineFile, own: str, *, cuts: Sequence[int], notes: Notes, ordinals: int = 0
    ) -> None:
        self._file = file
        self._own = own
        self._cuts = list(cuts)
        self._notes = notes
        self._ordinals = ordinals
        self._outline = Outline()
        self._plan = Plan(self._outline, exact=True)
        self._sheet = Sheet(file, self._outline)
        self._header: Data = {}
        self._linear = False
        self._count = 0
        self._last: str | None = None
        self._names: dict[str, str] = {}

    def read(self) -> Reading:
        """The first pass over the file."""
        cuts = [cut for cut in self._cuts if cut < self._file.end]
        old = self._cuts[-1] if self._cuts else 0
        for raw in self._file.scan():
            while cuts and raw.offset >= cuts[0]:
                self._plan.close_stage(cuts.pop(0))
            is_new = raw.offset >= old
            if raw.body is None:
                if is_new:
                    self._notes.problem(raw.number, "the line is too long to be imported")
                continue
            try:
                parsed = parse(raw.body)
            except Broken as error:
                if is_new:
                    self._notes.problem(raw.number, str(error))
                continue
            if is_new:
                for note in parsed.notes:
                    self._notes.warning(raw.number, note)
            self._add(raw.number, raw.offset, parsed.value, is_new=is_new)
        for end in [*cuts, self._file.end]:
            self._plan.close_stage(end)
        for row in self._plan.broken:
            if self._outline.offsets[row] >= old:
                self._notes.warning(
                    self._outline.numbers[row],
                    "its parents form a cycle; it was put behind the line before it",
                )
        return Reading(
            [self._session()] if 0 in self._plan.tracks else [],
            version=self._version(),
            lines=self._count,
            ordinals=self._ordinals,
        )

    def _version(self) -> Json:
        """1 where a header says nothing, None where there is no header."""
        version: Json = self._header.get("version")
        return 1 if version is None and self._header else version

    def _add(self, number: int, offset: int, line: Json, *, is_new: bool) -> None:
        ordinal, self._count = self._count, self._count + 1
        if not is_object(line):
            self._outline.add(number, offset, Facts(Kind.RECORD))
            return
        kind = kind_of(line)
        if ordinal == 0:
            self._header = line if line.get("type") == "session" else {}
            version = self._version()
            self._linear = version == 1 or (version is None and id_at(line, "id") is None)
        no_node = not self._linear and kind & Kind.OTHER and id_at(line, "id") is None
        if kind & Kind.RECORD or no_node:
            self._outline.add(number, offset, Facts(Kind.RECORD))
            return
        id_, parent = self._names_of(line, ordinal, number)
        weak = 0 if self._linear or "parentId" in line else Kind.WEAK
        if not self._outline.add(number, offset, Facts(kind | weak, id_, parent)):
            if is_new:
                self._notes.warning(
                    number, f"it has the id of an earlier line, {id_!r}; the earlier one was kept"
                )
            return
        self._last = id_

    def _names_of(self, line: Data, ordinal: int, number: int) -> tuple[str, str | None]:
        """The id of a line and that of its parent, as they go here."""
        if self._linear:
            return f"line-{ordinal}", self._last
        own = id_at(line, "id") or f"line-{number}"
        if ordinal < self._ordinals:
            self._names[own] = f"line-{ordinal}"
        parent = id_at(line, "parentId")
        return self._names.get(own, own), self._names.get(parent or "", parent)

    def _session(self) -> Session:
        version = self._version()
        created: Data = {
            "title": None,
            "cwd": text_at(self._header, "cwd"),
            "agent": FORMAT,
            "origin": {"format": FORMAT, "version": version},
            "initial_app_state": state_of({}, self._header) or None,
        }
        parent = text_at(self._header, "parentSession")
        if parent is not None:
            name = parent.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
            created["parent_session"] = name.rpartition("_")[2] or None
        copied_before = text_at(self._header, "timestamp") if parent is not None else None
        stages = self._plan.tracks[0].stages

        def tell() -> Iterator[Told]:
            teller = PiTeller(
                self._plan,
                self._sheet,
                start=created["initial_app_state"] or {},
                linear=self._linear,
                names=self._names,
                copied_before=copied_before,
            )
            return teller.tell(stages)

        return Session(self._own, created, [stage.end for stage in stages], tell)
