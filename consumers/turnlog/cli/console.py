"""The console of rich, so that a closed pipe ends a command by our rules and not by rich's."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class PlainConsole(Console):
    """Leaves a closed pipe to `turnlog.cli.guard`."""

    def on_broken_pipe(self) -> NoReturn:
        """Called by rich where nobody reads on."""
        raise BrokenPipeError
