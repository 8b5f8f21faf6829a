"""`turnlog verify` and `turnlog rebuild`: are the tables a fold of the log, and making them so."""

from __future__ import annotations

from itertools import islice
from typing import Any

from turnlog.cli.guard import FAILED
from turnlog.cli.opening import open_log
from turnlog.cli.plain import brief, counted
from turnlog.cli.terminal import Terminal
from turnlog.log import EmbeddedLog
from turnlog.tables.store import Difference

DIFFERENCES_SHOWN = 20


def verify_tables(terminal: Terminal) -> None:
    """Compare the tables with a fresh fold of the log, row for row."""
    with open_log(terminal) as log:
        position = sum(log.tables.position(each) for each in range(log.partitions))
        found = _differences(terminal, log)
    if found:
        terminal.status = FAILED
    if terminal.common.json:
        rows = [_as_data(difference) for difference in found]
        terminal.document({"log": log.url, "position": position, "differences": rows})
        return
    for difference in islice(found, DIFFERENCES_SHOWN):
        where = getattr(difference.fresh, "where", None)  # a file, and the byte in it
        terminal.fit(
            (f"{_what(difference):<9}", "bold red"),
            brief(repr(difference.key), 500),
            f"  {where}" if where else "",
        )
    if not found:
        terminal.say(f"{log.url}: the tables are a fold of the log up to position {position}")
        return
    more = len(found) - DIFFERENCES_SHOWN
    if more > 0:
        terminal.fit(f"and {more:,} more")
    damaged = sum(_what(difference) == "damaged" for difference in found)
    if damaged:
        terminal.say(
            f"{log.url}: {counted(damaged, 'frame')} of its files damaged; the tables still have"
            " the copies that were made of them: `turnlog copy` takes these to a new log"
        )
    if len(found) > damaged:
        terminal.say(
            f"{log.url}: {counted(len(found) - damaged, 'row')} of the tables differ from a fresh"
            " fold: run `turnlog rebuild`; the log itself is untouched"
        )


def rebuild_tables(terminal: Terminal) -> None:
    """Build the tables anew from the log."""
    with open_log(terminal, catch_up=False) as log, terminal.steps("folding") as progress:
        position = log.rebuild(progress)
    if terminal.common.json:
        terminal.document({"log": log.url, "position": position})
        return
    terminal.say(f"{log.url}: tables rebuilt up to position {position}")


def _differences(terminal: Terminal, log: EmbeddedLog) -> list[Difference]:
    with terminal.steps("folding") as progress:
        return list(log.verify(progress))


def _what(difference: Difference) -> str:
    if getattr(difference.fresh, "whole", True) is False:
        return "damaged"
    if difference.stored is None:
        return "missing"
    return "surplus" if difference.fresh is None else "differs"


def _as_data(difference: Difference) -> dict[str, Any]:
    return {
        "table": difference.table,
        "key": list(difference.key[1:]),
        "stored": _row(difference.stored),
        "fresh": _row(difference.fresh),
    }


def _row(row: Any) -> Any:
    return row._asdict() if hasattr(row, "_asdict") else row
