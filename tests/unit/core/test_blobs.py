"""Blobs: what goes out comes back, and what does not fit says so."""

import base64
from typing import Any

import pytest

from turnlog.core.blobs import (
    SLICE_BYTES,
    externalise,
    externalise_value,
    is_reference,
    resolve,
    resolve_value,
)
from turnlog.core.errors import SchemaError
from turnlog.core.frames import Header, NewEvent, digest_of, seal

Json = Any
IMAGE = base64.b64encode(bytes(range(256)) * 3_000).decode()
PARTS = [
    {"type": "text", "text": "wörter " * 100_000},
    {"type": "text", "text": "a" * SLICE_BYTES, "normalised": True},
    {"type": "reasoning", "text": "hm " * 100_000, "signature": "s"},
    {"type": "tool_call", "call_id": "c", "name": "write", "args": {"text": "x" * 400_000}},
    {"type": "tool_call", "call_id": "c", "name": "write", "args": "x" * 400_000},
    {"type": "image", "media_type": "image/png", "data": IMAGE},
    {"type": "image", "media_type": None, "data": IMAGE},
    {"type": "image", "data": "no base64 !" * 30_000},
    {"type": "image", "data": "QUJD\n" * 60_000},
    {"type": "image", "url": "x" * 300_000},
    {"type": "reasoning", "text": "short", "signature": "s" * 300_000},
    {"type": "opaque", "value": ["y" * 300_000]},
]


def bodies(slices: list[Json]) -> dict[str, bytes]:
    """The bytes of each blob, put together from its slices."""
    found: dict[str, bytes] = {}
    for piece in slices:
        found[piece["digest"]] = found.get(piece["digest"], b"") + base64.b64decode(piece["bytes"])
    return found


@pytest.mark.parametrize("part", PARTS, ids=range(len(PARTS)))
def test_a_part_comes_back_as_it_was(part: Json) -> None:
    slices, reference = externalise(part)
    assert [piece["index"] for piece in slices] == list(range(slices[0]["of"]))
    assert resolve(reference, bodies(slices).get) == part
    assert resolve(reference, lambda _: None) == reference


@pytest.mark.parametrize("part", PARTS, ids=range(len(PARTS)))
def test_slices_and_reference_fit_into_frames(part: Json) -> None:
    slices, reference = externalise(part)
    header = Header("s", "c", 1, 1, None)
    for number, piece in enumerate(slices):
        seal(header, [NewEvent("blob_part", str(number), None, piece)])
    data = {"parent": None, "role": "assistant", "content": [reference]}
    seal(header, [NewEvent("message", "m", None, data)])


def test_a_reference_says_what_it_stands_for() -> None:
    text = "ä" * 200_000
    _, reference = externalise({"type": "text", "text": text})
    assert reference == {
        "type": "blob",
        "digest": digest_of(text.encode()),
        "size": 400_000,
        "media_type": "text/plain; charset=utf-8",
        "preview": "ä" * 1_000,
        "part": {"type": "text"},
    }
    _, call = externalise({"type": "tool_call", "call_id": "c", "name": "n", "args": ["é" * 9_000]})
    assert (call["call_id"], call["name"], call["args"]["media_type"]) == (
        "c",
        "n",
        "application/json",
    )
    assert len(call["args"]["preview"]) == 1_000


def test_any_value_can_be_stored() -> None:
    for value in ({"a": [1, None]}, "text", [1.5], 7):
        slices, reference = externalise_value(value)
        assert is_reference(reference)
        assert resolve_value(reference, bodies(slices).get) == value


def test_what_is_too_large_keeps_its_beginning_and_its_digest() -> None:
    text = "z" * (16 * 1024 * 1024 + 1)
    slices, reference = externalise({"type": "text", "text": text})
    assert slices == []
    assert (reference["truncated"], reference["size"]) == (True, len(text))
    assert reference["digest"] == digest_of(text.encode())
    assert resolve(reference, lambda _: b"anything") == reference


def test_what_is_no_reference_is_given_back_as_it_is() -> None:
    for part in (
        {"type": "text", "text": "x"},
        {"type": "tool_call", "call_id": "c", "name": "n", "args": {"type": "blob"}},
        {"type": "blob", "digest": None},
    ):
        assert resolve(part, lambda _: b"") is part


def test_a_value_that_is_no_part_does_not_become_one() -> None:
    slices, reference = externalise_value(["no", "part"])
    assert resolve(reference, bodies(slices).get) == reference


def test_bytes_of_another_digest_are_refused() -> None:
    _, reference = externalise(PARTS[0])
    with pytest.raises(SchemaError, match="another digest"):
        resolve(reference, lambda _: b"forged")
