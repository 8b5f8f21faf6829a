"""Older versions of events are raised step by step; the table is empty while 1 is the only one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.story import TIME, Story, event, forge
from turnlog.core.events import VERSIONS
from turnlog.core.fold import fold
from turnlog.core.frames import Event, Frame, Header, Record, decode
from turnlog.core.upcast import UPCASTERS, upcast

Data = dict[str, Any]
HEADER = Header("s", "c", 1, 1, None)


def name_it(data: Data) -> Data:
    """Version -1 said `key` where version 0 says `name`."""
    return {"name": data["key"], "text": data["text"]}


def value_it(data: Data) -> Data:
    """Version 0 had `text` only, where version 1 has any `value`."""
    return {"name": data.get("name", "unnamed"), "value": data["text"]}


STEPS: dict[tuple[str, int], Callable[[Data], Data]] = {
    ("fact", -1): name_it,
    ("fact", 0): value_it,
}


def record(v: int, **data: Any) -> Record:
    return forge(HEADER, event("fact", "e", **data)._replace(v=v))


def read(v: int, **data: Any) -> Event:
    frame = decode(record(v, **data), upcasters=STEPS)
    assert isinstance(frame, Frame)
    return frame.events[0]


def test_the_table_is_empty_while_version_1_is_the_only_one() -> None:
    assert UPCASTERS == {}
    assert set(VERSIONS.values()) == {1}


def test_an_older_event_is_read_in_the_current_form() -> None:
    found = read(0, name="title", text="T")
    assert (found.type, found.v, found.fault, found.newer) == ("fact", 1, None, False)
    assert found.data == {"name": "title", "value": "T"}


def test_versions_are_raised_step_by_step() -> None:
    assert read(-1, key="title", text="T").data == {"name": "title", "value": "T"}


def test_a_missing_field_gets_its_default() -> None:
    assert read(0, text="T").data == {"name": "unnamed", "value": "T"}


def test_the_current_version_goes_through_no_step() -> None:
    assert read(1, name="n", value="v", text="kept").data == {
        "name": "n",
        "value": "v",
        "text": "kept",
    }


def test_a_version_without_a_step_is_malformed() -> None:
    for steps in (STEPS, {("fact", -2): name_it}):
        frame = decode(record(-2, key="k", text="T"), upcasters=steps)
        assert isinstance(frame, Frame)
        found = frame.events[0]
        assert found.fault == "there is no fact version -2"
        assert found.data == {"key": "k", "text": "T"}


def test_what_is_raised_is_checked_like_any_event() -> None:
    found = read(0, name=7, text="T")
    assert found.fault is not None
    assert found.fault.startswith("data.name: ")


def test_the_digest_is_that_of_the_event_as_it_was_written() -> None:
    old = decode(record(0, name="n", text="T"))
    new = decode(record(0, name="n", text="T"), upcasters=STEPS)
    current = decode(record(1, name="n", value="T"))
    assert isinstance(old, Frame)
    assert isinstance(new, Frame)
    assert old.digest == new.digest != current.digest
    assert old.events[0].digest == new.events[0].digest


def test_no_type_is_raised_by_the_steps_of_another() -> None:
    raw = forge(HEADER, event("chunk", "e", entry="x")._replace(v=0))
    frame = decode(raw, upcasters=STEPS)
    assert isinstance(frame, Frame)
    assert frame.events[0].fault == "there is no chunk version 0"


def test_an_unknown_type_is_never_raised() -> None:
    raw = forge(HEADER, event("zzz", "e", text="x")._replace(v=0))
    frame = decode(raw, upcasters={("zzz", 0): value_it})
    assert isinstance(frame, Frame)
    assert frame.events[0].data == {"text": "x"}
    assert frame.events[0].v == 0


def test_upcast_gives_the_last_form_or_none() -> None:
    data = {"key": "k", "text": "T"}
    assert upcast("fact", 1, data, STEPS) is data
    assert upcast("fact", -1, data, STEPS) == {"name": "k", "value": "T"}
    assert upcast("fact", -1, data, {("fact", -1): name_it}) is None
    assert data == {"key": "k", "text": "T"}


@pytest.mark.parametrize("upcasters", [None, STEPS])
def test_the_fold_sees_an_older_event_as_a_current_one(upcasters: Any) -> None:
    story = Story().claim("c")
    header = Header("s", "c", 1, 1, None)
    old = forge(header, event("fact", "f", name="title", text="Old")._replace(v=0, time=TIME))
    frame = decode(old) if upcasters is None else decode(old, upcasters)
    head = fold(frame, 2, story.rows)[("sessions", "s")]
    if upcasters is None:
        assert (head.title, head.damage[0][0]) == (None, "malformed")
    else:
        assert (head.title, head.damage) == ("Old", ())
