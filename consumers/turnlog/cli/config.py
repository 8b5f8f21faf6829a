"""`turnlog config show`: the settings in force."""

from __future__ import annotations

from turnlog.cli.plain import one_line
from turnlog.cli.settings import config_file, settings, without_password
from turnlog.cli.terminal import Terminal


def print_settings(terminal: Terminal) -> None:
    """Print each setting and its origin; passwords in URLs are left out."""
    found = settings()
    if terminal.common.log is not None:
        found["log"] = found["log"]._replace(value=terminal.common.log, origin="--log")
    found["log"] = found["log"]._replace(value=without_password(str(found["log"].value)))
    file = config_file()
    if terminal.common.json:
        values = {name: chosen._asdict() for name, chosen in found.items()}
        terminal.document({"config_file": str(file), "exists": file.is_file(), "settings": values})
        return
    for name, (value, origin) in found.items():
        terminal.print((f"{name:<7}", "cyan"), one_line(str(value)), (f"  ({origin})", "dim"))
    there = "" if file.is_file() else ", which is not there"
    terminal.say((f"config file: {file}{there}", "dim"))
