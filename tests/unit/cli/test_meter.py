"""Bars: shown where a person watches, with rates, and gone at the end."""

import io

import pytest
from rich.console import Console

from turnlog.cli.meter import Steps, meter
from turnlog.cli.options import Common
from turnlog.cli.terminal import Terminal


def console() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def shown(watched: Console) -> str:
    assert isinstance(watched.file, io.StringIO)
    return watched.file.getvalue()


def test_a_meter_counts_records_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.progress.Task.elapsed", 2.0)
    watched = console()
    with meter(watched, "writing [x]", 2_000_000) as tick:
        tick(600, 1_000_000)
    assert "writing [x]" in shown(watched)
    assert "300/s" in shown(watched)
    assert "1.0/2.0 MB" in shown(watched)


@pytest.mark.parametrize(("are_bytes", "count"), [(False, "3/9"), (True, "3/9 bytes")])
def test_steps_show_themselves_when_there_is_a_way_to_go(are_bytes: bool, count: str) -> None:
    watched = console()
    with Steps(watched, "folding", are_bytes=are_bytes) as steps:
        steps.reach(9, 9)
        assert shown(watched) == ""
        steps.reach(1, 9)
        steps.reach(3, 9)
    assert "folding" in shown(watched)
    assert count in shown(watched)
    with Steps(watched, "nothing", are_bytes=are_bytes):
        pass
    assert "nothing" not in shown(watched)


class Watched(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_are_for_terminals_and_not_for_the_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, quiet, is_shown in (
        (Watched(), False, True),
        (Watched(), True, False),
        (io.StringIO(), False, False),
    ):
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        terminal = Terminal(Common(quiet=quiet))
        with terminal.meter("moving") as tick:
            tick(1, 1)
        with terminal.steps("folding") as progress:
            progress(1, 2)
        assert ("moving" in stream.getvalue()) is is_shown
        assert ("folding" in stream.getvalue()) is is_shown
