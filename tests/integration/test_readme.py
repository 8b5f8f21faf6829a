"""The code blocks of README and docs/testing.md do what they say, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
README = (ROOT / "README.md").read_text()
BLOCKS = BLOCK.findall(README)
TESTING = (ROOT / "docs" / "testing.md").read_text()


def run(command: list[str], folder: Path, text: str | None = None) -> subprocess.CompletedProcess:
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TURNLOG_")},
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_DATA_HOME": str(folder / "data"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return subprocess.run(
        command, cwd=folder, env=env, input=text, capture_output=True, text=True, check=False
    )


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_the_commands_work_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    script = "\n".join(block for kind, block in BLOCKS if kind == "sh")
    assert script.count("turnlog ") > 10
    done = run(["bash", "-euo", "pipefail", "-s"], tmp_path, script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "something is damaged" not in done.stdout
    assert (tmp_path / "elsewhere.db").exists()
    assert (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "python"])
def test_the_python_runs(block: str, tmp_path: Path) -> None:
    done = run([sys.executable, "-W", "error", "-c", block], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout


def test_links_lead_to_files() -> None:
    for path in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / path).exists(), path


def test_the_tests_that_authors_are_shown_pass(tmp_path: Path) -> None:
    blocks = [block for _, block in BLOCK.findall(TESTING)]
    for block in blocks:
        name = re.match(r"# (\w+\.py)\n", block)
        assert name, f"the first line says which file it is: {block}"
        (tmp_path / name[1]).write_text(block)
    done = run([sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:asyncio"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(re.findall('^def test_', TESTING, re.MULTILINE))} passed" in done.stdout
    done = run([sys.executable, "-W", "error", "worker.py"], tmp_path)
    assert done.returncode == 0, done.stderr
