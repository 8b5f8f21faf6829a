"""An agent host in a process of its own: python -m turnlog.cli.demo.host, with a `Task` as JSON.

It prints how it ended as one line of JSON, and ends with 0 also where it was fenced: that is an
ending that the demo wants to see. Whatever else goes wrong is one line on standard error.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from turnlog.cli.demo.script import (
    DROPPED,
    FRAM,
    FRENCH,
    HELP,
    MODEL,
    RULES,
    STORM,
    TABLE,
    model,
    summarise,
)
from turnlog.cli.demo.tools import Files, Harbour, Helper
from turnlog.cli.opening import open_url
from turnlog.core.errors import Fenced
from turnlog.host import Session, Tool, open_session, run_turn
from turnlog.owner.ambient import Ambient
from turnlog.testing.failpoints import from_environment

Json = Any


class Task(NamedTuple):
    """What a host is to do. `act` is "day", "storm" (one turn), or "go on" after a crash."""

    log: str
    session: str
    host: str
    title: str
    folder: str
    port: int
    act: str


async def work(task: Task) -> Json:
    """Do it; how it ended: {"ended": an outcome or "fenced", "why"}."""
    ambient = Ambient(reach=from_environment())
    folder = Path(task.folder)
    log = open_url(task.log, clock=ambient.clock)
    async with log:
        files = Files(folder)
        helper = Helper(log, task.host, files.reading())
        tools: list[Tool] = [*files.tools(), helper.tool(), *Harbour(task.port).tools()]
        try:
            async with open_session(
                log,
                task.session,
                host=task.host,
                tools=tools,
                title=task.title,
                cwd=task.folder,
                agent="turnlog demo",
                reason="takeover" if task.act == "go on" else None,
                ambient=ambient,
            ) as session:
                helper.session = session
                return {"ended": await _act(session, task, folder), "why": ""}
        except Fenced as error:
            return {"ended": "fenced", "why": str(error)}


async def _act(session: Session, task: Task, folder: Path) -> str:
    if task.act == "day":
        return await _day(session, folder)
    message = STORM if task.act == "storm" else None
    return await run_turn(session, model, message, name=MODEL)


async def _day(session: Session, folder: Path) -> str:
    """Turns, a rewind, a helper, a compaction, and the turn that does not end."""
    (folder / "rules.txt").write_text(RULES, "utf-8")
    await run_turn(session, model, TABLE, name=MODEL)
    here = session.leaf
    await run_turn(session, model, FRENCH, name=MODEL)
    await session.navigate(here, label="French", summary=DROPPED)
    await run_turn(session, model, HELP, name=MODEL)
    await session.compact_now(summarise)
    return await run_turn(session, model, FRAM, name=MODEL)


def _end_with_parent() -> None:
    """Standard input ends where whoever started this process ends, however that was."""
    os.read(0, 1)
    os._exit(1)


def main() -> None:
    """The entry point."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    task = Task(**orjson.loads(sys.argv[1]))
    try:
        found = asyncio.run(work(task))
    except Exception as error:
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))
    sys.stdout.buffer.write(orjson.dumps(found))


if __name__ == "__main__":
    main()
