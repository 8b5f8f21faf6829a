"""Packing: what stays together, what moves out, and when a frame is full."""

from collections.abc import Iterator
from typing import Any

import pytest

from turnlog.core.frames import MAX_FRAME_BYTES, Header, NewEvent, seal
from turnlog.ingest import packing
from turnlog.ingest.packing import Packer, fit
from turnlog.ingest.secrets import Masker

Json = Any


def message(content: Json, **more: Json) -> NewEvent:
    return NewEvent(
        "message", "m", None, {"parent": None, "role": "user", "content": content, **more}
    )


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def fitted(event: NewEvent, masker: Masker | None = None) -> tuple[Json, list[str]]:
    """The event's data after fitting, and the warnings; frames are checked on the way."""
    warnings: list[str] = []
    unit = fit([event], masker, warnings.append)
    header = Header("s", "c", 1, 1, None)
    for blob, _ in unit.blobs:
        seal(header, [blob])
    assert len(seal(header, unit.events).record.body) < MAX_FRAME_BYTES
    assert unit.bytes <= packing.EVENT_BYTES + 1_000
    return unit.events[0].data, warnings


def test_a_small_event_is_left_as_it_is() -> None:
    event = message([text("x")])
    assert fitted(event)[0] is event.data


def test_large_parts_and_fields_move_out() -> None:
    data, warnings = fitted(
        message([text("a" * 300_000), text("b")], details={"x": "c" * 300_000}, source={"y": 1})
    )
    assert [part["type"] for part in data["content"]] == ["blob", "text"]
    assert (data["details"]["type"], data["source"], warnings) == ("blob", {"y": 1}, [])


def test_many_parts_that_are_large_together_move_out_by_size() -> None:
    data, _ = fitted(message([text(str(n) * 100_000) for n in range(10)], details="d" * 200_000))
    kinds = [part["type"] for part in data["content"]]
    assert kinds.count("blob") >= 3
    assert data["details"]["type"] == "blob"


def test_very_many_parts_become_one_blob_beside_the_calls() -> None:
    call = {"type": "tool_call", "call_id": "c", "name": "n", "args": {}}
    data, _ = fitted(message([call, *(text("x" * 100) for _ in range(20_000))]))
    assert [part["type"] for part in data["content"]] == ["blob", "tool_call"]


def test_a_call_keeps_its_name_when_its_arguments_move_out() -> None:
    call = {"type": "tool_call", "call_id": "c", "name": "n", "args": {"t": "x" * 300_000}}
    other = {"type": "tool_call", "call_id": "d", "name": "n", "args": {"t": "y" * 250_000}}
    data, _ = fitted(message([call, other, other, other]))
    assert [part["args"]["type"] for part in data["content"] if "type" in part["args"]] == [
        "blob",
        "blob",
    ]


def test_what_no_blob_can_hold_is_told() -> None:
    data, warnings = fitted(
        message([{"type": "tool_call", "call_id": "c", "name": "n", "args": "x" * 17_000_000}])
    )
    assert data["content"][0]["args"]["truncated"] is True
    assert "17,000,000 bytes" in warnings[0]


def test_secrets_are_masked_before_anything_moves_out() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    data, _ = fitted(message([text(f"{key} " + "x" * 300_000)]), Masker())
    assert data["content"][0]["preview"].startswith("[masked:aws_access_key] x")


def events(count: int, size: int = 10) -> Iterator[NewEvent]:
    for number in range(count):
        yield NewEvent("custom", str(number), None, {"parent": None, "value": "x" * size})


def frames(units: list[list[NewEvent]]) -> list[list[str]]:
    """The ids in each frame; the cursor's is the number of units before the one that waits."""
    done = 0
    packer = Packer(lambda: NewEvent("fact", f"<{done}>", None, {}))
    found: list[list[NewEvent]] = []
    for unit in units:
        found.extend(packer.add(fit(unit, None, lambda _: None)))
        done += 1
    found.append(packer.flush())
    return [[event.id for event in frame] for frame in found]


def test_a_unit_is_never_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "FRAME_EVENTS", 4)
    units = [list(events(3)), list(events(3)), list(events(1))]
    assert frames(units) == [["0", "1", "2", "<1>"], ["0", "1", "2", "0", "<3>"]]


def test_a_unit_larger_than_a_frame_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "FRAME_EVENTS", 2)
    assert frames([list(events(3)), list(events(1))]) == [["0", "1", "2", "<1>"], ["0", "<2>"]]


def test_frames_are_filled_by_size() -> None:
    assert [len(frame) for frame in frames([list(events(1, 150_000))] * 7)] == [4, 4, 2]


def test_slices_go_before_the_event_that_names_them() -> None:
    unit = [message([text("x" * 900_000)])]
    assert frames([list(events(1)), unit]) == [
        ["0", "m.blob-0", "<1>"],
        ["m.blob-1", "<1>"],
        ["m.blob-2", "m", "<2>"],
    ]
