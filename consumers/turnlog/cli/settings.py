"""Which log, and what else a person has set: flags win over the environment, and that over files.

TURNLOG_* variables, then a `.env` in the working directory, then the config file: TURNLOG_CONFIG,
else `turnlog/config.toml` in the user's folder for settings.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

CONFIG_VARIABLE = "TURNLOG_CONFIG"
DATA_FILE = "turnlog.db"
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


def choose_tables() -> str | None:
    """Where the tables of a Kafka log lie, None for its own place."""
    return str(settings()["tables"].value) or None


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

    for origin, values in read_layers(
        config_file(), required=bool(os.environ.get(CONFIG_VARIABLE))
    ):
        found.update({name: Chosen(values[name], origin) for name in found if name in values})
    return found


def data_file() -> Path:
    """Where a log lies that nobody has named."""
    from platformdirs import user_data_path

    return user_data_path("turnlog", appauthor=False) / DATA_FILE


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
