"""What the main thread of a process is told: signals, and that the work has ended.

Python runs a signal's handler in the main thread, but the kernel may give the signal to any thread,
and who waits for a lock or a queue is not woken by that: the signal would be lost until something
else comes. So the main thread sleeps on a socket, into which Python writes for every signal.
"""

from __future__ import annotations

import select
import signal
import socket
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue


class Inbox:
    """See the module's text. It is read by the main thread alone."""

    def __init__(self) -> None:
        self._items: SimpleQueue[int | None] = SimpleQueue()
        """A signal's handler may put into it whatever the main thread is at."""
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)

    def put(self, item: int | None) -> None:
        """A signal's number, or None for the end of the work. From any thread."""
        self._items.put(item)
        with suppress(OSError):  # full, so it rings; or closed, so nobody waits
            self._ringer.send(b"\0")

    def get(self, timeout_s: float | None = None) -> int | None:
        """The next one. Raises TimeoutError where none comes in time."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            with suppress(Empty):
                return self._items.get_nowait()
            left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
            if not select.select([self._bell], [], [], left_s)[0]:
                raise TimeoutError
            with suppress(BlockingIOError):
                self._bell.recv(4096)

    @contextmanager
    def taking(self, numbers: Iterable[int]) -> Generator[None]:
        """Signals come here meanwhile. One that is ignored, as ^C behind `nohup`, stays so."""

        def put(number: int, _frame: object) -> None:
            self._items.put(number)

        fd = signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
        before = {
            each: signal.signal(each, put)
            for each in numbers
            if signal.getsignal(each) is not signal.SIG_IGN
        }
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
            signal.set_wakeup_fd(fd)

    def close(self) -> None:
        """Give the sockets back."""
        self._bell.close()
        self._ringer.close()
