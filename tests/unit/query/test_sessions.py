"""Which sessions are listed, and which one a beginning of an id means."""

import pytest

from tests.story import Story, accepted, assistant, attempted, event, used, user
from tests.unit.query.logs import empty, stored
from turnlog.core.errors import AmbiguousSession, SessionNotFound
from turnlog.query.sessions import (
    find_session,
    is_below,
    list_sessions,
    shortest,
)


def story(session: str, **created: object) -> Story:
    one = Story(session).begin(**created)
    one.own(user("u", None))
    return one


def test_a_list_says_what_each_session_is() -> None:
    one = story("one", title="First", cwd="/src", agent="x")
    one.own(accepted("op", "u"), attempted("a", "op", "r"))
    one.own(assistant("r", "u", attempt="a"), used("a", "op", input=3, output=4, cost_usd="0.5"))
    [row] = list_sessions(stored(one).tables)
    assert (row["session"], row["title"], row["cwd"], row["agent"]) == ("one", "First", "/src", "x")
    assert (row["status"], row["epoch"], row["entries"], row["depth"]) == ("open", 1, 2, 2)
    assert row["usage"]["cost_usd"] == "0.5"
    assert row["usage"]["fenced"]["attempts"] == 0
    assert (row["damage"], row["open_operations"]) == (0, 1)


def test_a_session_that_is_only_claimed_is_not_listed() -> None:
    assert list_sessions(stored(Story("s").claim()).tables) == []


def test_the_newest_comes_first_and_a_limit_cuts_the_rest() -> None:
    stories = [Story(name).begin() for name in ("a", "b", "c")]
    for one, time in zip(stories, ("2026-01-02", "2026-01-03", "2026-01-01"), strict=True):
        one.own(event("custom", parent=None, kind="k", value=1)._replace(time=time))
    view = stored(*stories).tables
    assert [row["session"] for row in list_sessions(view)] == ["b", "a", "c"]
    assert [row["session"] for row in list_sessions(view, limit=1)] == ["b"]


def test_filters() -> None:
    view = stored(
        story("one", cwd="/src/app", agent="x"),
        story("two", cwd="/srcs", agent="y"),
        story("three").begin(),
    ).tables
    assert [row["session"] for row in list_sessions(view, cwd="/src")] == ["one"]
    assert [row["session"] for row in list_sessions(view, agent="y")] == ["two"]
    assert list_sessions(view, status="open") == []
    assert len(list_sessions(view, status="idle")) == 3


@pytest.mark.parametrize(
    ("path", "below"), [("/a/b", True), ("/a", True), ("/ab", False), (None, False), ("a", False)]
)
def test_below_a_folder_is_by_name(path: str | None, below: bool) -> None:
    assert is_below(path, "/a") is below


def test_an_id_or_its_unique_beginning_names_a_session() -> None:
    view = stored(story("abc1"), story("abd2"), story("abc")).tables
    assert find_session(view, "abc") == "abc"
    assert find_session(view, "abc1") == "abc1"
    assert find_session(view, "abd") == "abd2"


def test_an_ambiguous_beginning_lists_the_candidates() -> None:
    view = stored(*(story(f"ab{number}") for number in range(10))).tables
    with pytest.raises(AmbiguousSession, match=r"'ab' begins 10 .*ab0, ab1.* and 2 more"):
        find_session(view, "ab")


@pytest.mark.parametrize("text", ["", "nope", "\x00", "😀", "%", "ab%"])
def test_what_names_nothing_is_said(text: str) -> None:
    with pytest.raises(SessionNotFound):
        find_session(stored(story("abc")).tables, text)


def test_an_empty_log_has_no_sessions() -> None:
    assert list_sessions(empty().tables) == []


def test_a_beginning_that_could_be_a_session_or_its_sub_agents_is_the_session() -> None:
    names = ["abc-1", "abc-1.agent-7", "abc-1.agent-8", "abd"]
    view = stored(*(story(name) for name in names)).tables
    assert find_session(view, "abc") == "abc-1"
    with pytest.raises(AmbiguousSession, match=r"'abc-1\.' begins 2"):
        find_session(view, "abc-1.")
    with pytest.raises(AmbiguousSession, match=r"begins 2 session ids: abc-1, abd;"):
        find_session(view, "ab")


def test_the_shortest_beginning_of_an_id_names_it() -> None:
    names = ["0123456789", "0123456788", "01234567", "x", "abcdefghijk", "abcdefghijk.agent-1"]
    view = stored(*(story(name) for name in names)).tables
    assert [shortest(view, name) for name in names] == [
        "0123456789",
        "0123456788",
        "01234567",
        "x",
        "abcdefgh",
        "abcdefghijk.",
    ]
