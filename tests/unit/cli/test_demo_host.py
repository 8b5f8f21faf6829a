"""The demo's host in this process, on a day without a crash."""

import asyncio
from pathlib import Path

import pytest

from turnlog.cli.demo.crash import EXPECTED
from turnlog.cli.demo.host import Task, work
from turnlog.cli.demo.receiver import READS, Receiver
from turnlog.cli.demo.script import DAY, TIDES, model
from turnlog.core.errors import StateError, UsageError
from turnlog.log import open as open_log
from turnlog.owner.ambient import system_clock
from turnlog.tables.view import SessionView


def run(folder: Path, receiver: Receiver, session: str, act: str) -> object:
    task = Task(
        f"sqlite:{folder}/log.db", session, "host", "Title", str(folder), receiver.port, act
    )
    return asyncio.run(work(task))


def test_a_day_without_a_crash(tmp_path: Path) -> None:
    with Receiver() as receiver:
        assert run(tmp_path, receiver, DAY, "day") == {"ended": "completed", "why": ""}
        assert run(tmp_path, receiver, "storm", "storm") == {"ended": "completed", "why": ""}
        counts = {tool: receiver.counted(tool, receiver.keys(tool)[0]) for tool in EXPECTED}
    assert {tool: (one.requests, one.effects) for tool, one in counts.items()} == {
        tool: (1, 0 if tool in READS else 1) for tool in EXPECTED
    }
    assert (tmp_path / "tides.csv").read_text() == TIDES
    with open_log(f"sqlite:{tmp_path}/log.db", clock=system_clock) as log:
        view = SessionView(log.tables, DAY)
        assert {row.status for row in view.rows("dispatches")} == {"ok"}
        assert "143 cm" in str(view.context())
        [helper] = [
            head for head in log.tables.scan("sessions", None) if head.parent_session == DAY
        ]
        answer = SessionView(log.tables, helper.session).context()[-1]["content"]
        assert answer[0]["text"].startswith("It does")


def test_where_nothing_is_open_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    with Receiver() as receiver, pytest.raises(UsageError, match="nothing is queued"):
        run(tmp_path, receiver, "new", "go on")


async def test_the_model_says_what_its_script_has_not() -> None:
    text = {"type": "text", "text": "Something else."}
    with pytest.raises(StateError, match="no answer number 1 to 'Something"):
        await model([{"role": "user", "content": [text]}])
