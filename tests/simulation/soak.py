"""Run histories until one fails: `python -m tests.simulation.soak [SEED [COUNT]]`.

Without a count it never stops by itself. A failing seed is told, and its shrunk history.
"""

from __future__ import annotations

import secrets
import sys
from itertools import count
from time import monotonic

from turnlog.testing.simulation import run, shrink

TOLD_EVERY = 1_000


def main(args: list[str]) -> int:
    first = int(args[0]) if args else secrets.randbelow(1 << 40)
    last = first + int(args[1]) if len(args) > 1 else None
    began = monotonic()
    for seed in count(first):
        if seed == last:
            return 0
        report = run(seed)
        if not report.holds:
            small = shrink(report)
            print(f"{report}\n\nshrunk:\n{small}\n\n{small.log.decode()}")
            return 1
        done = seed - first + 1
        if done % TOLD_EVERY == 0:
            print(f"{done:,} histories, {done / (monotonic() - began):.0f}/s, now seed {seed}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
