"""The real fold against the slow model, over random histories; and what no history may break."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.model.folding import Tables, fold_all
from tests.model.histories import histories, seeded_history
from tests.model.model import Model
from tests.model.observable import Observable, differences, observable
from tests.model.observe import Reader, Rows, observe
from tests.model.ownership import Record as Readable
from tests.model.writing import (
    SESSION,
    History,
    Script,
    assistant,
    body_of,
    event,
    result,
    text,
    user,
)
from turnlog.core.events import TYPES
from turnlog.core.frames import Frame, Header, Record

PROOF = os.environ.get("TURNLOG_PROOF") == "1"
EXAMPLES = 5_000 if PROOF else 300
many = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
few = settings(many, max_examples=EXAMPLES // 3)
pytestmark = pytest.mark.timeout(1_800 if PROOF else 120)
Frames = list[tuple[int, Readable]]


def again(frames: Frames) -> Frames:
    """The same log delivered once more, at later positions."""
    behind = frames[-1][0]
    return frames + [(position + behind, frame) for position, frame in frames]


def assert_as_modelled(frames: Frames) -> Rows:
    rows = fold_all(frames)
    found = differences(observable(Model(frames)), observe(rows, SESSION))
    assert not found, "model != fold\n" + "\n".join(found)
    return rows


# ---- the model and the fold


@many
@given(histories())
def test_the_fold_is_as_the_model_says(items: History) -> None:
    assert_as_modelled(items.frames)


@few
@given(histories(frames_max=20))
def test_the_fold_is_as_the_model_says_after_a_second_delivery(items: History) -> None:
    assert_as_modelled(again(items.frames))


def test_long_histories_are_as_the_model_says() -> None:
    for seed in range(100 if PROOF else 5):
        assert_as_modelled(seeded_history(seed, 200).frames)


# ---- folding twice (case 28)


@few
@given(histories())
def test_a_frame_folded_again_at_its_position_changes_nothing(items: History) -> None:
    tables = Tables()
    for position, frame in items.frames:
        tables.apply(position, frame)
        before = dict(tables.rows)
        cost = tables.apply(position, frame)
        assert cost.rows == 0
        assert tables.rows == before


# What evidence and notes a dispatch has may grow: late copies are late words.
STEADY_OF_DISPATCH = ("operation", "effect", "tries", "call")
UNSTEADY = ("counts", "dispatches")


def steady(rows: Rows) -> Observable:
    """What a second delivery of a log without faults leaves as it is."""
    seen = observe(rows, SESSION)
    left = {name: section for name, section in seen.items() if name not in UNSTEADY}
    left["dispatches"] = {
        id_: {name: row[name] for name in STEADY_OF_DISPATCH}
        for id_, row in seen["dispatches"].items()
    }
    left["operations"] = {
        id_: {name: value for name, value in row.items() if name != "aborting"}
        for id_, row in seen["operations"].items()
    }
    return left


def aborting(rows: Rows) -> set[str]:
    return {id_ for id_, row in observe(rows, SESSION)["operations"].items() if row["aborting"]}


def asked_to_abort(frames: Frames) -> set[str]:
    return {
        event.data["operation"]
        for _, frame in frames
        if isinstance(frame, Frame)
        for event in frame.events
        if event.type == "abort_requested"
    }


@few
@given(histories(frames_max=30, calm=True))
def test_a_log_delivered_again_changes_nothing_that_counts(items: History) -> None:
    frames = items.frames
    once, twice = fold_all(frames), fold_all(again(frames))
    found = differences(steady(once), steady(twice))
    assert not found, "\n".join(found)
    # a copy of an abort that came before its operation finds it open the second time
    assert aborting(once) <= aborting(twice) <= aborting(once) | asked_to_abort(frames)


# ---- labels, purity, robustness


def timed(items: History, choose: random.Random) -> Frames:
    """The same history with other times on its events."""
    times = [None, "1970-01-01T00:00:00Z", "2031-05-06T07:08:09.5+02:00", "no time at all"]
    return [
        (
            item.position,
            item.frame._replace(
                events=tuple(e._replace(time=choose.choice(times)) for e in item.frame.events)
            )
            if isinstance(item.frame, Frame)
            else item.frame,
        )
        for item in items
    ]


def without_labels(rows: Rows) -> dict[Any, Any]:
    head = ("sessions", SESSION)
    found = dict(rows)
    if head in found:
        found[head] = found[head]._replace(first_time=None, last_time=None)
    return found


@few
@given(histories(), st.integers(0, 2**32))
def test_no_rule_reads_a_time(items: History, seed: int) -> None:
    shuffled = fold_all(timed(items, random.Random(seed)))
    assert without_labels(shuffled) == without_labels(fold_all(items.frames))


@few
@given(histories())
def test_no_row_is_changed_in_place(items: History) -> None:
    tables = Tables()
    stored: dict[int, tuple[Any, str]] = {}
    frames = items.frames
    texts = [repr(frame) for _, frame in frames]
    for position, frame in frames:
        tables.apply(position, frame)
        for row in tables.rows.values():
            stored.setdefault(id(row), (row, repr(row)))
    assert [repr(row) for row, _ in stored.values()] == [text_ for _, text_ in stored.values()]
    assert [repr(frame) for _, frame in frames] == texts


FIELDS = sorted({name for schema in TYPES.values() for name in schema.__annotations__})
FIELDS += ["type", "text", "call_id", "first", "last", "sealed", "entry"]


def json_values() -> st.SearchStrategy[Any]:
    names = st.sampled_from(FIELDS)
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-2, 5)
        | st.sampled_from(
            [
                "",
                "e1",
                "e2",
                "o1",
                "c1",
                "ok",
                "tool",
                "assistant",
                "summary",
                "prompt",
                "\x00",
                "é",
            ]
        )
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
        max_leaves=12,
    )


@st.composite
def wild(draw: st.DrawFn) -> History:
    """Frames under a claim whose bodies and events are any JSON, or none."""
    script = Script()
    script.claim("c1")
    for _ in range(draw(st.integers(1, 8))):
        seq = draw(st.integers(0, 6))
        owner = Header(SESSION, "c1", draw(st.sampled_from([1, 1, 1, 0, 2])), seq, None)
        header = draw(st.sampled_from([owner, Header(SESSION, None, None, None, "g")]))
        events = [
            {
                "type": draw(st.sampled_from(sorted(TYPES)) | json_values()),
                "v": draw(st.sampled_from([1, 1, 1, 0, 2, "1"])),
                "id": draw(st.sampled_from(["e1", "e2", "e3", "", 5])),
                "data": draw(json_values()),
            }
            for _ in range(draw(st.integers(0, 3)))
        ]
        body = draw(st.just(body_of(header, events)) | st.binary(max_size=20))
        script.append(Record(SESSION, header, body))
    return script.items


@many
@given(wild())
def test_no_input_makes_the_fold_raise(items: History) -> None:
    assert_as_modelled(items.frames)


@st.composite
def knots(draw: st.DrawFn) -> History:
    """Entries that name one another as parents, in any order: chains, cycles, self-parents."""
    ids = [f"e{number}" for number in range(8)]
    script = Script()
    script.claim("c1")
    for id_ in draw(st.permutations(ids)):
        parent = draw(st.sampled_from([*ids, None]))
        make: Callable[[str, str | None], Any] = draw(st.sampled_from([user, branch_to]))
        script.owner("c1", make(id_, parent))
    return script.items


def branch_to(id_: str, parent: str | None) -> Any:
    return event("branch", id_, parent=parent)


@many
@given(knots())
def test_walks_end_on_cyclic_input(items: History) -> None:
    reader = Reader(assert_as_modelled(items.frames), SESSION)
    for entry in reader.by_number.values():
        path = reader.path(entry.number)
        assert len({step.number for step in path}) == len(path) == entry.depth
    assert len(reader.by_number) == 8


# ---- compactions (rule 4)


def covered(reader: Reader, number: int) -> set[int]:
    """What a surface node stands for, summaries of summaries included."""
    entry = reader.by_number.get(number)
    if entry is None or entry.kind != "compaction":
        return {number}
    assert entry.replaces is not None
    before = reader.surface_at(entry.parent)
    first, last = (before.index(end) for end in entry.replaces)
    return {number}.union(*(covered(reader, other) for other in before[first : last + 1]))


@st.composite
def compacted(draw: st.DrawFn) -> History:
    """Turns and compactions of any span, again and again."""
    script, names = Script(), ["u0"]
    script.claim("c1")
    script.owner("c1", user("u0", None))
    for number in range(draw(st.integers(1, 25))):
        leaf, id_ = names[-1], f"n{number}"
        first, last = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        replaces = {"first": first, "last": last}
        data = {"parent": leaf, "replaces": replaces, "content": text("short")}
        new = draw(
            st.sampled_from(
                [
                    user(id_, leaf),
                    event("compaction", id_, kind="summary", **data),
                    event("compaction", id_, kind="prune", **data),
                    assistant(id_, leaf, "c0", "c1"),
                    result(id_, leaf, call_id="c0"),
                    result(id_, leaf, call_id="c1"),
                ]
            )
        )
        script.owner("c1", new)
        names.append(id_)
    return script.items


def assert_covers_its_path(reader: Reader) -> None:
    shown = reader.leaf_surface()
    assert shown == reader.surface_at(reader.head.leaf)
    messages = [e.number for e in reader.path(reader.head.leaf) if e.kind == "message"]
    told = [number for node in shown for number in covered(reader, node)]
    assert Counter(n for n in told if n in messages) == Counter(messages)


@many
@given(compacted())
def test_every_message_on_the_path_is_shown_or_covered_once(items: History) -> None:
    assert_covers_its_path(Reader(assert_as_modelled(items.frames), SESSION))


@few
@given(histories())
def test_compactions_lose_nothing_in_any_history(items: History) -> None:
    assert_covers_its_path(Reader(fold_all(items.frames), SESSION))
