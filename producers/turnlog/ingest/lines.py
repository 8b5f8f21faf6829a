"""Lines of a foreign file: read in bounded memory, parsed, and made fit for events.

A file is read three times, in order: for its digest, for its outline, and for its events. Only the
outline is held in memory. A line that cannot be used is told with its number and never stops the
rest; what was put right in a line (half characters, numbers beyond 64 bits) is told, too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import orjson

from turnlog.core.shapes import is_list, is_object
from turnlog.core.text import well_formed

Json = Any

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is reported and left out: it would have to be held whole, several times over."""
MAX_DEPTH = 120
"""How deep a line may be nested: an event holds 200 levels, and adds some of its own."""
BLOCK_BYTES = 1024 * 1024

_DIGITS = bytes(48 if 48 <= code <= 57 else 32 for code in range(256))
_LONG_NUMBER = b"0" * 19
_NUMBER_OUTSIDE_TEXT = re.compile(rb"[:,\[][ \t]*-?[0-9]{19}")
_INT64 = range(-(2**63), 2**63)


class Broken(Exception):
    """A line that cannot be used; the text says why."""


class Parsed(NamedTuple):
    """A line's value, and what had to be put right in it."""

    value: Json
    notes: tuple[str, ...] = ()


class Raw(NamedTuple):
    """A line as it lies in the file. `body` is None where it is too long to be read."""

    number: int
    offset: int
    body: bytes | None


class LineFile:
    """A file of lines, as long as it was when it was opened. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO = path.open("rb", buffering=BLOCK_BYTES)
        self.size = self._file.seek(0, 2)
        self.end = self._whole_end()
        """Where the last whole line ends: behind it is a torn one, or nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def scan(self) -> Iterator[Raw]:
        """The whole lines that are not empty, in order; numbers count from 1. Other lines may be
        read meanwhile."""
        offset, number = 0, 0
        while offset < self.end:
            number += 1
            start = offset
            body = self.at(offset)
            if not body:  # the file was cut while it was read
                return
            offset += len(body)
            if not body.endswith(b"\n") and offset < self.end:
                offset += self._skip_line(offset)
                yield Raw(number, start, None)
            elif not body.isspace():
                yield Raw(number, start, body)

    def at(self, offset: int) -> bytes:
        """The line that starts at an offset, with its newline."""
        if self._file.tell() != offset:
            self._file.seek(offset)
        return self._file.readline(min(MAX_LINE_BYTES, self.end - offset))

    def count(self, end: int) -> int:
        """How many lines end before an offset."""
        self._file.seek(0)
        found = 0
        while end > 0 and (block := self._file.read(min(BLOCK_BYTES, end))):
            found += block.count(b"\n")
            end -= len(block)
        return found

    def digests(self, *ends: int) -> list[str]:
        """The SHA-256 of the file up to each of some rising offsets, in one pass."""
        hasher = sha256()
        self._file.seek(0)
        found: list[str] = []
        done = 0
        for end in ends:
            while done < end:
                block = self._file.read(min(BLOCK_BYTES, end - done))
                if not block:
                    break
                hasher.update(block)
                done += len(block)
            found.append(hasher.copy().hexdigest() if done == end else "")
        return found

    def _whole_end(self) -> int:
        """The end without a torn last line. A last line that only lacks its newline is whole."""
        start = self.size
        while start > 0:
            block = min(BLOCK_BYTES, start)
            self._file.seek(start - block)
            newline = self._file.read(block).rfind(b"\n")
            if newline >= 0:
                start = start - block + newline + 1
                break
            start -= block
        tail = self.size - start
        if not 0 < tail <= MAX_LINE_BYTES:
            return self.size if tail == 0 else start
        self._file.seek(start)
        try:
            parse(self._file.read(tail))
        except Broken:
            return start
        return self.size

    def _skip_line(self, offset: int) -> int:
        skipped = 0
        while offset + skipped < self.end:
            body = self._file.readline(min(BLOCK_BYTES, self.end - offset - skipped))
            skipped += len(body)
            if not body or body.endswith(b"\n"):
                break
        return skipped


def parse(body: bytes) -> Parsed:
    """The JSON value of a line. Raises Broken.

    The fast parser reads integers beyond 64 bits as floats without a word and refuses what some
    writers write (half characters, NaN, bare control characters), so those lines take a slow path.
    """
    if _LONG_NUMBER in body.translate(_DIGITS) and _NUMBER_OUTSIDE_TEXT.search(body):
        return _parse_slowly(body)
    try:
        value: Json = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _parse_slowly(body)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_depth(value)
    return Parsed(value)


def _parse_slowly(body: bytes) -> Parsed:
    notes: list[str] = []
    try:
        text = body.decode("utf-8-sig")  # some writers put a byte order mark first
    except UnicodeDecodeError:
        text = body.decode("utf-8-sig", errors="replace")
        notes.append("bytes that are no UTF-8 were replaced by U+FFFD")

    def whole(digits: str) -> int | str:
        if len(digits) <= 20 and int(digits) in _INT64:
            return int(digits)
        notes.append("an integer beyond 64 bits is kept as text")
        return digits

    def real(digits: str) -> float | str:
        value = float(digits)
        if math.isfinite(value):
            return value
        notes.append("a number beyond a float is kept as text")
        return digits

    def constant(name: str) -> str:
        notes.append(f"{name} is kept as text")
        return name

    try:
        value: Json = json.loads(
            text, parse_int=whole, parse_float=real, parse_constant=constant, strict=False
        )
        _check_depth(value)
        value, replaced = well_formed(value)
    except RecursionError:
        raise Broken(f"it is nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise Broken(_why(body, error)) from None
    if replaced:
        notes.append("half characters (lone surrogates) were replaced by U+FFFD")
    return Parsed(value, tuple(dict.fromkeys(notes)))


def _why(body: bytes, error: json.JSONDecodeError) -> str:
    if not body.strip(b"\0\r\n\t "):
        return "it holds only NUL bytes, as after a power failure"
    return f"it is no JSON ({error.msg} at character {error.pos + 1})"


def _check_depth(value: Json) -> None:
    """Without recursion, so that any depth can be told."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Json] = []
        for item in level:
            children: Iterable[Json] = ()
            if is_object(item):
                children = item.values()
            elif is_list(item):
                children = item
            below.extend(child for child in children if is_object(child) or is_list(child))
        if not below:
            return
        level = below
    raise Broken(f"it is nested deeper than {MAX_DEPTH} levels")
