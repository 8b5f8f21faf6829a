"""The folder of a log in files: its names, its lock, and what happens to it from outside."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.adapter import append_all, beginning, claiming, guest, rows_of, talking
from tests.contract.contract import read_all
from tests.story import fact
from tests.unit.log.disks import Recording
from turnlog.core.errors import AppendRefused, LogUnavailable, StateError
from turnlog.core.frames import Record
from turnlog.log.file import sealed_lines
from turnlog.log.file.log import FileLog
from turnlog.tables.store import Stored

SESSIONS = ["s", "S", "a b/../c", "..", "", "ü\0\n", "x" * 512, "CON", "s-", "🦀" * 100]


def open_log(path: Path, format_: str | None = None, busy_ms: int = 1_000) -> FileLog:
    path.mkdir(exist_ok=True)
    return FileLog(path, clock=lambda: 0, busy_ms=busy_ms, format_=format_)


@pytest.fixture(params=["zstd", "jsonl"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A log with two sessions, `s` and `t`."""
    path = tmp_path / "log"
    with open_log(path, request.param) as log:
        asyncio.run(append_all(log, [*talking("s", 3), *beginning("t")]))
    return path


@pytest.fixture
def log(path: Path) -> Iterator[FileLog]:
    with open_log(path) as log:
        yield log


def file_of(path: Path, session: str) -> Path:
    (found,) = path.glob(f"sessions/{session}-*")
    return found


def lose_tables(path: Path) -> None:
    for file in path.glob("tables.db*"):
        file.unlink()


def temporary(folder: Path) -> list[Path]:
    return list(folder.glob(".new-*"))


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x10
    file.write_bytes(content)


async def everything(path: Path) -> list[Stored]:
    async with open_log(path) as log:
        return await read_all(log)


# ---- names ---------------------------------------------------------------------------------


async def test_every_id_has_a_file_of_its_own(tmp_path: Path) -> None:
    async with open_log(tmp_path / "log") as log:
        records = [Record(session, None, b"{}") for session in SESSIONS]
        await log.load(records)
        names = {log._folder.name_of(session) for session in SESSIONS}
    files = {file.name for file in (tmp_path / "log" / "sessions").iterdir()}
    assert files == names
    assert len({name.lower() for name in names}) == len(SESSIONS)
    assert all(len(name) < 100 and name.isascii() and name[0] not in ".-" for name in names)
    lose_tables(tmp_path / "log")
    assert {item.record for item in await everything(tmp_path / "log")} == set(records)


def test_a_header_line_names_the_session(path: Path) -> None:
    line = file_of(path, "s").read_bytes().split(b"\n")[0]
    said = sealed_lines.unseal_object(line)
    assert said is not None
    assert (said["turnlog"], said["version"], said["session"]) == ("session", 1, "s")


def test_bodies_can_be_had_without_turnlog(path: Path) -> None:
    file = file_of(path, "s")
    if file.suffix == ".jsonl":
        assert b'"frame":{"session":"s"' in file.read_bytes()
        return
    import zstandard

    rest = file.read_bytes().split(b"\n", 1)[1]
    reader = zstandard.ZstdDecompressor().stream_reader(rest, read_across_frames=True)
    assert reader.read().count(b'{"session":"s"') == 4


# ---- the lock, and others who append -------------------------------------------------------


async def test_a_lock_held_too_long_refuses_and_may_be_tried_again(path: Path) -> None:
    log = open_log(path, busy_ms=50)
    file = os.open(path / "lock", os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    with pytest.raises(AppendRefused, match="another process holds its lock") as caught:
        await log.append(claiming("u"))
    assert caught.value.retriable
    assert len(await read_all(log)) == 7
    file_of(path, "s").touch()
    lose_tables(path)
    with pytest.raises(LogUnavailable, match="another process holds its lock") as unavailable:
        open_log(path, busy_ms=50)
    assert unavailable.value.retriable
    os.close(file)
    await log.close()
    async with open_log(path) as again:
        await again.append(claiming("u"))


async def test_others_append_meanwhile(path: Path) -> None:
    script = (
        "import asyncio, sys, turnlog.log\n"
        "from tests.contract.adapter import append_all, talking\n"
        "async def run():\n"
        "    async with turnlog.log.open('file:' + sys.argv[1]) as log:\n"
        "        await asyncio.gather(*(append_all(log, talking(f'{sys.argv[2]}{n}', 20))"
        " for n in range(3)))\n"
        "asyncio.run(run())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", script, path, name], env=environment)

    others = [start(name) for name in ("one", "other")]
    async with open_log(path, busy_ms=60_000) as log:
        positions = await append_all(log, talking("mine", 100))
        assert [await asyncio.to_thread(other.wait) for other in others] == [0, 0]
        stored = await read_all(log)
        assert [item.position for item in stored if item.record.session == "mine"] == positions
        assert len(stored) == len({item.position for item in stored}) == 7 + 101 + 6 * 21
        assert list(log.verify()) == []
    lose_tables(path)
    assert await everything(path) == stored


async def test_who_died_between_file_and_tables_is_noticed(path: Path, log: FileLog) -> None:
    """Another process has written a frame, and half of one; neither is in the tables."""
    lost = guest("s", fact("lost", 1)).record
    file = file_of(path, "s")
    frame = log._folder.format.encode(Stored(8, 0, lost), 5)
    with log._folder.locked(1.0) as lock:
        lock.reserve(9)
    file.write_bytes(file.read_bytes() + frame + frame[:-9])
    assert len(await read_all(log)) == 7
    assert await log.append(claiming("u")) == 10
    assert [item.record for item in await read_all(log)][7] == lost
    assert log.tables.position() == 10
    assert log.tables.get(("facts", "s", "lost")).value == 1
    assert await log.append(guest("s", fact("more", 2))) == 11
    assert list(log.verify()) == []


async def test_what_another_wrote_is_synced_before_anybody_reads_it(path: Path) -> None:
    """It may have died before that, and a power failure would take away what was read."""
    lose_tables(path)
    disk = Recording(path)
    with FileLog(path, clock=lambda: 0, busy_ms=1_000, disk=disk) as log:
        assert len(await read_all(log)) == 7
    calls = [(call.name, call.path) for call in disk.calls]
    assert calls == [("sync", ""), ("sync", ""), ("sync_folder", "sessions")]


# ---- what happens from outside -------------------------------------------------------------


async def test_tables_that_are_lost_are_made_again(path: Path) -> None:
    with open_log(path) as log:
        stored, rows = await read_all(log), rows_of(log.tables)
    lose_tables(path)
    with open_log(path) as log:
        assert await read_all(log) == stored
        assert rows_of(log.tables) == rows
        assert log.tables.position() == 7
        assert list(log.verify()) == []


@pytest.mark.parametrize("tables", [True, False])
async def test_a_file_that_is_taken_away_takes_its_session_along(path: Path, tables: bool) -> None:
    file_of(path, "s").unlink()
    if not tables:
        lose_tables(path)
    async with open_log(path) as log:
        assert {item.record.session for item in await read_all(log)} == {"t"}
        assert [row.session for row in log.tables.scan("sessions")] == ["t"]
        assert list(log.verify()) == []
        await append_all(log, talking("s", 3))
        assert log.tables.get(("sessions", "s")).leaf == 3


@pytest.mark.parametrize("tables", [True, False])
async def test_a_file_cut_at_any_byte_is_read_up_to_there(
    tmp_path: Path, path: Path, tables: bool, proof: bool
) -> None:
    before = await everything(path)
    content = file_of(path, "s").read_bytes()
    header = len(content.split(b"\n")[0]) + 1
    for size in range(len(content) - 1, header, -1 if proof else -37):
        copy = tmp_path / f"copy {size}"
        shutil.copytree(path, copy)
        os.truncate(file_of(copy, "s"), size)
        if not tables:
            lose_tables(copy)
        async with open_log(copy) as log:
            stored = await read_all(log)
            kept = [item for item in stored if item.record.session == "s"]
            assert kept == [item for item in before if item.record.session == "s"][: len(kept)]
            assert [item for item in stored if item.record.session == "t"] == before[4:]
            assert list(log.verify()) == []
            more = guest("s", fact("more", 1))
            position = await log.append(more)
            assert await read_all(log) == [*stored, Stored(position, 0, more.record)]
        lose_tables(copy)
        assert await everything(copy) == [*stored, Stored(position, 0, more.record)]


@pytest.mark.parametrize("place", [-200, -300, -1])
async def test_a_changed_byte_is_named_and_the_tables_keep_the_last_copy(
    path: Path, place: int
) -> None:
    before = await everything(path)
    flip(file_of(path, "s"), place)
    async with open_log(path) as log:
        assert await read_all(log) == before, "the tables have it still"
        (difference,) = log.verify()
        assert difference.table == "frames"
        assert difference.key[:2] == ("frames", "s")
        assert difference.stored.where == "tables.db"
        assert file_of(path, "s").name in difference.fresh.where
        assert not difference.fresh.whole
        assert log.rebuild() == 7
        assert await read_all(log) == before
        assert len(list(log.verify())) == 1
        await log.append(guest("s", fact("more", 1)))


@pytest.mark.parametrize("place", [-200, -300, -1])
async def test_a_broken_frame_is_damage_and_the_rest_is_read(path: Path, place: int) -> None:
    before = await everything(path)
    flip(file_of(path, "s"), place)
    lose_tables(path)
    async with open_log(path) as log:
        stored = await read_all(log)
        whole = [item for item in stored if item in before]
        assert len(whole) == 6
        (broken,) = [item for item in stored if item not in before]
        assert broken.record.session == "s"
        (row,) = log.tables.scan("quarantine", "s")
        assert (row.position, row.stage) == (broken.position, "decode")
        assert log.tables.get(("sessions", "s")).damage
        assert list(log.verify()) == []
        await log.append(guest("s", fact("more", 1)))
        after = await read_all(log)
    lose_tables(path)
    assert await everything(path) == after


@pytest.mark.parametrize("tables", [True, False])
async def test_a_broken_header_line_costs_nothing(path: Path, tables: bool) -> None:
    before = await everything(path)
    flip(file_of(path, "s"), 30)
    if not tables:
        lose_tables(path)
    async with open_log(path) as log:
        assert await read_all(log) == before
        await log.append(guest("s", fact("more", 1)))
        assert list(log.verify()) == []


async def test_a_file_without_a_name_for_its_session_is_seen(path: Path) -> None:
    file = file_of(path, "s")
    content = file.read_bytes()
    file.write_bytes(b"?" * 40 + content[40:100] + b"\n" + b"!" * 60 + b"\n")
    lose_tables(path)
    async with open_log(path) as log:
        (broken,) = [item for item in await read_all(log) if item.record.session != "t"]
        assert broken.record.session == file.name
        assert [row.session for row in log.tables.scan("quarantine")] == [file.name]


async def test_a_file_that_changes_under_an_open_log_is_not_appended_to(
    path: Path, log: FileLog
) -> None:
    await log.append(guest("s", fact("one", 1)))
    file = file_of(path, "s")
    file.write_bytes(file.read_bytes() + b"!")
    with pytest.raises(AppendRefused, match=r"somebody else has changed this file.*open it again"):
        await log.append(guest("s", fact("two", 2)))
    await log.append(guest("t", fact("two", 2)))
    file.unlink()
    with pytest.raises(AppendRefused, match="somebody else has changed this file"):
        await log.append(guest("s", fact("two", 2)))


async def test_a_row_of_frames_that_no_file_gave_is_found_and_undone(
    path: Path, log: FileLog
) -> None:
    before = await read_all(log)
    connection = log.connection
    connection.execute("UPDATE frames SET body = x'7b7d' WHERE position = 2")
    connection.execute("DELETE FROM frames WHERE position = 3")
    connection.execute(
        "INSERT INTO frames SELECT 99, time, session, header, header_session, claim, epoch, seq,"
        " writer, folded, body FROM frames WHERE position = 4"
    )
    keys = [item.key for item in log.verify() if item.table == "frames"]
    assert keys == [("frames", "s", 2), ("frames", "s", 3), ("frames", "s", 99)]
    log.rebuild()
    assert await read_all(log) == before
    assert list(log.verify()) == []


def test_files_of_elsewhere_are_named(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other"
    with open_log(other) as log:
        asyncio.run(append_all(log, talking("alien", 2)))
        name = log._folder.name_of("alien").removesuffix(".frames")
    file = path / "sessions" / f"{name}{file_of(path, 's').suffix}"
    shutil.copy(file_of(other, "alien"), file)
    with pytest.raises(LogUnavailable, match=r"a file of another log; move it.*turnlog copy"):
        open_log(path)
    file.unlink()
    copy = file_of(path, "s").with_name(f"copy{file.suffix}")
    shutil.copy(file_of(path, "s"), copy)
    with pytest.raises(LogUnavailable, match="the file of session 's' under another name"):
        open_log(path)
    copy.unlink()
    open_log(path).__exit__()


async def test_two_frames_with_one_position_are_named(path: Path, log: FileLog) -> None:
    file = file_of(path, "s")
    record = guest("s", fact("again", 1)).record
    file.write_bytes(file.read_bytes() + log._folder.format.encode(Stored(6, 0, record), 5))
    with pytest.raises(StateError, match=r"position 6, which session 't' has, too"):
        open_log(path)


def test_what_says_what_the_folder_is(path: Path) -> None:
    about = path / "log.json"
    content = about.read_bytes()
    flip(about, 30)
    with pytest.raises(LogUnavailable, match=r"log.json: it is damaged"):
        open_log(path)
    about.unlink()
    with pytest.raises(LogUnavailable, match=r"it has no log.json and holds"):
        open_log(path)
    said = sealed_lines.unseal_object(content[:-1])
    assert said is not None
    about.write_bytes(sealed_lines.seal_object({**said, "version": 2}))
    with pytest.raises(StateError, match=r"written by a newer turnlog.*upgrade"):
        open_log(path)
    about.write_bytes(sealed_lines.seal_object({**said, "format": "xml"}))
    with pytest.raises(StateError, match="format 'xml' is not known"):
        open_log(path)
    about.write_bytes(content)
    open_log(path).__exit__()


async def test_what_somebody_was_making_is_taken_away(path: Path) -> None:
    for place in (path, path / "sessions"):
        (place / ".new-1234").write_bytes(b"half")
    file_of(path, "t").unlink()
    assert len(await everything(path)) == 4
    assert not {file.name for place in (path, path / "sessions") for file in temporary(place)}


async def test_a_damaged_load_is_named(path: Path) -> None:
    (path / "load").write_bytes(b"?")
    with pytest.raises(LogUnavailable, match=r"load: it is damaged.*load them again"):
        open_log(path)


async def test_tables_that_are_no_database_are_named(path: Path) -> None:
    lose_tables(path)
    (path / "tables.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(LogUnavailable, match=r"tables.db.*take it away.*made again"):
        open_log(path)
