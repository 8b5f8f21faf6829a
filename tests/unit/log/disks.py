"""Disks that lose power, and disks that fail: the system calls of a log in files, recorded or not.

`Recording` keeps every call. `Replay` makes the folder as a power failure behind some of them may
leave it: what was synced is there; any other write is there, absent, or there in part.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.log.file.disk import Disk
from turnlog.log.file.frames import SECTOR


class Call(NamedTuple):
    """A system call; `file` is a number that stays with a file under all its names."""

    name: str
    file: int = 0
    path: str = ""
    new: str = ""
    data: bytes = b""
    offset: int = 0


class Recording(Disk):
    """Does what it is told and writes it down; `note` puts a mark between the calls."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[Call] = []
        self._inodes: dict[int, int] = {}

    def note(self, text: str) -> None:
        self.calls.append(Call("note", path=text))

    def _file(self, file: int) -> int:
        inode = os.fstat(file).st_ino
        return self._inodes.setdefault(inode, len(self._inodes) + 1)

    def _path(self, path: Path) -> str:
        return os.path.relpath(path, self.root)

    def create(self, path: Path) -> int:
        file = super().create(path)
        self._inodes.pop(os.fstat(file).st_ino, None)  # the number of one that is gone
        self._inodes[os.fstat(file).st_ino] = 1_000 + len(self.calls)
        self.calls.append(Call("create", self._file(file), self._path(path)))
        return file

    def write(self, file: int, data: bytes, offset: int) -> None:
        super().write(file, data, offset)
        self.calls.append(Call("write", self._file(file), data=bytes(data), offset=offset))

    def truncate(self, file: int, size: int) -> None:
        super().truncate(file, size)
        self.calls.append(Call("truncate", self._file(file), offset=size))

    def sync(self, file: int) -> None:
        super().sync(file)
        self.calls.append(Call("sync", self._file(file)))

    def link(self, old: Path, new: Path) -> None:
        super().link(old, new)
        self.calls.append(Call("link", path=self._path(old), new=self._path(new)))

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self.calls.append(Call("unlink", path=self._path(path)))

    def sync_folder(self, path: Path) -> None:
        super().sync_folder(path)
        self.calls.append(Call("sync_folder", path=self._path(path)))


class Replay:
    """A disk that has seen some calls."""

    def __init__(self, calls: list[Call]) -> None:
        self.synced: dict[int, bytes] = {}
        self.pending: dict[int, list[Call]] = {}
        self.names: dict[str, int] = {}
        self.changes: list[Call] = []
        for call in calls:
            getattr(self, f"_{call.name}")(call)

    def _note(self, call: Call) -> None: ...

    def _create(self, call: Call) -> None:
        self.synced[call.file] = b""
        self.changes.append(call)

    def _write(self, call: Call) -> None:
        self.pending.setdefault(call.file, []).append(call)

    _truncate = _write

    def _sync(self, call: Call) -> None:
        self.synced[call.file] = self._content(call.file)
        self.pending.pop(call.file, None)

    def _link(self, call: Call) -> None:
        self.changes.append(call)

    _unlink = _link

    def _sync_folder(self, call: Call) -> None:
        rest: list[Call] = []
        for change in self.changes:
            name = change.new or change.path
            if str(Path(name).parent) == call.path:
                _rename(self.names, change)
            else:
                rest.append(change)
        self.changes = rest

    def _content(self, file: int) -> bytes:
        content = self.synced.get(file, b"")
        for call in self.pending.get(file, []):
            content = _apply(content, call)
        return content

    def write_to(self, folder: Path, how: str, dice: random.Random) -> None:
        """Make the folder; `how` is what became of what was not synced."""
        names = dict(self.names)
        changes = {"present": len(self.changes), "absent": 0}
        for change in self.changes[: changes.get(how, dice.randint(0, len(self.changes)))]:
            _rename(names, change)
        (folder / "sessions").mkdir(parents=True)
        for name, file in names.items():
            if how == "present":
                content = self._content(file)
            else:
                content = self.synced.get(file, b"")
                for call in self.pending.get(file, []) if how == "partly" else ():
                    content = _apply_partly(content, call, dice)
            (folder / name).write_bytes(content)


def _rename(names: dict[str, int], change: Call) -> None:
    if change.name == "create":
        names[change.path] = change.file
    elif change.name == "unlink":
        names.pop(change.path, None)
    elif change.path in names:
        names[change.new] = names[change.path]


def _apply(content: bytes, call: Call) -> bytes:
    if call.name == "truncate":
        return content[: call.offset]
    padded = content.ljust(call.offset, b"\0")
    return padded[: call.offset] + call.data + padded[call.offset + len(call.data) :]


def _apply_partly(content: bytes, call: Call, dice: random.Random) -> bytes:
    kind = dice.choice(["absent", "whole", "cut", "sectors"])
    if kind == "absent":
        return content
    if call.name == "truncate" or kind == "whole":
        return _apply(content, call)
    if kind == "cut":
        data = call.data[: dice.randint(0, len(call.data))]
        return _apply(content, call._replace(data=data))
    full = bytearray(_apply(content, call))
    start = call.offset
    while start < len(full):
        stop = min(len(full), (start // SECTOR + 1) * SECTOR)
        if dice.random() < 0.5:
            full[start:stop] = bytes(stop - start)
        start = stop
    return bytes(full)


class Failing(Disk):
    """Fails at one of its calls, or from there on; a write that fails leaves half of its bytes."""

    def __init__(self, error: int, *, at: int = -1, lasting: bool = False) -> None:
        self.error = error
        self.at = at
        self.lasting = lasting
        self.count = 0
        self.failed: list[str] = []

    def heal(self) -> None:
        self.at = -1

    def _may_fail(self, name: str) -> None:
        self.count += 1
        now = self.count - 1
        if now == self.at or (self.lasting and 0 <= self.at <= now):
            self.failed.append(name)
            raise OSError(self.error, os.strerror(self.error))

    def create(self, path: Path) -> int:
        self._may_fail("create")
        return super().create(path)

    def write(self, file: int, data: bytes, offset: int) -> None:
        try:
            self._may_fail("write")
        except OSError:
            super().write(file, data[: len(data) // 2], offset)
            raise
        super().write(file, data, offset)

    def truncate(self, file: int, size: int) -> None:
        self._may_fail("truncate")
        super().truncate(file, size)

    def sync(self, file: int) -> None:
        self._may_fail("sync")
        super().sync(file)

    def link(self, old: Path, new: Path) -> None:
        self._may_fail("link")
        super().link(old, new)

    def unlink(self, path: Path) -> None:
        self._may_fail("unlink")
        super().unlink(path)

    def sync_folder(self, path: Path) -> None:
        self._may_fail("sync_folder")
        super().sync_folder(path)


class InMemory(Disk):
    """One file, which is some bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, file: int, size: int, offset: int) -> bytes:
        return self.content[offset : offset + size]


def outcomes_of(found: list[Any]) -> list[str]:
    """Positions and errors, by kind."""
    return ["there" if isinstance(item, int) else type(item).__name__ for item in found]
