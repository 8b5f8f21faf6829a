"""Where a command's data and talk go: JSON or lines to standard output, talk to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from turnlog.cli.options import Common

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Json = Any
Tick = Callable[[int, int], None]


class Terminal:
    """The two streams of one command; `status` is what it will exit with."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.status = 0

    # ---- data ----------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Bytes to standard output."""
        self._stdout().write(data)

    def document(self, value: Json) -> None:
        """One JSON document."""
        import orjson

        self.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    def rows(self, values: Iterable[Json]) -> None:
        """A JSON value on each line."""
        import orjson

        for value in values:
            self.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))

    def print(self, *parts: str | tuple[str, str]) -> None:
        """A line, from text and (text, style). It is not wrapped, and nothing in it is markup."""
        self._print(self.out, parts)

    def fit(self, *parts: str | tuple[str, str]) -> None:
        """A line as `print` gives it, cut where the terminal ends."""
        from rich.text import Text

        line = Text.assemble(*parts)
        line.truncate(self.width, overflow="ellipsis")
        self.out.print(line, soft_wrap=True)

    @property
    def is_narrow(self) -> bool:
        """Whether a person reads here, so that lines are cut and ids are short."""
        return sys.stdout.isatty()

    @property
    def width(self) -> int:
        """Columns of the terminal, 80 where there is none."""
        return max(self.out.width, 40)

    # ---- talk ----------------------------------------------------------------------------

    def say(self, *parts: str | tuple[str, str]) -> None:
        """A line for a person, unless there is to be quiet."""
        if not self.common.quiet:
            self._print(self.err, parts)

    def note(self, *parts: str | tuple[str, str]) -> None:
        """A line that only somebody who asked for more wants to see."""
        if self.common.verbose:
            self._print(self.err, parts)

    def complain(self, message: str) -> None:
        """The one line of an error, whatever the message is made of."""
        from turnlog.cli.plain import one_line

        text = one_line(message)
        sys.stderr.write(f"turnlog: {text}\n")

    @contextmanager
    def meter(self, what: str, total: int | None = None) -> Generator[Tick]:
        """A bar with rates, where a person watches. Gives what is called with records and bytes
        done; `total` is in bytes."""
        if not self.is_watched:
            yield _nothing
            return
        from turnlog.cli.meter import meter

        with meter(self.err, what, total) as tick:
            yield tick

    @contextmanager
    def steps(self, what: str, *, are_bytes: bool = False) -> Generator[Tick]:
        """A bar up to an end. Gives what is called with how far it is and with the end; it shows
        itself only when that happens."""
        if not self.is_watched:
            yield _nothing
            return
        from turnlog.cli.meter import Steps

        with Steps(self.err, what, are_bytes=are_bytes) as steps:
            yield steps.reach

    @property
    def is_watched(self) -> bool:
        """Whether anybody sees a bar."""
        return not self.common.quiet and sys.stderr.isatty()

    # ---- the streams ---------------------------------------------------------------------

    @cached_property
    def out(self) -> Console:
        """Standard output for lines."""
        return self._console(stderr=False)

    @cached_property
    def err(self) -> Console:
        """Standard error for talk."""
        return self._console(stderr=True)

    def flush(self) -> None:
        """Nothing is left in a buffer."""
        sys.stdout.flush()

    def _console(self, *, stderr: bool) -> Console:
        from turnlog.cli.console import PlainConsole

        plain = self.common.no_color or os.environ.get("NO_COLOR")
        return PlainConsole(
            stderr=stderr,
            color_system=None if plain else "auto",
            markup=False,
            highlight=False,
            emoji=False,
        )

    def _print(self, console: Console, parts: tuple[str | tuple[str, str], ...]) -> None:
        from rich.text import Text

        line: Text = Text.assemble(*parts)
        console.print(line, soft_wrap=True)

    def _stdout(self) -> Any:
        return sys.stdout.buffer


def silence_stdout() -> None:
    """Nobody reads on: what is still in the buffers goes nowhere, also when Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nothing(_one: int, _other: int) -> None:
    """Nobody watches."""
