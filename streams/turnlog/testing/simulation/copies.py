"""A copy of a running host, as a cloned machine makes one: same claim, same seq, same ids to come.

The copy runs the same code from the beginning with the same choices. Up to the moment of copying
its log client answers what the original was answered and sends nothing; from then on it is on its
own, and both believe that they own the session.
"""

from __future__ import annotations

import asyncio

from turnlog.core.errors import ClaimLost
from turnlog.core.frames import SealedFrame
from turnlog.testing.simulation.client import Client
from turnlog.testing.simulation.loop import Actor

PATIENCE_S = 20.0


class Copy(Client):
    """The client of a copy that is made after some appends of the original."""

    def __init__(self, original: Client, actor: Actor, appends: int) -> None:
        super().__init__(original.world, actor, original.sent)
        self._original = original
        self._left = appends
        self._asked = 0

    async def append(self, frame: SealedFrame) -> int:
        number, self._asked = self._asked, self._asked + 1
        if any(event.type == "tool_dispatched" for event in frame.frame.events):
            self._left = (
                0  # a copy made between T1 and its effect starts it twice: no rule can help
            )
        if number >= self._left:
            return await super().append(frame)
        until = self.world.loop.now + PATIENCE_S
        outcomes = self._original.outcomes
        while number not in outcomes and self.world.loop.now < until:  # noqa: ASYNC110  # virtual
            await asyncio.sleep(0.05)
        record, outcome = outcomes.get(number, (None, 0))
        if record != frame.record:
            self._left = 0  # it went its own way: copies of a machine do not stay the same
            if frame.record.header is not None and frame.record.header.is_guest:
                raise ClaimLost("a copy is one of a host that has claimed")
            return await super().append(frame)
        self.sent(self.actor, frame)
        if isinstance(outcome, Exception):
            raise type(outcome)(*outcome.args)
        return outcome
