"""Flags win over the environment, that over `.env`, and that over the config file."""

import traceback
from pathlib import Path

import pytest

from tests.unit.cli.calls import isolated
from turnlog.cli.settings import (
    Chosen,
    choose_kafka,
    choose_log,
    choose_tables,
    config_file,
    data_file,
    settings,
    without_password,
)
from turnlog.core.errors import UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a working directory of its own, and no settings."""
    isolated(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
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


def test_each_of_kafkas_settings_comes_from_the_strongest_that_has_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_kafka(None) == {}
    file = configured(
        '[kafka]\nclient.id = "file"\nlinger.ms = 5\n"sasl.mechanisms" = "PLAIN"\n'
        "batch.size = 4_000\n"
    )
    (home / ".env").write_text("TURNLOG_KAFKA_CLIENT_ID=dotenv\nTURNLOG_KAFKA_LINGER_MS=6\n")
    monkeypatch.setenv("TURNLOG_KAFKA_CLIENT_ID", "env")
    monkeypatch.setenv("TURNLOG_KAFKA_SASL_MECHANISM", "")  # says nothing
    monkeypatch.setenv("TURNLOG_KAFKA", "127.0.0.1:9092")  # no setting of ours
    assert choose_kafka(None) == {
        "client.id": Chosen("env", "environment"),
        "linger.ms": Chosen("6", ".env"),
        "sasl.mechanism": Chosen("PLAIN", str(file)),
        "batch.size": Chosen("4000", str(file)),
    }
    flags = choose_kafka(["client.id=flag=1", "sasl.mechanisms=SCRAM-SHA-256"])
    assert flags["client.id"] == Chosen("flag=1", "--kafka")
    assert flags["sasl.mechanism"] == Chosen("SCRAM-SHA-256", "--kafka")
    assert flags["linger.ms"] == Chosen("6", ".env")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("hunter2", "--kafka: write NAME=VALUE"),
        ("acks=hunter2", "--kafka: Kafka's setting 'acks' cannot be given: "),
        ("sasl.pasword=hunter2", "do you mean 'sasl.password'?"),
        ("sasl.password=hunter2", "flags can be seen by others: set TURNLOG_KAFKA_SASL_PASSWORD"),
        ("ssl.key.password=hunter2", "set TURNLOG_KAFKA_SSL_KEY_PASSWORD, or 'ssl.key.password'"),
        ("linger.ms=long", "--kafka: Kafka's setting 'linger.ms' is 'long', and must be"),
    ],
)
def test_a_flag_that_is_no_setting_or_a_secret_is_refused(flag: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        choose_kafka([flag])
    assert said in str(error.value)
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_where_tables_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_tables() is None
    monkeypatch.setenv("TURNLOG_TABLES", "sqlite:env.db")
    assert choose_tables() == "sqlite:env.db"
    assert choose_tables("sqlite:flag.db") == "sqlite:flag.db"


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
        (b'kafka = "x"', "config.toml: kafka: must be a table"),
        (b"[kafka]\nacks = 1", "config.toml: Kafka's setting 'acks' cannot be given"),
        (b"[kafka]\nclient.name = 1", "config.toml: Kafka's setting 'client.name' is not known"),
        (b"[kafka]\nlinger.ms = [1]", "config.toml: Kafka's setting 'linger.ms' must be a text"),
        (
            b"[kafka.sasl]\nmechanism = 'PLAIN'\nmechanisms = 'PLAIN'",
            "config.toml: Kafka's setting 'sasl.mechanisms' is given twice",
        ),
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


def test_a_variable_for_kafka_that_cannot_be_used_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNLOG_KAFKA_SASL_PASWORD", "hunter2")
    with pytest.raises(UsageError, match=r"^environment: .*do you mean 'sasl\.password'") as error:
        settings()
    assert "hunter2" not in "".join(traceback.format_exception(error.value))
    monkeypatch.delenv("TURNLOG_KAFKA_SASL_PASWORD")
    (home / ".env").write_text("TURNLOG_KAFKA_ACKS=0\n")
    with pytest.raises(UsageError, match=r"^\.env: Kafka's setting 'acks' cannot be given"):
        settings()


@pytest.mark.parametrize(
    "text",
    ["log = ['hunter2']", "[mask]\nx = ['hunter2']", "[kafka]\nsasl.password = ['hunter2']"],
)
def test_a_value_in_the_wrong_place_is_not_shown(text: str) -> None:
    configured(text)
    with pytest.raises(UsageError) as error:
        settings()
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


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
