"""A process whose files may not grow beyond a limit, as on a full disk; it tells what happened."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

import turnlog.log
from tests.crash.children import frame_of
from turnlog.core.errors import AppendRefused

FRAMES = 600


async def run(url: str, tables: Path) -> dict[str, object]:
    acknowledged: list[int] = []
    said: list[str] = []
    async with turnlog.log.open(url, clock=lambda: 0) as log:
        for seq in range(20):
            acknowledged.append(await log.append(frame_of("s", 1, seq)))
        present = tables.with_name(tables.name + "-wal").stat().st_size
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (present + 100_000, hard))
        while not said:
            try:
                acknowledged.append(await log.append(frame_of("s", 1, len(acknowledged))))
            except AppendRefused as error:
                said.append(str(error))
        for _ in range(3):  # and it stays so, for a batch as for one
            tasks = [log.append(frame_of("s", 1, len(acknowledged))) for _ in range(5)]
            found = await asyncio.gather(*tasks, return_exceptions=True)
            said.extend(f"{type(item).__name__}: {item}" for item in found)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        full = len(acknowledged)
        while len(acknowledged) < FRAMES:
            acknowledged.append(await log.append(frame_of("s", 1, len(acknowledged))))
    return {"acknowledged": acknowledged, "full": full, "said": said}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], Path(sys.argv[2])))))
