"""Command lines for tests: run in this process, with settings and folders of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

import turnlog.log
from tests.story import Story
from turnlog.cli.program import run
from turnlog.core.frames import Record


class Result(NamedTuple):
    """What a command line came to."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        return [orjson.loads(line) for line in self.out.splitlines()]


class Caller:
    """Runs command lines in a folder with a home of its own."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.folder = folder
        self.url = f"sqlite:{folder}/log.db"
        self._capture = capture

    def __call__(self, *arguments: object) -> Result:
        """Run a command line as it is."""
        self._capture.readouterr()
        status = run([str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        return Result(status, out.decode(), err.decode())

    def on(self, command: str, *arguments: object, log: str | None = None) -> Result:
        """Run a command on the log."""
        return self(command, *arguments, "--log", log if log is not None else self.url)

    def good(self, command: str, *arguments: object, log: str | None = None) -> Result:
        """Run a command on the log that must succeed."""
        result = self.on(command, *arguments, log=log)
        assert result.status == 0, result
        return result

    def bad(self, status: int, command: str, *arguments: object, log: str | None = None) -> str:
        """Run a command on the log that must fail so, without data; gives its one line."""
        result = self.on(command, *arguments, log=log)
        assert (result.status, result.out) == (status, ""), result
        assert result.err.count("\n") == 1, result.err
        assert result.err.startswith("turnlog"), result.err
        return result.err

    def write(self, *sources: Story | Iterable[Record], log: str | None = None) -> None:
        """Put records into the log."""

        async def load() -> None:
            async with turnlog.log.open(log or self.url, clock=lambda: 0) as opened:
                for source in sources:
                    records = source.records if isinstance(source, Story) else source
                    await opened.load(list(records))

        asyncio.run(load())


def isolated(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No settings but those that a test makes."""
    kafka = [name for name in os.environ if name.startswith("TURNLOG_KAFKA_")]
    for name in (
        "TURNLOG_LOG",
        "TURNLOG_TABLES",
        "TURNLOG_CONFIG",
        "TURNLOG_MASK",
        "TURNLOG_DEBUG",
        *kafka,
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(folder / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(folder)
