"""The runs of a tree, in the order in which they are drawn."""

import inspect
import sys

import pytest

from tests.story import Story, branch, result, user
from tests.unit.query.logs import random_session, stored
from turnlog.query.outline import outline, telling_length
from turnlog.tables.view import SessionView


def runs(story: Story) -> list[tuple[int, str]]:
    drawn = outline(story.view).runs
    return [(run.level, " ".join(row.id for row in run.entries)) for run in drawn]


def chain(story: Story, *ids: str, parent: str | None = None) -> None:
    for id_ in ids:
        story.own(user(id_, parent))
        parent = id_


def test_a_line_is_one_run() -> None:
    story = Story("s").begin()
    chain(story, "a", "b", "c")
    [run] = outline(story.view).runs
    assert (run.level, run.is_tip, run.holds_leaf) == (0, True, True)
    assert [row.id for row in run.entries] == ["a", "b", "c"]


def test_a_rewind_hangs_at_the_side_of_the_path() -> None:
    story = Story("s").begin()
    chain(story, "a", "b", "c", "d")
    story.own(branch("r", "b", "d", label="again"), user("e", "r"))
    assert runs(story) == [(0, "a b"), (1, "c d"), (0, "r e")]
    assert [run.label for run in outline(story.view).runs] == [None, None, "again"]


def test_a_rewind_within_a_rewind_is_a_level_deeper() -> None:
    story = Story("s").begin()
    chain(story, "a", "b", "c", "d")
    chain(story, "e", parent="c")
    chain(story, "f", parent="c")
    chain(story, "x", parent="a")
    assert runs(story) == [(0, "a"), (1, "b c"), (2, "d"), (2, "e"), (1, "f"), (0, "x")]


def test_several_roots() -> None:
    story = Story("s").begin()
    chain(story, "a", "b")
    chain(story, "c")
    assert runs(story) == [(1, "a b"), (0, "c")]


def test_what_comes_late_hangs_behind_the_leaf() -> None:
    story = Story("s").begin()
    chain(story, "a")
    story.own(user("b", "missing"))
    story.own(user("missing", "b"))
    assert runs(story) == [(0, "a b"), (1, "missing")]
    assert [run.holds_leaf for run in outline(story.view).runs] == [True, False]


def test_void_entries_are_counted_and_in_no_run() -> None:
    story = Story("s").begin()
    chain(story, "a")
    story.own(result("r", "a", "c", dispatch="nowhere"))
    drawn = outline(story.view)
    assert (drawn.voids, runs(story)) == (1, [(0, "a")])


def test_a_session_of_many_nested_rewinds_is_walked_without_recursion() -> None:
    story = Story("s").begin()
    parent = None
    for number in range(300):
        story.own(user(f"a{number}", parent), user(f"b{number}", f"a{number}"))
        parent = f"a{number}"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 60)
    try:
        assert len(runs(story)) == 599
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("seed", range(40))
def test_every_entry_is_drawn_once_and_the_trunk_is_the_path(seed: int) -> None:
    view = SessionView(stored(random_session(seed, "s")).tables, "s")
    drawn = outline(view)
    rows = [row for run in drawn.runs for row in run.entries]
    numbers = [row.number for row in rows]
    assert len(set(numbers)) == len(numbers)
    assert len(numbers) + drawn.voids == view.head.counts["entries"]
    trunk = [row.number for run in drawn.runs if run.level == 0 for row in run.entries]
    assert trunk == [row.number for row in view.path()]
    for run in drawn.runs:
        for above, below in zip(run.entries, run.entries[1:], strict=False):
            assert below.parent == above.number


@pytest.mark.parametrize(
    ("ids", "length"),
    [([], 8), (["a"], 8), (["aaaaaaaaaa1", "aaaaaaaaaa2"], 11), (["abc", "abcdefghijkl"], 8)],
)
def test_so_much_of_an_id_tells_it_from_the_others(ids: list[str], length: int) -> None:
    assert telling_length(ids) == length
