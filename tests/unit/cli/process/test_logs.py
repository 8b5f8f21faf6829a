"""What a process says: one form for everything, and no secret in it."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from turnlog.cli.process.logs import REPEAT_S, Seldom, logging_to_stderr

OURS = logging.getLogger("turnlog.some.place")
THEIRS = logging.getLogger("library")
URL = "kafka://ann:hunter2@host:9092/sessions"


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    """Does something while logs are JSON lines; gives them."""

    def run(work: Callable[[], object], **options: bool) -> list[dict[str, Any]]:
        with logging_to_stderr("json", **options):
            work()
        return [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    return run


def test_a_line_has_its_fields_and_what_it_is_about(said: Any) -> None:
    about = {"session": "s", "position": 7, "event": "e1", "odd": {1: {2}}}
    (line,) = said(lambda: OURS.warning("two\nlines of %s", "text", extra=about))
    time = line.pop("time")
    assert time.endswith("Z")
    assert len(time) == len("2026-01-01T00:00:00.000Z")
    assert line == {
        "level": "warning",
        "logger": "turnlog.some.place",
        "message": "two\nlines of text",
        "session": "s",
        "position": 7,
        "event": "e1",
        "odd": {"1": "{2}"},
    }


def test_what_cannot_be_written_is_said_all_the_same(said: Any) -> None:
    (line,) = said(lambda: OURS.warning("half \ud800"))
    assert "half" in line["message"]
    assert "d800" in line["message"]


def test_passwords_are_masked_wherever_they_stand(
    said: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        try:
            raise ValueError(f"no way to {URL}")
        except ValueError:
            OURS.exception("at %s", URL, extra={"log": URL})

    (line,) = said(work)
    assert "hunter2" not in json.dumps(line)
    assert line["log"] == "kafka://ann:***@host:9092/sessions"
    assert "no way to kafka://ann:***@" in line["trace"]
    with logging_to_stderr("text"):
        work()
    text = capsys.readouterr().err
    assert "hunter2" not in text
    assert text.count("ann:***@") == 3  # message, extra, error


def test_warnings_and_what_nobody_caught_have_the_same_form(said: Any) -> None:
    def raising() -> None:
        raise ValueError("in a thread")

    def work() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            logging.captureWarnings(True)  # inside, as pytest records warnings by itself
            warnings.warn("old ways", DeprecationWarning, stacklevel=1)
            logging.captureWarnings(False)
        thread = threading.Thread(target=raising, name="some thread")
        thread.start()
        thread.join()
        try:
            raising()
        except ValueError as error:
            sys.excepthook(ValueError, error, error.__traceback__)

    old, in_thread, uncaught = said(work)
    assert old["level"] == "warning"
    assert "old ways" in old["message"]
    assert (in_thread["level"], uncaught["level"]) == ("critical", "critical")
    assert in_thread["message"] == "uncaught in some thread: in a thread"
    assert "Traceback" in uncaught["trace"]


@pytest.mark.parametrize(
    ("options", "ours", "theirs"),
    [
        ({}, "info", "warning"),
        ({"quiet": True}, "error", "error"),
        ({"verbose": True}, "debug", "info"),
    ],
)
def test_quiet_and_verbose(said: Any, options: Any, ours: str, theirs: str) -> None:
    levels = ["debug", "info", "warning", "error"]

    def work() -> None:
        for level in levels:
            for logger in (OURS, THEIRS):
                logger.log(logging.getLevelNamesMapping()[level.upper()], level)

    lines = said(work, **options)
    for logger, first in ((OURS, ours), (THEIRS, theirs)):
        found = [line["level"] for line in lines if line["logger"] == logger.name]
        assert found == levels[levels.index(first) :]


def test_text_is_a_line_that_does_nothing_to_the_screen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_to_stderr("text"):
        OURS.info("plain", extra={"position": 3})
        OURS.error("red \x1b[31m\nand two lines")
    first, second = capsys.readouterr().err.splitlines()
    assert first[8:] == " plain  (position=3)"
    assert second[8:] == " error: red ␛[31m⏎and two lines"


def test_all_is_as_before_afterwards() -> None:
    def state() -> Any:
        root, ours = logging.getLogger(), logging.getLogger("turnlog")
        hooks = sys.excepthook, threading.excepthook, sys.unraisablehook, warnings.showwarning
        return root.handlers[:], root.level, ours.level, hooks

    before = state()
    with logging_to_stderr("json"):
        assert state() != before
    assert state() == before


def test_a_library_that_repeats_itself_is_heard_seldom() -> None:
    filter_ = Seldom()

    def record(text: str, at: float, name: str = "library") -> logging.LogRecord:
        made = logging.LogRecord(name, logging.ERROR, "", 0, "%s", (text,), None)
        made.created = at
        return made

    assert filter_.filter(record("no node", 0))
    assert not any(filter_.filter(record("no node", second)) for second in (0.1, 1, REPEAT_S - 1))
    assert filter_.filter(record("another node", 1))
    again = record("no node", REPEAT_S)
    assert filter_.filter(again)
    assert vars(again)["repeated"] == 3
    assert all(filter_.filter(record("same", 0, "turnlog.log")) for _ in range(3))
    assert all(filter_.filter(record(str(number), 0)) for number in range(5_000))
