"""The world outside: it counts, it can refuse and hang, and its assertions bite."""

from __future__ import annotations

import asyncio

import pytest

from turnlog.host.errors import Failed
from turnlog.host.tools import Happened, Never, ToolCall, Unsure
from turnlog.testing import EffectCounter


def a_call(dispatch: str = "d1", try_number: int = 1, key: str = "k1", **args) -> ToolCall:
    return ToolCall("s", "o", "pay", "c1", args, dispatch, try_number, key)


async def test_effects_are_counted_by_tool_and_by_key() -> None:
    effects = EffectCounter()
    pay, look = effects.tool("pay"), effects.tool("look", "read_only", returns={"seats": 3})
    assert await pay.run(a_call()) == "done"
    assert await pay.run(a_call("d2", key="k2")) == "done"
    assert await pay.run(a_call("d2", key="k2")) == "done"
    assert await look.run(a_call("d3", key="k3")) == {"seats": 3}
    assert (effects.started("pay"), effects.count("pay")) == (3, 3)
    assert effects.by_key("pay") == {"k1": 1, "k2": 2}
    assert effects.count("look") == 1
    effects.assert_count("look", 1)


async def test_the_tool_has_the_class_that_was_asked_for() -> None:
    effects = EffectCounter()
    assert effects.tool("pay").effect == "opaque"
    assert effects.tool("pay").probe is None
    tool = effects.tool("book", "reconcilable", timeout_s=1.5)
    assert tool.probe is not None
    assert tool.timeout_s == 1.5


async def test_what_it_returns_may_depend_on_the_call() -> None:
    tool = EffectCounter().tool("add", returns=lambda call: call.args["a"] + 1)
    assert await tool.run(a_call(a=1)) == 2


async def test_a_receiver_that_knows_keys_has_no_second_effect() -> None:
    effects, amounts = EffectCounter(), iter([1, 2])
    tool = effects.tool("pay", returns=lambda call: next(amounts), refuses_duplicates=True)
    assert await tool.run(a_call()) == 1
    assert await tool.run(a_call(try_number=2)) == 1
    assert (effects.started("pay"), effects.count("pay")) == (2, 1)
    effects.assert_once_per_key()


async def test_a_held_tool_hangs_before_its_effect() -> None:
    effects = EffectCounter()
    tool = effects.tool("pay")
    effects.release("pay")
    effects.hold("pay")
    task = asyncio.create_task(tool.run(a_call()))
    await asyncio.sleep(0)
    assert (effects.started("pay"), effects.count("pay")) == (1, 0)
    effects.release("pay")
    assert await task == "done"
    assert effects.count("pay") == 1


async def test_a_probe_knows_what_happened() -> None:
    effects = EffectCounter()
    tool = effects.tool("book", "reconcilable", returns="seat 4")
    await tool.run(a_call())
    assert await tool.probe(a_call(try_number=2)) == Happened("seat 4")
    effects.forget("book")
    assert await tool.probe(a_call(try_number=2)) == Unsure()


async def test_a_start_that_a_probe_called_off_is_refused_however_late() -> None:
    effects = EffectCounter()
    tool = effects.tool("book", "reconcilable")
    effects.hold("book")
    late = asyncio.create_task(tool.run(a_call(try_number=1)))
    await asyncio.sleep(0)
    assert await tool.probe(a_call(try_number=2)) == Never()
    effects.release("book")
    with pytest.raises(Failed, match="refused"):
        await late
    assert await tool.run(a_call(try_number=2)) == "done"
    effects.assert_count("book", 1)
    effects.assert_as_declared()


async def test_a_wrong_count_is_told_with_the_calls() -> None:
    effects = EffectCounter()
    await effects.tool("pay").run(a_call(amount=80))
    with pytest.raises(AssertionError, match=r"'pay' took effect 1 times and not 2:\n.*'amount'"):
        effects.assert_count("pay", 2)


async def test_twice_under_one_key_is_seen_but_for_what_only_reads() -> None:
    effects = EffectCounter()
    look, pay = effects.tool("look", "read_only"), effects.tool("pay", "idempotent")
    for _ in range(2):
        await look.run(a_call())
    effects.assert_once_per_key()
    with pytest.raises(AssertionError, match="'look' took effect 2 times"):
        effects.assert_once_per_key("look")
    for number in (1, 2):
        await pay.run(a_call("d2", number, "k2"))
    with pytest.raises(AssertionError, match=r"2 times under the key 'k2':\n  try 1 .*\n  try 2 "):
        effects.assert_once_per_key()
    effects.assert_as_declared()


async def test_an_opaque_call_that_is_started_twice_is_seen() -> None:
    effects = EffectCounter()
    tool = effects.tool("pay")
    await tool.run(a_call())
    effects.assert_as_declared()
    await tool.run(a_call(try_number=2))
    with pytest.raises(AssertionError, match="opaque, was started 2 times"):
        effects.assert_as_declared()


async def test_one_call_under_two_keys_is_seen() -> None:
    effects = EffectCounter()
    tool = effects.tool("pay", "idempotent")
    await tool.run(a_call())
    await tool.run(a_call(try_number=2, key="k2"))
    with pytest.raises(AssertionError, match="under 2 keys"):
        effects.assert_as_declared()


async def test_two_calls_under_one_key_are_seen() -> None:
    effects = EffectCounter()
    tool = effects.tool("pay", "idempotent")
    await tool.run(a_call())
    await tool.run(a_call("d2"))
    with pytest.raises(AssertionError, match="two calls have the key 'k1'"):
        effects.assert_as_declared()


async def test_a_reconcilable_call_started_again_without_a_probe_is_seen() -> None:
    effects = EffectCounter()
    tool = effects.tool("book", "reconcilable")
    await tool.run(a_call())
    await tool.run(a_call(try_number=2))
    with pytest.raises(AssertionError, match="no probe had said never"):
        effects.assert_as_declared()
