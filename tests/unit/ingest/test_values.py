"""Foreign values: whatever stands there, an event that is refused is never made of it."""

from typing import Any

import pytest

from turnlog.ingest.values import (
    call_part,
    count_at,
    id_at,
    list_at,
    marked,
    object_at,
    price,
    text_at,
    without,
)

ODD: list[Any] = [None, 5, True, "", [], {}, 1.5, ["x"], {"a": 1}]


def test_what_is_of_another_type_is_as_if_absent() -> None:
    for odd in ODD:
        data = {"x": odd}
        assert text_at(data, "x") == (odd if isinstance(odd, str) else None)
        assert object_at(data, "x") == (odd if isinstance(odd, dict) else {})
        assert list_at(data, "x") == (odd if isinstance(odd, list) else [])
        assert id_at(data, "x") is None


def test_an_id_that_is_too_long_is_replaced_by_a_digest() -> None:
    assert id_at({"x": "y" * 480}, "x") == "y" * 480
    long = id_at({"x": "y" * 481}, "x")
    assert long is not None
    assert long.startswith("long-")
    assert long == id_at({"x": "y" * 481}, "x") != id_at({"x": "z" * 481}, "x")


def test_counts() -> None:
    for value, wanted in ((5, 5), (0, 0), (7.0, 7), (-1, None), (2**41, None), (1.5, None)):
        assert count_at({"n": value}, "n") == wanted
    for odd in (True, "5", None):
        assert count_at({"n": odd}, "n") is None


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0.012497099999999999, "0.0124971"),
        (1e-7, "0.0000001"),
        (1e-20, "0"),
        (-0.0, "0"),
        (-1.5, "-1.5"),
        (3, "3"),
        (100, "100"),
        ("0.50", "0.5"),
        (1e15, None),
        ("x", None),
        ("NaN", None),
        (None, None),
        (True, None),
    ],
)
def test_prices_are_decimal_strings_without_noise(value: Any, wanted: str | None) -> None:
    assert price(value) == wanted


def test_a_call_without_id_or_name_is_opaque() -> None:
    assert call_part("c", "n", {}, {})[1] is not None
    for call_id, name in ((None, "n"), ("", "n"), ("c", None), (5, "n")):
        part, call = call_part(call_id, name, {"a": 1}, {"x": 2})
        assert (part["type"], part["value"]["args"], call) == ("opaque", {"a": 1}, None)


def test_what_else_a_block_holds_takes_no_name_of_ours() -> None:
    part, _ = call_part("c", "n", {}, {"text": 5, "digest": 7})
    assert part["extra"] == {"text": 5, "digest": 7}


def test_parts_with_replaced_characters_say_so() -> None:
    parts = [{"type": "opaque", "value": [{"a": "\ufffd"}]}, {"type": "text", "text": "x", "n": 1}]
    assert [part.get("normalised") for part in marked(parts)] == [True, None]


def test_nulls_say_nothing() -> None:
    assert without({"a": None, "b": 0, "c": 1}, frozenset("c")) == {"b": 0}
