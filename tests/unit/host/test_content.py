"""What is given, as content parts that the log takes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from turnlog.core.blobs import resolve
from turnlog.core.errors import SchemaError
from turnlog.core.frames import MAX_FRAME_BYTES, MAX_PART_BYTES, Header, NewEvent, seal
from turnlog.host.content import MAX_CONTENT_BYTES, Content, answer_of, content_of, fitting


def sealed(content: Content) -> None:
    """It is taken by a log: the blob parts one by one, and the message as one event."""
    header = Header("s", "c", 1, 1, "h")
    for data in content.blobs:
        seal(header, [NewEvent("blob_part", "b", None, data)])
    data = {"parent": None, "role": "user", "content": content.parts}
    frame = seal(header, [NewEvent("message", "m", None, data)])
    assert len(frame.record.body) < MAX_FRAME_BYTES


def restored(content: Content) -> list[dict[str, Any]]:
    import base64

    def fetch(digest: str) -> bytes | None:
        slices = sorted(
            (data for data in content.blobs if data["digest"] == digest),
            key=lambda data: data["index"],
        )
        return b"".join(base64.b64decode(data["bytes"]) for data in slices) or None

    return [resolve(part, fetch) for part in content.parts]


@pytest.mark.parametrize(
    "size", [0, 1, MAX_PART_BYTES - 100, MAX_PART_BYTES - 64, MAX_PART_BYTES, MAX_PART_BYTES + 1]
)
@pytest.mark.parametrize("letter", ["x", "é", "☃", "\0", '"', "\\", "\ud83d"])
async def test_text_of_any_length_and_letters_fits(size: int, letter: str) -> None:
    text = letter * (size // len(letter.encode("utf-8", "surrogatepass")))
    content = content_of(text)
    sealed(content)
    (part,) = restored(content)
    assert part["text"] == text.replace("\ud83d", "\ufffd")
    assert part.get("normalised", False) == ("\ud83d" in text)


@pytest.mark.parametrize("sizes", [[200_000] * 4, [100_000] * 9, [2_000] * 400, [260_000, 10] * 3])
def test_parts_that_fit_one_by_one_fit_together_too(sizes: list[int]) -> None:
    parts = [{"type": "text", "text": f"{n}" + "x" * size} for n, size in enumerate(sizes)]
    content = fitting(parts)
    sealed(content)
    assert restored(content) == parts
    assert sum(len(orjson.dumps(part)) for part in content.parts) <= MAX_CONTENT_BYTES


def test_too_many_small_parts_are_refused() -> None:
    with pytest.raises(SchemaError, match="too many"):
        content_of([{"type": "text", "text": "x" * 100}] * 10_000)


def test_calls_keep_their_id_and_name_when_their_arguments_move() -> None:
    answer = answer_of(
        [{"type": "tool_call", "call_id": "c", "name": "t", "args": {"text": "x" * 300_000}}]
    )
    (part,) = answer.content.parts
    assert (part["call_id"], part["name"], part["args"]["type"]) == ("c", "t", "blob")
    assert answer.said[0]["args"] == {"text": "x" * 300_000}
    sealed(answer.content)
    assert restored(answer.content) == answer.said


def test_what_was_given_is_not_changed() -> None:
    parts = [
        {"type": "text", "text": "half \ud83d"},
        {"type": "tool_call", "name": "t"},
        {"type": "text", "text": "x" * 300_000},
    ]
    before = [dict(part) for part in parts]
    content_of(parts)
    answer_of({"content": parts})
    assert parts == before


@pytest.mark.parametrize(
    ("message", "stop"),
    [
        ("x", "stop"),
        ([{"type": "tool_call", "name": "t"}], "tool_use"),
        ({"content": "x", "stop_reason": "length"}, "length"),
        ({"content": [{"type": "tool_call", "name": "t"}], "stop_reason": "stop"}, "stop"),
        ({"content": "x", "stop_reason": ""}, "stop"),
    ],
)
def test_why_a_model_stopped_is_what_it_says_or_what_it_does(message: Any, stop: str) -> None:
    assert answer_of(message).stop_reason == stop


def test_what_branches_without_end_is_refused_at_once() -> None:
    """Twice itself at each level: whoever walks it does not come back."""
    endless: list[Any] = []
    endless.extend((endless, endless))
    part: dict[str, Any] = {"type": "x"}
    part["one"] = part["other"] = part
    with pytest.raises(SchemaError):
        content_of(endless)
    assert "left out" in content_of([part]).parts[0]["text"]


@pytest.mark.parametrize("levels", [10, 190, 191, 192, 200, 253, 254, 255, 1_000])
def test_depth_is_bounded_for_parts_and_json(levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = {"n": value}
    try:
        sealed(content_of(value))
    except SchemaError:
        assert levels > 200
    sealed(content_of([{"type": "x", "value": value}]))
