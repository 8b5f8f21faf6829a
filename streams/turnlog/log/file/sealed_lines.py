"""Lines of JSON that carry their own checksum: the headers of files, and the frames in JSONL.

`{"crc":"c4a11f2e",...}` and a newline; the checksum is the CRC-32 of what stands between its comma
and the newline.
"""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

import orjson

from turnlog.core.shapes import is_object

START = b'{"crc":"'
"""What every line begins with."""
_LINE = re.compile(rb'\{"crc":"([0-9a-f]{8})",(.*)', re.DOTALL)


def seal(rest: bytes) -> bytes:
    """A line; `rest` is the text of an object without its opening brace."""
    return b'%b%08x",%b\n' % (START, crc32(rest), rest)


def seal_object(values: dict[str, Any]) -> bytes:
    """A line that says some values."""
    return seal(orjson.dumps(values)[1:])


def unseal(line: bytes) -> bytes | None:
    """What stands behind the checksum of a line without its newline; None where that is wrong."""
    found = _LINE.fullmatch(line)
    if found is None or crc32(found[2]) != int(found[1], 16):
        return None
    return found[2]


def unseal_object(line: bytes) -> dict[str, Any] | None:
    """The values of a line without its newline, or None."""
    rest = unseal(line)
    if rest is None:
        return None
    try:
        values = orjson.loads(b"{" + rest)
    except orjson.JSONDecodeError:
        return None
    return values if is_object(values) else None
