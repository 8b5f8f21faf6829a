"""The compact format: each frame is a skippable zstd frame with what is known of it, then a zstd
frame with its body. So `tail -n +2 FILE | zstd -dc` gives the bodies.

Three checksums: of the numbers at the start, of the header's JSON, of the compressed body; zstd
adds one of the body itself. So a frame whose body is broken is still known.
"""

from __future__ import annotations

import struct
import threading
from typing import Any
from zlib import crc32

import orjson
import zstandard

from turnlog.core.frames import Header, Record
from turnlog.core.shapes import is_object
from turnlog.log.file.frames import Found, Window
from turnlog.tables.store import Stored

_MAGIC = 0x184D2A54
"""A skippable zstd frame, the fifth of sixteen kinds; its bytes begin with `T*M`."""
_START = struct.Struct("<IIQQqIII")
"""Magic, size of the skippable frame's content, position, seq, time, size of the zstd frame behind
it, CRC-32 of the header's JSON, CRC-32 of that zstd frame."""
_CRC = struct.Struct("<I")
"""The CRC-32 of all that."""
_FIXED = _START.size + _CRC.size
_SKIPPABLE = 8
LEVEL = 3


class _OfThread(threading.local):
    """zstd for one thread: two that use the same objects at once crash the process."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


class Zstd:
    """See the module's text."""

    name = "zstd"
    suffix = ".frames"
    marker = struct.pack("<I", _MAGIC)

    def __init__(self) -> None:
        self._zstd = _OfThread()

    def encode(self, stored: Stored, seq: int) -> bytes:
        header = orjson.dumps(_header_values(stored.record))
        body = self._zstd.compress(stored.record.body)
        size = _FIXED - _SKIPPABLE + len(header)
        start = _START.pack(
            *(_MAGIC, size, stored.position, seq, stored.time),
            *(len(body), crc32(header), crc32(body)),
        )
        return b"".join((start, _CRC.pack(crc32(start)), header, body))

    def parse(self, window: Window, start: int, session: str) -> Found | None:
        numbers = _numbers(window, start)
        if numbers is None:
            return None
        header_at = start + _FIXED
        body_at = start + _SKIPPABLE + numbers.size
        end = body_at + numbers.body_size
        if end > window.size:
            return None
        header_text = window.get(header_at, body_at - header_at)
        packed = window.get(body_at, numbers.body_size)
        body = self._unpack(packed) if crc32(packed) == numbers.body_crc else None
        is_known = crc32(header_text) == numbers.header_crc
        header = _read_header(header_text, session) if is_known else None
        record = Record(session, header, packed if body is None else body)
        whole = is_known and body is not None
        return Found(start, end, numbers.seq, numbers.position, numbers.time, record, whole)

    def is_short(self, window: Window, start: int) -> bool:
        if window.size - start < _FIXED:
            return True
        numbers = _numbers(window, start)
        return numbers is not None  # then the file ends before what they say

    def _unpack(self, packed: bytes) -> bytes | None:
        try:
            return self._zstd.decompress(packed)
        except (zstandard.ZstdError, MemoryError):
            return None


class _Numbers:
    """What stands at the start of a frame."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        _, self.size, self.position, self.seq, self.time = values[:5]
        self.body_size, self.header_crc, self.body_crc = values[5:]


def _numbers(window: Window, start: int) -> _Numbers | None:
    fixed = window.get(start, _FIXED)
    if len(fixed) < _FIXED or _CRC.unpack_from(fixed, _START.size)[0] != crc32(fixed[:-4]):
        return None
    numbers = _Numbers(_START.unpack_from(fixed))
    return numbers if fixed[:4] == Zstd.marker and numbers.size >= _FIXED - _SKIPPABLE else None


def _header_values(record: Record) -> dict[str, Any] | None:
    """The header beside a body; its session only where that is another than the file's."""
    header = record.header
    if header is None:
        return None
    values = header._asdict()
    if header.session == record.session:
        del values["session"]
    return values


def _read_header(text: bytes, session: str) -> Header | None:
    values = orjson.loads(text)
    if not is_object(values):
        return None
    named = values.get("session", session)
    return Header(named, values["claim"], values["epoch"], values["seq"], values["writer"])
