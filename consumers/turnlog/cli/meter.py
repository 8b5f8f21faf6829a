"""The progress bar: how far, how many records and bytes a second, how long still."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


@contextmanager
def meter(console: Console, what: str, total: int | None) -> Generator[Callable[[int, int], None]]:
    """A bar that goes away at the end. Gives what is called with records and bytes done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total, rate="")
        records = 0

        def tick(more: int, size: int) -> None:
            nonlocal records
            records += more
            elapsed = progress.tasks[0].elapsed or 0
            rate = f"{records / elapsed:,.0f}/s" if elapsed > 0.2 else ""
            progress.update(task, advance=size, rate=rate)

        yield tick


class Steps:
    """A bar up to an end that is told with each step. It shows itself at the first one that is
    short of the end."""

    def __init__(self, console: Console, what: str, *, are_bytes: bool) -> None:
        self._console = console
        self._what = what
        self._are_bytes = are_bytes
        self._progress: Progress | None = None

    def reach(self, position: int, end: int) -> None:
        """A position is reached, of those up to an end."""
        if self._progress is None:
            if position >= end:
                return
            counts: tuple[ProgressColumn, ...] = (MofNCompleteColumn(),)
            if self._are_bytes:
                counts = (DownloadColumn(), TransferSpeedColumn())
            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=None),
                *counts,
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._progress.start()
            self._progress.add_task(self._what, total=end)
        self._progress.update(self._progress.task_ids[0], completed=position, total=end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._progress is not None:
            self._progress.stop()
