"""Which dispatch is meant, and what it was called with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.story import Story, accepted, assistant, attempted, call, result, settled, t1, user
from tests.unit.query.logs import stored
from turnlog.core.errors import AmbiguousDispatch, DispatchNotFound
from turnlog.query.dispatches import arguments, evidence_of_effect, find_dispatch


def calling(session: str = "s", *dispatches: str, content: Any = None, **data: Any) -> Story:
    story = Story(session).begin()
    story.own(user("u", None), accepted("op", "u"), attempted("at", "op", "a"))
    said = content if content is not None else [call(f"c{n}", n=n) for n in range(20)]
    story.own(assistant("a", "u", attempt="at", content=said))
    for index, dispatch in enumerate(dispatches):
        story.own(t1(dispatch, "op", "a", f"r-{dispatch}", call_index=index, **data))
    return story


def found(text: str, *stories: Story, session: str | None = None) -> tuple[str, str]:
    row = find_dispatch(stored(*stories).tables, text, session)
    return row.session, row.dispatch


def test_by_its_id_or_the_beginning_of_it() -> None:
    one, other = calling("s", "ab1", "ab12", "xyz"), calling("t", "q")
    assert found("ab1", one, other) == ("s", "ab1")
    assert found("x", one, other) == ("s", "xyz")
    assert found("q", one, other) == ("t", "q")


@pytest.mark.parametrize("text", ["nope", "", "ab13", "%", "*"])
def test_one_that_is_not_there(text: str) -> None:
    with pytest.raises(DispatchNotFound, match="turnlog pending"):
        found(text, calling("s", "ab1", "ab12"))
    with pytest.raises(DispatchNotFound, match="in session 't'"):
        found("ab1", calling("s", "ab1"), calling("t"), session="t")


def test_more_than_one() -> None:
    with pytest.raises(AmbiguousDispatch, match="'ab' begins 2 dispatch ids: ab1, ab2; give more"):
        found("ab", calling("s", "ab1", "ab2"))
    with pytest.raises(AmbiguousDispatch, match="and 4 more"):
        found("d", calling("s", *(f"d{number:02}" for number in range(12))))
    same = calling("s", "d"), calling("t", "d")
    with pytest.raises(AmbiguousDispatch, match="2 sessions have a dispatch 'd': s, t; say which"):
        found("d", *same)
    assert found("d", *same, session="t") == ("t", "d")


def test_arguments_are_those_of_the_call() -> None:
    story = calling("s", "d", "e")
    assert arguments(story.view, story.dispatch("e")) == {"n": 1}


def test_or_those_that_validation_made_of_them() -> None:
    story = calling("s", "d", args={"n": "checked"})
    assert arguments(story.view, story.dispatch("d")) == {"n": "checked"}


def test_or_nothing_where_none_can_be_read() -> None:
    sealed = calling("s", "d", content={"sealed": "k", "ct": "x"})
    assert arguments(sealed.view, sealed.dispatch("d")) is None
    beyond = calling("s", "d", content=[])
    assert arguments(beyond.view, beyond.dispatch("d")) is None
    story = Story().begin()
    story.own(accepted("op"), t1("d", "op", "gone", "r"))
    assert arguments(story.view, story.dispatch("d")) is None


def test_evidence_is_what_says_that_it_took_effect() -> None:
    story = calling("s", "d")
    story.own(settled("d"), settled("d", "not_started"))
    assert evidence_of_effect(story.dispatch("d")) is None
    story.own(result("r-d", "a", "c1", dispatch="d", status="error"))
    assert evidence_of_effect(story.dispatch("d"))["status"] == "error"
