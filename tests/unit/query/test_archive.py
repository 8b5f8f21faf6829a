"""Archive files: what is read is what was written; what is broken is named by file and line."""

import gzip
import io
import os
import socket
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import zstandard

from tests.story import Story, user
from tests.unit.query.logs import random_session
from turnlog.core.archive import from_line, to_line
from turnlog.core.errors import SchemaError, UsageError
from turnlog.core.frames import Header, Record
from turnlog.query import archive
from turnlog.query.archive import identity, read_archive, write_archive


def lines_of(records: list[Record]) -> bytes:
    return b"".join(to_line(number, record) for number, record in enumerate(records, start=1))


def read(data: bytes) -> list[Record]:
    return [line.record for line in read_archive(io.BytesIO(data), "file")]


def good() -> bytes:
    story = Story("s").begin()
    story.own(user("u", None, "héllo"))
    return lines_of(story.records)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_read_is_what_was_written(seed: int, packed: bool) -> None:
    records = random_session(seed, "s")
    data = lines_of(records)
    if packed:
        data = zstandard.compress(data)
    assert [identity(record) for record in read(data)] == [identity(one) for one in records]
    assert [one.header for one in read(data)] == [one.header for one in records]


def test_lines_over_many_chunks_blank_lines_and_a_missing_last_newline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "PLAIN_CHUNK", 7)
    monkeypatch.setattr(archive, "PACKED_CHUNK", 5)
    data = good()
    records = read(data)
    assert len(records) == 3
    assert read(b"\n \r\n" + data.replace(b"\n", b"\r\n") + b"\n") == records
    assert read(data.rstrip(b"\n")) == records
    assert read(zstandard.compress(data)) == records
    assert read(zstandard.compress(data[:100]) + zstandard.compress(data[100:])) == records


def test_an_empty_file_holds_nothing() -> None:
    assert read(b"") == []
    assert read(zstandard.compress(b"")) == []


NO_ARCHIVE = [
    (b"SQLite format 3\0" + b"\0" * 100, "file: no archive: it is a SQLite file"),
    (gzip.compress(b"{}", mtime=0), "file: no archive: it is packed with gzip"),
    (b"PK\x03\x04...", "file: no archive: it is a zip file"),
]
BAD_LINES = [
    (b"\x00\xff\xfe", "file: line 1: it is no JSON"),
    (b"{", "file: line 1: it is no JSON"),
    (b"[]", "file: line 1: it is no object"),
    (b"{}", "file: line 1: it must have either"),
    (b'{"frame":[]}', "file: line 1: its frame has no session"),
    (b'{"position":1,"frame":{"session":""}}', "file: line 1: its frame has no session"),
    (b'{"position":1,"frame":{"session":"s","claim":"c"}}', "file: line 1: its frame has no"),
    (b'{"position":1,"frame":{"session":"s"}}', "file: line 1: its frame has no list of events"),
    (b'{"position":1,"session":"s","raw":"***"}', 'file: line 1: its "raw" is no base64'),
    (b'{"position":1,"session":"s","raw":"","epoch":"3"}', 'file: line 1: its "epoch" must be'),
    (b"[" * 2000 + b"]" * 2000, "file: line 1: it is no JSON"),
]


@pytest.mark.parametrize(("data", "said"), NO_ARCHIVE + BAD_LINES)
def test_what_is_no_archive_is_said(data: bytes, said: str) -> None:
    with pytest.raises(SchemaError) as error:
        read(data)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("line", "said"), BAD_LINES)
def test_the_line_is_named_and_those_before_it_are_read(line: bytes, said: str) -> None:
    lines = read_archive(io.BytesIO(good() + line + b"\n"), "file")
    for _ in range(3):
        next(lines)
    with pytest.raises(SchemaError, match=said.replace("line 1", "line 4")[:20]):
        next(lines)


def test_a_frame_nested_too_deep_to_be_written_again_is_read_as_it_is() -> None:
    deep = b'{"position": 1, "frame": {"session":"s","claim":null,"epoch":null,"seq":null,'
    deep += b'"writer":null,"events":[' + b"[" * 300 + b"]" * 300 + b"]}}"
    assert [record.body for record in read(deep)] == [deep[len(b'{"position": 1, "frame": ') : -1]]


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_packed_file_that_was_cut_short_is_an_error(cut: int) -> None:
    packed = zstandard.compress(good() * 50)
    with pytest.raises(SchemaError, match=r"ends in the middle|is no JSON"):
        read(packed[:cut])


def test_a_packed_file_that_is_broken_or_followed_by_anything_is_an_error() -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(good()))
    with pytest.raises(SchemaError, match="zstd data is broken"):
        read(bytes(packed) + b"more")
    packed[-1] ^= 1
    with pytest.raises(SchemaError, match="zstd data is broken"):
        read(bytes(packed))


def test_a_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_LINE", 5_000)
    with pytest.raises(SchemaError, match="file: line 4: longer than 5,000 bytes"):
        read(good() + b" " * 10**6)
    bomb = zstandard.compress(good() + b" " * 10**8)
    with pytest.raises(SchemaError, match="file: line 4: longer"):
        read(bomb)


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" " * 5_000 + b"\n"])
@pytest.mark.parametrize("pack", [bytes, zstandard.compress])
def test_white_space_is_bounded(blank: bytes, pack: Callable[[bytes], bytes]) -> None:
    data, some = good(), blank * 200
    assert read(pack(some + data.replace(b"\n", b"\n" + some))) == read(data)
    with pytest.raises(SchemaError, match=r"file: line \d+: nothing but white space for too long"):
        read(pack(data + blank * 10_000))


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
@pytest.mark.parametrize("name", ["epoch", "seq"])
def test_a_number_that_no_log_holds_is_named(name: str, number: int) -> None:
    header = Header("s", "c", 1, 1, "w")._replace(**{name: number})
    line = to_line(1, Record("s", header, b"{"))
    with pytest.raises(SchemaError, match=f"file: line 4: its .?{name}.? "):
        read(good() + line)


def test_a_body_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BODY", 10)
    with pytest.raises(SchemaError, match=r"file: line 1: its frame has .* over 10"):
        read(good())


def test_a_line_of_the_largest_raw_body_is_not_too_long() -> None:
    line = to_line(1, Record("s" * 500, None, b"\xff" * archive.MAX_BODY))
    assert len(line) <= archive.MAX_LINE
    assert len(read(line)) == 1


# ---- identity ---------------------------------------------------------------------------------


def reformatted(record: Record) -> Record:
    line = orjson.loads(to_line(1, record))
    return from_line(orjson.dumps(line, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def test_white_space_and_order_are_no_difference() -> None:
    record = Story("s").begin().records[-1]
    other = reformatted(record)
    assert other.body != record.body
    assert identity(other) == identity(record)


def test_everything_else_is_one() -> None:
    header = Header("s", "c", 1, 1, "w")
    body = orjson.dumps({**header._asdict(), "events": []})
    record = Record("s", header, body)
    others = [
        record._replace(session="t"),
        record._replace(header=None),
        record._replace(header=header._replace(writer="x")),
        record._replace(body=body.replace(b'"w"', b'"x"')),
        record._replace(body=body.replace(b"[]", b"[1]")),
        record._replace(body=b"{"),
        record._replace(body=b"{ "),
        record._replace(body=b"{", header=None),
        record._replace(body=b"[" * 5000),
    ]
    assert len({identity(one) for one in [record, *others]}) == 10


# ---- writing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.zst"])
def test_a_file_is_there_when_it_is_whole(tmp_path: Path, name: str) -> None:
    path, data = tmp_path / name, good()
    with write_archive(path) as write:
        write(data)
        assert not path.exists()
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert read(path.read_bytes()) == read(data)
    assert path.read_bytes().startswith(archive.ZSTD_MAGIC) is name.endswith(".zst")


def test_nothing_is_left_of_a_file_that_failed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), write_archive(tmp_path / "a") as write:  # noqa: PT012
        write(b"x")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists already"), write_archive(path):
        pass
    with pytest.raises(RuntimeError), write_archive(path, force=True):
        raise RuntimeError
    assert path.read_bytes() == b"old"
    with write_archive(path, force=True) as write:
        write(b"new")
    assert path.read_bytes() == b"new"
    with pytest.raises(UsageError, match="a folder"), write_archive(tmp_path, force=True):
        pass


@pytest.mark.parametrize("name", ["a", "a.zst"])
@pytest.mark.parametrize("force", [True, False])
def test_a_pipe_is_written_through_and_stays(tmp_path: Path, name: str, force: bool) -> None:
    path, got, data = tmp_path / name, list[bytes](), good()
    os.mkfifo(path)
    link = tmp_path / f"link-{name}"
    link.symlink_to(path)
    for given in (path, link):
        reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
        reader.start()
        with write_archive(given, force=force) as write:
            write(data)
        reader.join()
        assert read(got[-1]) == read(data)
    assert path.is_fifo()
    assert link.is_symlink()
    assert {file.name for file in tmp_path.iterdir()} == {name, f"link-{name}"}


def test_a_pipe_whose_reader_stops_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with (  # noqa: PT012
        pytest.raises(OSError, match="a: whoever read it has stopped") as error,
        write_archive(path) as write,
    ):
        os.close(reader)
        write(good())
    assert not isinstance(error.value, BrokenPipeError)  # which would end the command quietly
    assert path.is_fifo()


def device(path: Path, minor: int) -> Path:
    """A node like /dev/null (3) or /dev/full (7), in a folder of the test's own."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
        path.open("wb").close()
    except OSError:
        pytest.skip("no device can be made here")
    return path


@pytest.mark.parametrize("force", [True, False])
def test_a_device_is_written_through_and_stays(tmp_path: Path, force: bool) -> None:
    path = device(tmp_path / "null", 3)
    with write_archive(path, force=force) as write:
        write(good())
    assert path.is_char_device()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["full", "full.zst"])
@pytest.mark.parametrize("count", [1, 3_000])
def test_a_full_device_is_named_and_stays(tmp_path: Path, name: str, count: int) -> None:
    path = device(tmp_path / name, 7)
    with (  # noqa: PT012
        pytest.raises(OSError, match="No space left") as error,
        write_archive(path, force=True) as write,
    ):
        for _ in range(count):
            write(os.urandom(100))
    assert error.value.filename == str(path)
    assert path.is_char_device()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("force", [True, False])
def test_what_is_neither_file_nor_pipe_is_refused(tmp_path: Path, force: bool) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(tmp_path, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{folder}/a" if Path("/proc/self/fd").exists() else "a")
        os.close(folder)
    path = tmp_path / "a"
    with (
        pytest.raises(UsageError, match="neither a file nor a pipe"),
        write_archive(path, force=force),
    ):
        pass
    assert path.is_socket()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(UsageError, match="a folder"), write_archive(tmp_path / "link", force=force):
        pass
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with (
        pytest.raises(UsageError, match="leads nowhere"),
        write_archive(tmp_path / "one", force=force),
    ):
        pass


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    path, link = tmp_path / "deep/a", tmp_path / "link"
    link.symlink_to("deep/a")
    with write_archive(link) as write:  # also where the file is not there yet
        write(b"one")
    with pytest.raises(UsageError, match="exists already"), write_archive(link):
        pass
    with write_archive(link, force=True) as write:
        write(b"two")
    assert (link.is_symlink(), path.read_bytes()) == (True, b"two")
    assert [file.name for file in path.parent.iterdir()] == ["a"]


@pytest.mark.parametrize("name", ["nowhere/a", "file/a"])
def test_a_place_that_is_none_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"x")
    path = tmp_path / name
    with pytest.raises(OSError, match=name) as error, write_archive(path):
        pass
    assert error.value.filename == str(path)
