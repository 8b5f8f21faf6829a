"""How messages are measured."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.host.cuts import IMAGE_CHARACTERS, characters


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        ([], 0),
        ([{"type": "text", "text": "abcd"}], 1),
        ([{"type": "text", "text": "abcde"}], 2),
        ([{"type": "text", "text": "😀" * 4}], 1),
        ([{"type": "reasoning", "text": "ab"}, {"type": "text", "text": "cd"}], 1),
        ([{"type": "tool_call", "call_id": "c", "name": "read", "args": {"a": 1}}], 3),
        ([{"type": "tool_call", "call_id": "c", "name": "r"}], 2),
        ([{"type": "image", "data": "A" * 1_000_000}], IMAGE_CHARACTERS // 4),
        ([{"type": "blob", "digest": "d", "size": 9_000_000, "preview": "abcd"}], 1),
        ([{"type": "blob", "digest": "d"}], 0),
        ([{"type": "opaque", "x": 1}], 6),
        ([{"type": "text", "text": None}], 7),
        ({"sealed": "k", "ct": "é"}, 6),
    ],
)
def test_a_token_is_four_characters_of_what_the_context_shows(content: Any, tokens: int) -> None:
    assert characters({"role": "user", "content": content}) == tokens
