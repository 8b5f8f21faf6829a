"""Archives as files: lines of `turnlog.core.archive`, plain or as zstd, read and written streaming.

A reader holds one line, never a file; a writer puts its file in place when it is whole.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from turnlog.core.archive import from_line
from turnlog.core.errors import SchemaError, UsageError
from turnlog.core.frames import Record, canonical, header_of
from turnlog.core.shapes import is_list, is_object

MAX_BODY = 8 * 1024 * 1024
"""Bytes of one frame's body. turnlog writes at most 900 KB; others may have written more."""
MAX_LINE = 2 * MAX_BODY
"""Bytes of one line: a body as base64, and its header."""
MAX_BLANK_LINES = 1_000
MAX_BLANK_BYTES = 1024 * 1024
"""So much white space between two lines is tolerated: packed, it would be next to endless."""
PLAIN_CHUNK = 256 * 1024
PACKED_CHUNK = 1024
"""Read so little of a packed file at once that a bomb of zeros unpacks to 32 MB at most."""
PACKED_WINDOW = 128 * 1024 * 1024
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_OTHERS = (
    (b"SQLite format 3\0", "it is a SQLite file; `turnlog copy sqlite:FILE URL` copies a log"),
    (b'{"crc":"', "it is a file of a log; `turnlog copy file:FOLDER URL` copies a log"),
    (b"\x1f\x8b", "it is packed with gzip; unpack it first"),
    (b"PK\x03\x04", "it is a zip file; unpack it first"),
)


class Line(NamedTuple):
    """A record and where it comes from, for messages."""

    where: str
    record: Record


# ---- reading ------------------------------------------------------------------------------


def read_archive(stream: BinaryIO, name: str) -> Iterator[Line]:
    """The records of an archive. Raises SchemaError, naming file and line, at what is broken."""
    blank_lines = blank_bytes = 0
    for number, line in enumerate(_lines(stream, name), start=1):
        where = f"{name}: line {number}"
        if line.strip():
            blank_lines = blank_bytes = 0
            yield Line(where, _record(line, where))
            continue
        blank_lines += 1
        blank_bytes += len(line)
        if blank_lines > MAX_BLANK_LINES or blank_bytes > MAX_BLANK_BYTES:
            raise SchemaError(f"{where}: nothing but white space for too long; this is no archive")


def _record(line: bytes, where: str) -> Record:
    try:
        record = from_line(line)
    except (SchemaError, TypeError, RecursionError) as error:
        raise SchemaError(f"{where}: {error}") from error
    if len(record.body) > MAX_BODY:
        raise SchemaError(
            f"{where}: its frame has {len(record.body):,} bytes, over {MAX_BODY:,}, the most that"
            " is restored"
        )
    return record


def _lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    parts: list[bytes] = []
    size, number = 0, 1
    for chunk in _chunks(stream, name):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join([*parts, end])
            parts, size, number = [], 0, number + 1
        parts.append(rest)
        size += len(rest)
        if size > MAX_LINE:
            raise SchemaError(f"{name}: line {number}: longer than {MAX_LINE:,} bytes")
    if size:
        yield b"".join(parts)


def _chunks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    first = stream.read(PACKED_CHUNK)
    if first.startswith(ZSTD_MAGIC):
        yield from _unpacked(stream, name, first)
        return
    for magic, advice in _OTHERS:
        if first.startswith(magic):
            raise SchemaError(f"{name}: no archive: {advice}")
    while first:
        yield first
        first = stream.read(PLAIN_CHUNK)


def _unpacked(stream: BinaryIO, name: str, chunk: bytes) -> Iterator[bytes]:
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=PACKED_WINDOW)
    frame = unpacker.decompressobj()
    try:
        while chunk:
            yield frame.decompress(chunk)
            if frame.eof:
                # several frames one after another are one file
                chunk = frame.unused_data or stream.read(PACKED_CHUNK)
                if chunk:
                    frame = unpacker.decompressobj()
            else:
                chunk = stream.read(PACKED_CHUNK)
    except zstandard.ZstdError as error:
        raise SchemaError(f"{name}: its zstd data is broken: {error}") from error
    if not frame.eof:
        raise SchemaError(f"{name}: its zstd data ends in the middle: the file was cut short")


# ---- writing ------------------------------------------------------------------------------


@contextmanager
def write_archive(path: Path, *, force: bool = False) -> Generator[Callable[[bytes], object]]:
    """Gives what lines are written with, packed where the name ends in .zst.

    A file is there when all lines are on disk, and nothing is left of it where anything raises; a
    link to one stays a link. A device or a pipe is written through, and never replaced. Raises
    UsageError for what is neither, and for a file that exists unless `force` is given.
    """
    target = _target(path, force=force)
    try:
        with _sink(target) as file:
            if path.suffix == ".zst":
                with _packer(file) as write:
                    yield write
            else:
                yield file.write
    except BrokenPipeError as error:
        raise OSError(f"{path}: whoever read it has stopped: the archive is not whole") from error
    except OSError as error:
        if error.filename in (None, str(target), str(_part(target))):
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise


def _target(path: Path, *, force: bool) -> Path:
    """The file that a path names, links followed."""
    try:
        target = path.resolve()
    except RuntimeError as error:  # links in a circle
        raise UsageError(f"{path}: a link that leads nowhere; give another name") from error
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        if error.errno == errno.ELOOP:  # as Python 3.13 tells it
            raise UsageError(f"{path}: a link that leads nowhere; give another name") from error
        raise
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path}: a folder; name a file in it")
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return path  # what /dev/stdout leads to has no name of its own
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path}: neither a file nor a pipe; give another name")
    if not force:
        raise UsageError(f"{path}: exists already; give another name, or --force")
    return target


@contextmanager
def _sink(target: Path) -> Generator[BinaryIO]:
    """What the bytes of an archive go into."""
    try:
        is_new = stat.S_ISREG(target.stat().st_mode)
    except FileNotFoundError:
        is_new = True
    if not is_new:
        with _through(target) as file:
            yield file
        return
    part = _part(target)
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _through(target: Path) -> BinaryIO:
    """A device or a pipe, opened; nothing is made where it is gone meanwhile."""
    return os.fdopen(os.open(target, os.O_WRONLY), "wb")


def _part(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.part")


@contextmanager
def _packer(file: BinaryIO) -> Generator[Callable[[bytes], object]]:
    import zstandard

    packer = zstandard.ZstdCompressor(level=3, write_checksum=True)
    with packer.stream_writer(file, closefd=False) as writer:
        yield writer.write


# ---- comparing ----------------------------------------------------------------------------


def identity(record: Record) -> bytes:
    """A digest that two records share iff they are the same in meaning.

    White space and the order of keys in a body that can be read are no difference; time and writer
    are one, and so is every byte of what cannot be read.
    """
    beside = canonical([record.session, record.header and list(record.header)])
    return sha256(beside + (_meaning(record) or record.body)).digest()


def _meaning(record: Record) -> bytes | None:
    """The canonical form of a body that says of itself what stands beside it, else None."""
    try:
        raw = orjson.loads(record.body)
        if not is_object(raw) or not is_list(raw.get("events")):
            return None
        return canonical(raw) if header_of(raw) == record.header else None
    except (ValueError, TypeError):  # no JSON, or JSON nested too deep to be written again
        return None
