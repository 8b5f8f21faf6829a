"""`turnlog broker`: a real Kafka on this machine for as long as the command runs."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from turnlog.cli.plain import counted
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import LogUnavailable
from turnlog.testing.broker import Broker, Node

LOOK_S = 0.5
"""How often it is looked whether the nodes run, and the process that all is for."""


def run_broker(
    terminal: Terminal, *, nodes: int, data: Path | None, port: int, serving: int | None
) -> None:
    """Run a broker until an interrupt or SIGTERM, or until the process `serving` has ended."""
    with _stop_signal() as stop, _folder(data) as folder:
        terminal.say(("starting Kafka", "dim"))
        with Broker(folder, nodes=nodes, port=port) as broker:
            pids = [node.pid for node in broker.nodes]
            if terminal.common.json:
                terminal.rows([{"servers": broker.servers, "pids": pids, "data": str(folder)}])
            else:
                terminal.print(broker.servers)
            terminal.flush()
            kept = folder if data is not None else "kept nowhere: give --data DIR to keep it"
            terminal.say(
                f"{counted(nodes, 'node')}; data: {kept}\n"
                f"make a topic:  turnlog topics create kafka://{broker.servers}/sessions\n"
                "end it with ^C"
            )
            while not stop.wait(LOOK_S):
                _check(broker.nodes)
                if serving is not None and not _runs(serving):
                    return


def _check(nodes: list[Node]) -> None:
    for node in nodes:
        if node.pid is None:
            raise LogUnavailable(f"node {node.number} of the broker has ended by itself")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _folder(data: Path | None) -> Generator[Path]:
    if data is not None:
        yield data.expanduser().absolute()
        return
    with tempfile.TemporaryDirectory(prefix="turnlog-broker-") as folder:
        yield Path(folder)


@contextmanager
def _stop_signal() -> Generator[threading.Event]:
    """Set by an interrupt or SIGTERM: here they are the orderly end, and no failure."""
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
