"""Golden histories of every moment at which a host may die, and what each means.

When one of these fails, a log that somebody has reads differently: mend the code. The files are
never made anew; `tests.simulation.make_golden` tells how they were made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.reading import read
from tests.simulation.make_golden import EFFECTS, FOLDER, main, make, meaning, windows

NAMES = [name for name, _, _ in windows()]
OPEN = ("t1-arrived", "t1-acknowledged", "t1-checked", "effect-done")
HOST = {
    "read_only": "run_again",
    "idempotent": "run_again",
    "reconcilable": "probe",
    "opaque": "answer",
}
"""What a host does about an open dispatch (design, "Recovery", the second table)."""


def known(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return found


def last(name: str) -> dict[str, Any]:
    """The operation that was open when its host died, else the last one."""
    operations = list(known(name)["operations"].values())
    return next((row for row in operations if row["outcome"] is None), operations[-1])


def did(name: str, executor: str) -> list[tuple[str, str | None]]:
    return [(step["do"], step.get("status")) for step in last(name)[executor]]


@pytest.mark.parametrize("name", NAMES)
def test_a_crash_window_means_what_it_always_did(name: str) -> None:
    story = read(FOLDER / f"{name}.ndjson")
    assert json.loads(json.dumps(meaning(story))) == known(name)
    assert story.damage() == []


def test_no_window_is_missing() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ndjson")) == sorted(NAMES)


@pytest.mark.parametrize("effect", EFFECTS)
def test_windows_of_a_call(effect: str) -> None:
    ready = f"t1-ready-{effect}"
    assert last(ready)["verdict"] == "ready"
    assert did(ready, "host") == [("permit_and_run", None), ("continue", None)]
    assert did(ready, "consumer") == [("answer", "not_started"), ("finish", None)]
    for window in OPEN:
        name = f"{window}-{effect}"
        assert last(name)["verdict"] == "indeterminate_tool"
        status = "unknown" if effect == "opaque" else None
        assert did(name, "host") == [(HOST[effect], status), ("continue", None)]
        assert did(name, "consumer") == [("answer", "unknown"), ("finish", None)]
    for window in ("t2-arrived", "t2-acknowledged"):
        name = f"{window}-{effect}"
        assert last(name)["verdict"] == "ready"
        assert did(name, "host") == [("continue", None)]
        assert did(name, "consumer") == [("finish", None)]


def test_windows_beside_calls() -> None:
    assert known("claimed") == {"listed": False, "dispatches": {}, "operations": {}}
    assert last("streaming")["verdict"] == "provider_interrupted"
    assert did("streaming", "host") == [("ask_model", None)]
    assert did("streaming", "consumer") == [("finish", None)]
    assert last("answered")["verdict"] == "ready"
    assert did("answered", "host") == [("permit_and_run", None)] * 4 + [("continue", None)]
    assert did("answered", "consumer") == [("answer", "not_started")] * 4 + [("finish", None)]
    assert (last("final")["verdict"], last("final")["inferred"]) == ("terminal", "completed")
    assert did("final", "host") == did("final", "consumer") == [("finish", None)]
    compacting = last("compacting")
    assert (compacting["kind"], compacting["verdict"]) == ("compaction", "ready")
    assert did("compacting", "consumer") == [("finish", None)]


def test_the_script_still_makes_such_logs(tmp_path: Path) -> None:
    """Another host may write other logs; each of them still means something to those who follow."""
    for name, moment, effect in windows():
        assert make(name, moment, effect)
    main(tmp_path)
    for name in NAMES:
        verdicts = [row["verdict"] for row in known(name)["operations"].values()]
        again = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        assert [row["verdict"] for row in again["operations"].values()] == verdicts, name
