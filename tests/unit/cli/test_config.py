"""`turnlog config show` and `check`: no secret is shown, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.calls import Caller, isolated

SECURED = """\
log = "kafka://localhost:1/sessions"
[kafka]
security.protocol = "SASL_SSL"
sasl.mechanism = "PLAIN"
sasl.username = "me"
sasl.password = "hunter2"
"""


@pytest.fixture
def turnlog(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    isolated(monkeypatch, tmp_path)
    monkeypatch.setenv("TURNLOG_CONFIG", "config.toml")
    (tmp_path / "config.toml").touch(mode=0o600)
    return Caller(tmp_path, capsysbinary)


def write(turnlog: Caller, text: str) -> Path:
    file = turnlog.folder / "config.toml"
    file.write_text(text)
    return file


def test_secrets_are_masked_whatever_is_shown(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(turnlog, SECURED)
    monkeypatch.setenv("TURNLOG_KAFKA_SSL_KEY_PASSWORD", "hunter3")
    for arguments in ([], ["--json"], ["-v"], ["--kafka", "client.id=x"]):
        shown = turnlog("config", "show", *arguments)
        assert shown.status == 0
        assert "hunter" not in shown.out + shown.err
    found = turnlog("config", "show", "--json", "--tables", "sqlite:t.db").json["settings"]
    assert found["kafka.sasl.password"] == {"value": "***", "origin": "config.toml"}
    assert found["kafka.ssl.key.password"] == {"value": "***", "origin": "environment"}
    assert found["kafka.sasl.username"] == {"value": "me", "origin": "config.toml"}
    assert found["tables"] == {"value": "sqlite:t.db", "origin": "--tables"}


def test_a_check_names_all_that_is_wrong_and_where(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(turnlog, 'lgo = "x"\ntables = 3\n[kafka]\nacks = "hunter2"\nlinger.ms = -1\n')
    monkeypatch.setenv("TURNLOG_MASK", '{"a": 1}')
    monkeypatch.setenv("TURNLOG_TABELS", "x")
    monkeypatch.setenv("TURNLOG_SAMPLES", "x")  # whose that is nobody knows
    (turnlog.folder / ".env").write_text("TURNLOG_KAFKA_GROUP_ID=hunter2\n")
    checked = turnlog("config", "check", "--json")
    assert checked.status == 1
    assert [problem.partition(":")[0] for problem in checked.json["problems"]] == [
        *["config.toml"] * 4,
        ".env",
        "environment",
    ]
    assert checked.json["notes"] == [
        "the variable TURNLOG_TABELS is no setting; do you mean TURNLOG_TABLES?"
    ]
    assert "hunter2" not in checked.out
    assert turnlog("config", "check").out.count("wrong") == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('log = "kafka://localhost:1"', "names no broker and topic"),
        ('log = "kafak://localhost:1/t"', "config.toml: log: 'kafak://localhost:1/t' is no URL"),
        ('tables = "t.db"', "'t.db': write sqlite:PATH"),
        ('tables = "sqlite:"', "'sqlite:': write sqlite:PATH"),
        ("[kafka]\nsasl.username = 'me'", "'security.protocol' is not: set it to SASL_SSL"),
        (SECURED + "ssl.ca.location = '/nowhere'", "/nowhere cannot be read"),
    ],
)
def test_what_does_not_fit_together_is_wrong_without_anybody_being_asked(
    turnlog: Caller, text: str, said: str
) -> None:
    write(turnlog, text)
    checked = turnlog("config", "check")
    assert checked.status == 1
    assert said in checked.out


def test_settings_that_can_be_used(turnlog: Caller) -> None:
    file = write(turnlog, SECURED)
    checked = turnlog("config", "check")  # nothing listens on that port
    assert (checked.status, checked.out) == (0, "")
    assert "can be used; nothing was connected to" in checked.err
    file.chmod(0o644)
    assert "chmod 600 config.toml" in turnlog("config", "check").out
    password = turnlog.folder / "password"
    password.write_text("hunter2")
    password.chmod(0o640)
    write(turnlog, SECURED.replace('sasl.password = "hunter2"', 'sasl.password.file = "password"'))
    assert "note   password holds a secret" in turnlog("config", "check").out


def test_a_log_is_reached_if_that_is_asked_for(turnlog: Caller) -> None:
    write(turnlog, f'log = "{turnlog.url}"')
    assert turnlog("config", "check").status == 0
    checked = turnlog("config", "check", "--connect")
    assert checked.status == 1
    assert "there is no log" in checked.out
    turnlog.write([])
    checked = turnlog("config", "check", "--connect", "--json")
    assert (checked.status, checked.json["connected"]) == (0, True)


def test_options_for_kafka_are_refused_where_the_log_is_none(turnlog: Caller) -> None:
    turnlog.write([])
    said = turnlog.bad(2, "sessions", "--tables", "sqlite:t.db")
    assert "holds its own tables; leave the option out" in said
    said = turnlog.bad(2, "sessions", "--kafka", "client.id=x")
    assert "is not on Kafka; leave the option out" in said
    write(turnlog, f'log = "{turnlog.url}"\ntables = "sqlite:t.db"\n[kafka]\nclient.id = "x"\n')
    assert turnlog("sessions").status == 0  # as settings they are for logs that they fit
    assert not (turnlog.folder / "t.db").exists()


def test_two_logs_on_kafka_do_not_share_their_tables(
    turnlog: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = ["kafka://localhost:1/one", "kafka://localhost:1/two"]
    refused = turnlog("copy", *logs, "--tables", "sqlite:t.db")
    assert refused.status == 2
    assert "each needs tables of its own" in refused.err
    monkeypatch.setenv("TURNLOG_TABLES", "sqlite:t.db")
    assert turnlog("copy", *logs).err == refused.err
