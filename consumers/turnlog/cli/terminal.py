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
Part = str | tuple[str, str]
"""Text, or text and its style."""
Tick = Callable[[int, int], None]


class Terminal:
    """The two streams of one command; `status` is what it will exit with."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.status = 0

    # ---- data ----------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Bytes to standard output."""
        with _to_stdout():
            sys.stdout.flush()  # lines that came before
            sys.stdout.buffer.write(data)

    def document(self, value: Json) -> None:
        """One JSON document."""
        import orjson

        self.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    def rows(self, values: Iterable[Json]) -> None:
        """A JSON value on each line."""
        import orjson

        for value in values:
            self.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))

    def print(self, *parts: Part) -> None:
        """A line, from text and (text, style). It is not wrapped, and nothing in it is markup."""
        self._line("".join(map(self._styled, parts)) if self.is_coloured else _text(parts))

    def fit(self, *parts: Part) -> None:
        """A line as `print` gives it, cut where the terminal ends."""
        self.print(*fitted(parts, self.width))

    @property
    def is_narrow(self) -> bool:
        """Whether a person reads here, so that lines are cut and ids are short."""
        return sys.stdout.isatty()

    @cached_property
    def is_coloured(self) -> bool:
        """Whether standard output shows styles."""
        return self.out.color_system is not None

    @cached_property
    def width(self) -> int:
        """Columns of the terminal, 80 where there is none."""
        return max(self.out.width, 40)

    # ---- talk ----------------------------------------------------------------------------

    def say(self, *parts: Part) -> None:
        """A line for a person, unless there is to be quiet."""
        if not self.common.quiet:
            self.flush()  # data that could not be written is said instead
            self._print(self.err, parts)

    def note(self, *parts: Part) -> None:
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
        with _to_stdout():
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

    def _line(self, text: str) -> None:
        """A line, without asking rich: for lists of any length, and nothing in it needs layout."""
        with _to_stdout():
            if self.out.legacy_windows:
                self._print(self.out, (text,))
            else:
                sys.stdout.write(f"{text}\n")

    def _styled(self, part: Part) -> str:
        from rich.console import COLOR_SYSTEMS
        from rich.style import Style

        if isinstance(part, str):
            return part
        system = COLOR_SYSTEMS[self.out.color_system or "standard"]
        return Style.parse(part[1]).render(part[0], color_system=system)

    def _print(self, console: Console, parts: tuple[Part, ...]) -> None:
        from rich.text import Text

        line: Text = Text.assemble(*parts)
        console.print(line, soft_wrap=True)


def fitted(parts: tuple[Part, ...], width: int) -> tuple[Part, ...]:
    """What of a line has room in so many columns, with … where it is cut."""
    if columns(_text(parts)) <= width:
        return parts
    from rich.cells import set_cell_size

    kept: list[Part] = []
    room = width - 1
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        needed = columns(text)
        if needed > room:
            kept.append((set_cell_size(text, room) + "…", style))
            break
        kept.append(part)
        room -= needed
    return tuple(kept)


def columns(text: str) -> int:
    """How wide a text is on a terminal: most characters of East Asia, and emoji, are two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _text(parts: tuple[Part, ...]) -> str:
    return "".join([part if isinstance(part, str) else part[0] for part in parts])


def silence_stdout() -> None:
    """Nobody reads on: what is still in the buffers goes nowhere, also when Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def named(error: OSError) -> OSError:
    """An error that says where it happened: without a file's name it was standard output."""
    if error.filename is not None or error.errno is None:
        return error
    return OSError(error.errno, error.strerror, "writing to standard output")


@contextmanager
def _to_stdout() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise named(error) from error


def _nothing(_one: int, _other: int) -> None:
    """Nobody watches."""
