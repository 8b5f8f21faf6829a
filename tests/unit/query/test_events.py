"""Every event of a session, with what became of it."""

from tests.story import Story, event, result, user
from tests.unit.query.logs import stored
from turnlog.core.frames import Record
from turnlog.query.events import list_events


def test_each_event_says_what_its_frame_was() -> None:
    story = Story("s").begin()
    old = story.claim_id
    story.own(user("u", None))
    story.claim("newer")
    story.own(user("v", "u"))
    story.own(user("late", "u"), claim=old, epoch=1, seq=3)
    story.guest(event("session_claimed", claim="loser", expects=0))
    story.guest(event("fact", name="title", value="x"))
    story.own(user("w", "v"), seq=5)
    story.put(Record("s", None, b"{"))
    rows = list(list_events(stored(story).tables, "s"))
    assert [(row["frame"], row["type"]) for row in rows] == [
        ("claim", "session_claimed"),
        ("applies", "session_created"),
        ("applies", "message"),
        ("claim", "session_claimed"),
        ("applies", "message"),
        ("fenced", "message"),
        ("lost_claim", "session_claimed"),
        ("guest", "fact"),
        ("gap", "message"),
        ("misfiled", None),
    ]
    assert [row["entry"]["number"] for row in rows if row["entry"]] == [1, 2, 3]
    assert rows[-1]["index"] == -1
    assert rows[-1]["quarantine"] == "the header cannot be read"


def test_an_entry_says_whether_it_is_void_and_a_bad_event_why() -> None:
    story = Story("s").begin()
    story.own(user("u", None))
    story.own(result("r", "u", "c", dispatch="nowhere"), user("u", None, "other words"))
    *_, void, conflict = list_events(stored(story).tables, "s")
    assert void["entry"]["void"] == "unknown_dispatch"
    assert conflict["entry"] is None
    assert "other content" in conflict["quarantine"]


def test_a_frame_that_is_quarantined_says_so_on_each_event() -> None:
    story = Story("s").begin()
    story.guest(user("u", None), event("fact", name="n", value=1))
    rows = list(list_events(stored(story).tables, "s"))[-2:]
    assert [row["quarantine"] for row in rows] == ["a guest may not write message"] * 2


def test_types_filter() -> None:
    story = Story("s").begin()
    story.own(user("u", None))
    rows = list_events(stored(story).tables, "s", types=["message"])
    assert [row["id"] for row in rows] == ["u"]


def test_holes_in_the_positions_change_nothing() -> None:
    story = Story("s").begin()
    story.own(user("u", None))
    one, other = (list(list_events(stored(story, stride=stride).tables, "s")) for stride in (1, 3))
    for row in (*one, *other):
        del row["position"]
    assert one == other
