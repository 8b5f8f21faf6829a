"""`make bench`: every figure that is promised, next to its reference in the same run.

make bench                      all of them
make bench ARGS="folding"       some: folding, append, files, importing, recovering, host, sessions,
                                kafka, copying
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from tests.bench import (
    append,
    copying,
    files,
    folding,
    host,
    importing,
    kafka,
    recovering,
    sessions,
)
from tests.bench.figures import Figure, report

BENCHES: Mapping[str, Callable[[], list[Figure]]] = {
    "folding": folding.measure,
    "append": append.measure,
    "files": files.measure,
    "importing": importing.measure,
    "recovering": recovering.measure,
    "host": host.measure,
    "kafka": kafka.measure,
    "copying": copying.measure,
    "sessions": sessions.measure,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"no bench is called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
        return 2
    reached = [report(BENCHES[name]()) for name in names or BENCHES]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
