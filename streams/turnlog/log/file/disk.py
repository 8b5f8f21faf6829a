"""The few system calls that the log in files makes, so that tests can record them or let them fail.

Everything here may raise OSError. A write has only happened for good once `sync` has returned; a
name, once `sync_folder` has.
"""

from __future__ import annotations

import os
from pathlib import Path


class Disk:
    """The disk itself."""

    def create(self, path: Path) -> int:
        """Make a new file, for its owner's eyes only, and open it."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self, file: int) -> None:
        os.close(file)

    def read(self, file: int, size: int, offset: int) -> bytes:
        """Up to so many bytes; fewer only where the file ends."""
        parts: list[bytes] = []
        while size > 0 and (part := os.pread(file, size, offset)):
            parts.append(part)
            size -= len(part)
            offset += len(part)
        return b"".join(parts)

    def write(self, file: int, data: bytes, offset: int) -> None:
        """All of some bytes."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(file, rest, offset)
            rest = rest[written:]
            offset += written

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name. Raises FileExistsError where there is one of that name."""
        os.link(old, new)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def sync_folder(self, path: Path) -> None:
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)
