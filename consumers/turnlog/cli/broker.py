"""`turnlog broker`: a real Kafka on this machine for as long as the command runs."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from turnlog.cli.plain import counted
from turnlog.cli.process.process import Process
from turnlog.core.errors import LogUnavailable
from turnlog.testing.broker import Broker

LOOK_S = 0.5
"""How often it is looked whether the nodes run, and the process that all is for."""
_LOG = logging.getLogger(__name__)


async def run_broker(
    process: Process, *, nodes: int, data: Path | None, port: int, serving: int | None
) -> None:
    """Run a broker until a stop, or until the process `serving` has ended."""
    with _folder(data) as folder:
        _LOG.info("starting Kafka")
        broker = Broker(folder, nodes=nodes, port=port)
        process.check("nodes", lambda: "starting")
        process.last_calls.append(lambda: _kill(broker))
        await asyncio.to_thread(broker.start)
        process.check("nodes", lambda: _missing(broker))
        try:
            _tell(process, broker, folder, is_kept=data is not None)
            while not await process.stop.wait(LOOK_S):
                if wrong := _missing(broker):
                    raise LogUnavailable(wrong)
                if serving is not None and not _runs(serving):
                    return
        finally:
            await asyncio.to_thread(broker.stop)


def _tell(process: Process, broker: Broker, folder: Path, *, is_kept: bool) -> None:
    terminal = process.terminal
    pids = [node.pid for node in broker.nodes]
    if terminal.common.json:
        terminal.rows([{"servers": broker.servers, "pids": pids, "data": str(folder)}])
    else:
        terminal.print(broker.servers)
    terminal.flush()
    kept = folder if is_kept else "kept nowhere: give --data DIR to keep it"
    _LOG.info("serving, %s; data: %s", counted(len(pids), "node"), kept)
    _LOG.info("make a topic: turnlog topics create kafka://%s/sessions", broker.servers)


def _missing(broker: Broker) -> str | None:
    for node in broker.nodes:
        if node.pid is None:
            return f"node {node.number} of the broker has ended by itself"
    return None


def _kill(broker: Broker) -> None:
    """The nodes are processes of their own, and would go on."""
    for node in broker.nodes:
        node.kill()


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
    folder = Path(tempfile.mkdtemp(prefix="turnlog-broker-"))
    is_kept = False
    try:
        yield folder
    except LogUnavailable as error:
        is_kept = str(folder) in str(error)  # it names a file in it
        raise
    finally:
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)
