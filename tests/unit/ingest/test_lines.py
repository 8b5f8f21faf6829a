"""Reading lines: where they are, what is put right in them, and what cannot be used."""

from pathlib import Path

import pytest

from turnlog.ingest import lines as module
from turnlog.ingest.lines import MAX_DEPTH, Broken, LineFile, parse


def opened(tmp_path: Path, body: bytes) -> LineFile:
    path = tmp_path / "f.jsonl"
    path.write_bytes(body)
    return LineFile(path)


def test_lines_have_numbers_and_offsets(tmp_path: Path) -> None:
    with opened(tmp_path, b'{"a":1}\n\n  \n{"b":2}\r\n') as file:
        assert [(raw.number, raw.offset) for raw in file.scan()] == [(1, 0), (4, 12)]
        assert file.at(12) == b'{"b":2}\r\n'
        assert file.at(0) == b'{"a":1}\n'


@pytest.mark.parametrize(
    ("body", "end"),
    [
        (b"", 0),
        (b"{}\n", 3),
        (b"{}\n{}", 5),
        (b'{}\n{"a', 3),
        (b'{"a', 0),
        (b"{}\n\0\0\0", 3),
        (b"{}\n\n", 4),
    ],
)
def test_a_torn_last_line_is_left_for_later(tmp_path: Path, body: bytes, end: int) -> None:
    with opened(tmp_path, body) as file:
        assert (file.end, file.size) == (end, len(body))


def test_the_end_is_found_behind_many_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 16)
    with opened(tmp_path, b"{}\n" + b'"' + b"x" * 100) as file:
        assert file.end == 3
        assert file.count(file.end) == 1
        assert file.digests(0, 3, 104)[0] == file.digests(0)[0]
        assert file.digests(999) == [""]  # it is not that long


def test_a_line_that_is_too_long_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 32)
    monkeypatch.setattr(module, "BLOCK_BYTES", 16)
    body = b"{}\n" + b'"' + b"x" * 200 + b'"\n{"b":2}\n'
    with opened(tmp_path, body) as file:
        assert [(raw.number, raw.body) for raw in file.scan()] == [
            (1, b"{}\n"),
            (2, None),
            (3, b'{"b":2}\n'),
        ]
    with opened(tmp_path, b"{}\n" + b"x" * 100) as file:
        assert file.end == 3


def test_a_file_that_is_cut_while_it_is_read_ends_there(tmp_path: Path) -> None:
    with opened(tmp_path, b"{}\n" * 500_000) as file:
        scan = file.scan()
        next(scan)
        (tmp_path / "f.jsonl").write_bytes(b"")
        assert sum(1 for _ in scan) < 499_999


def test_integers_beyond_64_bits_are_kept_as_text() -> None:
    """orjson reads them as floats, without a word."""
    for number in (2**63, -(2**63) - 1, 2**64, 10**30):
        value, notes = parse(b'{"n":%d}' % number)
        assert value == {"n": str(number)}
        assert notes == ("an integer beyond 64 bits is kept as text",)
    for number in (2**63 - 1, -(2**63), 10**18):
        assert parse(b'{"n":[%d]}' % number) == ({"n": [number]}, ())
    digits = b'{"text":"12345678901234567890123"}'
    assert parse(digits).notes == ()
    assert parse(b"[" + b"9" * 100_000 + b"]").value == ["9" * 100_000]


def test_numbers_that_json_has_not_are_kept_as_text() -> None:
    value, notes = parse(b'[NaN, Infinity, -Infinity, 1e999, 1.5, "x"]')
    assert value == ["NaN", "Infinity", "-Infinity", "1e999", 1.5, "x"]
    assert len(notes) == 4


def test_text_is_made_well_formed() -> None:
    assert parse(b'["a\\ud83d", {"\\udc00": 1}]') == (
        ["a\ufffd", {"\ufffd": 1}],
        ("half characters (lone surrogates) were replaced by U+FFFD",),
    )
    assert parse(b'["\\ud83d\\ude00"]') == (["\U0001f600"], ())
    assert parse(b'["\xff\xfe"]').notes == ("bytes that are no UTF-8 were replaced by U+FFFD",)
    assert parse(b'["a\\u0000b"]') == (["a\0b"], ())
    assert parse(b'["a\tb"]').value == ["a\tb"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "no JSON"),
        (b"\0\0\0\n", "NUL bytes"),
        (b"[" * 3_000 + b"]" * 3_000, "nested deeper"),
        (b"[" * 200_000 + b"]" * 200_000, "nested deeper"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested deeper"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "nested deeper"),
        (b"[" * 200 + b"NaN" + b"]" * 200, "nested deeper"),
    ],
)
def test_what_cannot_be_used_says_why(body: bytes, why: str) -> None:
    with pytest.raises(Broken, match=why):
        parse(body)


def test_deep_but_not_too_deep_is_fine() -> None:
    body = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert parse(body).notes == ()
    wide = b"[" + b",".join(b'{"a":[1]}' for _ in range(200)) + b"]"
    assert len(parse(wide).value) == 200


@pytest.mark.parametrize("rest", [b'{"a":1}', b'{"a":NaN}', b'{"a":"\xff"}'])
def test_a_byte_order_mark_is_skipped(rest: bytes) -> None:
    assert parse(b"\xef\xbb\xbf" + rest) == parse(rest)
