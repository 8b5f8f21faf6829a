"""Who says a word, and how long ago something was."""

from __future__ import annotations

import getpass

import pytest

from turnlog.cli.pending import age
from turnlog.cli.words import who


def test_who_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert who("ann") == "ann"
    assert who("") == ""
    monkeypatch.setattr(getpass, "getuser", lambda: "bob")
    assert who(None) == "bob"

    def nobody() -> str:
        raise KeyError("no name for this user id")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert who(None) is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 s ago"),
        (59.0, "59 s ago"),
        (60.0, "1 min ago"),
        (7_200.0, "2 h ago"),
        (200_000.0, "2 d ago"),
    ],
)
def test_how_long_ago(seconds: float, said: str) -> None:
    assert age(seconds) == said
