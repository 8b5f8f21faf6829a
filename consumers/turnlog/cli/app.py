"""Where `turnlog` starts: an interrupt ends it quietly from here on, also while modules load.

So nothing is imported here that is not there already; the command itself is `turnlog.cli.program`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

FAILED, INTERRUPTED = 1, 130


def main() -> None:
    """The entry point."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, leave)  # until there is any work to be broken off
    closed = _stand_in()
    if "stdout" in closed:
        sys.stderr.write("turnlog: standard output is closed; send it to a file or to /dev/null\n")
        sys.exit(FAILED)
    # what a command works on has no cycles, and looking for them took a sixth of a copy
    gc.set_threshold(50_000, 20, 100)
    from turnlog.cli.program import run

    status = run(sys.argv[1:])
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)  # all is done
    sys.exit(status)


def leave(*_: object) -> None:
    """End at once: nothing has begun."""
    os._exit(INTERRUPTED)


def _stand_in() -> list[str]:
    """Put /dev/null where a stream is closed: else the next file, a log, would be opened as it."""
    closed: list[str] = []
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # they are looked at in their order, so that each gets its own number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
            closed.append(name)
    return closed
