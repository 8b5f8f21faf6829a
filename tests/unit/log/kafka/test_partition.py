from __future__ import annotations

from collections import Counter
from hashlib import sha256

import pytest

from turnlog.log.kafka.partition import STRAY, partition_of

VECTORS = [
    # by another tool: the first 16 digits of `printf %s SESSION | sha256sum`, and the remainder
    ("", 12, 0xE3B0C44298FC1C14 % 12),
    ("s", 12, 0x043A718774C572BD % 12),
    ("06381696-0074-49f8-863e-6ad4fac507f9", 12, 0x03703E2EE7707221 % 12),
    ("sitzung-ä✓", 7, 0x9F9AC25D946B71FE % 7),
    ("\U00010000", 1, 0),
]


@pytest.mark.parametrize(("session", "partitions", "partition"), VECTORS)
def test_fixed_vectors(session: str, partitions: int, partition: int) -> None:
    assert partition_of(session, partitions) == partition


def test_it_spreads_evenly() -> None:
    found = Counter(partition_of(f"session-{number}", 12) for number in range(12_000))
    assert set(found) == set(range(12))
    assert all(800 < count < 1_200 for count in found.values())


def test_another_count_moves_nearly_all() -> None:
    names = [f"session-{number}" for number in range(1_000)]
    moved = sum(partition_of(name, 12) != partition_of(name, 16) for name in names)
    assert moved > 600


def test_what_is_stray_belongs_where_it_was_found() -> None:
    assert [partition_of(f"{STRAY}{number}", 12) for number in range(12)] == list(range(12))
    assert partition_of(f"{STRAY}x", 1 << 64) == int.from_bytes(
        sha256(f"{STRAY}x".encode()).digest()[:8], "big"
    )
