"""Entering and leaving a turn: what each way out of its block leaves in the log."""

from __future__ import annotations

import asyncio
from typing import Any

from turnlog.core.errors import LogError, TurnlogError
from turnlog.host import resuming
from turnlog.host.errors import Aborted, told
from turnlog.host.link import Link
from turnlog.host.turn import Turn

Json = Any


class TurnScope:
    """What `async with session.turn(…)` enters and leaves."""

    def __init__(self, link: Link, message: Json, *, resume: bool, parked: bool = False) -> None:
        self._link = link
        self._message = message
        self._resume = resume
        self._parked = parked
        self._turn: Turn | None = None

    async def __aenter__(self) -> Turn:
        link = self._link
        if self._resume:
            link.check()
            if link.turn is not None:
                resuming.check_free(link)
            operation = await resuming.left_open(link, parked=self._parked)
            if link.turn is not None:  # somebody else's was entered meanwhile
                resuming.check_free(link)
            turn = self._turn = Turn(link, operation.operation)
            link.turn = turn
            turn.adopt(operation)
        else:
            if not link.is_lost or self._message is None:  # else `accept` offers it again
                link.check()
                await resuming.end_brackets(link)
                resuming.check_free(link)
            turn = self._turn = Turn(link, link.ambient.ids())
            link.turn = turn
            try:
                await turn.accept(self._message)
            except BaseException:
                link.turn = None
                raise
        turn.enter()
        return turn

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        turn, link = self._turn, self._link
        assert turn is not None
        is_cancelled = isinstance(error, asyncio.CancelledError)
        try:
            stopped = await turn.leave(error)
            await link.settle_background()
            if is_cancelled and not stopped:
                return False  # what is open is for a resume, as after a crash
            link.check()
            if turn.has_ended:
                return stopped and is_cancelled
            if stopped or isinstance(error, Aborted):
                await turn.finish("aborted")
                return is_cancelled or isinstance(error, Aborted)
            if error is None:
                await turn.finish(turn.inferred_outcome())
            elif isinstance(error, Exception) and not isinstance(error, LogError):
                await turn.finish("failed", told(error))
        except TurnlogError as failure:
            if failure is error:
                raise
            if error is not None and not is_cancelled:
                raise failure from error
            raise failure from None
        finally:
            link.turn = None
        return False
