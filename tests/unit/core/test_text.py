"""Text is made well-formed once, where it enters (design, 2; case 13)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import event
from turnlog.core.frames import MAX_DEPTH, Header, decode, seal
from turnlog.core.text import parts_text, well_formed, well_formed_part

WIDE = "\U0001f600"
"""One character that UTF-16 writes as two halves."""
HIGH, LOW = "\ud83d", "\ude00"


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        (f"ok {HIGH}", "ok \ufffd"),
        (f"{LOW} ok", "\ufffd ok"),
        (f"a{HIGH}b{LOW}c", "a\ufffdb\ufffdc"),
        (f"{LOW}{HIGH}", "\ufffd\ufffd"),
        (f"{HIGH}{HIGH}", "\ufffd\ufffd"),
        (HIGH + LOW, WIDE),
        (f"\ufeff{HIGH}", "\ufeff\ufffd"),
        (f"{WIDE}\x00{HIGH}ü", f"{WIDE}\x00\ufffdü"),
        ("file \udcb2", "file \ufffd"),
    ],
)
def test_half_a_character_becomes_a_replacement_character(value: str, clean: str) -> None:
    assert well_formed(value) == (clean, True)


@pytest.mark.parametrize("value", ["", "plain", "grüße", WIDE, "W\x00s\x00", "\ufffd", "\ufeff"])
def test_well_formed_text_is_returned_as_it_is(value: str) -> None:
    found, changed = well_formed(value)
    assert found is value
    assert not changed


@pytest.mark.parametrize("value", [None, True, 7, 0.5, [], {}, [1, ["a"]], {"k": {"l": [WIDE]}}])
def test_any_value_without_halves_is_returned_as_it_is(value: Any) -> None:
    found, changed = well_formed(value)
    assert found is value
    assert not changed


def test_lists_objects_and_keys_are_made_well_formed() -> None:
    value = {"a": [1, f"x{HIGH}", {f"k{LOW}": None}], "b": ["fine"]}
    before = repr(value)
    found, changed = well_formed(value)
    assert changed
    assert found == {"a": [1, "x\ufffd", {"k\ufffd": None}], "b": ["fine"]}
    assert found["b"] is value["b"]
    assert repr(value) == before, "the argument is left alone"


def test_a_part_says_that_it_was_normalised() -> None:
    part = {"type": "text", "text": HIGH}
    assert well_formed_part(part) == {"type": "text", "text": "\ufffd", "normalised": True}
    assert part == {"type": "text", "text": HIGH}
    fine = {"type": "text", "text": WIDE}
    assert well_formed_part(fine) is fine


def test_a_text_cut_at_any_code_unit_can_be_written_and_read() -> None:
    units = (WIDE * 20).encode("utf-16-le")
    for cut in range(0, len(units) + 1, 2):
        half = units[:cut].decode("utf-16-le", "surrogatepass")
        part = well_formed_part({"type": "text", "text": half})
        assert part.get("normalised", False) is (cut % 4 != 0)
        assert part["text"] == WIDE * (cut // 4) + "\ufffd" * (cut % 4 // 2)
        new = event("message", "m", parent=None, role="user", content=[part])
        sealed = seal(Header("s", "c", 1, 1, None), [new])
        assert decode(sealed.record) == sealed.frame


def nested(levels: int) -> Any:
    value: Any = HIGH
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def test_text_is_made_well_formed_as_deep_as_a_frame_may_hold_it() -> None:
    found, changed = well_formed(nested(MAX_DEPTH + 1))
    assert changed
    for _ in range(MAX_DEPTH + 1):
        found = found[0] if isinstance(found, list) else found["k"]
    assert found == "\ufffd"
    deeper = nested(MAX_DEPTH + 2)
    assert well_formed(deeper) == (deeper, False)


@pytest.mark.parametrize("levels", [500, 5_000])
def test_no_input_makes_it_recurse_without_bound(levels: int) -> None:
    """What is nested deeper than a frame may hold is left, and refused when it is sealed."""
    value: Any = HIGH
    for _ in range(levels):
        value = [value]
    found, _ = well_formed({"deep": value, HIGH: HIGH})
    assert found["\ufffd"] == "\ufffd"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], ""),
        ([{"type": "text", "text": "a"}], "a"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b\n"}], "a\nb\n"),
        ([{"type": "reasoning", "text": "no"}, {"type": "text", "text": "yes"}], "yes"),
        ([{"type": "text", "text": None}, {"type": "text"}], "\n"),
        ([{"type": "image"}], ""),
        ({"sealed": "k"}, ""),
        (None, ""),
    ],
)
def test_the_text_of_a_content_is_its_text_parts_by_line(content: Any, expected: str) -> None:
    assert parts_text(content) == expected
