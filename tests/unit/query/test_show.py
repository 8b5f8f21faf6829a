"""The shape of `show --json`, which others rely on."""

import pytest

from tests.story import (
    Story,
    accepted,
    assistant,
    attempted,
    branch,
    event,
    finished,
    result,
    settled,
    state,
    t1,
    text,
    used,
    user,
)
from tests.unit.query.logs import stored
from turnlog.core.errors import EntryNotFound, SessionNotFound, StateError
from turnlog.query.show import find_entry, show_session
from turnlog.tables.view import SessionView


def rewound() -> Story:
    """The design's own example."""
    story = Story("s").begin(title="Rewind", cwd="/src")
    story.own(user("e0", None), state("e1", "e0", k=1), assistant("e2", "e1"))
    story.own(user("e3", "e2"), state("e4", "e3", k=2))
    story.own(branch("e5", "e2", "e4"), user("e6", "e5", "again"))
    return story


def test_a_rewind() -> None:
    shown = show_session(rewound().view)
    assert {name: shown[name] for name in ("session", "status", "epoch", "leaf", "depth")} == {
        "session": "s",
        "status": "idle",
        "epoch": 1,
        "leaf": "e6",
        "depth": 5,
    }
    assert shown["state"] == {"k": 1}
    assert shown["surface"] == [
        {"entry": "e0", "kind": "message", "role": "user", "text": "hello"},
        {"entry": "e2", "kind": "message", "role": "assistant", "text": "well"},
        {"entry": "e6", "kind": "message", "role": "user", "text": "again"},
    ]
    assert shown["branches"] == [
        {"tip": "e4", "active": False, "fork_point": None},
        {"tip": "e6", "active": True, "fork_point": "e2"},
    ]
    assert shown["operations"] == shown["dispatches"] == shown["pending_inputs"] == []
    assert shown["damage"] == []


def test_at_an_older_entry() -> None:
    shown = show_session(rewound().view, "e4")
    assert shown["state"] == {"k": 2}
    assert [node["entry"] for node in shown["surface"]] == ["e0", "e2", "e3"]
    assert (shown["at"], shown["depth"], shown["leaf"]) == ("e4", 5, "e6")


def test_a_void_entry_stands_for_its_parent() -> None:
    story = rewound()
    story.own(result("late", "e6", "c1", dispatch="nowhere"))
    assert show_session(story.view, "late")["depth"] == 5


def test_an_empty_session_has_no_leaf() -> None:
    shown = show_session(Story("s").begin().view)
    assert (shown["leaf"], shown["depth"], shown["surface"], shown["state"]) == (None, 0, [], {})


def working() -> Story:
    story = Story("s").begin()
    story.own(user("u", None), accepted("op", "u"), attempted("a", "op", "r"))
    story.own(assistant("r", "u", "c1", attempt="a"), used("a", "op", input=5, cost_usd="0.25"))
    story.own(t1("d", "op", "r", "t"))
    return story


def test_an_operation_has_its_verdict_and_a_dispatch_its_answer() -> None:
    story = working()
    shown = show_session(story.view)
    assert shown["operations"] == [
        {
            "operation": "op",
            "kind": "prompt",
            "outcome": None,
            "superseded": False,
            "verdict": "indeterminate_tool",
            "corruption": [],
        }
    ]
    assert shown["dispatches"] == [
        {
            "dispatch": "d",
            "tool": "bash",
            "effect": "opaque",
            "status": "open",
            "settled_by": None,
            "tries": 1,
            "evidence": [],
        }
    ]
    assert shown["usage"]["input"] == 5
    assert shown["usage"]["fenced"] == {**shown["usage"]["fenced"], "attempts": 0, "cost_usd": "0"}
    story.own(settled("d", "ok", settled_by="host"), finished("op"))
    shown = show_session(story.view)
    assert shown["operations"][0]["verdict"] == "terminal"
    assert (shown["dispatches"][0]["status"], shown["status"]) == ("ok", "idle")


def test_evidence_is_shown_on_its_dispatch() -> None:
    story = working()
    story.own(result("t", "r", "c1", dispatch="d", tool="bash"))
    story.own(result("other", "r", "c1", dispatch="d", status="error"))
    [piece] = show_session(story.view)["dispatches"][0]["evidence"]
    assert (piece["event"], piece["status"], piece["fenced"]) == ("other", "error", False)


def test_pending_inputs_come_with_their_text() -> None:
    story = Story("s").begin()
    for name in ("b", "a"):
        queued = event(
            "input_queued",
            input=name,
            entry=f"e{name}",
            content=text(f"say {name}"),
            delivery="steer",
        )
        story.guest(queued)
    assert show_session(story.view)["pending_inputs"] == [
        {"input": "b", "entry": "eb", "delivery": "steer", "text": "say b"},
        {"input": "a", "entry": "ea", "delivery": "steer", "text": "say a"},
    ]


def test_damage_has_kind_position_and_detail() -> None:
    story = Story("s").begin()
    position = story.own(user("u", "nowhere"))
    assert show_session(story.view)["damage"] == [
        {
            "kind": "dangling_parent",
            "position": position,
            "detail": "parent 'nowhere' is not in the log",
        }
    ]


def test_a_fork_shows_its_parents_surface_first() -> None:
    parent = rewound()
    child = Story("child").begin(parent_session="s", fork_at={"entry": "e2", "epoch": 1, "seq": 2})
    child.own(user("x", None, "on"))
    shown = show_session(SessionView(stored(parent, child).tables, "child"))
    assert [node["entry"] for node in shown["surface"]] == ["e0", "e2", "x"]


def test_entries_are_found_by_their_beginning() -> None:
    story = Story("s").begin()
    story.own(user("abcd", None), user("abce", "abcd"), user("x1", "abce"))
    assert find_entry(story.view, "abcd") == "abcd"
    assert find_entry(story.view, "x") == "x1"
    with pytest.raises(EntryNotFound, match="'abc' begins 2 entry ids: abcd, abce; give more"):
        find_entry(story.view, "abc")
    for text_ in ("nope", ""):
        with pytest.raises(EntryNotFound, match="has no entry"):
            find_entry(story.view, text_)


def test_what_is_not_there_is_said() -> None:
    log = stored(rewound())
    with pytest.raises(SessionNotFound):
        SessionView(log.tables, "other")
    with pytest.raises(StateError, match="position 99"):
        SessionView(log.tables, rewound().session).frame(99)
