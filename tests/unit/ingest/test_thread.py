"""The thread: the leaf, the surface, the open calls, through moves and compactions."""

from turnlog.ingest.thread import STANDS, USER, Call, Lookup, Thread, derived

CALLS = [Call("c", "Bash"), Call("c", "Read"), Call("d", "Read")]


def thread() -> Thread:
    """Rows are their own ids; every assistant row has the same calls."""
    return Thread(Lookup(lambda row: f"row-{row}", lambda _row: CALLS))


def say(told: Thread, row: int) -> int:
    return told.add("message", f"row-{row}", None, {"role": "user"}, row=row, role=USER)


def ask(told: Thread, row: int) -> int:
    return told.add_assistant(f"row-{row}", None, {"role": "assistant"}, CALLS, row=row)


def test_entries_hang_under_the_leaf() -> None:
    told = thread()
    say(told, 1)
    say(told, 2)
    [unit] = told.take()
    assert [event.data["parent"] for event in unit] == [None, "row-1"]
    assert (told.leaf_id, told.surface, list(told.take())) == ("row-2", [1, 2], [])


def test_a_move_takes_surface_and_open_calls_from_the_path() -> None:
    told = thread()
    say(told, 1)
    ask(told, 2)
    told.add_result("r", None, {"call_id": "c"}, row=3)
    assert told.open == {"c": [1], "d": [2]}
    say(told, 4)
    ask(told, 5)
    told.branch(3, "b", None)
    assert (told.surface, told.open, told.last_message) == ([1, 2, 3], {"c": [1], "d": [2]}, 3)
    assert told.is_at(3)
    assert told.is_on_path(3)
    assert not told.is_on_path(4)
    told.branch(0, "b2", None, {"summary": "s"})
    assert (told.surface, told.open, told.is_at(0)) == ([7], {}, False)


def test_results_answer_the_first_open_call_of_their_id() -> None:
    told = thread()
    ask(told, 1)
    list(told.take())
    for call_id in ("d", "c", "c", "c", None):
        told.add_result("r", None, {"call_id": call_id})
    assert told.open == {}
    [unit] = told.take()
    assert [event.data["tool"] for event in unit] == ["Read", "Bash", "Read", None, None]


def test_what_is_open_is_answered_before_the_path_goes_on() -> None:
    told = thread()
    ask(told, 1)
    told.answer_open("next", "t")
    units = list(told.take())
    assert [unit[-1].data.get("call_id") for unit in units[1:]] == ["c", "c", "d"]
    assert len({unit[0].id for unit in units}) == 4


def test_a_span_ends_before_a_call_that_is_not_answered_in_it() -> None:
    told = thread()
    say(told, 1)
    ask(told, 2)
    for row, call_id in ((3, "c"), (4, "c"), (5, "d")):
        told.add_result(f"row-{row}", None, {"call_id": call_id}, row=row)
    say(told, 6)
    assert told.span_before(None) == (0, 5)
    assert told.span_before(6) == (0, 4)
    assert told.span_before(4) == (0, 0)
    assert told.span_before(1) is None


def test_a_summary_stands_where_what_it_replaces_stood() -> None:
    told = thread()
    for row in range(1, 5):
        say(told, row)
    first = told.add_summary("s", None, {}, (1, 2), row=5)
    assert told.surface == [1, first, 4]
    assert told.span_before(4) == (0, 1)
    assert told.span_before(2) == (0, 1)  # it is covered: the summary goes, too
    second = told.add_summary("t", None, {}, (0, 1), row=6)
    say(told, 7)
    told.branch(first, "b", None)
    assert told.surface == [1, first, 4]
    told.branch(7, "b2", None)
    assert told.surface == [second, 4, 7]
    [unit] = told.take()
    assert unit[5].data["replaces"] == {"first": "row-1", "last": "s"}


def test_the_nearest_input_is_no_answer_and_no_result() -> None:
    told = thread()
    assert told.nearest_input() is None
    told.add("custom", "k", None, {}, row=1, role=STANDS)
    ask(told, 2)
    assert told.nearest_input() == "row-1"


def test_the_state_is_that_of_the_path() -> None:
    told = thread()
    told.start_state({"a": 0})
    assert told.state() == {"a": 0}
    told.add_state("s", None, {"a": 1}, row=1)
    say(told, 2)
    assert told.state() == {"a": 1}
    told.branch(0, "b", None)
    assert told.state() == {"a": 0}


def test_ids_are_made_the_same_each_time() -> None:
    assert derived("x", 1, "a") == derived("x", 1, "a") != derived("x", "1a")
