"""Opening a session: claim it, know what is in it, and give it up again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

from turnlog.core.errors import Fenced, TurnlogError
from turnlog.core.frames import check_session
from turnlog.core.rows import Head
from turnlog.host.batch import WINDOW_S
from turnlog.host.link import Link, Settings
from turnlog.host.policy import Policy
from turnlog.host.session import Session
from turnlog.host.tools import Tool, Tools, toolbox
from turnlog.log.port import EmbeddedLog, Stored
from turnlog.owner.ambient import Ambient
from turnlog.owner.heartbeat import claim_by, pulse_of
from turnlog.owner.owner import claim
from turnlog.owner.tail import watch
from turnlog.tables.store import Store

Json = Any
_log = logging.getLogger("turnlog.host")


class open_session:  # noqa: N801 - used as a function: async with open_session(…) as session
    """Claim a session, made where it does not exist, and hold it until the block ends.

        async with open_session(log, "trip-42", host="h1", tools=[…]) as session:
            if session.recovery:
                await run_turn(session, model)
            await run_turn(session, model, "And the way back?")

    What a former host left open is in `session.recovery`. `title`, `cwd`, `agent` and `state` are
    for a new session. `tables` are those of the log by default. `on_error` is told of what failed
    in the background; it is logged by default. The claim names `expects_seq`, the last seq that was
    seen, where a host that still writes must not be robbed.

    Raises ClaimLost where another claim won, StateError for a session of a newer release, and
    LogError.
    """

    def __init__(
        self,
        log: EmbeddedLog,
        session: str,
        *,
        host: str,
        tools: Iterable[Tool] | Tools = (),
        policy: Policy | None = None,
        tables: Store | None = None,
        title: str | None = None,
        cwd: str | None = None,
        agent: str | None = None,
        state: dict[str, Json] | None = None,
        reason: str | None = None,
        expects_seq: int | None = None,
        window_s: float = WINDOW_S,
        on_error: Callable[[TurnlogError], None] | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        self._log = log
        self._id = session
        self._host = host
        self._tables = tables
        created = {"title": title, "cwd": cwd, "agent": agent, "initial_app_state": state}
        self._created = {name: value for name, value in created.items() if value is not None}
        self._reason = reason
        self._expects_seq = expects_seq
        self._ambient = ambient or Ambient()
        tell = _log_it if on_error is None else _safe(on_error)  # which may be an empty list
        self._settings = Settings(toolbox(tools), policy or Policy(), window_s, tell)
        self._stack = AsyncExitStack()
        self._session: Session | None = None

    async def __aenter__(self) -> Session:
        try:
            session = self._session = await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        session = self._session
        assert session is not None
        async with self._stack:
            if error is None or isinstance(error, (Exception, asyncio.CancelledError)):
                try:
                    await session.close()
                    if error is None and session.link.unsaved:
                        session.link.check()
                except TurnlogError as failure:
                    if error is None:
                        raise
                    if not isinstance(failure, Fenced):
                        self._settings.on_error(failure)

    async def _open(self) -> Session:
        check_session(self._id)
        log, ambient = self._log, self._ambient
        tables = self._tables or log.tables
        pulse = pulse_of(log, self._host, ambient=ambient)
        await self._stack.enter_async_context(pulse)
        early: list[Stored] = []
        link: Link | None = None

        def see(stored: Stored) -> None:
            early.append(stored) if link is None else link.see(stored)

        # tables that read the log back may be behind, and a claim from there would lose
        partition = log.partition_of(self._id)
        await tables.wait(await log.end(partition), partition)
        at = tables.position(partition)
        self._stack.callback(watch(log, self._id, see, after=at))
        before: Head | None = tables.get(("sessions", self._id))
        reason = self._reason or ("open" if before is None else "resume")
        owner = await claim(
            log,
            self._id,
            tables=tables,
            host=self._host,
            reason=reason,
            ambient=ambient,
            expects_seq=self._expects_seq,
            id_=claim_by(pulse.instance, ambient.ids()),
        )
        await tables.wait(owner.position, partition)
        link = Link(owner, tables, self._settings)
        for stored in early:
            link.see(stored)
        session = Session(link)
        await session.start(self._created)
        return session


def _safe(on_error: Callable[[TurnlogError], None]) -> Callable[[TurnlogError], None]:
    """What a host's callback raises must not stop the writing: it is told to the loop."""

    def tell(error: TurnlogError) -> None:
        try:
            on_error(error)
        except Exception as failure:
            told = {"message": "a session's on_error failed", "exception": failure}
            asyncio.get_running_loop().call_exception_handler(told)

    return tell


def _log_it(error: TurnlogError) -> None:
    _log.error("%s", error)
