"""dump, restore and copy: whole frames out of a log, into others, and proof that they are equal."""

import io
import json
import sys
from pathlib import Path

import orjson
import pytest
import zstandard

from tests.story import Story, user
from tests.unit.cli.calls import Caller, isolated
from tests.unit.query.logs import random_session, woven


@pytest.fixture
def turnlog(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    isolated(monkeypatch, tmp_path)
    caller = Caller(tmp_path, capsysbinary)
    caller.write(
        woven(random_session(1, "one"), random_session(2, "two"), random_session(3, "three"))
    )
    return caller


@pytest.fixture
def other(turnlog: Caller) -> str:
    return f"sqlite:{turnlog.folder}/other.db"


def unpacked(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def placeless(dump: str) -> list[object]:
    rows = [orjson.loads(line) for line in dump.splitlines()]
    return [{name: value for name, value in row.items() if name != "position"} for row in rows]


def test_a_dump_has_a_frame_a_line_in_log_order(turnlog: Caller) -> None:
    done = turnlog.good("dump")
    rows = done.rows
    assert [row["position"] for row in rows] == list(range(1, 181))
    assert {"frame", "raw"} == {key for row in rows for key in row} - {
        "position",
        "session",
        *("claim", "epoch", "seq", "writer"),
    }
    assert done.err == ""
    assert "3 sessions, 180 frames" in turnlog.good("dump", "-v").err


def test_some_sessions_are_dumped_in_log_order_each_once(turnlog: Caller) -> None:
    rows = turnlog.good("dump", "two", "o", "one").rows
    positions = [row["position"] for row in rows]
    assert positions == sorted(positions)
    assert len(positions) == 120


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.zst"])
def test_a_file_restores_into_an_empty_log_and_beside_others(
    turnlog: Caller, other: str, name: str
) -> None:
    whole = turnlog.good("dump").out
    done = turnlog.good("dump", "-o", name)
    assert done.out == ""
    assert done.err.startswith(f"{name}: 3 sessions, 180 frames, ")
    file = turnlog.folder / name
    packed = file.read_bytes()
    assert (unpacked(packed) if name.endswith(".zst") else packed).decode() == whole
    done = turnlog.good("restore", name, log=other)
    assert done.err == f"{name}: restored into {other}: 3 sessions, 180 frames\n"
    assert turnlog.good("dump", log=other).out == whole
    beside = f"sqlite:{turnlog.folder}/beside.db"
    turnlog.write(random_session(9, "nine"), log=beside)
    turnlog.good("restore", name, "--json", log=beside)
    again = turnlog.good("dump", "one", "two", "three", log=beside).out
    assert placeless(again) == placeless(whole)
    turnlog.good("verify", log=beside)


def test_restoring_twice_adds_nothing(turnlog: Caller, other: str) -> None:
    turnlog.good("dump", "-o", "a")
    turnlog.good("restore", "a", log=other)
    done = turnlog.good("restore", "a", log=other)
    assert done.err == f"a: restored into {other}: 0 frames; 3 sessions there already\n"
    rows = turnlog.good("restore", "a", "--json", log=other).json["sessions"]
    assert rows[0] == {"session": "one", "frames": 60, "added": 0}


def test_an_archive_that_continues_a_session_adds_the_rest(turnlog: Caller, other: str) -> None:
    turnlog.write(random_session(1, "one")[:20], log=other)
    turnlog.good("dump", "one", "two", "-o", "a")
    done = turnlog.good("restore", "a", log=other)
    assert "1 session, 100 frames; 1 session continued" in done.err
    one = turnlog.good("dump", "one", log=other).out
    assert placeless(one) == placeless(turnlog.good("dump", "one").out)


def test_what_continues_otherwise_is_refused_and_nothing_is_written(
    turnlog: Caller, other: str
) -> None:
    turnlog.write(random_session(7, "two"), log=other)
    before = turnlog.good("dump", log=other).out
    turnlog.good("dump", "-o", "a")
    said = turnlog.bad(1, "restore", "a", log=other)
    assert said.startswith("turnlog: a: line ")
    assert "session 'two' is in" in said
    assert turnlog.good("dump", log=other).out == before


def test_an_archive_that_ends_earlier_is_refused(turnlog: Caller) -> None:
    lines = turnlog.good("dump", "one").out.splitlines(keepends=True)
    Path("a").write_text("".join(lines[:10]))
    assert "session 'one' goes on in" in turnlog.bad(1, "restore", "a")


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(
    turnlog: Caller, other: str, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    whole = turnlog.good("dump").out
    data = whole.encode()
    feed(monkeypatch, zstandard.compress(data) if packed else data)
    assert turnlog.good("restore", "-", log=other).err.startswith("standard input: restored")
    assert turnlog.good("dump", log=other).out == whole


def test_an_archive_that_somebody_has_reformatted(turnlog: Caller, other: str) -> None:
    rows = turnlog.good("dump").rows
    lines = [json.dumps(row, sort_keys=True, separators=(" , ", " : ")) for row in rows]
    Path("a").write_text("\r\n\r\n".join(lines))
    turnlog.good("restore", "a", log=other)
    assert placeless(turnlog.good("dump", log=other).out) == placeless(turnlog.good("dump").out)
    assert turnlog("copy", turnlog.url, other, "--json").json["verified"] == 3


def test_an_empty_archive_restores_nothing(turnlog: Caller, other: str) -> None:
    Path("a").write_bytes(b"")
    assert "there is nothing in it" in turnlog.good("restore", "a", log=other).err


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda lines: [*lines[:5], b"{", *lines[5:]], "a: line 6: it is no JSON"),
        (lambda lines: [*lines, lines[0][:50]], "a: line 181: it is no JSON"),
        (lambda lines: [*lines, b'{"position":1}'], "a: line 181: it must have either"),
        (lambda lines: [*lines, b"\x00\x01"], "a: line 181: it is no JSON"),
        (lambda lines: [b"[1]", *lines], "a: line 1: it is no object"),
        (lambda lines: [*lines, b'{"frame":{"session":"s","events":[],"seq":1}}'], "a: line 181:"),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_written(
    turnlog: Caller, other: str, damage: object, said: str
) -> None:
    lines = turnlog.good("dump").out.encode().splitlines()
    Path("a").write_bytes(b"\n".join(damage(lines)))  # type: ignore[operator]
    assert said in turnlog.bad(1, "restore", "a", log=other)
    assert not (turnlog.folder / "other.db").exists()


def test_a_file_of_something_else_is_named(turnlog: Caller, other: str) -> None:
    assert "it is a SQLite file" in turnlog.bad(1, "restore", "log.db", log=other)
    packed = zstandard.compress(turnlog.good("dump").out.encode())
    Path("cut.zst").write_bytes(packed[: len(packed) // 2])
    assert "cut.zst: its zstd data ends in the middle" in turnlog.bad(
        1, "restore", "cut.zst", log=other
    )
    assert "nowhere: No such file" in turnlog.bad(1, "restore", "nowhere", log=other)
    assert "a folder" in turnlog.bad(2, "restore", ".", log=other)
    assert not (turnlog.folder / "other.db").exists()


def test_a_file_that_exists_is_not_replaced(turnlog: Caller) -> None:
    Path("a").write_text("mine")
    assert "a: exists already" in turnlog.bad(2, "dump", "-o", "a")
    assert Path("a").read_text() == "mine"
    turnlog.good("dump", "-o", "a", "--force")
    assert Path("a").read_text().startswith("{")
    said = turnlog.bad(1, "dump", "-o", "nowhere/a")
    assert said.startswith("turnlog: nowhere/a: No such file or directory; look at the path")
    assert "a folder" in turnlog.bad(2, "dump", "-o", ".")


def test_a_dump_of_a_log_whose_tables_lag(turnlog: Caller) -> None:
    import sqlite3

    with sqlite3.connect(turnlog.folder / "log.db") as tables:
        tables.execute("UPDATE positions SET position = 0")
        tables.execute("DELETE FROM sessions")
    tables.close()
    assert len(turnlog.good("dump", "one").rows) == 60
    assert len(turnlog.good("dump").rows) == 180


def test_copy_is_verified(turnlog: Caller, other: str) -> None:
    done = turnlog("copy", turnlog.url, other)
    assert done.status == 0
    assert done.err == (
        f"{turnlog.url}: copied to {other}: 3 sessions, 180 frames\n"
        "verified: 180 frames of 3 sessions are equal in both logs, and the tables but for"
        " positions\n"
    )
    assert turnlog.good("dump", log=other).out == turnlog.good("dump").out


def test_copy_of_some_sessions_beside_others_and_again(turnlog: Caller, other: str) -> None:
    turnlog.write(random_session(9, "nine"), log=other)
    done = turnlog("copy", turnlog.url, other, "-s", "tw", "--session", "one", "--json")
    assert done.status == 0
    assert done.json["verified"] == 2
    assert [row["session"] for row in done.json["sessions"]] == ["one", "two"]
    story = Story("new").begin()
    turnlog.write(story)
    done = turnlog("copy", turnlog.url, other, "--json")
    added = {row["session"]: row["added"] for row in done.json["sessions"]}
    assert added == {"one": 0, "two": 0, "three": 60, "new": 2}
    story.own(user("u", None))
    turnlog.write(story.records[2:])
    done = turnlog("copy", turnlog.url, other, "--json")
    assert {row["session"]: row["added"] for row in done.json["sessions"]}["new"] == 1


def test_copy_notices_tables_that_are_not_equal(turnlog: Caller, other: str) -> None:
    import sqlite3

    with sqlite3.connect(turnlog.folder / "log.db") as tables:
        tables.execute("UPDATE sessions SET depth = depth + 1")
    tables.close()
    done = turnlog("copy", turnlog.url, other)
    assert done.status == 1
    assert "session 'one': its frames are equal, its tables are not: sessions row ()" in done.err


def test_copies_that_cannot_be_made(turnlog: Caller, other: str) -> None:
    for source, target, status, said in (
        (turnlog.url, turnlog.url, 2, "are the same log"),
        (turnlog.url, f"sqlite:{turnlog.folder}/./log.db", 2, "are the same log"),
        (other, turnlog.url, 1, "there is no log"),
        (turnlog.url, "nothing", 2, "is no URL"),
        (turnlog.url, f"sqlite:{turnlog.folder}", 1, "a folder"),
    ):
        done = turnlog("copy", source, target)
        assert (done.status, done.out) == (status, "")
        assert said in done.err
    done = turnlog("copy", turnlog.url, other, "-s", "nope")
    assert done.status == 1
    assert not (turnlog.folder / "other.db").exists()


def test_a_session_that_grows_while_it_is_copied_is_told(
    turnlog: Caller, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnlog.cli import copying
    from turnlog.log import EmbeddedLog
    from turnlog.query.transfer import Lines, Plan

    move, opened = copying.move, copying.open_log
    origins: list[EmbeddedLog] = []

    def open_log(*arguments: object, **options: object) -> EmbeddedLog:
        origins.append(opened(*arguments, **options))  # type: ignore[arg-type]
        return origins[-1]

    async def slow(terminal: object, lines: Lines, log: EmbeddedLog, plan: Plan) -> None:
        await move(terminal, lines, log, plan)  # type: ignore[arg-type]
        await origins[0].load(Story("one").claim().records)

    monkeypatch.setattr(copying, "open_log", open_log)
    monkeypatch.setattr(copying, "move", slow)
    done = turnlog("copy", turnlog.url, other)
    assert done.status == 0
    assert "1 session went on meanwhile; the same command brings the rest over" in done.err
    monkeypatch.setattr(copying, "move", move)
    assert turnlog("copy", turnlog.url, other).status == 0
    assert turnlog.good("dump", log=other).out.count("\n") == 181
