"""What the demo's hosts go through, one after the other, on the log that the sessions came into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.cli.demo import crash, frozen
from turnlog.cli.demo.checks import Check, compare
from turnlog.cli.demo.crash import Crash
from turnlog.cli.demo.frozen import PLACES, Frozen
from turnlog.cli.demo.processes import Hosts
from turnlog.cli.demo.receiver import Receiver
from turnlog.cli.terminal import Tick
from turnlog.log import EmbeddedLog

Json = Any


class Acts(NamedTuple):
    """What came of them. `running` names hosts that are left, of which there must be none."""

    crash: Crash
    frozen: list[Frozen]
    running: list[str]

    def checks(self) -> Iterator[Check]:
        """Each figure."""
        yield from crash.check_crash(self.crash)
        for one in self.frozen:
            yield from frozen.check_frozen(one)
        yield compare("hosts left running", [], self.running)

    def as_data(self) -> dict[str, Json]:
        """They as plain data; those that froze by the place where they did."""
        return {
            "crash": crash.as_data(self.crash),
            "frozen": {one.place.place: frozen.as_data(one) for one in self.frozen},
        }


def play(log: EmbeddedLog, folder: Path, tick: Tick) -> Acts:
    """Run the hosts. `tick` is called with how many acts are done, and of how many.

    Raises StateError where a host does what it should not; none is left running then either.
    """
    folder.mkdir()
    count = 1 + len(PLACES)
    with Receiver() as receiver, Hosts() as hosts:
        tick(0, count)
        crashed = crash.crash(log, hosts, receiver, folder)
        froze: list[Frozen] = []
        for place in PLACES:
            tick(1 + len(froze), count)
            froze.append(frozen.freeze(log, hosts, receiver, folder, place))
        tick(count, count)
    return Acts(crashed, froze, hosts.running)
