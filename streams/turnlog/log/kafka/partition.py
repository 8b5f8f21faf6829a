"""Which partition a session is in: turnlog's own function, the same for every client and for ever.

It is sent with each record and checked on reading. Clients' own functions differ: of 1,000 keys on
12 partitions, two usual ones agree on 95 (case 24). The count is fixed when a topic is made: with
another one, nearly every session would move.
"""

from __future__ import annotations

from hashlib import sha256

FUNCTION = "sha256-64"
"""Its name, which a topic's `-meta` records. Another function would be another name."""
STRAY = "?stray-"
"""Before the number of a partition: under which session is filed what belongs to none there."""
_DIGITS_MAX = 9
"""Of that number. Others may write any key, and of too many digits Python makes no number."""


def partition_of(session: str, partitions: int) -> int:
    """The first 64 bits of the SHA-256 of the session's UTF-8, big-endian, modulo the count."""
    number = session.removeprefix(STRAY)
    is_number = number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX
    if number != session and is_number:
        return int(number) % partitions
    digest = sha256(session.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % partitions
