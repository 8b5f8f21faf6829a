"""The model alone, on histories whose right answers are known: design, "Examples"."""

from __future__ import annotations

from typing import Any

from tests.model.model import Model
from tests.model.observable import observable
from tests.model.writing import Script, assistant, event, result, user


def of(script: Script) -> dict[str, Any]:
    return observable(Model(script.frames))


def started() -> Script:
    script = Script()
    script.claim("c1")
    script.owner(
        "c1",
        event("session_created", "created", title="one"),
        user("u", None),
        event("operation_accepted", "acc", operation="o", kind="prompt", input_entry="u"),
    )
    return script


def t1(dispatch: str, entry: str, index: int = 0, /, **data: Any) -> dict[str, Any]:
    named = {"operation": "o", "dispatch": dispatch, "call_index": index, "assistant_entry": "a"}
    return event("tool_dispatched", f"t1-{dispatch}-{entry}", result_entry=entry, **named | data)


def test_a_rewind_hides_what_it_leaves_and_keeps_it() -> None:
    script = Script()
    script.claim("c1")
    script.owner(
        "c1",
        event("session_created", "created"),
        user("e0", None),
        event("app_state", "e1", parent="e0", value={"k": 1}),
        assistant("e2", "e1"),
        user("e3", "e2"),
        event("app_state", "e4", parent="e3", value={"k": 2}),
        event("branch", "e5", parent="e2", from_="e4"),
        user("e6", "e5"),
    )
    seen = of(script)
    assert seen["tree"]["leaf"] == "e6"
    assert seen["tree"]["path"] == ["e0", "e1", "e2", "e5", "e6"]
    assert seen["tree"]["state"] == {"k": 1}
    assert [id_ for id_, _, _ in seen["tree"]["surface"]] == ["e0", "e2", "e6"]
    assert [id_ for id_, _, _ in seen["surfaces"]["e4"]] == ["e0", "e2", "e3"]
    assert seen["states"]["e4"] == {"k": 2}
    assert seen["branches"] == [("e0", "e4", None, None, False), ("e5", "e6", "e2", None, True)]
    assert seen["counts"]["jumps"] == 0


def test_after_t1_without_t2_the_dispatch_is_open() -> None:
    script = started()
    script.owner("c1", assistant("a", "u", "call_0"), t1("d", "r", call_id="call_0"))
    seen = of(script)
    assert seen["dispatches"]["d"]["status"] == "open"
    assert seen["open_dispatches"] == ["d"]
    assert seen["operations"]["o"]["open_dispatches"] == 1
    assert seen["session"]["status"] == "open"


def test_parallel_results_follow_one_another() -> None:
    script = started()
    script.owner("c1", assistant("a", "u", "x", "x"), t1("d0", "r0"), t1("d1", "r1", 1))
    script.owner("c1", result("r1", "a", dispatch="d1", status="ok"))
    script.owner("c1", result("r0", "a", dispatch="d0", status="ok"))
    seen = of(script)
    assert seen["tree"]["path"] == ["u", "a", "r1", "r0"]
    assert seen["entries"]["r0"]["declared"] == "a"
    assert seen["entries"]["r0"]["answers"] == ("a", 0)
    assert seen["entries"]["r1"]["answers"] == ("a", 1)
    assert not seen["open_dispatches"]


def test_the_first_answer_stands_and_the_later_is_evidence() -> None:
    script = started()
    script.owner("c1", assistant("a", "u", "x"), t1("d", "r"))
    script.claim("c2")
    script.owner("c2", result("r", "a", dispatch="d", status="unknown", settled_by="recovery"))
    script.owner("c1", result("r", "a", dispatch="d", status="ok"))
    seen = of(script)
    assert seen["dispatches"]["d"]["status"] == "unknown"
    assert seen["dispatches"]["d"]["evidence"] == ["r"]
    assert seen["counts"]["fenced"] == 1
    assert seen["tree"]["leaf"] == "r"
    script.guest(
        event(
            "dispatch_settled", "verdict", dispatch="d", status="not_started", settled_by="person"
        )
    )
    seen = of(script)
    assert seen["dispatches"]["d"]["status"] == "unknown"
    assert seen["dispatches"]["d"]["notes"] == 1


def test_of_two_racing_claims_the_first_wins() -> None:
    script = Script()
    script.claim("c1")
    script.claim("c2", expects=0)
    script.owner("c2", user("no", None))
    script.owner("c1", user("yes", None))
    seen = of(script)
    assert seen["ownership"]["claim"] == "c1"
    assert seen["tree"]["path"] == ["yes"]
    assert seen["quarantine"] == [(3, -1, "fold", False)]
    assert seen["damage"] == []


def test_a_missing_parent_is_bridged_and_closed_when_it_arrives() -> None:
    script = Script()
    script.claim("c1")
    script.owner("c1", user("m1", None), user("m2", "m1"), user("m4", "m3"), user("m5", "m4"))
    seen = of(script)
    assert seen["tree"]["path"] == ["m1", "m2", "m4", "m5"]
    assert seen["damage"] == [("dangling_parent", 2)]
    script.owner("c1", user("m3", "m2"))
    seen = of(script)
    assert seen["tree"]["leaf"] == "m5"
    assert seen["entries"]["m4"]["declared"] == "m3"
    assert seen["damage"] == []
    assert ("m3", "m3", "m2", None, False) in seen["branches"]


def test_cycles_are_cut_and_flagged() -> None:
    script = Script()
    script.claim("c1")
    script.owner("c1", user("x", "y"), user("y", "x"), user("z", "z"))
    seen = of(script)
    assert seen["tree"]["path"] == ["x", "z"]
    assert sorted(kind for kind, _ in seen["damage"]) == ["cycle", "dangling_parent"]


def test_a_summary_of_a_summary_covers_every_message() -> None:
    script = Script()
    script.claim("c1")
    script.owner("c1", user("m1", None), user("m2", "m1"), user("m3", "m2"))
    for number, (first, last, parent) in enumerate([("m1", "m2", "m3"), ("k0", "m3", "k0")]):
        replaces = {"first": first, "last": last}
        script.owner(
            "c1",
            event(
                "compaction",
                f"k{number}",
                parent=parent,
                kind="summary",
                replaces=replaces,
                content=[],
            ),
        )
    model = Model(script.frames)
    assert model.tree.surface(model.tree.leaf) == [5]
    assert model.tree.covered(5) == {1, 2, 3, 4, 5}
    assert observable(model)["tree"]["surface"] == [("k1", "compaction", "user")]


def test_an_unreadable_frame_in_force_is_damage_and_its_seq_counts() -> None:
    script = Script()
    script.claim("c1")
    item = script.owner("c1", user("m1", None))
    script.items.pop()
    script.append(item.record._replace(body=b"{"))
    script.owner("c1", user("m2", None))
    seen = of(script)
    assert seen["damage"] == [("unreadable", 3)]
    assert seen["session"]["listed"]
    assert seen["tree"]["leaf"] == "m2"
