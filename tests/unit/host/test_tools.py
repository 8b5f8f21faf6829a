"""How tools are registered."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.host.tools import STRICTNESS, Never, Tool, ToolCall, stricter, toolbox


async def run(call: ToolCall) -> str:
    return call.tool


async def probe(call: ToolCall) -> Never:
    return Never()


def test_tools_are_found_by_name_and_names_are_unique() -> None:
    box = toolbox([Tool("a", run), Tool("b", run)])
    assert sorted(box) == ["a", "b"]
    assert toolbox(box) is box
    with pytest.raises(ValueError, match="two tools"):
        toolbox([Tool("a", run), Tool("a", run)])


def test_a_tool_is_opaque_unless_it_says_otherwise() -> None:
    assert Tool("a", run).effect == "opaque"


@pytest.mark.parametrize("effect", ["", "READ_ONLY", "safe", None])
def test_an_effect_class_is_one_of_the_four(effect: Any) -> None:
    with pytest.raises(ValueError, match="none of"):
        Tool("a", run, effect=effect)


def test_what_is_reconcilable_has_a_probe() -> None:
    with pytest.raises(ValueError, match="needs a probe"):
        Tool("a", run, effect="reconcilable")
    assert Tool("a", run, effect="reconcilable", probe=probe).probe is probe


@pytest.mark.parametrize("one", [*STRICTNESS, "who knows"])
@pytest.mark.parametrize("other", [*STRICTNESS, "who knows"])
def test_the_stricter_of_two_is_the_same_either_way(one: str, other: str) -> None:
    found = stricter(one, other)
    assert found == stricter(other, one)
    known = [effect if effect in STRICTNESS else "opaque" for effect in (one, other)]
    assert STRICTNESS.index(found) == max(STRICTNESS.index(effect) for effect in known)
