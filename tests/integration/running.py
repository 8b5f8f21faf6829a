"""Commands that run on, as processes for tests: what they print, what they say, how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from typing import Any

WAIT_S = 60
_MAIN = (
    # an interrupt may be ignored where tests run, and would stay so
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from turnlog.cli.app import main; main()"
)
TURNLOG = [sys.executable, "-P", "-c", _MAIN]


class Running:
    """A process; its log lines are read as they come, and kept."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.said: list[dict[str, Any]] = []
        self._said: Queue[bytes] = Queue()
        self._printed: Queue[bytes] = Queue()
        for stream, lines in ((process.stderr, self._said), (process.stdout, self._printed)):
            threading.Thread(target=_read, args=(stream, lines), daemon=True).start()

    def until(self, found: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next log line that is so. Every line must be JSON."""
        while True:
            line = self._said.get(timeout=WAIT_S)
            assert line, f"ended without saying so: {self.said}"
            self.said.append(json.loads(line))
            if found(self.said[-1]):
                return self.said[-1]

    def until_said(self, part: str) -> dict[str, Any]:
        """The next log line with these words."""
        return self.until(lambda line: part in line["message"])

    def line(self) -> str:
        """The next line of data."""
        found = self._printed.get(timeout=WAIT_S)
        assert found, f"no more data: {self.said}"
        return found.decode().rstrip("\n")

    def rows(self, count: int) -> list[dict[str, Any]]:
        """The next lines of data, as JSON."""
        return [json.loads(self.line()) for _ in range(count)]

    def admin(self) -> str:
        """HOST:PORT of its admin port, which it says."""
        line = self.until(lambda line: "admin" in line)
        return line["admin"].removeprefix("http://")

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; gives the status."""
        self.send(number)
        return self.ended()

    def ended(self) -> int:
        """The status of a process that ends; everything it said is in `said`."""
        status = self.process.wait(WAIT_S)
        while line := self._said.get(timeout=WAIT_S):
            self.said.append(json.loads(line))
        return status

    def rest(self) -> list[str]:
        """The data that is left, of a process that has ended."""
        found = []
        while line := self._printed.get(timeout=WAIT_S):
            found.append(line.decode().rstrip("\n"))
        return found

    @property
    def errors(self) -> list[str]:
        return [line["message"] for line in self.said if line["level"] in ("error", "critical")]


def _read(stream: Any, lines: Queue[bytes]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(b"")
    stream.close()


@contextmanager
def running(
    folder: Path, *arguments: object, command: list[str] = TURNLOG, **environment: str
) -> Iterator[Running]:
    """A command in a folder that is its home; killed at the end where it still runs."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    process = subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=folder,
        env={
            **kept, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"), **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait(WAIT_S)
        process.stdin.close()


def asked(place: str, path: str) -> tuple[int, str]:
    """Status and body of a page of an admin port."""
    connection = HTTPConnection(place, timeout=WAIT_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    said = answer.read().decode()
    connection.close()
    return answer.status, said
