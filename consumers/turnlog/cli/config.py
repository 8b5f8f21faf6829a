"""`turnlog config`: the settings in force, and what is wrong with them. No secret is shown."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from turnlog.cli.guard import FAILED
from turnlog.cli.opening import check_options, open_log
from turnlog.cli.plain import one_line
from turnlog.cli.settings import (
    CONFIG_VARIABLE,
    KAFKA,
    Chosen,
    choose_kafka,
    choose_log,
    choose_tables,
    config_file,
    is_config_named,
    kafka_values,
    settings,
    without_password,
)
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import TurnlogError, UsageError

MASK = "***"
_OTHERS = (CONFIG_VARIABLE, "TURNLOG_DEBUG", "TURNLOG_FAILPOINT", "TURNLOG_FAILPOINT_MARKER")


def print_settings(terminal: Terminal) -> None:
    """Print each setting and its origin; secrets, and passwords in URLs, are left out."""
    found = _shown(terminal)
    file = config_file()
    if terminal.common.json:
        values = {name: chosen._asdict() for name, chosen in found.items()}
        terminal.document({"config_file": str(file), "exists": file.is_file(), "settings": values})
        return
    width = max(map(len, found))
    for name, (value, origin) in found.items():
        terminal.print(
            (f"{name:<{width}}", "cyan"), f" {one_line(str(value))}", (f"  ({origin})", "dim")
        )
    there = "" if file.is_file() else ", which is not there"
    terminal.say((f"config file: {file}{there}", "dim"))


def _shown(terminal: Terminal) -> dict[str, Chosen]:
    from turnlog.log.client import is_secret

    common = terminal.common
    found = {name: each for name, each in settings().items() if not name.startswith(KAFKA)}
    if common.log is not None:
        found["log"] = Chosen(common.log, "--log")
    if common.tables is not None:
        found["tables"] = Chosen(common.tables, "--tables")
    found["log"] = found["log"]._replace(value=without_password(str(found["log"].value)))
    for name, (value, origin) in choose_kafka(common.kafka).items():
        found[KAFKA + name] = Chosen(MASK if is_secret(name) else str(value), origin)
    return found


def check_settings(terminal: Terminal, *, connect: bool) -> None:
    """Say all that is wrong with the settings, and where; with `connect`, with the log as well."""
    from turnlog.cli.settings_model import look_at_layers

    layers = look_at_layers(config_file(), required=is_config_named())
    problems = [problem for layer in layers for problem in layer.problems]
    notes = _doubtful_variables()
    if not problems:
        problems += _check_together(terminal)
        notes += _readable_secrets()
    if not problems and connect:
        problems += _check_log(terminal)
    if problems:
        terminal.status = FAILED
    if terminal.common.json:
        connected = connect and not problems
        terminal.document({"problems": problems, "notes": notes, "connected": connected})
        return
    for problem in problems:
        terminal.print(("wrong  ", "bold red"), one_line(problem))
    for note in notes:
        terminal.print(("note   ", "yellow"), one_line(note))
    if not problems:
        more = ", and the log is as it must be" if connect else "; nothing was connected to"
        terminal.say(f"the settings can be used{more}")


def _check_together(terminal: Terminal) -> list[str]:
    """What is wrong with settings that are right by themselves."""
    from turnlog.log import topics

    common = terminal.common
    url, origin = choose_log(common.log)
    problems: list[str] = []
    try:
        check_options(common, [url])
        kafka = kafka_values(common.kafka)
        topics.check(url if url.startswith("kafka:") else None, kafka)
    except UsageError as error:
        problems.append(str(error))
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in ("file", "kafka", "memory", "sqlite"):
        problems.append(f"{origin}: log: {without_password(url)!r} is no URL of a log")
    tables = choose_tables(common.tables)
    if tables is not None and (tables == "sqlite:" or not tables.startswith("sqlite:")):
        problems.append(f"tables: {tables!r}: write sqlite:PATH")
    return problems


def _check_log(terminal: Terminal) -> list[str]:
    """What is wrong with the log itself; the tables are left alone."""
    from turnlog.log import topics

    url, _ = choose_log(terminal.common.log)
    try:
        if url.startswith("kafka:"):
            kafka = kafka_values(terminal.common.kafka)
            return [str(problem) for problem in topics.look(url, kafka=kafka).problems]
        open_log(terminal, catch_up=False).__exit__(None, None, None)
    except TurnlogError as error:
        return [str(error)]
    return []


def _doubtful_variables() -> list[str]:
    """Variables that look like settings and are none; those of Kafka's clients are checked."""
    from turnlog.cli.settings_model import Fields
    from turnlog.log.client import VARIABLE_PREFIX

    known = [*(f"TURNLOG_{name.upper()}" for name in Fields.model_fields), *_OTHERS]
    notes: list[str] = []
    for name in sorted(os.environ):
        if not name.startswith("TURNLOG_") or name.startswith(VARIABLE_PREFIX) or name in known:
            continue
        nearest = get_close_matches(name, known, 1, 0.9)
        if nearest:
            notes.append(f"the variable {name} is no setting; do you mean {nearest[0]}?")
    return notes


def _readable_secrets() -> list[str]:
    """Files with secrets that others than their owner can read."""
    from turnlog.log.client import is_secret

    found = choose_kafka(None)
    files = {each.origin for name, each in found.items() if is_secret(name)}
    files |= {str(each.value) for name, each in found.items() if name == "sasl.password.file"}
    notes: list[str] = []
    for file in sorted(files):
        path = Path(file).expanduser()
        if os.name == "posix" and path.is_file() and path.stat().st_mode & 0o077:
            notes.append(f"{file} holds a secret, and others can read it: chmod 600 {file}")
    return notes
