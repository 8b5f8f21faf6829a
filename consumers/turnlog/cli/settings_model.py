"""The settings as pydantic-settings reads them; apart from `settings`, for it is slow to import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from turnlog.core.errors import UsageError

Values = dict[str, Any]


class Fields(BaseModel):
    """What can be set; each field is also a variable TURNLOG_<NAME>."""

    model_config = ConfigDict(strict=True)

    log: str | None = Field(None, min_length=1)
    """The URL of the log."""
    tables: str | None = Field(None, min_length=1)
    """Where the tables of a Kafka log lie, as sqlite:PATH."""
    mask: dict[str, str] = {}
    """Further secrets to mask on import: a name and a regular expression for each."""
    admin: str | None = Field(None, min_length=1)
    """Where commands that run on answer /livez, /readyz and /metrics, as HOST:PORT."""
    log_format: Literal["json", "text"] | None = None
    """How commands that run on tell what happens; text on a terminal, else json."""
    stop_within: float | None = Field(None, ge=0.1, strict=False)
    """How many seconds an orderly end may take: less than what starts the process allows."""


class Settings(Fields, BaseSettings):
    """The fields, for the sources to look up; a source is asked by itself, so it can be named."""

    model_config = SettingsConfigDict(env_prefix="TURNLOG_", env_ignore_empty=True, extra="ignore")


def read_layers(file: Path, *, required: bool) -> list[tuple[str, Values]]:
    """What each source says, the weakest first: the file, `.env`, the environment.

    Raises UsageError, naming the source, for what cannot be read or is not known.
    """
    if required and not file.is_file():
        raise UsageError(f"TURNLOG_CONFIG names {file}, which is no file")
    layers = [
        (str(file), _read(str(file), TomlConfigSettingsSource, file)),
        (".env", _read(".env", DotEnvSettingsSource, Path(".env"))),
        ("environment", _read("environment", EnvSettingsSource)),
    ]
    unknown = sorted(set(layers[0][1]) - set(Fields.model_fields))
    if unknown:
        known = ", ".join(Fields.model_fields)
        raise UsageError(f"{file}: there is no setting {unknown[0]!r}; there are {known}")
    return layers


def _read(origin: str, source: Callable[..., Callable[[], Values]], *place: Path) -> Values:
    try:
        values = source(Settings, *place)()
        Fields(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(step) for step in first["loc"])
        raise UsageError(f"{origin}: {name}: {first['msg']}") from error
    except (SettingsError, OSError, ValueError) as error:  # TOML's and the encoding's errors, too
        raise UsageError(f"{origin}: {error}") from error
    return values
