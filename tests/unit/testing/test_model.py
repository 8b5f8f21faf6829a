"""The scripted model: what it answers, what it remembers, and how it says that it has no more."""

from __future__ import annotations

import pytest

from turnlog.host import Reply, open_session, run_turn
from turnlog.testing import ScriptedModel, ScriptEnded, call, memory_log

ASKED = [{"role": "user", "content": [{"type": "text", "text": "Hi"}], "entry": "e1"}]
ANSWERED = [*ASKED, {"role": "assistant", "content": [], "entry": "e2"}]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Hello.", "Hello."),
        ([call("look")], [call("look")]),
        ({"content": "Cut", "stop_reason": "length"}, {"content": "Cut", "stop_reason": "length"}),
        (lambda context: f"You said {len(context)}", "You said 1"),
    ],
)
async def test_an_answer_is_what_the_model_says(answer, message) -> None:
    assert await ScriptedModel([answer])(ASKED) == Reply(message)


async def test_a_reply_keeps_what_it_cost() -> None:
    reply = Reply("Hello.", {"input": 3, "output": 1})
    assert await ScriptedModel([reply])(ASKED) is reply


async def test_a_function_may_be_asynchronous() -> None:
    async def answer(context):
        return Reply("Later.")

    assert await ScriptedModel([answer])(ASKED) == Reply("Later.")


async def test_an_error_is_raised_also_where_a_function_gives_it() -> None:
    model = ScriptedModel([TimeoutError("slow"), lambda context: ValueError("bad")])
    with pytest.raises(TimeoutError, match="slow"):
        await model(ASKED)
    with pytest.raises(ValueError, match="bad"):
        await model(ASKED)
    assert model.left == 0


async def test_it_answers_in_order_and_remembers_what_it_was_asked_with() -> None:
    model = ScriptedModel(["One", "Two"])
    context = [dict(ASKED[0])]
    assert (await model(context)).message == "One"
    context[0]["role"] = "changed"
    assert (await model(ANSWERED)).message == "Two"
    assert model.contexts == [ASKED, ANSWERED]
    assert model.left == 0


async def test_by_context_a_second_one_goes_on_where_the_first_was() -> None:
    answers = ["One", "Two"]
    assert (await ScriptedModel(answers, by_context=True)(ASKED)).message == "One"
    assert (await ScriptedModel(answers, by_context=True)(ANSWERED)).message == "Two"


async def test_one_that_has_no_more_says_so_with_what_it_was_asked() -> None:
    model = ScriptedModel(["One"])
    await model(ASKED)
    with pytest.raises(ScriptEnded, match=r"has 1 answers .* number 2; .* user .*'Hi'"):
        await model(ASKED)
    with pytest.raises(ScriptEnded, match="asked with: nothing"):
        await ScriptedModel([])([])
    with pytest.raises(ScriptEnded, match=r"x\.\.\."):
        await ScriptedModel([])([{"role": "user", "content": "x" * 500}])


async def test_the_end_of_the_script_ends_the_turn_with_that_error() -> None:
    async with open_session(memory_log(), "s", host="h") as session:
        with pytest.raises(ScriptEnded):
            await run_turn(session, ScriptedModel([]), "Hi")


def test_a_call_without_an_id_leaves_it_to_the_host() -> None:
    assert call("look", date="today") == {
        "type": "tool_call",
        "name": "look",
        "args": {"date": "today"},
    }
    assert call("look", call_id="c1")["call_id"] == "c1"
