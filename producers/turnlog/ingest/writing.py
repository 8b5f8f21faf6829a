"""Writing the events of one session into the log, frame by frame, so that a kill costs nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.core.errors import ClaimLost, SchemaError
from turnlog.core.events import ENTRY_TYPES
from turnlog.core.frames import Header, NewEvent, seal
from turnlog.core.rows import Head
from turnlog.ingest.cursor import FACT, Cursor, read_cursor
from turnlog.ingest.merge import Newcomers, Rejoin
from turnlog.ingest.packing import Packer, fit
from turnlog.ingest.report import Report
from turnlog.ingest.secrets import Masker
from turnlog.ingest.thread import Data, derived
from turnlog.ingest.told import READER, Session, Told, shown
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.owner.owner import Owner, claim

Json = Any

PATIENCE_S = 1.0
"""How long another import may hold a session without writing before it is taken for dead."""
POLL_S = 0.02


class Tools(NamedTuple):
    """What every import of a run needs."""

    log: EmbeddedLog
    format: str
    ambient: Ambient
    host: str
    masker: Masker | None
    report: Report


class Source(NamedTuple):
    """The file of a session: its cuts, the last of them where it ends now, and its digests."""

    path: Path
    cuts: Sequence[int]
    digests: Mapping[int, str]
    version: Json
    lines: int
    ordinals: int


class Writing:
    """One session. `before` is its cursor as it was read, None for a session that is not there.

    With `changed` the file is not what was imported: then only what is new is written; with
    `shorter` only entries, and the cursor stays where it is. `more` says
    that the import is not complete with this session, so that the cursor is not `done`; `finish`,
    that only this is to be written now.
    """

    def __init__(
        self,
        tools: Tools,
        session: Session,
        source: Source,
        *,
        before: Cursor | None,
        changed: bool = False,
        shorter: bool = False,
        more: bool = False,
        finish: bool = False,
        progress: Callable[[int], None],
    ) -> None:
        self._tools = tools
        self._session = session
        self._source = source
        self._before = before
        self._changed = changed
        self._shorter = shorter
        self._more = more
        self._finish = finish
        self._progress = progress
        self._packer = Packer(self._cursor)
        self._end = before.end if before is not None and not changed else 0
        self._units = before.units if before is not None and not changed else 0
        self._done = False
        self._passed = 0
        self._lines: dict[str, int] = {}
        self._flying: asyncio.Task[int] | None = None
        self._owner: Owner | None = None
        self.wrote = 0
        """How many events of the session were written."""

    async def run(self) -> None:
        """Write what is not in the log. Raises what claiming and appending raise, and ClaimLost
        where another import wrote meanwhile, so that the file has to be read again."""
        tools, id_ = self._tools, self._session.id
        await self._wait_for_others()
        self._check_cursor()
        owner = self._owner = await claim(
            tools.log,
            id_,
            tables=tools.log.tables,
            host=tools.host,
            reason="import",
            ambient=tools.ambient,
        )
        try:
            await tools.log.tables.wait(owner.position, tools.log.partition_of(id_))
            self._check_cursor()
            await self._write_all()
        finally:
            await self._landed()
            await owner.release()

    async def _wait_for_others(self) -> None:
        """Wait while another import holds the session and goes on."""
        seen, waited = -1, 0.0
        while waited < PATIENCE_S:
            head: Head | None = self._tools.log.tables.get(("sessions", self._session.id))
            if head is None or not head.epoch or head.released or head.reason != "import":
                return
            waited = waited + POLL_S if head.position == seen else 0.0
            seen = head.position
            await asyncio.sleep(POLL_S)

    def _check_cursor(self) -> None:
        if read_cursor_of(self._tools, self._session.id) != self._before:
            raise ClaimLost(
                f"session {self._session.id!r} is being imported by somebody else; import it again"
            )

    async def _write_all(self) -> None:
        tools, id_ = self._tools, self._session.id
        get = tools.log.tables.get
        head: Head | None = get(("sessions", id_))
        merge: Newcomers | Rejoin = Rejoin(get, id_)
        if self._changed:
            merge = Newcomers(get, id_, tools.format, entries=self._shorter)
        elif self._before is not None and self._before.merged:
            merge = Newcomers(get, id_, tools.format, grew=True)
        created = head is not None and head.created
        for told in () if self._finish else self._session.tell():
            if not self._is_new(told):
                continue
            events = merge.events(told)
            if not created:  # before the parts of a large value, which come before its event
                await self._add([self._created(told)], None)
                created = True
            await self._add(events, told)
        if not created:
            event = NewEvent("session_created", derived("created", id_), None, self._data())
            await self._add([event], None)
        if not self._changed:
            self._units = self._units if self._end == self._source.cuts[-1] else 0
        self._end = self._source.cuts[-1]
        self._done = not self._more
        await self._send(self._packer.flush())
        await self._landed()

    def _is_new(self, told: Told) -> bool:
        """Whether a unit is not in the log; counts the units as they pass."""
        if self._changed:
            return True
        end = self._session.stages[told.stage]
        before = self._before
        if before is None or end > before.end:
            return True
        if end < before.end or before.done:
            return False
        self._passed += 1
        return self._passed > before.units

    async def _add(self, events: Sequence[NewEvent], told: Told | None) -> None:
        line = told.line if told is not None else 0

        def warn(what: str) -> None:
            self._tools.report.warning(self._source.path, line, what)

        fitted = fit(events, self._tools.masker, warn)
        for event in fitted.events:
            self._lines[event.id] = line
        for frame in self._packer.add(fitted):
            await self._send(frame)
        if told is not None:
            end = self._session.stages[told.stage]
            self._units = self._units + 1 if end == self._end else 1
            self._end = end
            self._progress(told.offset)

    async def _send(self, frame: list[NewEvent]) -> None:
        """Write a frame; the next one is made while it is on its way."""
        await self._landed()
        owner = self._owner
        assert owner is not None
        self._flying = asyncio.create_task(self._write(owner, frame))
        await asyncio.sleep(0)

    async def _landed(self) -> None:
        flying, self._flying = self._flying, None
        if flying is not None:
            await flying

    async def _write(self, owner: Owner, frame: list[NewEvent]) -> int:
        try:
            position = await owner.write(frame)
        except SchemaError:
            frame = self._acceptable(frame)
            position = await owner.write(frame)
        counts = Counter(event.type for event in frame)
        self._tools.report.events.update(counts)
        self.wrote += len(frame) - 1
        for event in frame:
            self._lines.pop(event.id, None)
        return position

    def _acceptable(self, frame: list[NewEvent]) -> list[NewEvent]:
        """A frame without what the vocabulary refuses. No reader makes such an event on purpose;
        if one does, the entry keeps its place in the tree and the rest of the file is imported."""
        kept: list[NewEvent] = []
        for event in frame:
            try:
                seal(Header(self._session.id, "claim", 1, 1, None), [event])
            except SchemaError as error:
                line = self._lines.get(event.id, 0)
                self._tools.report.problem(
                    self._source.path, line, f"its content cannot be stored: {error}"
                )
                if event.type in ENTRY_TYPES:
                    data = {
                        "parent": event.data.get("parent"),
                        "kind": f"{self._tools.format}:refused",
                        "value": {"reason": str(error)[:2_000]},
                    }
                    kept.append(event._replace(type="custom", data=data))
            else:
                kept.append(event)
        return kept

    def _cursor(self) -> NewEvent:
        source = self._source
        before = self._before
        if self._shorter and before is not None:
            value = {"name": FACT, "value": before._replace(merged=True).value()}
            return NewEvent("fact", self._tools.ambient.ids(), None, value)
        end = source.cuts[-1] if self._changed else self._end
        cuts = [cut for cut in source.cuts if cut <= end] or [source.cuts[0]]
        cursor = Cursor(
            self._tools.format,
            READER,
            shown(source.path),
            tuple(cuts),
            source.digests.get(cuts[-1], ""),
            0 if self._changed else self._units,
            self._done,
            self._changed and not self._done,
            source.version,
            source.lines,
            source.ordinals,
            self._changed or (before is not None and before.merged),
        )
        value = {"name": FACT, "value": cursor.value()}
        name = derived("cursor", self._session.id, cuts[-1], self._units, self._done)
        return NewEvent("fact", name, None, value)

    def _created(self, told: Told) -> NewEvent:
        time = told.events[0].time
        return NewEvent("session_created", derived("created", self._session.id), time, self._data())

    def _data(self) -> Data:
        created = self._session.created
        origin: Data = {
            **created["origin"],
            "path": shown(self._source.path),
            "cursor": {"bytes": self._source.cuts[-1]},
        }
        return {**created, "origin": origin}


def read_cursor_of(tools: Tools, session: str) -> Cursor | None:
    """The cursor of a session in the log."""
    row: Json = tools.log.tables.get(("facts", session, FACT))
    return read_cursor(row.value) if row is not None else None
