"""`turnlog.log.open`: every URL gives a log, or one line that says what to write instead."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import turnlog.log
from tests.contract.adapter import claiming
from turnlog.core.errors import LogUnavailable, UsageError
from turnlog.log import EmbeddedLog


def open_url(url: str, **options: Any) -> EmbeddedLog:
    return turnlog.log.open(url, clock=lambda: 0, **options)


async def test_a_log_in_memory_begins_empty() -> None:
    async with open_url("memory:") as log, open_url("memory:") as other:
        await log.append(claiming("s"))
        assert await other.end() == 0


async def test_a_log_in_a_file_is_there_the_next_time(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/a folder/with ünicode?/log#1.db"
    async with open_url(url) as log:
        await log.append(claiming("s"))
        assert log.url == url
    with open_url(url, create=False) as log:
        assert log.tables.get(("sessions", "s")).epoch == 1
    assert (tmp_path / "a folder" / "with ünicode?" / "log#1.db").is_file()


def test_paths_may_be_relative_or_begin_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with open_url("sqlite:here.db") as log:
        assert log.url == f"sqlite:{tmp_path}/here.db"
    with open_url("sqlite:~/there.db") as log:
        assert log.url == f"sqlite:{tmp_path}/home/there.db"


def test_a_new_log_is_for_its_owner_s_eyes_only(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with open_url(f"sqlite:{path}") as log:
        asyncio.run(log.append(claiming("s")))
        assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}
    path.chmod(0o640)
    with open_url(f"sqlite:{path}"):
        assert path.stat().st_mode & 0o777 == 0o640, "a mode that somebody chose is kept"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "no URL: write sqlite:PATH for a file; there are memory: .* sqlite:PATH .* kafka:"),
        ("sessions.db", "no URL: write sqlite:sessions.db"),
        ("./a:b/sessions.db", "no URL: write sqlite:./a:b/sessions.db"),
        ("C\\x:sessions.db", "no URL"),
        ("sqlite:", "names no file: write sqlite:PATH"),
        ("sqlite:a\0b", "names no file"),
        ("sqlite::memory:", "called memory:"),
        ("memory:x", "takes nothing behind the colon"),
        ("mysql:x", "there is no mysql: log; there are memory: .* sqlite:PATH .* file:.* kafka:"),
        ("file:", "names no folder: write file:FOLDER"),
        ("file:a\0b", "names no folder"),
        ("file:?format=jsonl", "names no folder"),
    ],
)
def test_a_url_of_no_kind_is_a_usage_error(url: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        open_url(url)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_a_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    for path, says in (
        (tmp_path, "a folder; name a file in it"),
        (tmp_path / "file" / "log.db", "cannot be opened .*folder"),
        (tmp_path / ("x" * 300), "cannot be opened"),
        (Path("/proc/turnlog/log.db"), "cannot be opened"),
        (tmp_path / "file", "no SQLite database"),
        (Path("~nobody-of-this-name/log.db"), "cannot be opened"),
    ):
        with pytest.raises(LogUnavailable, match=says) as caught:
            open_url(f"sqlite:{path}")
        assert "\n" not in str(caught.value)


async def test_a_log_in_a_folder_is_there_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "with ünicode? and #1"
    async with open_url(f"file:{path}?format=jsonl") as log:
        await log.append(claiming("s"))
        assert log.url == f"file:{path}"
    with open_url(log.url, create=False) as log:
        assert log.tables.get(("sessions", "s")).epoch == 1
    assert [file.suffix for file in (path / "sessions").iterdir()] == [".jsonl"]
    modes = {file.stat().st_mode & 0o077 for file in (path, *path.rglob("*"))}
    assert modes == {0}, "for its owner's eyes only"


async def test_a_format_is_chosen_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no format 'xml'; there are zstd, jsonl"):
        open_url(f"file:{tmp_path}/x?format=xml")
    with open_url(f"file:{tmp_path}/log?format=zstd"):
        pass
    with pytest.raises(UsageError, match=r"kept as zstd.*leave `\?format=jsonl` away"):
        open_url(f"file:{tmp_path}/log?format=jsonl")


def test_what_cannot_be_a_folder_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("text")
    for path, says in (
        (tmp_path / "file", "no folder; a log in one file is called sqlite:"),
        (tmp_path / "file" / "log", "cannot be opened"),
        (tmp_path / "other", "no log.json and holds 'letter.txt': name a new folder"),
        (Path("/proc/turnlog/log"), "cannot be opened"),
    ):
        with pytest.raises(LogUnavailable, match=says) as caught:
            open_url(f"file:{path}")
        assert "\n" not in str(caught.value)
    with pytest.raises(LogUnavailable, match="there is no log"):
        open_url(f"file:{tmp_path}/none", create=False)
    assert not (tmp_path / "none").exists()


def test_a_system_without_flock_has_no_log_in_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("turnlog.log.file")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(LogUnavailable, match="this system has no fcntl; use sqlite:PATH"):
        open_url(f"file:{tmp_path}/log")


async def test_tables_of_files_are_no_log_of_their_own(tmp_path: Path) -> None:
    async with open_url(f"file:{tmp_path}/log") as log:
        await log.append(claiming("s"))
    with pytest.raises(LogUnavailable, match="log that lies elsewhere; open that log"):
        open_url(f"sqlite:{tmp_path}/log/tables.db")


def test_a_log_is_only_made_where_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "log.db"
    with pytest.raises(LogUnavailable, match=f"{path}: there is no log"):
        open_url(f"sqlite:{path}", create=False)
    assert not path.parent.exists()


def test_an_adapter_is_imported_when_it_is_named() -> None:
    script = (
        "import sys, turnlog.log\n"
        "adapters = {f'turnlog.log.{name}' for name in ('file', 'memory', 'sqlite')}\n"
        "before = {'sqlite3', *adapters} & sys.modules.keys()\n"
        "assert not before, before\n"
        "turnlog.log.open('memory:', clock=lambda: 0)\n"
        "assert 'turnlog.log.sqlite' not in sys.modules\n"
        "assert 'zstandard' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
