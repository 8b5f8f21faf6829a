"""The fixtures as a project uses them: named in its conftest.py, and in no other way."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from turnlog.host import open_session, run_turn
from turnlog.testing import call
from turnlog.testing.memory import START_MS

pytest_plugins = ["turnlog.testing.plugin"]

TESTS = """
import asyncio
from turnlog.host import open_session, run_turn
from turnlog.testing import call


def test_all(turnlog_log, turnlog_clock, scripted_model, effect_counter):
    asyncio.run(talk(turnlog_log, scripted_model([call("pay")], "Paid."), effect_counter))
    turnlog_clock.advance(1)
    effect_counter.assert_once_per_key()
    effect_counter.assert_count("pay", 1)


async def talk(log, model, effects):
    async with open_session(log, "s", host="h", tools=[effects.tool("pay")]) as session:
        assert await run_turn(session, model, "Pay.") == "completed"


def test_each_test_has_its_own(turnlog_log, effect_counter):
    assert turnlog_log.tables.position() == 0
    assert effect_counter.starts == []
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:asyncio", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_project_that_names_the_plugin_has_its_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["turnlog.testing.plugin"]\n')
    done = run(tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    listed = run(tmp_path, "--fixtures")
    assert "A log in memory, closed when the test ends." in listed.stdout


async def test_the_fixtures(turnlog_log, turnlog_clock, scripted_model, effect_counter) -> None:
    model = scripted_model([call("pay")], "Paid.")
    async with open_session(turnlog_log, "s", host="h", tools=[effect_counter.tool("pay")]) as s:
        turnlog_clock.advance(3)
        assert await run_turn(s, model, "Pay.") == "completed"
    last = [stored.time async for stored in turnlog_log.read()][-1]
    assert last == turnlog_clock() == START_MS + 3_000
    effect_counter.assert_count("pay", 1)


def test_no_other_run_of_pytest_loads_it() -> None:
    assert not [point for point in entry_points(group="pytest11") if "turnlog" in point.value]
