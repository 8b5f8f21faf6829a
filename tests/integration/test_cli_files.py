"""Commands work on files and on Kafka as they do on SQLite, and sessions get from log to log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.kafka_topics import make_topic
from tests.integration.test_cli_archives import placeless
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


@pytest.fixture(params=["", "?format=jsonl"])
def files(turnlog: Caller, request: pytest.FixtureRequest) -> str:
    """A log in files that holds what the other log holds."""
    url = f"file:{turnlog.folder}/files"
    turnlog.good("dump", "-o", "a.ndjson")
    turnlog.good("restore", "a.ndjson", log=f"{url}{request.param}")
    return url


@pytest.fixture(params=["zstd", "jsonl", "kafka"])
def other(turnlog: Caller, request: pytest.FixtureRequest) -> str:
    """A log of another kind with the same frames, at the same positions."""
    if request.param == "kafka":
        url = make_topic(request.getfixturevalue("kafka_servers"))
    else:
        url = f"file:{turnlog.folder}/files?format={request.param}"
    assert turnlog("copy", turnlog.url, url).status == 0
    return url.partition("?")[0]


COMMANDS = [
    ["sessions", "--json"],
    ["sessions"],
    ["show", "one", "--json"],
    ["show", "two", "--surface"],
    ["events", "three", "--json"],
    ["fsck", "--json"],
    ["pending", "--json"],
    ["recover", "--dry-run", "--json"],
    ["dump"],
    ["verify", "--json"],
    ["rebuild", "--json"],
]


def timeless(said: str) -> str:
    """Without when a frame came into this log."""
    return re.sub(r'"(age_s|since)": .*', "", said)


def test_commands_say_the_same(turnlog: Caller, other: str) -> None:
    for command in COMMANDS:
        one, there = turnlog.on(*command), turnlog.on(*command, log=other)
        assert one.status == there.status
        assert timeless(one.out) == timeless(there.out.replace(other, turnlog.url))
    for command in (["recover", "--json"], ["recover", "one", "two", "--close", "--json"]):
        one, there = turnlog.on(*command), turnlog.on(*command, log=other)
        assert one.status == there.status == 0
        assert [(row["operation"], row["did"]) for row in one.json] == [
            (row["operation"], row["did"]) for row in there.json
        ]
    assert turnlog.good("verify", "--json", log=other).json["differences"] == []


def test_tables_are_checked_and_made_anew(turnlog: Caller, files: str) -> None:
    assert "position 180" in turnlog.good("verify", log=files).err
    assert "position 180" in turnlog.good("rebuild", log=files).err
    folder = turnlog.folder / "files"
    for file in folder.glob("tables.db*"):
        file.unlink()
    assert "position 180" in turnlog.good("verify", log=files).err
    (session,) = folder.glob("sessions/one-*")
    content = bytearray(session.read_bytes())
    content[-200] ^= 1
    session.write_bytes(content)
    done = turnlog.on("verify", "--json", log=files)
    assert done.status == 1
    (difference,) = done.json["differences"]
    assert difference["table"] == "frames"
    assert difference["key"][0] == "one"
    assert session.name in difference["fresh"]["where"]
    told = turnlog.on("verify", log=files)
    assert told.out.startswith("damaged")
    assert session.name in told.out
    assert "1 frame of its files damaged" in told.err
    assert "rebuild" not in told.err  # which would change nothing
    saved = f"sqlite:{turnlog.folder}/saved.db"
    assert turnlog("copy", files, saved).status == 0
    assert turnlog.good("verify", log=saved)


def test_sessions_move_from_log_to_log_and_back(turnlog: Caller, files: str) -> None:
    before = placeless(turnlog.good("dump").out)
    assert placeless(turnlog.good("dump", log=files).out) == before
    back = f"sqlite:{turnlog.folder}/back.db"
    assert turnlog("copy", files, back).status == 0
    assert placeless(turnlog.good("dump", log=back).out) == before
    again = f"file:{turnlog.folder}/again"
    assert turnlog("copy", back, again).status == 0
    assert placeless(turnlog.good("dump", log=again).out) == before


def test_a_session_s_file_is_no_archive(turnlog: Caller, files: str) -> None:
    (session,) = (turnlog.folder / "files").glob("sessions/one-*")
    done = turnlog.on("restore", str(session))
    assert done.status == 1
    assert "it is a file of a log; `turnlog copy file:FOLDER URL` copies a log" in done.err
