"""Turns: how they begin and end, as far as a file tells."""

from turnlog.ingest.thread import Call, Lookup, Thread
from turnlog.ingest.turns import Answer, Turns, named


def turns_of_a_thread() -> Turns:
    return Turns(Thread(Lookup(lambda row: f"row-{row}", lambda _row: [])))


def test_ids_are_made_of_foreign_ones_and_stay_short() -> None:
    assert named("turn", "a") == "turn-a"
    assert named("turn", "a" * 481).startswith("turn-")
    assert len(named("turn", "a" * 481)) < 50


def answered(turns: Turns, stop: str | None, calls: bool = False) -> None:
    found = [Call("c", "Bash")] if calls else []
    turns.answer(Answer("a", "t2", [], found, stop, "m", None, 2, {}))


def outcome(stop: str | None, *, passed: bool, calls: bool = False) -> str | None:
    turns = turns_of_a_thread()
    turns.prompt("p", "t1", {"content": []}, row=1)
    answered(turns, stop, calls)
    turns.end(passed=passed)
    last = list(turns.thread.take())[-1][-1]
    return last.data["outcome"] if last.type == "operation_finished" else None


def test_how_a_turn_ends() -> None:
    for stop, wanted in (("stop", "completed"), ("error", "failed"), ("aborted", "aborted")):
        assert outcome(stop, passed=True) == outcome(stop, passed=False) == wanted
        assert outcome(stop, passed=False, calls=True) is None
    assert outcome(None, passed=True) == "completed"
    assert outcome(None, passed=False) is None
    assert outcome(None, passed=True, calls=True) == "interrupted"
    assert outcome("tool_use", passed=True) == "interrupted"
    turns = turns_of_a_thread()
    turns.end(passed=True)
    turns.touch("t")
    assert turns.operation is None
