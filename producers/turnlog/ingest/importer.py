"""Importing files: what is there already, what is new, and in which order.

A file is read twice after its digest was taken: for its outline, then for its events. What the log
already holds of it is told by a cursor in the log itself, so an import can be repeated, killed and
gone on with, and adds each thing once. A session that a live host holds is left alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.core.errors import OwnershipError, UsageError
from turnlog.core.rows import Head
from turnlog.ingest.cursor import Cursor
from turnlog.ingest.formats import FORMATS, Format, Identity, first_objects, session_files
from turnlog.ingest.lines import LineFile
from turnlog.ingest.merge import Newcomers
from turnlog.ingest.report import Report
from turnlog.ingest.secrets import Masker
from turnlog.ingest.thread import Data
from turnlog.ingest.told import READER, Changed, Notes, Reading, Session, Spawns
from turnlog.ingest.writing import Source, Tools, Writing, read_cursor_of
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient

Json = Any
Progress = Callable[[int, int], None]
"""Called with the bytes that are done and those of all files."""

AT_ONCE = 8
"""Files that are imported side by side, so that their appends share commits."""
TRIES = 10
"""How often a file is read again because another import wrote its session meanwhile."""
LARGE_BYTES = 32 * 1024 * 1024
"""A larger file is imported by itself, so that memory is bounded by one outline."""


class File(NamedTuple):
    """A file to import, and which session it holds."""

    path: Path
    size: int
    identity: Identity


async def import_files(
    log: EmbeddedLog,
    format_: str,
    paths: Sequence[Path],
    *,
    ambient: Ambient,
    host: str,
    masker: Masker | None,
    progress: Progress | None = None,
) -> Report:
    """Import session files, and those in folders, into a log.

    `host` is the importer's name in claims. `masker` None publishes secrets as they are. What is
    wrong with a file or a line is in the report and stops nothing else. Raises UsageError for an
    unknown format or a path that does not exist, before anything is written, and LogError where
    the log fails; an import that was cut off is gone on with by the next one.
    """
    chosen = FORMATS.get(format_)
    if chosen is None:
        known = " and ".join(sorted(FORMATS))
        raise UsageError(f"the format {format_!r} is not known; there are {known}")
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder; look at the path")
    tools = Tools(log, format_, ambient, host, masker, Report(format_))
    run = _Run(tools, chosen, progress)
    started = ambient.clock()
    masked = Counter(masker.counts) if masker is not None else Counter[str]()
    await run.import_all(paths)
    report = tools.report
    report.seconds = max(0, ambient.clock() - started) / 1000
    if masker is not None:
        report.masked.update(masker.counts - masked)
    return report


class _Run:
    def __init__(self, tools: Tools, format_: Format, progress: Progress | None) -> None:
        self._tools = tools
        self._format = format_
        self._progress = progress
        self._total = 0
        self._done: dict[Path, int] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._spawns: dict[str, Spawns] = {}

    async def import_all(self, paths: Sequence[Path]) -> None:
        """Files of sessions first, then those of their sub-agents; large ones one by one."""
        files = list(self._find(paths))
        self._total = sum(file.size for file in files)
        self._tools.report.files = len(files)
        if not files and not self._tools.report.problems:
            for path in paths:
                self._tools.report.warning(path, 0, f"no session of {self._format.name} is in it")
        for agents in (False, True):
            chosen = [file for file in files if (file.identity.parent is not None) == agents]
            gate = asyncio.Semaphore(AT_ONCE)
            try:
                async with asyncio.TaskGroup() as group:
                    for file in chosen:
                        if file.size <= LARGE_BYTES:
                            group.create_task(self._import_small(file, gate))
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
            for file in chosen:
                if file.size > LARGE_BYTES:
                    await self._import(file)

    def _find(self, paths: Sequence[Path]) -> Iterator[File]:
        seen: set[Path] = set()
        for given in paths:
            for path in session_files(self._format, given):
                absolute = path.absolute()
                if absolute in seen:
                    continue
                seen.add(absolute)
                try:
                    found = self._look(absolute)
                except OSError as error:
                    reason = error.strerror or error
                    self._tools.report.problem(path, 0, f"it cannot be read: {reason}")
                    continue
                if isinstance(found, File):
                    yield found
                elif path == given and found:
                    self._tools.report.problem(path, 0, found)
                elif found:
                    self._tools.report.warning(path, 0, found)

    def _look(self, path: Path) -> File | str:
        """A file with its session, or why there is none in it."""
        if not path.is_file():
            return "it is no regular file; it was left out"
        with LineFile(path) as file:
            lines = first_objects(file)
            identity = self._format.identify(path, lines) if lines else None
            if identity is not None:
                return File(path, file.size, identity)
            if file.size == 0:
                return "it is empty"
            return f"it holds no session of {self._format.name}; it was left out"

    async def _import_small(self, file: File, gate: asyncio.Semaphore) -> None:
        async with gate:
            await self._import(file)

    async def _import(self, file: File) -> None:
        report = self._tools.report
        session, _ = self._known(file.identity)
        lock = self._locks.setdefault(session, asyncio.Lock())
        async with lock:
            try:
                await self._import_patiently(file)
            except (OSError, Changed) as error:
                reason = (isinstance(error, OSError) and error.strerror) or error
                report.problem(file.path, 0, f"its import was cut off: {reason}")
        report.bytes += file.size
        self._advance(file.path, file.size)

    async def _import_patiently(self, file: File) -> None:
        """Read a file again where another import wrote its session meanwhile."""
        report = self._tools.report
        for left in range(TRIES - 1, -1, -1):
            session, cursor = self._known(file.identity)
            try:
                with LineFile(file.path) as lines:
                    await self._import_lines(file, lines, session, cursor)
            except OwnershipError as error:
                if left and not self._is_held(session):
                    report.forget(file.path)
                    continue
                report.left.append(session)
                report.problem(
                    file.path, 0, f"its import was cut off: {error}; import the file again"
                )
            return

    def _is_held(self, session: str) -> bool:
        """Whether somebody holds a session who does not import it."""
        head: Head | None = self._tools.log.tables.get(("sessions", session))
        return bool(head and head.epoch and not head.released and head.reason != "import")

    def _known(self, identity: Identity) -> tuple[str, Cursor | None]:
        """The session of a file, which keeps the name that it was first imported under."""
        for name in identity.names:
            cursor = read_cursor_of(self._tools, name)
            if cursor is not None:
                return name, cursor
        return identity.names[0], None

    async def _import_lines(
        self, file: File, lines: LineFile, session: str, cursor: Cursor | None
    ) -> None:
        report = self._tools.report
        if lines.end < lines.size:
            report.problem(
                file.path,
                lines.count(lines.end) + 1,
                "the last line is cut off; import the file again when it is complete",
            )
        if lines.end == 0:
            return
        digests, changed = self._compare(lines, cursor)
        if cursor is not None and cursor.end == lines.end and cursor.done and not changed:
            if session not in report.new and session not in report.grown:
                report.unchanged.append(session)
            return
        shorter = cursor is not None and lines.end < cursor.end
        if changed:
            how = "it is not what was imported from it before"
            if shorter:
                how = "the file is shorter than what was imported from it"
            report.warning(
                file.path,
                0,
                f"{how}: what is in the log stays, and only entries with new ids are added",
            )
        cuts = cursor.cuts if cursor is not None and not changed else ()
        identity = file.identity
        if cursor is not None:
            identity = identity._replace(names=(session,))
        reading = self._format.read(lines, identity, cursor, cuts, self._notes(file.path))
        if not reading.sessions:
            return
        self._spawns[reading.sessions[0].id] = reading.spawns
        source = Source(
            file.path,
            [*(cut for cut in cuts if cut < lines.end), lines.end],
            digests,
            reading.version,
            reading.lines,
            reading.ordinals,
        )
        await self._write_sessions(file, reading, source, changed=changed, shorter=shorter)

    def _compare(self, lines: LineFile, cursor: Cursor | None) -> tuple[dict[int, str], bool]:
        """The digests at the last cut and at the end, and whether the old part has changed."""
        if cursor is None or cursor.end > lines.end:
            [digest] = lines.digests(lines.end)
            return {lines.end: digest}, cursor is not None
        old, digest = lines.digests(cursor.end, lines.end)
        same = old == cursor.digest and cursor.reader == READER and not cursor.changed
        return {cursor.end: old, lines.end: digest}, not same

    async def _write_sessions(
        self, file: File, reading: Reading, source: Source, *, changed: bool, shorter: bool
    ) -> None:
        """The file's own session, then its side chains; the cursor of the first is done last."""
        main, *others = reading.sessions
        main = self._with_parent(file, main, reading)
        if not self._may_write(file.path, main.id):
            return
        todo = [other for other in others if self._has_news(other, changed=changed)]
        await self._write(main, source, changed=changed, shorter=shorter, more=bool(todo))
        for other in todo:
            if self._may_write(file.path, other.id):
                await self._write(other, source, changed=changed, shorter=shorter, more=False)
        if todo and not shorter:
            await self._write(main, source, changed=changed, more=False, finish=True)

    def _has_news(self, session: Session, *, changed: bool) -> bool:
        cursor = read_cursor_of(self._tools, session.id)
        return (
            changed
            or cursor is None
            or not cursor.done
            or bool(session.stages and session.stages[-1] > cursor.end)
        )

    async def _write(
        self,
        session: Session,
        source: Source,
        *,
        changed: bool,
        shorter: bool = False,
        more: bool,
        finish: bool = False,
    ) -> None:
        report = self._tools.report
        before = read_cursor_of(self._tools, session.id)
        if shorter and before is not None and not self._has_newcomers(session):
            report.unchanged.append(session.id)
            return
        writing = Writing(
            self._tools,
            session,
            source,
            before=before,
            changed=changed and before is not None,
            shorter=shorter and before is not None,
            more=more,
            finish=finish,
            progress=lambda offset: self._advance(source.path, offset),
        )
        await writing.run()
        if before is None:
            report.new.append(session.id)
        elif session.id not in report.new and session.id not in report.grown:
            (report.grown if writing.wrote else report.unchanged).append(session.id)

    def _has_newcomers(self, session: Session) -> bool:
        """Whether a file that is shorter than before holds an entry that is not in the log."""
        get = self._tools.log.tables.get
        merge = Newcomers(get, session.id, self._tools.format, entries=True)
        return any(merge.events(told) for told in session.tell())

    def _may_write(self, path: Path, session: str) -> bool:
        """Not where a live host holds the session, nor where it did not come from a file."""
        head: Head | None = self._tools.log.tables.get(("sessions", session))
        if head is None or not head.epoch:
            return True
        report = self._tools.report
        if not head.released and head.reason != "import":
            report.left.append(session)
            report.problem(
                path,
                0,
                f"session {session!r} is held by host {head.owner!r}, so it was left alone;"
                " import it again when the host has released it",
            )
            return False
        if head.listed and read_cursor_of(self._tools, session) is None:
            report.left.append(session)
            report.problem(
                path, 0, f"session {session!r} is in the log and did not come from a file"
            )
            return False
        return True

    def _with_parent(self, file: File, session: Session, reading: Reading) -> Session:
        """A sub-agent's session with the call that started it, where that can be told."""
        identity = file.identity
        if identity.parent is None or read_cursor_of(self._tools, session.id) is not None:
            return session
        spawns = self._spawns.get(identity.parent) or self._spawns_of(file)
        point: Data | None = spawns.by_agent.get(identity.agent or "")
        if point is None and reading.prompt is not None:
            points = spawns.by_prompt.get(reading.prompt, ())
            point = points[0] if len(points) == 1 else None
        created = {
            **session.created,
            "parent_session": identity.parent,
            "spawned_by": point,
        }
        return session._replace(created=created)

    def _spawns_of(self, file: File) -> Spawns:
        """The calls of the parent's file, which lies beside the folder of the sub-agent's."""
        parent = file.identity.parent or ""
        for folder in file.path.parents[:4]:
            path = folder / f"{parent}.jsonl"
            if path.is_file():
                break
        else:
            return Spawns({}, {})
        cursor = read_cursor_of(self._tools, parent)
        silent = Notes(lambda _line, _what: None, lambda _line, _what: None)
        with LineFile(path) as lines:
            cuts = cursor.cuts if cursor is not None else ()
            reading = self._format.read(lines, Identity((parent,)), cursor, cuts, silent)
        self._spawns[parent] = reading.spawns
        return reading.spawns

    def _notes(self, path: Path) -> Notes:
        report = self._tools.report
        return Notes(
            lambda line, what: report.problem(path, line, what),
            lambda line, what: report.warning(path, line, what),
        )

    def _advance(self, path: Path, done: int) -> None:
        self._done[path] = done
        if self._progress is not None:
            self._progress(sum(self._done.values()), self._total)
