"""Several records that are loaded together are in the log wholly or not at all, though they may lie
in many files: what is about to be written to each is published first, in one file of its own.

Whoever finds that file finishes the load, before anything else is appended. Where a load has failed
the files are cut back first, and it is taken away last: whoever dies in between has not been told
that anything was refused.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from turnlog.core.errors import LogUnavailable
from turnlog.log.file import sealed_lines
from turnlog.log.file.folder import VERSION, Folder, publish


class Part(NamedTuple):
    """Bytes that go to a file, at what is its end."""

    name: str
    start: int
    data: bytes


def announce(folder: Folder, parts: list[Part]) -> None:
    """Publish what a load writes; from here on it is in the log. The files are there."""
    data = b"".join(part.data for part in parts)
    said = {
        "turnlog": "load",
        "version": VERSION,
        "log": folder.id,
        "crc_data": crc32(data),
        "files": [[part.name, part.start, len(part.data)] for part in parts],
    }
    publish(folder.disk, folder.load, sealed_lines.seal_object(said) + data)


def withdraw(folder: Folder) -> None:
    """Take it away: everything is in the files, or nothing is. None may be there."""
    folder.disk.unlink(folder.load)
    folder.disk.sync_folder(folder.path)


def finish(folder: Folder) -> None:
    """Write what is not in its file yet, and take the load away. Raises LogUnavailable where it, or
    the file of a session, is damaged."""
    if not folder.load.exists():
        return
    line, _, data = folder.load.read_bytes().partition(b"\n")
    said = sealed_lines.unseal_object(line)
    if said is None or said.get("crc_data") != crc32(data):
        raise LogUnavailable(
            f"{folder.load}: it is damaged; it holds records that were being loaded: move it away,"
            " then load them again"
        )
    at = 0
    for name, start, size in said["files"]:
        _write(folder, Part(name, start, data[at : at + size]))
        at += size
    withdraw(folder)


def _write(folder: Folder, part: Part) -> None:
    disk = folder.disk
    file = disk.open(folder.sessions / part.name)
    try:
        there = disk.read(file, len(part.data), part.start)
        if there != part.data:  # else it is finished, and more may have been appended
            disk.truncate(file, part.start)
            disk.write(file, part.data, part.start)
        disk.sync(file)
    finally:
        disk.close(file)
