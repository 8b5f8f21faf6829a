"""The drawing of a tree, as a person sees it in 80 columns."""

import pytest

from tests.story import Story, assistant, branch, event, result, state, text, user
from tests.unit.query.logs import random_session, stored
from turnlog.cli.tree import Drawing
from turnlog.query.outline import outline
from turnlog.tables.view import SessionView


def drawn(view: SessionView, **options: bool) -> list[str]:
    drawing = Drawing(view, outline(view), 80, **options)
    return [
        "".join(part if isinstance(part, str) else part[0] for part in line).rstrip()
        for line in drawing.lines()
    ]


def test_a_rewind() -> None:
    story = Story("s").begin()
    story.own(user("e0", None, "write a poem"), state("e1", "e0", k=1), assistant("e2", "e1"))
    story.own(user("e3", "e2", "longer"), state("e4", "e3", k=2))
    story.own(branch("e5", "e2", "e4", label="short"), user("e6", "e5", "shorter"))
    assert drawn(story.view) == [
        "│ e0        user      write a poem",
        '│ e1        state     "k":1',
        "│ e2        assistant well",
        "│ └╴e4        2 entries left behind: longer",
        "│ e5        branch    [short] goes back",
        "◉ e6        user      shorter",
    ]


def test_a_long_line_is_folded_to_its_ends_and_what_its_user_said() -> None:
    story = Story("s").begin()
    parent = None
    for number in range(40):
        role = "user" if number % 20 == 10 else "system"
        story.own(
            event(
                "message", f"e{number:02}", parent=parent, role=role, content=text(f"say {number}")
            )
        )
        parent = f"e{number:02}"
    assert drawn(story.view) == [
        "│ e00       system    say 0",
        "│ ⋮ 9 more",
        "│ e10       user      say 10",
        "│ ⋮ 19 more",
        "│ e30       user      say 30",
        "│ ⋮ 8 more",
        "◉ e39       system    say 39",
    ]
    assert len(drawn(story.view, unfold=True)) == 40


def test_of_many_prompts_the_first_and_the_last_are_shown() -> None:
    story = Story("s").begin()
    parent = None
    for number in range(40):
        story.own(user(f"e{number}", parent), assistant(f"a{number}", f"e{number}"))
        parent = f"a{number}"
    lines = drawn(story.view)
    assert len(lines) < 20
    assert any("⋮" in line for line in lines)


def test_nothing_in_a_text_acts_on_the_terminal() -> None:
    story = Story("s").begin()
    story.own(user("\x1b[2J[bold]", None, "a\x1b]0;title\x07 [red]b[/red]\nc\u202ed"))
    [line] = drawn(story.view)
    assert line == "◉ ␛[2J[bol  user      a␛]0;title␇ [red]b[/red]⏎c\\u{202e}d"


def test_calls_results_and_other_things_are_told() -> None:
    story = Story("s").begin()
    story.own(assistant("a", None, "c1", "c2"), result("r", "a", "c1", status="error"))
    story.own(event("custom", "x", parent="r", kind="todo", value={"n": 1}))
    story.own(event("message", "i", parent="x", role="user", content=[{"type": "image"}]))
    story.own(event("message", "s", parent="i", role="user", content={"sealed": "k"}))
    story.own(event("weird", "w", parent="s", more=1))
    lines = "\n".join(drawn(story.view, unfold=True))
    for said in ("well → bash() → bash()", "[error] result r", 'todo "n":1', "[image]", "[sealed]"):
        assert said in lines
    assert "opaque" in lines


def test_an_empty_session() -> None:
    assert drawn(Story("s").begin().view) == ["(no entries)"]


@pytest.mark.parametrize("seed", range(40))
def test_any_history_is_drawn(seed: int) -> None:
    view = SessionView(stored(random_session(seed, "s")).tables, "s")
    lines = drawn(view)
    assert sum(line.startswith("◉") for line in lines) == bool(view.head.leaf)
