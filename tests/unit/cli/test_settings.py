"""Flags win over the environment, that over `.env`, and that over the config file."""

from pathlib import Path

import pytest

from turnlog.cli.settings import (
    choose_log,
    config_file,
    data_file,
    settings,
    without_password,
)
from turnlog.core.errors import UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a working directory of its own, and no settings."""
    for name in ("TURNLOG_LOG", "TURNLOG_CONFIG", "TURNLOG_MASK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(text: str | bytes) -> Path:
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_each_source_wins_over_those_below_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_log(None) == (f"sqlite:{data_file()}", "default")
    file = configured('log = "sqlite:file.db"')
    assert choose_log(None) == ("sqlite:file.db", str(file))
    (home / ".env").write_text("TURNLOG_LOG=sqlite:dotenv.db\nOTHER=1\n")
    assert choose_log(None) == ("sqlite:dotenv.db", ".env")
    monkeypatch.setenv("TURNLOG_LOG", "sqlite:env.db")
    assert choose_log(None) == ("sqlite:env.db", "environment")
    assert choose_log("sqlite:flag.db") == ("sqlite:flag.db", "--log")


def test_an_empty_variable_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    configured('log = "sqlite:file.db"')
    monkeypatch.setenv("TURNLOG_LOG", "")
    monkeypatch.setenv("TURNLOG_CONFIG", "")
    assert choose_log(None)[0] == "sqlite:file.db"


def test_another_config_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configured('log = "sqlite:file.db"')
    (home / "team.toml").write_text('log = "sqlite:team.db"\n[mask]\nticket = "T-[0-9]+"\n')
    monkeypatch.setenv("TURNLOG_CONFIG", "team.toml")
    assert choose_log(None) == ("sqlite:team.db", "team.toml")
    assert settings()["mask"] == ({"ticket": "T-[0-9]+"}, "team.toml")


def test_masks_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOG_MASK", '{"ticket": "T-1"}')
    assert settings()["mask"] == ({"ticket": "T-1"}, "environment")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"log = ", "config.toml: "),
        (b"\xff\xfe", "config.toml: "),
        (b"log = 3", "config.toml: log: Input should be a valid string"),
        (b'log = ""', "config.toml: log: String should have at least 1 character"),
        (b'mask = "x"', "config.toml: mask: Input should be a valid dictionary"),
        (b"[mask]\na = 1", "config.toml: mask.a: Input should be a valid string"),
        (b'lgo = "x"', "config.toml: there is no setting 'lgo'; there are log, tables, mask"),
    ],
)
def test_a_config_file_that_cannot_be_used_is_named(text: bytes, said: str) -> None:
    configured(text)
    with pytest.raises(UsageError) as error:
        settings()
    assert said in str(error.value)


def test_other_sources_that_cannot_be_used_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNLOG_MASK", "{")
    with pytest.raises(UsageError, match=r"^environment: "):
        settings()
    monkeypatch.delenv("TURNLOG_MASK")
    (home / ".env").write_bytes(b"TURNLOG_LOG=\xff\n")
    with pytest.raises(UsageError, match=r"^\.env: "):
        settings()
    monkeypatch.setenv("TURNLOG_CONFIG", "nowhere.toml")
    with pytest.raises(UsageError, match=r"^TURNLOG_CONFIG names nowhere\.toml, which is no file"):
        settings()


def test_a_folder_called_env_is_no_settings(home: Path) -> None:
    (home / ".env").mkdir()
    assert choose_log(None)[1] == "default"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("kafka://me:secret@host:9092/t", "kafka://me:***@host:9092/t"),
        ("kafka://:secret@host/t", "kafka://:***@host/t"),
        ("sqlite:/a/b@c", "sqlite:/a/b@c"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
