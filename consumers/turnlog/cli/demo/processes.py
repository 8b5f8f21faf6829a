"""The demo's hosts as processes: started, watched, killed, frozen and woken, and never left behind.

Nothing waits for a time to pass: it is a process that has ended or stopped, or a request that has
arrived. `LIMIT_S` only ends a demo in which that never happens.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import orjson

from turnlog.cli.demo.host import Task
from turnlog.core.errors import StateError
from turnlog.testing.failpoints import FAILPOINT, MARKER

Json = Any
COMMAND = ["-P", "-m", "turnlog.cli.demo.host"]
"""What a host is, for this Python; -P, since a file in the present folder may have any name."""
LIMIT_S = 20.0
"""How long a step may take at most."""
POLL_S = 0.005


class Host:
    """One process. A wait that is in vain raises StateError, with what the process said."""

    def __init__(self, task: Task, failpoint: str, lifeline: int) -> None:
        env = {name: value for name, value in os.environ.items() if name not in (FAILPOINT, MARKER)}
        self.name = task.host
        self._until = time.monotonic() + LIMIT_S
        self._process = subprocess.Popen(  # noqa: S603 - this Python, and a module of ours
            [sys.executable, *COMMAND, orjson.dumps(task._asdict())],
            env={**env, FAILPOINT: failpoint},
            stdin=lifeline,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def check(self) -> None:
        """Raise StateError where it has ended, or takes too long."""
        if not self.is_running:
            raise self._failed(f"ended too early, with status {self._process.returncode}")
        if time.monotonic() > self._until:
            raise self._failed(f"did not get there in {LIMIT_S:g} s")

    def kill(self) -> int:
        """SIGKILL; gives the signal that ended it."""
        self._process.kill()
        return -self._process.wait()

    def frozen(self) -> None:
        """Return once it has stopped itself at its failpoint."""
        while True:
            pid, status = os.waitpid(self._process.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                return
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
            self.check()
            time.sleep(POLL_S)

    def wake(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)
        self._until = time.monotonic() + LIMIT_S

    def ended(self) -> Json:
        """How it ended, in its own words (see `turnlog.cli.demo.host`)."""
        try:
            out, err = self._process.communicate(timeout=self._until - time.monotonic())
        except subprocess.TimeoutExpired:
            raise self._failed(f"did not end in {LIMIT_S:g} s") from None
        if self._process.returncode:
            raise self._failed(f"failed with status {self._process.returncode}", err)
        return orjson.loads(out)

    def end(self) -> None:
        """However it is, it is no more."""
        self._stop()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _stop(self) -> None:
        if self.is_running:
            self._process.kill()  # a stopped one dies of it, too
        self._process.wait()

    def _failed(self, what: str, said: bytes | None = None) -> StateError:
        """The error for it, once it has ended; `said` is its standard error, where it was read."""
        words = (self._last_words() if said is None else said).decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "nothing")
        return StateError(
            f"demo: the {self.name} {what}; it said: {last}; run the demo again, and report this if"
            " it stays so"
        )

    def _last_words(self) -> bytes:
        self._stop()
        return b"" if self._process.stderr is None else self._process.stderr.read()


class Hosts:
    """The processes of one demo; none of them outlives the block."""

    def __init__(self) -> None:
        self._all: list[Host] = []
        # nobody writes to it: it ends where this process does, and the hosts with it
        self._lifeline, self._held = os.pipe()
        self._before: signal.Handlers | Callable[..., Any] | int | None = None

    def start(self, task: Task, failpoint: str = "") -> Host:
        """Start one, perhaps to stop or die at a place (`turnlog.testing.failpoints`)."""
        host = Host(task, failpoint, self._lifeline)
        self._all.append(host)
        return host

    @property
    def running(self) -> list[str]:
        """The names of those that have not ended."""
        return [host.name for host in self._all if host.is_running]

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # ended by SIGTERM this process would leave them; a frozen one cannot end by itself
            self._before = signal.signal(signal.SIGTERM, _leave)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
        for host in self._all:
            host.end()
        os.close(self._lifeline)
        os.close(self._held)


def _leave(number: int, frame: object) -> None:
    """End in order, with the status of a process that the signal has ended."""
    del frame
    sys.exit(128 + number)
