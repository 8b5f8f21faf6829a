"""A session's file, cut and changed at every byte: what is whole is found, the rest is judged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from tests.contract.adapter import beginning, large, owned, talking
from tests.contract.contract import ODD_BODIES
from tests.story import user
from tests.unit.log.disks import InMemory
from turnlog.core.frames import Header, Record
from turnlog.log.file import frames
from turnlog.log.file.frames import SECTOR, Format, Found, Torn, Window, scan
from turnlog.log.file.jsonl import Jsonl
from turnlog.log.file.zstd import Zstd
from turnlog.tables.store import Stored

FORMATS = pytest.mark.parametrize("format_", [Zstd(), Jsonl()], ids=lambda it: it.name)


def records() -> list[Record]:
    header = Header("s", "c1", 1, 1, "w")
    return [
        *(frame.record for frame in beginning("s")),
        Record("s", None, b"no frame"),
        Record("s", header, b'{"a":\n1}'),
        Record("s", Header("other", "c1", 1, 2, None), b"{}"),
        owned("s", 3, user("u2", "a1", '{"crc":"00000000","seq":1} and \N{SNOWMAN}')).record,
    ]


def write(format_: Format, some: Sequence[Record]) -> tuple[bytes, list[int]]:
    """A file without a header, and where each frame ends."""
    content, ends = b"", [0]
    for number, record in enumerate(some, 1):
        content += format_.encode(Stored(number * 10, 1_000 + number, record), number)
        ends.append(len(content))
    return content, ends


def read(format_: Format, content: bytes, **options: int) -> list[Found | Torn]:
    window = Window(InMemory(content), 0, len(content))
    return list(scan(window, format_, "s", **options))


def whole(found: list[Found | Torn]) -> list[Stored]:
    return [
        Stored(item.position or 0, item.time, item.record)
        for item in found
        if isinstance(item, Found) and item.whole
    ]


def expected(some: Sequence[Record]) -> list[Stored]:
    return [Stored(number * 10, 1_000 + number, record) for number, record in enumerate(some, 1)]


@FORMATS
def test_what_is_written_is_found(format_: Format) -> None:
    header = Header("s", "c", 2**62, -1, "\0")
    some = [
        *records(),
        *(Record("s", None, body) for body in ODD_BODIES),
        *(Record("s", header, body) for body in ODD_BODIES),
        large("s", 9, 800_000).record,
    ]
    content, ends = write(format_, some)
    found = read(format_, content)
    assert whole(found) == expected(some)
    assert [item.end for item in found if isinstance(item, Found)] == ends[1:]
    assert whole(read(format_, content, start=ends[4], seq=4)) == expected(some)[4:]


@FORMATS
def test_many_threads_read_and_write_at_once(format_: Format) -> None:
    """As those who append, verify and rebuild one log do."""
    some = [*records(), *(large("s", seq, 200_000).record for seq in range(4, 8))]
    content, _ = write(format_, some)

    def use(_: int) -> bool:
        found = whole(read(format_, content))
        return write(format_, some)[0] == content and found == expected(some)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(200)))


@FORMATS
def test_a_cut_at_any_byte_leaves_the_frames_before_it(format_: Format) -> None:
    some = records()
    content, ends = write(format_, some)
    for size in range(len(content)):
        found = read(format_, content[:size])
        there = sum(end <= size for end in ends[1:])
        assert whole(found) == expected(some[:there]), size
        torn = [item for item in found if isinstance(item, Torn)]
        assert torn == ([] if size in ends else [Torn(ends[there])]), size


@FORMATS
@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF])
def test_a_changed_byte_costs_one_frame_and_is_never_cut_off(format_: Format, bits: int) -> None:
    some = records()
    content, ends = write(format_, some)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= bits
        found = read(format_, bytes(changed))
        hit = sum(end <= place for end in ends[1:])
        assert whole(found) == expected(some)[:hit] + expected(some)[hit + 1 :], place
        assert not [item for item in found if isinstance(item, Torn)], place
        assert len(found) == len(some), place
        broken = found[hit]
        assert isinstance(broken, Found)
        assert (broken.whole, broken.seq) == (False, hit + 1)
        assert broken.position in (None, (hit + 1) * 10)
        assert broken.record.header in (None, some[hit].header)


def test_a_broken_body_leaves_the_header_known() -> None:
    some = records()
    content, ends = write(Zstd(), some)
    changed = bytearray(content)
    changed[ends[3] - 1] ^= 1
    broken = read(Zstd(), bytes(changed))[2]
    assert isinstance(broken, Found)
    assert (broken.position, broken.record.header) == (30, some[2].header)


@FORMATS
def test_sectors_that_were_never_written_are_torn(format_: Format) -> None:
    dice = random.Random(1)
    some = [
        Record("s", None, dice.randbytes(size)) for size in (700, 3_000, 2_000)
    ]  # which cannot be compressed
    content, ends = write(format_, some)
    for _ in range(300):
        torn = bytearray(content)
        zeroed = 0
        for start in range((ends[2] // SECTOR + 1) * SECTOR, len(content) - 4, SECTOR):
            if dice.random() < 0.4:
                torn[start : start + SECTOR] = bytes(len(torn[start : start + SECTOR]))
                zeroed += 1
        found = read(format_, bytes(torn))
        assert whole(found) == expected(some)[: 2 if zeroed else 3]
        assert [item for item in found if isinstance(item, Torn)] == (
            [Torn(ends[2])] if zeroed else []
        )


@FORMATS
def test_what_was_synced_is_never_torn_but_for_the_last(format_: Format) -> None:
    """A disk may lose a sector of what was there once: what stands behind it stays."""
    some = [Record("s", None, random.Random(n).randbytes(2_000)) for n in range(3)]
    content, ends = write(format_, some)
    lost = bytearray(content)
    start = (ends[1] // SECTOR + 2) * SECTOR
    lost[start : start + SECTOR] = bytes(SECTOR)
    found = read(format_, bytes(lost))
    assert whole(found) == [expected(some)[0], expected(some)[2]]
    assert len(found) == 3
    found = read(format_, bytes(lost), start=ends[1], seq=1, known=ends[1])
    assert found == [Torn(ends[1])], "behind what was synced, all of it was never acknowledged"


@FORMATS
def test_only_the_next_number_counts(format_: Format) -> None:
    some = [frame.record for frame in talking("s", 4)]
    content, ends = write(format_, some)
    parts = [content[start:end] for start, end in pairwise(ends)]
    twice = read(format_, b"".join([*parts[:3], parts[1], *parts[3:]]))
    assert whole(twice) == expected(some)
    without = read(format_, b"".join(parts[:2] + parts[3:]))
    assert whole(without) == expected(some)[:2] + expected(some)[3:]
    missing = without[2]
    assert isinstance(missing, Found)
    assert (missing.whole, missing.position, missing.record.body) == (False, None, b"")


@FORMATS
def test_bytes_that_are_no_frame_cost_none(format_: Format) -> None:
    some = [frame.record for frame in talking("s", 3)]
    content, ends = write(format_, some)
    found = read(format_, content[: ends[2]] + b"something else\n" + content[ends[2] :])
    assert whole(found) == expected(some)
    assert len(found) == len(some)
    end = read(format_, content + b"x" * 60 + b"\n")
    assert whole(end) == expected(some)
    assert end[-1] == Found(
        *(len(content), len(content) + 61, 5, None, 0),
        Record("s", None, b"x" * 60 + b"\n"),
        whole=False,
    )


def test_a_line_counts_only_with_its_newline() -> None:
    some = records()
    content, ends = write(Jsonl(), some)
    assert read(Jsonl(), content[:-1])[-1] == Torn(ends[-2])
    changed = read(Jsonl(), content[:-1] + b" ")[-1]
    assert isinstance(changed, Found), "all of it was there once"
    assert not changed.whole


@FORMATS
def test_a_file_is_read_a_piece_at_a_time(format_: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_READ_BYTES", 11)
    some = records()
    content, _ = write(format_, some)
    assert whole(read(format_, content)) == expected(some)
    assert whole(read(format_, content[:40] + b"??" + content[40:])) == expected(some)[1:]
