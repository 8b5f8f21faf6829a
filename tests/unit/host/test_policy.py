"""What a host may choose to do about calls that a crash left open."""

import pytest

from turnlog.core.errors import UsageError
from turnlog.host.policy import ALLOWED, Policy
from turnlog.host.tools import STRICTNESS


def test_the_defaults_are_the_designs_table() -> None:
    policy = Policy()
    assert {effect: policy.action(None, effect) for effect in STRICTNESS} == {
        "read_only": "run",
        "idempotent": "run",
        "reconcilable": "probe",
        "opaque": "answer",
    }
    assert policy.action("t", "who knows") == "answer"


def test_a_tools_own_choice_goes_before_its_effect_classes() -> None:
    policy = Policy({"t": "park", "read_only": "answer"})
    assert policy.action("t", "read_only") == "park"
    assert policy.action("u", "read_only") == "answer"
    assert policy.action("u", "idempotent") == "run"


@pytest.mark.parametrize("effect", STRICTNESS)
@pytest.mark.parametrize("action", ["run", "probe", "answer", "park", "dance", "", None])
def test_nothing_makes_a_policy_less_careful(effect: str, action: str) -> None:
    if action in ALLOWED[effect]:
        assert Policy({effect: action}).action(None, effect) == action
    else:
        with pytest.raises(UsageError, match="not possible"):
            Policy({effect: action})
    if action in ("run", "probe", "answer", "park"):
        chosen = Policy({"t": action}).action("t", effect)
        assert chosen == (action if action in ALLOWED[effect] else "answer")
    assert "run" not in ALLOWED["opaque"] + ALLOWED["reconcilable"]


def test_a_policy_is_not_changed_by_changing_what_it_was_made_of() -> None:
    by = {"read_only": "answer"}
    policy = Policy(by)
    by["read_only"] = "run"
    assert policy.action(None, "read_only") == "answer"
