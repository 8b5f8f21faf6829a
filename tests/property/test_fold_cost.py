"""What an append costs does not grow with the session."""

from __future__ import annotations

from typing import Any

from tests.model.folding import Cost, Tables
from tests.model.writing import Script, assistant, event, result, user


def ordinary_turn(number: int, leaf: str | None) -> list[list[Any]]:
    """The frames of a turn with one tool call."""
    u, a, r, f, state, o = (f"{prefix}{number}" for prefix in ("u", "a", "r", "f", "s", "o"))
    names = {"operation": o}
    asked = {"assistant_entry": a, "attempt": f"t{number}", **names}
    t1 = {"dispatch": f"d{number}", "call_index": 0, "assistant_entry": a, "result_entry": r}
    final = f"t{number}b"
    return [
        [
            user(u, leaf),
            event("operation_accepted", f"x{number}", kind="prompt", input_entry=u, **names),
        ],
        [event("model_attempted", f"y{number}", **asked)],
        [assistant(a, u, "call_0", attempt=f"t{number}", stop_reason="tool_use")],
        [event("usage_settled", f"z{number}", attempt=f"t{number}", usage={"input": 9}, **names)],
        [event("tool_dispatched", f"w{number}", **t1, **names)],
        [result(r, a, dispatch=f"d{number}", status="ok")],
        [event("app_state", state, parent=r, value={"turn": number})],
        [event("model_attempted", f"v{number}", attempt=final, assistant_entry=f, **names)],
        [assistant(f, state, attempt=final, stop_reason="stop")],
        [event("operation_finished", f"q{number}", outcome="completed", **names)],
    ]


ENTRIES_OF_A_TURN = 5
SURFACE_PAGE = 128


def test_an_append_costs_the_same_in_a_long_session() -> None:
    script, tables = Script(), Tables()
    script.claim("c1")
    script.owner("c1", event("session_created", "created"))
    for position, frame in script.frames:
        tables.apply(position, frame)
    leaf: str | None = None
    early: list[Cost] = []
    late: list[Cost] = []
    for turn in range(5_000 // ENTRIES_OF_A_TURN + SURFACE_PAGE):
        entries = turn * ENTRIES_OF_A_TURN
        worst = early if 100 <= entries < 100 + 2 * SURFACE_PAGE else late
        for events in ordinary_turn(turn, leaf):
            item = script.owner("c1", *events)
            cost = tables.apply(item.position, item.frame)
            if worst is early or entries >= 5_000:
                worst.append(cost)
        leaf = f"f{turn}"
    assert max(c.gets for c in late) <= max(c.gets for c in early)
    assert max(c.rows for c in late) <= max(c.rows for c in early)
    assert sum(c.gets for c in late) / len(late) <= 1.02 * sum(c.gets for c in early) / len(early)
    assert max(c.characters for c in late) <= 1.1 * max(c.characters for c in early)
