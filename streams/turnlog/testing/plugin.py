"""Fixtures for pytest; a project that wants them says so in its outermost conftest.py:

    pytest_plugins = ["turnlog.testing.plugin"]

There is no entry point, which would load this in every run of pytest wherever turnlog is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from turnlog.log.port import EmbeddedLog
from turnlog.testing.effects import EffectCounter
from turnlog.testing.memory import ManualClock, memory_log
from turnlog.testing.model import Answer, ScriptedModel


@pytest.fixture
def turnlog_clock() -> ManualClock:
    """The clock of `turnlog_log`; it stands still until the test moves it."""
    return ManualClock()


@pytest.fixture
def turnlog_log(turnlog_clock: ManualClock) -> Iterator[EmbeddedLog]:
    """A log in memory, closed when the test ends."""
    with memory_log(turnlog_clock) as log:
        yield log


@pytest.fixture
def scripted_model() -> Callable[..., ScriptedModel]:
    """Makes a model of answers: `scripted_model("Hello.", [call("look")], "Done.")`."""

    def make(*answers: Answer, by_context: bool = False) -> ScriptedModel:
        return ScriptedModel(answers, by_context=by_context)

    return make


@pytest.fixture
def effect_counter() -> EffectCounter:
    """A world in which effects are counted, for all hosts of one test."""
    return EffectCounter()
