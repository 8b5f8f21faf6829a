"""The tree of errors is the one that the module draws, and each carries what its callers need."""

from __future__ import annotations

import re

import pytest

from turnlog.core import errors
from turnlog.core.errors import (
    AppendRefused,
    AppendUnknown,
    Fenced,
    LogError,
    LogUnavailable,
    TurnlogError,
)


def drawn() -> dict[str, str]:
    """Each error of the picture, with the one it hangs under."""
    lines = (errors.__doc__ or "").splitlines()
    found: dict[str, str] = {}
    above: list[str] = []
    for line in lines:
        match = re.match(r"^([│├└─ ]*)([A-Z]\w+)(\s|$)", line)
        if match:
            depth = len(match.group(1)) // 4
            name = match.group(2)
            if hasattr(errors, name):
                above[depth:] = [name]
                if depth:
                    found[name] = above[depth - 1]
    return found


def test_the_tree_is_the_one_that_is_drawn() -> None:
    classes = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, TurnlogError)
    }
    tree = {name: value.__bases__[0].__name__ for name, value in classes.items()}
    assert tree.pop("TurnlogError") == "Exception"
    assert drawn() == tree


@pytest.mark.parametrize(
    ("error", "retriable"),
    [
        (LogError("x"), False),
        (LogError("x", retriable=True), True),
        (AppendRefused("x"), False),
        (AppendRefused("x", retriable=True), True),
        (AppendUnknown("x"), True),
        (AppendUnknown("x", retriable=False), False),
        (LogUnavailable("x", retriable=None), False),
    ],
)
def test_a_log_error_says_whether_to_try_again(error: LogError, retriable: bool) -> None:
    assert error.retriable is retriable
    assert str(error) == "x"


def test_a_fenced_owner_gets_back_what_was_not_saved() -> None:
    assert Fenced("x").unsaved == ()
    assert Fenced("x", ["a", "b"]).unsaved == ("a", "b")
