"""Which log, and what else a person has set: flags win over the environment, and that over files.

TURNLOG_* variables, then a `.env` in the working directory, then the config file: TURNLOG_CONFIG,
else `turnlog/config.toml` in the user's folder for settings. Settings of Kafka's clients are
called `kafka.NAME` here; of these each name is looked up by itself.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.core.errors import UsageError

CONFIG_VARIABLE = "TURNLOG_CONFIG"
DATA_FILE = "turnlog.db"
KAFKA = "kafka."
_PASSWORD = re.compile(r"(//[^/@:]*:)[^/@]*@")


class Chosen(NamedTuple):
    """A setting and where it comes from."""

    value: Any
    origin: str


def choose_log(flag: str | None) -> tuple[str, str]:
    """The URL of the log, and where that comes from."""
    if flag is not None:
        return flag, "--log"
    url, origin = settings()["log"]
    return str(url), origin


def choose_tables(flag: str | None = None) -> str | None:
    """Where the tables of a Kafka log lie, None for its own place."""
    return flag if flag is not None else str(settings()["tables"].value) or None


def choose_kafka(flags: list[str] | None) -> dict[str, Chosen]:
    """The settings of Kafka's clients by Kafka's names, as NAME=VALUE flags and the rest have them.

    Raises UsageError for a flag that is no setting, or is a secret: all users of a machine can see
    the flags of its processes.
    """
    found = {
        name.removeprefix(KAFKA): chosen
        for name, chosen in settings().items()
        if name.startswith(KAFKA)
    }
    found.update(
        (name, Chosen(value, "--kafka")) for name, value in _read_flags(flags or []).items()
    )
    return found


def kafka_values(flags: list[str] | None = None) -> dict[str, object]:
    """The same, as `turnlog.log` takes them."""
    return {name: chosen.value for name, chosen in choose_kafka(flags).items()}


def _read_flags(flags: list[str]) -> dict[str, str]:
    from turnlog.log.client import SETTINGS, known, read

    given: dict[str, str] = {}
    for flag in flags:
        said, equals, value = flag.partition("=")
        if not equals:
            raise UsageError("--kafka: write NAME=VALUE")  # what was written may be a secret
        try:
            name = known(said)
            if SETTINGS[name].secret:
                raise UsageError(
                    f"{name} is a secret, and flags can be seen by others: set"
                    f" {SETTINGS[name].variable}, or {name!r} under [kafka] in {config_file()}"
                )
            given |= read({name: value})
        except UsageError as error:
            raise UsageError(f"--kafka: {error}") from None
    return given


def settings() -> dict[str, Chosen]:
    """Every setting by name. Raises UsageError for a file or variable that cannot be used."""
    found = {
        "log": Chosen(f"sqlite:{data_file()}", "default"),
        "tables": Chosen("", "default"),
        "mask": Chosen(dict[str, str](), "default"),
        "admin": Chosen("", "default"),
        "log_format": Chosen("", "default"),
        "stop_within": Chosen(25.0, "default"),
    }
    from turnlog.cli.settings_model import read_layers

    for origin, values in read_layers(config_file(), required=is_config_named()):
        found.update({name: Chosen(values[name], origin) for name in found if name in values})
        kafka: dict[str, str] = values.get("kafka", {})
        found.update({KAFKA + name: Chosen(value, origin) for name, value in kafka.items()})
    return found


def data_file() -> Path:
    """Where a log lies that nobody has named."""
    from platformdirs import user_data_path

    return user_data_path("turnlog", appauthor=False) / DATA_FILE


def is_config_named() -> bool:
    """Whether somebody has named a config file, which must then be there."""
    return bool(os.environ.get(CONFIG_VARIABLE))


def config_file() -> Path:
    """Where settings are read from, if it is there."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named).expanduser()
    from platformdirs import user_config_path

    return user_config_path("turnlog", appauthor=False) / "config.toml"


def without_password(url: str) -> str:
    """A URL as it may be shown."""
    return _PASSWORD.sub(r"\1***@", url)
