"""`import`: sessions of other agents come in, once, masked; what cannot be read is named."""

from pathlib import Path

import pytest

from tests.unit.cli.calls import Caller, isolated
from turnlog.ingest.samples import Sample, write_samples
from turnlog.ingest.samples.claude_files import EXAMPLE_KEY


@pytest.fixture
def turnlog(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    isolated(monkeypatch, tmp_path)
    return Caller(tmp_path, capsysbinary)


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return write_samples(tmp_path / "files")


def of(samples: list[Sample], format_: str) -> list[str]:
    return sorted(sample.session for sample in samples if sample.format == format_)


def test_a_folder_and_again(turnlog: Caller, samples: list[Sample]) -> None:
    done = turnlog.good("import", "pi", "files/pi", "--json")
    assert sorted(done.json["sessions"]["new"]) == of(samples, "pi")
    assert done.json["log"] == turnlog.url
    assert done.err == ""
    done = turnlog.good("import", "pi", "files/pi")
    assert done.out == ""
    assert "2 unchanged; 0 events" in done.err
    assert len(turnlog.good("sessions", "--json").json) == 2


def test_files_one_by_one(turnlog: Caller, samples: list[Sample]) -> None:
    paths = [sample.path for sample in samples if sample.format == "pi"]
    assert len(turnlog.good("import", "pi", *paths, "--json").json["sessions"]["new"]) == 2


def test_a_line_that_is_cut_off_is_named_and_fails_the_command(
    turnlog: Caller, samples: list[Sample]
) -> None:
    done = turnlog.on("import", "claude-code", "files/claude-code")
    assert (done.status, done.out) == (1, "")
    assert ".jsonl:9: the last line is cut off" in done.err
    assert "masked: aws_access_key ×1" in done.err
    assert len(turnlog.good("sessions", "--json").json) == len(of(samples, "claude-code"))
    turnlog.good("fsck")
    turnlog.good("verify")


def test_what_was_imported_is_as_it_was_written(turnlog: Caller, samples: list[Sample]) -> None:
    for format_ in ("claude-code", "pi"):
        turnlog.on("import", format_, f"files/{format_}")
    for sample in samples:
        shown = turnlog.good("show", sample.session, "--json").json
        for name, value in sample.expects["usage"].items():
            assert shown["usage"][name] == value
        assert len(shown["branches"]) == sample.expects["branches"]
        assert [node["role"] for node in shown["surface"]] == sample.expects["surface"]


@pytest.mark.usefixtures("samples")
def test_masks(turnlog: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    claude, pi = "files/claude-code", "files/pi"
    turnlog.on("import", "claude-code", claude)
    assert EXAMPLE_KEY not in turnlog.good("dump").out
    open_ = f"sqlite:{turnlog.folder}/open.db"
    turnlog.on("import", "claude-code", claude, "--no-mask", log=open_)
    assert EXAMPLE_KEY in turnlog.good("dump", log=open_).out
    own = turnlog.good("import", "pi", pi, "--mask", "town=(Bergen|Kiel)", "--json")
    assert own.json["masked"]["town"] > 3
    assert (
        "Bergen"
        not in turnlog.good(
            "dump",
            *[r["session"] for r in turnlog.good("sessions", "--agent", "pi", "--json").json],
        ).out
    )
    monkeypatch.setenv("TURNLOG_MASK", '{"town": "Bergen"}')
    other = f"sqlite:{turnlog.folder}/other.db"
    assert turnlog.good("import", "pi", pi, "--json", log=other).json["masked"]["town"] > 1


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cursor", "files"], "there is no format 'cursor'; there are claude-code and pi"),
        (["pi", "nowhere"], "nowhere: there is no such file"),
        (["pi", "files/pi", "nowhere"], "nowhere: there is no such file"),
        (["pi", "files", "--mask", "x"], "--mask 'x' is not of the form NAME=REGEX"),
        (["pi", "files", "--mask", "=x"], "is not of the form NAME=REGEX"),
        (["pi", "files", "--mask", "x="], "is not of the form NAME=REGEX"),
        (["pi", "files", "--mask", "x=("], "x"),
        (["pi", "files", "--no-mask", "--mask", "x=y"], "exclude each other"),
    ],
)
def test_a_call_that_cannot_be_done_makes_no_log(
    turnlog: Caller, arguments: list[str], said: str
) -> None:
    assert said in turnlog.bad(2, "import", *arguments)
    assert not (turnlog.folder / "log.db").exists()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", 1),
        (b"\x00\xff\xfe" * 1000, 1),
        (b"\n\n\n", 1),
        (b"{}\n", 1),
        (b"[1,2]\n", 1),
        (b'{"type":"session"}\n', 0),
        (b'{"type":"session","id":"s"}\n{"type":"message"\n', 1),
        (b"[" * 100_000, 1),
    ],
)
@pytest.mark.parametrize("format_", ["claude-code", "pi"])
def test_any_file_ends_in_a_clear_line(
    turnlog: Caller, format_: str, data: bytes, status: int
) -> None:
    Path("file.jsonl").write_bytes(data)
    done = turnlog.on("import", format_, "file.jsonl")
    if format_ == "pi":
        assert done.status == status, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert "unexpected" not in done.err
    assert done.err.startswith(("file.jsonl", str(turnlog.folder), format_))


def test_an_empty_folder_is_said(turnlog: Caller) -> None:
    Path("empty").mkdir()
    done = turnlog.on("import", "pi", "empty")
    assert "no session of pi is in it" in done.err


@pytest.mark.usefixtures("samples")
def test_a_log_that_cannot_be_made(turnlog: Caller) -> None:
    Path("file").write_bytes(b"x" * 2000)
    assert "file" in turnlog.bad(1, "import", "pi", "files/pi", log="sqlite:file")
    assert "a folder" in turnlog.bad(1, "import", "pi", "files/pi", log="sqlite:files")
    assert "is no URL" in turnlog.bad(2, "import", "pi", "files/pi", log="files")


@pytest.mark.usefixtures("samples")
def test_the_default_log_is_made_in_the_data_folder(turnlog: Caller) -> None:
    assert turnlog("import", "pi", "files/pi").status == 0
    assert len(turnlog("sessions", "--json").json) == 2
    assert list(turnlog.folder.glob("home/**/turnlog.db"))


def test_real_sessions_come_in_whole(turnlog: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    folder = os.environ.get("TURNLOG_SAMPLES")
    if not folder:
        pytest.skip("TURNLOG_SAMPLES names no folder of real session files")
    for pattern, format_ in (("*claude*", "claude-code"), ("*_pi_*", "pi")):
        paths = sorted(Path(folder).glob(pattern))
        assert paths
        turnlog.on("import", format_, *paths)
    for row in turnlog.good("sessions", "--json").json:
        turnlog.good("show", row["session"])
        turnlog.good("show", row["session"], "--surface", "--operations", "--state")
        turnlog.good("events", row["session"], "--json")
    turnlog.good("verify")
    turnlog.good("recover", "--dry-run")
