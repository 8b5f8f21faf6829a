"""Surfaces in pages: an append rewrites one, a compaction those from its place on."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.story import (
    Story,
    assistant,
    branch,
    created,
    prune,
    result,
    state,
    summary,
    user,
)
from turnlog.core.fold import fold
from turnlog.core.fold.surfaces import PAGE, path_to, surface_at
from turnlog.core.frames import decode

FORK = {"parent_session": "parent", "fork_at": {"entry": "p9"}}


def long(count: int, **data: Any) -> Story:
    """A session with this many messages m1, m2, …"""
    story = Story().begin("first", **data)
    names = [f"m{number}" for number in range(1, count + 1)]
    for start in range(0, count, 500):
        pairs = zip(names, [None, *names], strict=False)
        story.own(*(user(id_, parent) for id_, parent in list(pairs)[start : start + 500]))
    return story


def pages(story: Story) -> list[int]:
    """How many nodes each page holds."""
    return [len(row.nodes) for row in story.view.rows("surfaces")]


def written(story: Story, *events: Any) -> list[Any]:
    """The pages that a frame writes (the row) or takes away (None)."""
    frame = decode(story.sealed(*events, seq=story.seq + 1))
    changes = fold(frame, len(story.records) + 1, story.rows)
    return sorted((key[2], row is None) for key, row in changes.items() if key[0] == "surfaces")


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [1]),
        (PAGE - 1, [PAGE - 1]),
        (PAGE, [PAGE]),
        (PAGE + 1, [PAGE, 1]),
        (3 * PAGE, [PAGE] * 3),
        (3 * PAGE + 1, [PAGE] * 3 + [1]),
    ],
)
def test_a_page_holds_up_to_128_nodes(count: int, expected: list[int]) -> None:
    story = long(count)
    assert PAGE == 128
    assert pages(story) == expected
    assert (story.head.pages, story.head.nodes) == (len(expected), count)
    assert story.surface() == [f"m{number}" for number in range(1, count + 1)]


def test_an_append_rewrites_one_page() -> None:
    story = long(2 * PAGE + 1)
    assert written(story, user("x", story.leaf)) == [(2, False)]
    story.own(user("x", story.leaf))
    assert written(story, user("y", "x")) == [(2, False)]
    assert written(story, state("s", "x", k=1)) == []
    more = [user(f"y{number}", "x" if number == 0 else f"y{number - 1}") for number in range(PAGE)]
    assert written(story, *more) == [(2, False), (3, False)]


def test_a_compaction_rewrites_the_pages_from_its_place_on() -> None:
    story = long(3 * PAGE + 10)
    leaf = story.leaf
    assert written(story, summary("k", leaf, f"m{PAGE + 5}", f"m{PAGE + 6}")) == [
        (1, False),
        (2, False),
        (3, False),
    ]
    assert written(story, summary("k", leaf, f"m{3 * PAGE + 1}", f"m{3 * PAGE + 3}")) == [
        (3, False)
    ]
    assert written(story, summary("k", leaf, "m2", f"m{3 * PAGE}")) == [
        (0, False),
        (1, True),
        (2, True),
        (3, True),
    ]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (1, 1),
        (1, 2),
        (1, 3 * PAGE),
        (PAGE, PAGE),
        (PAGE, PAGE + 1),
        (PAGE + 1, PAGE + 1),
        (PAGE + 1, 2 * PAGE),
        (PAGE + 1, 2 * PAGE + 1),
        (2, 3 * PAGE - 1),
        (3 * PAGE, 3 * PAGE),
        (2 * PAGE + 1, 3 * PAGE),
    ],
)
def test_a_span_may_begin_and_end_on_any_page(first: int, last: int) -> None:
    story = long(3 * PAGE)
    story.own(summary("k", story.leaf, f"m{first}", f"m{last}"))
    names = [f"m{number}" for number in range(1, 3 * PAGE + 1)]
    expected = [*names[: first - 1], "k", *names[last:]]
    assert story.voids() == {}
    assert story.surface() == expected
    assert story.head.nodes == len(expected)
    assert all(count == PAGE for count in pages(story)[:-1]), "only the last page may have room"
    story.own(user("after", "k"))
    assert story.surface() == [*expected, "after"]


def test_a_span_on_a_later_page_ends_where_it_says() -> None:
    """What stands behind it on its page is not looked at: here, a call without a result."""
    story = long(PAGE + 3)
    story.own(result("r", story.leaf, "none"), assistant("a", "r", "open"))
    story.own(summary("k", "a", f"m{PAGE + 1}", f"m{PAGE + 2}"), prune("p", "k", "r"))
    assert story.voids() == {}
    assert story.surface()[PAGE:] == ["k", f"m{PAGE + 3}", "p", "a"]


def test_a_page_that_was_taken_away_comes_back_in_the_same_frame() -> None:
    story = long(PAGE + 1)
    more = [user(f"y{n}", "k" if n == 0 else f"y{n - 1}") for n in range(PAGE)]
    frame = (summary("k", story.leaf, "m1", f"m{PAGE}"), *more)
    assert written(story, *frame) == [(0, False), (1, False)]
    story.own(*frame)
    assert pages(story) == [PAGE, 2]


def test_a_navigation_rewrites_all_pages_and_takes_away_what_is_left() -> None:
    story = long(2 * PAGE + 2)
    assert written(story, branch("n", "m3")) == [(0, False), (1, True), (2, True)]
    story.own(branch("n", "m3"), user("x", "n"))
    assert story.surface() == ["m1", "m2", "m3", "x"]
    assert story.head.pages == 1


def test_a_navigation_to_the_root_leaves_no_page() -> None:
    story = long(PAGE + 1)
    story.own(branch("n", None))
    assert (story.head.pages, story.head.nodes, pages(story)) == (0, 0, [])
    assert story.surface() == []
    story.own(user("x", "n"))
    assert story.surface() == ["x"]


def test_the_generation_changes_with_every_rewrite_and_with_no_append() -> None:
    story = long(5)
    assert story.head.generation == 0
    for new, generation in (
        (user("x", "m5"), 0),
        (summary("k", "x", "m1", "m2"), 1),
        (user("y", "k"), 1),
        (branch("n", "m4"), 2),
        (user("z", "n"), 2),
        (branch("same", "z"), 2),
        (summary("void", "nowhere", "m1", "m2"), 2),
    ):
        story.own(new)
        assert story.head.generation == generation


def test_a_fork_starts_with_one_node_its_parents_surface() -> None:
    story = Story().begin("first", **FORK)
    assert story.view.surface() == [0]
    assert (story.head.nodes, story.head.pages) == (1, 1)
    story.own(user("a", None))
    assert story.surface() == [None, "a"]
    story.own(branch("n", None))
    assert story.surface() == [None], "the root position of a fork shows its parent's surface"
    story.own(user("b", "n"))
    assert story.surface() == [None, "b"]


def test_a_fork_created_after_entries_of_the_same_frame_still_starts_with_its_parent() -> None:
    story = Story().claim("first")
    story.own(user("a", None), created(**FORK), user("b", "a"))
    assert story.surface() == [None, "a", "b"]
    story.own(branch("n", None), user("c", "n"))
    assert story.surface() == [None, "c"]


def test_a_jump_in_the_frame_that_creates_a_fork_keeps_the_reference() -> None:
    story = Story().claim("first")
    story.own(created(**FORK), user("a", None), user("b", None), summary("k", "b", "p9", "b"))
    assert story.surface() == ["k"]
    assert story.surface("b") == [None, "b"]


@pytest.mark.parametrize(
    "data",
    [
        {"parent_session": "parent"},
        {"fork_at": {"entry": "p9"}},
        {"parent_session": "parent", "spawned_by": {"entry": "p9"}},
    ],
)
def test_a_session_is_a_fork_only_with_parent_and_fork_point(data: dict[str, Any]) -> None:
    story = Story().begin("first", **data)
    story.own(user("a", None))
    assert story.surface() == ["a"]
    assert story.head.fork_at is None


def test_the_path_to_an_entry_is_from_the_root_down() -> None:
    story = long(3)
    story.own(branch("n", "m2"), user("x", "n"))
    entry = story.view.entry
    assert [row.id for row in path_to(entry, story.entry("x").number)] == ["m1", "m2", "n", "x"]
    assert path_to(entry, 0) == []
    assert surface_at(entry, 0, fork=False) == []
    assert surface_at(entry, 0, fork=True) == [0]


def test_places_grow_along_every_surface() -> None:
    """What finding a node by halving rests on; `Story.check` compares the pages with the path."""
    random = Random(7)
    story = long(20)
    for step in range(120):
        surface = [id_ for id_ in story.surface() if id_ is not None]
        start = random.randrange(len(surface))
        end = random.randrange(start, min(len(surface), start + 6))
        choice = random.random()
        if choice < 0.35:
            story.own(summary(f"k{step}", story.leaf, surface[start], surface[end]))
        elif choice < 0.45:
            target = random.choice(story.view.rows("entries")).id
            story.own(branch(f"n{step}", target))
        else:
            story.own(user(f"x{step}", story.leaf), result(f"r{step}", f"x{step}", "none"))
        places = [story.view.entry(node).place for node in story.view.surface()]
        assert all(one < other for one, other in pairwise(places))
    assert story.head.counts["voids"] == 0
