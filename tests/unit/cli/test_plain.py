"""Text of sessions cannot act on a terminal, and numbers read well."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.cli.plain import brief, counted, cut, lines, money, one_line, size, tokens, when


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    for made, allowed in ((one_line(text), ""), (lines(text), "\n")):
        left = {char for char in made if unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs")}
        assert left <= set(allowed)
    assert not set(one_line(text)) & set("\u202e\u2066\u200b\ufeff")


def test_control_characters_are_made_visible() -> None:
    assert one_line("\x1b[31mred\x07\x7f\x9b2J") == "␛[31mred␇␡\\u{9b}2J"
    assert one_line("a\u202eb") == "a\\u{202e}b"
    assert one_line(" a\r\nb\tc\rd\x00 ") == "a⏎b c␍d␀"
    assert lines("a\r\nb\tc\x1b") == "a\nb    c␛"


def test_joined_emoji_stay_whole() -> None:
    assert one_line("👩\u200d💻") == "👩\u200d💻"


@given(st.text(), st.integers(1, 50))
def test_a_brief_is_bounded_in_code_points(text: str, length: int) -> None:
    assert len(brief(text, length)) <= length


def test_what_is_cut_ends_with_dots() -> None:
    assert (cut("abcd", 4), cut("abcde", 4), cut("ab", 0)) == ("abcd", "abc…", "…")
    assert brief("x" * 10**6, 5) == "xxxx…"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (counted(1, "entry", "entries"), "1 entry"),
        (counted(1204, "entry", "entries"), "1,204 entries"),
        (counted(0, "session"), "0 sessions"),
        (size(999), "999 B"),
        (size(1_500), "1.5 kB"),
        (size(2_500_000), "2.5 MB"),
        (size(3_000_000_000), "3.0 GB"),
        (tokens(950), "950"),
        (tokens(12_430), "12.4k"),
        (tokens(3_100_000), "3.1M"),
        (money("0"), "$0.00"),
        (money("0.0123"), "$0.0123"),
        (money("1234.567"), "$1,234.57"),
        (money("-2.5"), "$-2.50"),
        (when(None), "–"),
        (when("2026-01-02T03:04:05.678Z"), "2026-01-02 03:04"),
        (when("not a time"), "not a time"),
    ],
)
def test_numbers_read_well(made: str, text: str) -> None:
    assert made == text
