"""The folder of a log in files: what it says of itself, its lock, the names of its files.

A file is made under another name, synced, linked to its own, and the folder synced: so there is
none without its header.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import struct
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from turnlog.core.errors import LogUnavailable, StateError, UsageError
from turnlog.log.file import sealed_lines
from turnlog.log.file.disk import Disk
from turnlog.log.file.frames import Format, Window
from turnlog.log.file.jsonl import Jsonl
from turnlog.log.file.zstd import Zstd

VERSION = 1
FORMATS: Mapping[str, type[Format]] = {"zstd": Zstd, "jsonl": Jsonl}
"""By the name that stands in `file:DIR?format=NAME`; the first is the default."""
TEMPORARY = ".new-"
HEADER_BYTES = 16_384
"""A header line is shorter: an id has at most 512 characters."""
RETRY_S = 0.001
"""Between two looks at a lock that somebody holds."""
_SLUG_CHARS = 40
_POSITION = struct.Struct("<QI")
"""The position in the lock, and the CRC-32 of its bytes."""


class Busy(Exception):
    """Somebody else has held the folder's lock for longer than we wait."""


class Lock(NamedTuple):
    """The folder's lock, held. `position` is the last one that was given, 0 where not known."""

    disk: Disk
    file: int
    position: int

    def reserve(self, position: int) -> None:
        """Say that a position is given, before it is written anywhere. It need not survive the
        machine: after a restart whoever opens the log looks at the files."""
        number = struct.pack("<Q", position)
        self.disk.write(self.file, number + struct.pack("<I", crc32(number)), 0)


class Folder:
    """A log's folder; `open_folder` makes it. Paths and names, and nothing that is written often.

    `id` is random and stands in every file, so that a file of another log is known.
    """

    def __init__(self, path: Path, disk: Disk, format_: str, id_: str) -> None:
        self.path = path
        self.disk = disk
        self.id = id_
        self.format = FORMATS[format_]()
        self.sessions = path / "sessions"
        self.load = path / "load"

    def name_of(self, session: str) -> str:
        """The name of a session's file: as much of the id as is safe, for people, then a hash of
        it. Letters are small, since not every file system tells them apart."""
        slug = re.sub(r"[^a-z0-9._-]+", "-", session.lower())[:_SLUG_CHARS].strip(".-")
        digest = sha256(session.encode()).hexdigest()[:32]
        return f"{slug}-{digest}{self.format.suffix}" if slug else f"{digest}{self.format.suffix}"

    def header_of(self, session: str) -> bytes:
        """The first line of a session's file."""
        said = {"turnlog": "session", "version": VERSION, "format": self.format.name}
        return sealed_lines.seal_object({**said, "log": self.id, "session": session})

    def read_header(self, window: Window, name: str) -> tuple[str | None, int]:
        """The session of a file and where its frames begin; None where its header is broken.

        Raises StateError for a file of a newer turnlog, LogUnavailable for one of another log.
        """
        head = window.get(0, HEADER_BYTES)
        line, newline, _ = head.partition(b"\n")
        said = sealed_lines.unseal_object(line) if newline else None
        if said is None:
            return None, 0
        where = self.sessions / name
        _check_version(said, where)
        session = said.get("session")
        if said.get("log") != self.id or not isinstance(session, str):
            raise LogUnavailable(
                f"{where}: a file of another log; move it out of this folder, and use"
                " `turnlog copy` to take sessions from log to log"
            )
        if self.name_of(session) != name:
            raise LogUnavailable(
                f"{where}: the file of session {session!r} under another name; move it away, or"
                f" call it {self.name_of(session)} if there is none"
            )
        return session, len(line) + 1

    def files(self) -> Iterator[os.DirEntry[str]]:
        """The files of sessions, in no order."""
        with os.scandir(self.sessions) as entries:
            for entry in entries:
                if entry.name.endswith(self.format.suffix) and not entry.name.startswith("."):
                    yield entry

    def make(self, name: str, header: bytes) -> None:
        """Make a session's file, with nothing but its header."""
        publish(self.disk, self.sessions / name, header)

    @contextmanager
    def locked(self, wait_s: float) -> Generator[Lock]:
        """Hold the folder's lock. Raises Busy where that is not to be had in time."""
        path = self.path / "lock"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + wait_s
            while not _try_lock(file):
                if time.monotonic() >= deadline:
                    raise Busy
                time.sleep(RETRY_S)
            yield Lock(self.disk, file, _read_position(self.disk, file))
        finally:
            os.close(file)  # which gives the lock back


def open_folder(path: Path, format_: str | None, disk: Disk) -> Folder:
    """Make a new or empty folder a log, or find out what one holds.

    Raises UsageError for a format that there is not, or that it does not have, LogUnavailable for a
    folder of something else, StateError for one of a newer turnlog, and OSError.
    """
    if format_ is not None and format_ not in FORMATS:
        raise UsageError(f"{path}: there is no format {format_!r}; there are {', '.join(FORMATS)}")
    about = path / "log.json"
    if not about.exists():
        _create(path, format_ or next(iter(FORMATS)), disk)
    said = sealed_lines.unseal_object(about.read_bytes().rstrip(b"\n"))
    if said is None:
        raise LogUnavailable(
            f"{about}: it is damaged; put back a copy of it. Each session's file says the same"
            ' "log" and "format" in its first line'
        )
    _check_version(said, about)
    kept = said.get("format")
    if not isinstance(kept, str) or kept not in FORMATS:
        raise StateError(f"{about}: the format {kept!r} is not known: upgrade turnlog")
    if format_ not in (None, kept):
        raise UsageError(
            f"{path}: this log is kept as {kept}, which was chosen when it was made; leave"
            f" `?format={format_}` away, or copy it to a new folder"
        )
    return Folder(path, disk, kept, str(said.get("log")))


def publish(disk: Disk, path: Path, content: bytes) -> None:
    """Make a file that is there with all its content, or not at all, whatever happens."""
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")
    file = disk.create(temporary)
    try:
        try:
            disk.write(file, content, 0)
            disk.sync(file)
        finally:
            disk.close(file)
        disk.link(temporary, path)
    finally:
        disk.unlink(temporary)
    disk.sync_folder(path.parent)


def _create(path: Path, format_: str, disk: Disk) -> None:
    sessions = path / "sessions"
    others = {item.name for item in path.iterdir() if not item.name.startswith(TEMPORARY)}
    if sessions.is_dir() and not any(sessions.iterdir()):
        others.discard(sessions.name)  # somebody has begun to make a log, or is at it
    if others and "log.json" not in others:
        raise LogUnavailable(
            f"{path}: it has no log.json and holds {min(others)!r}: name a new folder, or put"
            " back log.json if this was a log"
        )
    sessions.mkdir(mode=0o700, exist_ok=True)
    said = {"turnlog": "log", "version": VERSION, "format": format_, "log": secrets.token_hex(16)}
    try:
        publish(disk, path / "log.json", sealed_lines.seal_object(said))
    except FileExistsError:
        return  # somebody else was faster
    disk.sync_folder(path.parent)


def _check_version(said: dict[str, Any], where: Path) -> None:
    version = said.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise StateError(
            f"{where}: written by a newer turnlog (version {version}, this one knows {VERSION}):"
            " upgrade turnlog, then open it again"
        )


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_position(disk: Disk, file: int) -> int:
    found = disk.read(file, _POSITION.size, 0)
    if len(found) < _POSITION.size:
        return 0
    position, crc = _POSITION.unpack(found)
    return position if crc == crc32(found[:8]) else 0
