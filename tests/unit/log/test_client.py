"""Settings of Kafka's clients by Kafka's names: what is taken, refused, and never shown."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.core.errors import UsageError
from turnlog.log.client import (
    ALIASES,
    REFUSED,
    SETTINGS,
    Secret,
    check,
    is_secret,
    known,
    name_of,
    read,
)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
USER = {**SASL, "sasl.username": "me", "sasl.password": "hunter2"}


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def refusal(values: dict[str, object]) -> str:
    with pytest.raises(UsageError) as error:
        check(read(values))
    return str(error.value)


def test_no_name_is_taken_and_refused_at_once() -> None:
    assert not SETTINGS.keys() & REFUSED.keys()
    assert not ALIASES.keys() & (SETTINGS.keys() | REFUSED.keys())
    assert set(ALIASES.values()) <= SETTINGS.keys()


@pytest.mark.parametrize("name", [*SETTINGS, *ALIASES, *REFUSED])
def test_each_name_has_a_variable(name: str) -> None:
    variable = "TURNLOG_KAFKA_" + name.upper().replace(".", "_")
    assert name_of(variable) == name_of(variable.lower()) == name
    if name in SETTINGS:
        assert SETTINGS[name].variable == variable


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_break_a_promise_is_refused_with_a_reason(name: str) -> None:
    assert refusal({name: "1"}) == f"Kafka's setting {name!r} cannot be given: {REFUSED[name]}"


def test_the_nearest_name_is_told() -> None:
    assert "do you mean 'sasl.password'?" in refusal({"sasl.pasword": "x"})
    assert "do you mean 'acks'?" in refusal({"akcs": "1"})
    assert refusal({"zzz": 1}) == "Kafka's setting 'zzz' is not known here"


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_each_setting_takes_its_default_and_nothing_that_it_cannot_be(setting) -> None:
    if setting.values:
        for value in setting.values:
            assert read({setting.name: value}) == {setting.name: value}
        assert "must be one of" in refusal({setting.name: "else"})
    if setting.least is not None:
        assert read({setting.name: setting.least}) == {setting.name: str(setting.least)}
        assert read({setting.name: setting.most}) == {setting.name: str(setting.most)}
        for value in (setting.least - 1, setting.most + 1, "x", "1_0", "\u0661", True):
            assert "must be a number" in refusal({setting.name: value})
    if setting.name != "ssl.endpoint.identification.algorithm":
        assert "is empty" in refusal({setting.name: ""})
    for value in (None, 1.5, ["a"], {"a": "b"}, "a\0b"):
        assert "must be a text or a number" in refusal({setting.name: value})


def test_other_names_are_the_same_setting() -> None:
    for alias, name in ALIASES.items():
        assert known(alias) == name
    two = {"ssl.ca.location": "a", "ssl.truststore.location": "b"}
    assert "given twice" in refusal(two)
    off = {"ssl.endpoint.identification.algorithm": ""}  # so Java's clients say it
    assert read(off) == {"ssl.endpoint.identification.algorithm": "none"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"sasl.username": "me"}, "set it to SASL_SSL"),
        ({"ssl.ca.location": "x"}, "set it to SSL or SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, "'sasl.mechanism' is missing"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "no Kerberos"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "no OAUTHBEARER"),
        (SASL, "'sasl.username' is missing"),
        ({**SASL, "sasl.username": "me"}, "'sasl.password' is missing"),
        ({**USER, "sasl.password.file": "f"}, "leave one out"),
        ({**USER, "sasl.jaas.config": f'{SCRAM} required username="a" password="b";'}, "leave one"),
        ({"security.protocol": "SSL", "ssl.key.location": "k"}, "without 'ssl.certificate.loc"),
        ({"security.protocol": "SSL", "ssl.ca.location": "a", "ssl.ca.pem": "b"}, "leave one out"),
    ],
)
def test_what_does_not_fit_together_is_named(values: dict[str, object], said: str) -> None:
    assert said in refusal(values)


def test_who_says_plaintext_means_it() -> None:
    """One flag switches off for a moment what a file sets."""
    assert check(read({**USER, "security.protocol": "PLAINTEXT"})) is None


@given(st.text(), st.text(min_size=1))
def test_a_line_for_java_gives_user_and_password(name: str, password: str) -> None:
    if "\0" in name + password:
        return
    line = f"{SCRAM} required\n username={quoted(name)} password={quoted(password)};"
    user = check(read({**SASL, "sasl.jaas.config": line}))
    assert user == ("SCRAM-SHA-512", name, password)
    assert isinstance(user.password, Secret)
    plain = f"{PLAIN} required password={quoted(password)} username={quoted(name)} ;"
    user = check(read({**SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": plain}))
    assert user == ("PLAIN", name, password)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hunter2", "cannot be read"),
        ('x.Other required username="a" password="hunter2";', "its module must be one of"),
        (f'{PLAIN} required username="a" password="hunter2";', "is not for SCRAM-SHA-512"),
        (f'{SCRAM} required username="a" password="hunter2" tokenauth="true";', "alone"),
        (f'{SCRAM} required username="a" password=hunter2;', "alone"),
        (f'{SCRAM} required username="a";', "alone"),
    ],
)
def test_another_line_for_java_is_refused_without_being_shown(line: str, said: str) -> None:
    message = refusal({**SASL, "sasl.jaas.config": line})
    assert said in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "values",
    [
        {**SASL, "sasl.password": "hunter2"},
        {**USER, "acks": "hunter2"},
        {**USER, "sasl.pasword": "hunter2"},
        {**USER, "sasl.password": ["hunter2"]},
        {**USER, "sasl.password": "hunter2\0"},
        {**SASL, "sasl.jaas.config": "hunter2"},
        {"ssl.key.password": "hunter2"},
    ],
)
def test_no_error_shows_a_secret(values: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        check(read(values))
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_secret_is_shown_by_no_repr_and_is_a_text_all_the_same() -> None:
    values = read(USER)
    user = check(values)
    assert "hunter2" not in f"{values!r} {values} {user!r} {user}"
    assert values["sasl.password"] == "hunter2"
    assert [name for name in (*SETTINGS, "acks", "?") if is_secret(name)] == [
        "sasl.password",
        "sasl.jaas.config",
        "ssl.key.password",
        "acks",
        "?",
    ]
