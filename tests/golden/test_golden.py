"""A log of version 1 stays readable for ever: golden logs, and what their tables said for good.

When one of these tests fails, a log that somebody has reads differently: mend the code. The files
are never made anew (`tests.golden.make` tells how they were made, once).
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.golden import make
from tests.golden.reading import FOLDER, observe, read
from turnlog.core.archive import from_line, to_line
from turnlog.core.events import TYPES
from turnlog.core.frames import Frame, decode

LOGS = sorted(FOLDER.glob("*.ndjson"))
SHA_256 = {
    "crash_after_t1": "d8cccef019ae94664955df2a5b0806d55af334398caa97a507a10b345a3d3dec",
    "crash_before_finish": "e87e744578c9ed2f0da4b66a731f42167650295227ff3fd2f922b30470ba7d27",
    "crash_before_t1": "e504c5ce00615c64a654b3da73f3adab7fc52a6c426c3a49ffa81e97b52eb345",
    "crash_while_streaming": "8040d198e94aaa6d53c8394e23ac195f9bea478a6fc10ae085228b73179344a3",
    "every_event": "d6a4d03cf942b4b32bfcf018526f2e1c931287d82700e39f783ccab99ae991ba",
    "fork": "722eb344de00cf56146ab6011c8b78d27c5db70829b3f9db799a43bbdedc17c4",
    "rewind": "15087e86e53cef8c7b707c5528f8add3e24cb1219593cddee9e7bfb0c1fe9746",
}
"""Of each log as it was made, so that nobody mends a log in the place of the code."""

# What may be added to in later releases without changing what an old log means.
GROWS = {"session", "usage", "fenced_usage", "counts"}


def expected(log: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(log.with_suffix(".json").read_text("utf-8"))
    return found


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_golden_log_reads_as_it_always_did(log: Path) -> None:
    found, known = as_json(observe(read(log))), expected(log)
    for name, value in known.items():
        if name in GROWS:
            assert {key: found[name][key] for key in value} == value, name
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_no_golden_log_was_touched(log: Path) -> None:
    content = log.read_bytes().replace(b"\r\n", b"\n")
    assert sha256(content).hexdigest() == SHA_256[log.stem]
    assert set(SHA_256) == {path.stem for path in LOGS}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_golden_log_goes_through_the_archive_unchanged(log: Path) -> None:
    for position, line in enumerate(log.read_bytes().splitlines(keepends=True), 1):
        again = to_line(position, from_line(line))
        assert json.loads(again) == json.loads(line)
        assert from_line(again) == from_line(line)


def test_every_type_of_version_1_and_every_role_is_in_a_golden_log() -> None:
    events = [
        event
        for record in read(FOLDER / "every_event.ndjson").records
        if isinstance(frame := decode(record), Frame)
        for event in frame.events
    ]
    well_formed = [event for event in events if event.fault is None and not event.newer]
    assert set(TYPES) <= {event.type for event in well_formed}
    roles = {event.data["role"] for event in well_formed if event.type == "message"}
    assert roles == {"user", "assistant", "tool", "system"}
    assert any(event.newer for event in events)
    assert any(event.fault for event in events)
    assert any(event.type not in TYPES for event in events)


# ---- design, "Examples that must come out so", in its own words --------------------------------


def test_rewind() -> None:
    story = read(FOLDER / "rewind.ndjson")
    assert story.leaf == "e6"
    assert story.path == ["e0", "e1", "e2", "e5", "e6"]
    assert story.state == {"k": 1}
    assert story.surface() == ["e0", "e2", "e6"]
    # e3 and e4 are still there and can be returned to
    number = story.entry("e4").number
    assert [row.id for row in story.view.path(number)] == ["e0", "e1", "e2", "e3", "e4"]
    assert story.view.state(number) == {"k": 2}
    assert story.damage() == []


@pytest.mark.parametrize(
    ("name", "verdict", "outcome"),
    [
        ("crash_after_t1", "indeterminate_tool", None),
        ("crash_before_t1", "ready", None),
        ("crash_while_streaming", "provider_interrupted", None),
        ("crash_before_finish", "terminal", "completed"),
    ],
)
def test_crash_windows(name: str, verdict: str, outcome: str | None) -> None:
    story = read(FOLDER / f"{name}.ndjson")
    found = story.verdict("op")
    assert (found.name, found.outcome) == (verdict, outcome)
    statuses = [step.get("status") for step in story.plan("consumer", "op")]
    if name == "crash_before_t1":
        assert statuses == ["not_started", "not_started", None], "with calls not started"


# ---- the script --------------------------------------------------------------------------------


def test_the_script_makes_every_file_once_and_overwrites_none(tmp_path: Path) -> None:
    make.main(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == {path.name for path in make.files(tmp_path)}
    (tmp_path / "rewind.json").write_text("mine")
    (tmp_path / "rewind.ndjson").unlink()
    with pytest.raises(SystemExit, match=r"never made anew; there are already: .*rewind\.json"):
        make.main(tmp_path)
    assert (tmp_path / "rewind.json").read_text() == "mine"
    assert not (tmp_path / "rewind.ndjson").exists()


def test_the_script_tells_how_the_logs_were_made() -> None:
    for name, log in make.LOGS.items():
        content = (FOLDER / f"{name}.ndjson").read_bytes().replace(b"\r\n", b"\n")
        assert log().bytes() == content
