"""Whatever is wrong: one clear line, status 1 or 2, nothing changed, never a traceback."""

import os
import sqlite3
from pathlib import Path

import pytest

from tests.story import Story, user
from tests.unit.cli.calls import Caller, isolated

READING = [
    ["sessions"],
    ["show", "s"],
    ["events", "s"],
    ["fsck"],
    ["recover", "--dry-run"],
    ["recover"],
    ["pending"],
    ["settle", "d", "--as", "ok"],
    ["rerun", "d"],
    ["input", "s", "text"],
    ["abort", "s"],
    ["verify"],
    ["rebuild"],
    ["dump"],
]
OF_SESSIONS = [
    *(["show"], ["events"], ["fsck"], ["recover", "--dry-run"], ["dump"]),
    *(["recover"], ["pending"], ["abort"]),
]


@pytest.fixture
def turnlog(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    isolated(monkeypatch, tmp_path)
    return Caller(tmp_path, capsysbinary)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_log_that_is_not_there_is_said_and_not_made(turnlog: Caller, command: list[str]) -> None:
    assert "there is no log" in turnlog.bad(1, *command)
    assert "there is no log" in turnlog.bad(1, *command, log="sqlite:deep/er/log.db")
    assert list(turnlog.folder.iterdir()) == []


def test_without_any_setting_nothing_is_made_either(turnlog: Caller) -> None:
    done = turnlog("sessions")
    assert (done.status, done.out) == (1, "")
    assert "turnlog.db: there is no log" in done.err
    assert list(turnlog.folder.iterdir()) == []


@pytest.mark.parametrize("command", READING, ids=" ".join)
@pytest.mark.parametrize(
    ("url", "status", "said"),
    [
        ("nothing", 2, "is no URL"),
        ("", 2, "is no URL"),
        ("/a/path.db", 2, "is no URL"),
        ("ftp://host", 2, "there is no ftp: log"),
        ("sqlite:", 2, "names no file"),
        ("memory:x", 2, "takes nothing"),
        ("sqlite:.", 1, "a folder"),
        ("sqlite:file/log.db", 1, "log.db"),
        ("sqlite:file", 1, "file"),
        ("sqlite:foreign.db", 1, "of something else"),
        ("sqlite:\x00", 2, "names no file"),
    ],
)
def test_a_url_that_cannot_be_used(
    turnlog: Caller, command: list[str], url: str, status: int, said: str
) -> None:
    Path("file").write_bytes(b"\x00\xff" * 500)
    with sqlite3.connect("foreign.db") as foreign:
        foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    assert said in turnlog.bad(status, *command, log=url)
    assert sorted(path.name for path in turnlog.folder.iterdir()) == ["file", "foreign.db"]


@pytest.mark.parametrize("what", ["\xff", "nope", "", "s' OR 1=1 --", "%", "\x00", "😀"])
def test_a_session_that_is_not_there(turnlog: Caller, what: str) -> None:
    turnlog.write(Story("s1").begin())
    for command in OF_SESSIONS:
        assert "session" in turnlog.bad(1, *command, what)
    assert "session" in turnlog.bad(1, "input", what, "text")


def test_an_ambiguous_beginning(turnlog: Caller) -> None:
    turnlog.write(Story("s1").begin(), Story("s2").begin())
    for command in OF_SESSIONS:
        assert "'s' begins 2 session ids: s1, s2; give more of it" in turnlog.bad(1, *command, "s")


def test_an_entry_that_is_not_there(turnlog: Caller) -> None:
    story = Story("s").begin()
    story.own(user("ab1", None), user("ab2", "ab1"))
    turnlog.write(story)
    assert "has no entry 'nope'" in turnlog.bad(1, "show", "s", "--at", "nope")
    assert "'ab' begins 2 entry ids" in turnlog.bad(1, "show", "s", "--at", "ab")
    assert "has no entry ''" in turnlog.bad(1, "show", "s", "--at", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "No such command"),
        (["show"], "Missing argument 'SESSION'"),
        (["sessions", "--nope"], "No such option: --nope"),
        (["sessions", "--limit", "x"], "Invalid value for '--limit'"),
        (["sessions", "--limit", "0"], "Invalid value for '--limit'"),
        (["sessions", "--status", "dead"], "Invalid value for '--status'"),
        (["sessions", "extra"], "unexpected extra argument"),
        (["recover", "--dry-run", "--for", "me"], "Invalid value for '--for'"),
        (["copy", "memory:"], "Missing argument"),
        (["restore"], "Missing argument 'FILE'"),
        (["sessions", "--log"], "requires an argument"),
        (["show", "\udcff"], "is not UTF-8"),
    ],
)
def test_a_wrong_call(turnlog: Caller, arguments: list[str], said: str) -> None:
    done = turnlog(*arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_without_a_command_the_help_is_shown(turnlog: Caller) -> None:
    done = turnlog()
    assert done.status == 2
    assert "Usage: turnlog" in done.out + done.err


def test_a_bad_setting_is_one_line(turnlog: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOG_CONFIG", "nowhere.toml")
    done = turnlog("sessions")
    assert (done.status, done.err) == (
        2,
        "turnlog: TURNLOG_CONFIG names nowhere.toml, which is no file\n",
    )


def test_a_log_that_is_cut_in_the_middle(turnlog: Caller) -> None:
    story = Story("s").begin()
    for number in range(200):
        story.own(user(f"u{number}", None, "x" * 3000))
    turnlog.write(story)
    path = turnlog.folder / "log.db"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    for command in READING:
        done = turnlog.on(*command)
        assert done.status in (0, 1)
        assert "Traceback" not in done.err
        assert "unexpected" not in done.err


def test_a_log_of_a_newer_turnlog(turnlog: Caller) -> None:
    turnlog.write(Story("s").begin())
    with sqlite3.connect(turnlog.folder / "log.db") as tables:
        tables.execute("UPDATE meta SET value = 99 WHERE name = 'frames_version'")
    tables.close()
    for command in READING:
        assert "upgrade turnlog" in turnlog.bad(1, *command)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(turnlog: Caller) -> None:
    turnlog.write(Story("s").begin())
    turnlog.good("dump", "-o", "a")
    locked = turnlog.folder / "locked"
    locked.mkdir(mode=0o500)
    turnlog.bad(1, "restore", "a", log=f"sqlite:{locked}/log.db")
    turnlog.bad(1, "dump", "-o", locked / "b")


def test_a_mask_that_is_none_is_said_of_the_option(turnlog: Caller) -> None:
    Path("file").write_bytes(b"{}")
    said = turnlog.bad(2, "import", "pi", "file", "--mask", "x=(")
    assert "--mask x: no regular expression" in said
    assert "correct the option" in said
    assert [path.name for path in turnlog.folder.iterdir()] == ["file"]


def test_a_place_that_is_none_is_named_with_what_to_do(turnlog: Caller) -> None:
    turnlog.write(Story("s").begin())
    assert "nope/x: No such file or directory; look at" in turnlog.bad(1, "dump", "-o", "nope/x")
    assert "nope: No such file or directory; look at" in turnlog.bad(1, "restore", "nope")
