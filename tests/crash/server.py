"""A fork server: it has everything imported, so a process to kill costs a fork.

Each line of its input asks for processes: a list of what each does (`children.work`), after how
many acknowledgements in all they are killed and how long after. The answer is a line with all
acknowledgements and how each process ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from typing import Any

from tests.crash.children import work


def fork(request: dict[str, Any]) -> tuple[int, int]:
    """Start a process; gives its id and the pipe of its acknowledgements."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    status = 1
    try:
        os.close(reading)
        asyncio.run(work(request, writing))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def serve(requests: list[dict[str, Any]], acks: int | None, delay_s: float) -> dict[str, Any]:
    """Run processes until there are enough acknowledgements, or else until they end."""
    children = [fork(request) for request in requests]
    told = {pipe: b"" for _, pipe in children}
    open_ = set(told)

    def listen() -> None:
        for pipe in select.select(list(open_), [], [])[0]:
            chunk = os.read(pipe, 1 << 16)
            told[pipe] += chunk
            if not chunk:
                open_.discard(pipe)

    while open_ and (acks is None or sum(text.count(b"\n") for text in told.values()) < acks):
        listen()
    if acks is not None:
        time.sleep(delay_s)
        for pid, _ in children:
            os.kill(pid, signal.SIGKILL)
    while open_:
        listen()
    ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid, _ in children]
    for pipe in told:
        os.close(pipe)
    # a line without its end was being written; what it says was acknowledged, but is not needed
    lines = [line for text in told.values() for line in text.split(b"\n")[:-1]]
    return {"acks": [json.loads(line) for line in lines], "ends": ends}


if __name__ == "__main__":
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(serve(**json.loads(line))), flush=True)
