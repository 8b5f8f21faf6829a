"""What exceeds a bound is counted and marked, by the fold as by the model."""

from __future__ import annotations

from typing import Any

from tests.model.folding import fold_all
from tests.model.model import Model
from tests.model.observable import Observable, differences, observable
from tests.model.observe import observe
from tests.model.writing import SESSION, Script, assistant, event, result, text, user


def compared(script: Script) -> Observable:
    rows = fold_all(script.frames)
    seen = observe(rows, SESSION)
    found = differences(observable(Model(script.frames)), seen)
    assert not found, "\n".join(found)
    return seen


def owned() -> Script:
    script = Script()
    script.claim("c1")
    return script


def dispatched(number: int, **data: Any) -> Any:
    names = {"operation": "o", "dispatch": f"d{number}", "call_index": number}
    entries = {"assistant_entry": "a", "result_entry": f"r{number}"}
    return event("tool_dispatched", f"t{number}", **{**names, **entries, **data})


def test_the_65th_pending_input_is_refused() -> None:
    script = owned()
    for number in range(66):
        queued = {"input": f"i{number}", "entry": f"e{number}", "content": text("later")}
        script.guest(event("input_queued", f"q{number}", **queued))
    script.guest(event("input_cancelled", "x", input="i0"))
    again = {"input": "i66", "entry": "e66", "content": []}
    script.guest(event("input_queued", "q66", **again))
    seen = compared(script)
    assert len(seen["pending_inputs"]) == 64
    assert seen["inputs"]["i64"] == ("refused", "e64", None)
    assert seen["inputs"]["i66"] == ("queued", "e66", None)


def test_a_257th_open_dispatch_is_kept_but_not_listed() -> None:
    script = owned()
    script.owner("c1", user("u", None), assistant("a", "u", *(["x"] * 260)))
    accepted = {"operation": "o", "kind": "prompt", "input_entry": "u"}
    script.owner("c1", event("operation_accepted", "acc", **accepted))
    script.owner("c1", *(dispatched(number) for number in range(258)))
    seen = compared(script)
    assert len(seen["open_dispatches"]) == 256
    assert seen["overflow"] == {"open_dispatches": 2}
    assert seen["operations"]["o"]["open_dispatches"] == 258
    script.owner("c1", result("r257", "a", dispatch="d257"), result("r0", "a", dispatch="d0"))
    script.owner("c1", dispatched(258), dispatched(259))
    seen = compared(script)
    assert len(seen["open_dispatches"]) == 256
    assert seen["overflow"] == {"open_dispatches": 3}


def test_a_257th_missing_parent_is_counted() -> None:
    script = owned()
    for number in range(259):
        script.owner("c1", user(f"e{number}", f"gone{number}"))
    script.owner("c1", user("again", "gone3"), user("beyond", "gone258"))
    script.owner("c1", user("gone5", None), user("gone257", None), user("last", "lost"))
    seen = compared(script)
    assert len(seen["missing_parents"]) == 256
    assert seen["overflow"]["missing_parents"] == 4
    assert [kind for kind, _ in seen["damage"]].count("overflow") == 1
    assert seen["entries"]["gone5"]["parent"] is None
    assert seen["tree"]["leaf"] == "last"


def test_a_257th_damage_is_counted() -> None:
    script = owned()
    for number in range(30):
        broken = [event("message", f"b{number}-{n}", parent=None, role="nobody") for n in range(9)]
        script.owner("c1", user(f"u{number}", None), *broken)
    seen = compared(script)
    assert len(seen["damage"]) == 256
    assert seen["overflow"] == {"damage": 14}
    assert seen["counts"]["quarantined"] == 270


def test_a_257th_lost_claim_that_may_win_is_counted() -> None:
    script = owned()
    for number in range(258):
        script.guest(event("session_claimed", f"k{number}", claim=f"early{number}", expects=7))
    seen = compared(script)
    assert seen["overflow"] == {"lost_claims": 2}
    assert seen["counts"]["lost_claims"] == 258


def test_a_65th_piece_of_evidence_and_a_65th_note_are_counted() -> None:
    script = owned()
    script.owner("c1", user("u", None), assistant("a", "u", "x"))
    script.owner("c1", dispatched(0), result("r0", "a", dispatch="d0", status="unknown"))
    for number in range(66):
        settled = {"dispatch": "d0", "status": "unknown"}
        host, person = f"h{number}", f"p{number}"
        script.owner("c1", event("dispatch_settled", host, settled_by="host", **settled))
        script.guest(event("dispatch_settled", person, settled_by="person", **settled))
    seen = compared(script)
    assert len(seen["dispatches"]["d0"]["evidence"]) == 64
    assert seen["dispatches"]["d0"]["notes"] == 64
    assert seen["overflow"] == {"evidence": 2, "notes": 2}
    script.owner("c1", event("rerun_allowed", "may", dispatch="d0"))
    late = {"dispatch": "d0", "status": "ok", "settled_by": "host"}
    script.owner("c1", event("dispatch_settled", "late", **late))
    again = {"dispatch": "d0", "status": "not_started", "settled_by": "person"}
    script.guest(event("dispatch_settled", "verdict", **again))
    compared(script)


def test_many_entries_page_the_surface() -> None:
    script = owned()
    names = [f"e{number}" for number in range(300)]
    for number, name in enumerate(names):
        script.owner("c1", user(name, names[number - 1] if number else None))
    for number, (first, last) in enumerate([(3, 290), (0, 1)]):
        replaces = {"first": names[first], "last": names[last]}
        parent = f"k{number - 1}" if number else names[-1]
        data = {"kind": "summary", "replaces": replaces, "content": []}
        script.owner("c1", event("compaction", f"k{number}", parent=parent, **data))
    seen = compared(script)
    assert len(seen["tree"]["surface"]) == 1 + 1 + 1 + 9
    script.owner("c1", event("branch", "back", parent="e200"))
    seen = compared(script)
    assert len(seen["tree"]["surface"]) == 201
