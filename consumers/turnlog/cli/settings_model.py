"""The settings as pydantic-settings reads them; apart from `settings`, for it is slow to import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

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
from turnlog.log import client

Values = dict[str, Any]
KAFKA = "kafka"
"""The table of the config file for Kafka's clients. It is no field: TURNLOG_KAFKA is no variable,
and each name in the table has one of its own."""


class Fields(BaseModel):
    """What can be set; each field is also a variable TURNLOG_<NAME>."""

    # a value may be a secret in the wrong place
    model_config = ConfigDict(strict=True, hide_input_in_errors=True, use_attribute_docstrings=True)

    log: str | None = Field(None, min_length=1)
    """The URL of the log. By default a file in your data folder."""
    tables: str | None = Field(None, min_length=1)
    """Where the tables of a Kafka log lie, as sqlite:PATH. By default a file in your data folder
    for each topic."""
    mask: dict[str, str] = {}
    """Further secrets to mask on import: a name and a regular expression for each. A variable holds
    them as JSON."""
    admin: str | None = Field(None, min_length=1)
    """Where commands that run on answer /livez, /readyz and /metrics, as HOST:PORT. By default
    nowhere."""
    log_format: Literal["json", "text"] | None = None
    """How commands that run on tell what happens; text on a terminal, else json."""
    stop_within: float | None = Field(None, ge=0.1, strict=False)
    """How many seconds an orderly end may take, by default 25: less than what starts the process
    allows."""


class Settings(Fields, BaseSettings):
    """The fields, for the sources to look up; a source is asked by itself, so it can be named."""

    model_config = SettingsConfigDict(env_prefix="TURNLOG_", env_ignore_empty=True, extra="ignore")


class Layer(NamedTuple):
    """What one source says, and what is wrong with it. Settings of Kafka's clients are under
    `kafka`, by the names of `turnlog.log.client`."""

    origin: str
    values: Values
    problems: list[str]


def read_layers(file: Path, *, required: bool) -> list[tuple[str, Values]]:
    """What each source says, the weakest first: the file, `.env`, the environment.

    Raises UsageError, naming the source, for what cannot be read or is not known.
    """
    layers = look_at_layers(file, required=required)
    for layer in layers:
        if layer.problems:
            raise UsageError(layer.problems[0])
    return [(layer.origin, layer.values) for layer in layers]


def look_at_layers(file: Path, *, required: bool) -> list[Layer]:
    """The sources, the weakest first, with all that is wrong with them."""
    if required and not file.is_file():
        missing = Layer(str(file), {}, [f"TURNLOG_CONFIG names {file}, which is no file"])
    else:
        missing = None
    return [
        missing or _look(str(file), TomlConfigSettingsSource, file),
        _look(".env", DotEnvSettingsSource, Path(".env")),
        _look("environment", EnvSettingsSource),
    ]


def _look(origin: str, source: Callable[..., Callable[[], Values]], *place: Path) -> Layer:
    try:
        asked = source(Settings, *place)
        values = asked()
    except (SettingsError, OSError, ValueError) as error:  # TOML's and the encoding's errors, too
        return Layer(origin, {}, [f"{origin}: {error}"])
    problems: list[str] = []
    variables: Mapping[str, str] | None = getattr(asked, "env_vars", None)
    if variables is None:
        kafka: Any = values.pop(KAFKA, {})
    else:
        kafka = _from_variables(variables)
        # a `.env` is for others, too
        values = {name: value for name, value in values.items() if name in Fields.model_fields}
    if isinstance(kafka, dict):
        found, wrong = _read_kafka(_flat(cast(Values, kafka)))
        problems += [f"{origin}: {each}" for each in wrong]
        if found:
            values[KAFKA] = found
    else:
        problems.append(f"{origin}: kafka: must be a table of Kafka's settings")
    fields = {name: value for name, value in values.items() if name != KAFKA}
    for name in sorted(set(fields) - set(Fields.model_fields)):
        known = ", ".join((*Fields.model_fields, KAFKA))
        problems.append(f"{origin}: there is no setting {name!r}; there are {known}")
    try:
        Fields(**fields)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            name = ".".join(str(step) for step in each["loc"])
            problems.append(f"{origin}: {name}: {each['msg']}")
    return Layer(origin, values, problems)


def _from_variables(variables: Mapping[str, str | None]) -> dict[str, object]:
    named = {client.name_of(variable): value for variable, value in variables.items()}
    return {name: value for name, value in named.items() if name and value is not None}


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """A table by dotted names: TOML makes tables of names with dots that are not quoted."""
    found: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= _flat(cast(Values, value), f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _read_kafka(given: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """What is right of some settings of Kafka's clients, and what is wrong."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for name, value in given.items():
        try:
            read = client.read({name: value})
        except UsageError as error:
            problems.append(str(error))
            continue
        if found.keys() & read.keys():
            problems.append(f"Kafka's setting {name!r} is given twice, under another name as well")
        found |= read
    return found, problems
