"""The owner of a session: it claims by an event, then writes one sealed frame at a time.

A frame is saved when the log holds it and it was in force there. The owner learns that from the
session's tables, where they reach the frame's position and show the owner's own claim and frame,
and else by reading the session's frames up to it. After an unknown outcome it sends the same bytes
again, and nothing else before that is settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, Protocol

from turnlog.core.errors import AppendUnknown, ClaimLost, Fenced, LogError, StateError
from turnlog.core.frames import (
    Event,
    Header,
    NewEvent,
    SealedFrame,
    check_session,
    decode,
    seal,
)
from turnlog.core.ownership import Admission, Ownership, follow
from turnlog.core.rows import Dispatch, Head, Tables
from turnlog.log.port import Log
from turnlog.owner import places
from turnlog.owner.ambient import Ambient

TRIES = 5
"""How often a frame with an unknown outcome is sent again before its writer is told."""
Start = Literal["start", "not_started", "unknown"]
SOON_S = 1.0
"""How long tables that follow a log elsewhere are waited for, before its frames are read."""
CHECK_S = 10.0
"""A T1 whose check took longer is not started: too much may have happened since."""


class Known(Tables, Protocol):
    """Tables that follow the log."""

    async def wait(self, position: int, partition: int = 0) -> None:
        """Return once the tables hold a position."""
        ...


class Owner:
    """Whoever's claim is in force. Make one with `claim`."""

    def __init__(
        self, log: Log, session: str, *, host: str, ambient: Ambient, tables: Known | None = None
    ) -> None:
        self.log = log
        self.session = session
        self.host = host
        self.ambient = ambient
        self.tables = tables
        self._own, self._position = _known_of(tables, session)
        self._tables_at = self._position
        self._claim = ""
        self._epoch = self._seq = 0
        self._in_flight: SealedFrame | None = None
        self._fenced: set[str] = set()
        self._turn = asyncio.Lock()

    @property
    def position(self) -> int:
        """The session is known up to here; the owner's claim and frames are at or below."""
        return self._position

    @property
    def epoch(self) -> int:
        """The epoch this owner writes under."""
        return self._epoch

    @property
    def claim_id(self) -> str:
        """The random id of this owner's claim."""
        return self._claim

    @property
    def is_lost(self) -> bool:
        """Whether another claim is known to be in force, or this one was given up."""
        return self.is_taken or self._own.released

    @property
    def is_taken(self) -> bool:
        """Whether another claim is known to be in force."""
        return self._own.claim != self._claim

    @property
    def in_doubt(self) -> bool:
        """Whether a frame of this owner may or may not be in the log."""
        return self._in_flight is not None

    async def write(self, events: Sequence[NewEvent]) -> int:
        """Append events as one frame and return its position once it is saved.

        Raises SchemaError and TooLarge before anything is written, AppendRefused where the frame
        is certainly not in the log (the same events may be written again), AppendUnknown where it
        still may arrive (`settle` sends it again, and so does the next call first), and Fenced,
        with the events, where another claim is in force.
        """
        async with self._turn:
            if self._in_flight is not None:
                await self._send(self._in_flight)
            self._check_owner(events)
            header = Header(self.session, self._claim, self._epoch, self._seq + 1, self.host)
            return await self._send(seal(header, events))

    async def settle(self) -> int:
        """Send the frame again whose outcome is unknown; its position, or 0 where there is none.

        Raises what `write` raises.
        """
        async with self._turn:
            return 0 if self._in_flight is None else await self._send(self._in_flight)

    async def check_start(self, dispatch: str, position: int, began: float) -> Start:
        """The T1 rule: whether the effect may start whose T1 was acknowledged at a position.

        `start` iff the tables up to there show this dispatch open, its last T1 at that very
        position, under this owner's claim, and the claim in force. Otherwise nothing runs, and the
        answer is what is known then: a T1 at another position may be that of a copy of this host,
        which may have started. `began` is the uptime, in seconds, before T1 was sent: after CHECK_S
        nothing starts. Raises StateError where T1 is not in the tables at all.
        """
        row = self._dispatch(dispatch)
        if row is None or row.tries[-1]["position"] < position:
            await self._wait(position)
            row = self._dispatch(dispatch)
        if self._position < position:
            await self._read_to(position)
        if row is None:
            raise StateError(
                f"session {self.session!r}: the start of dispatch {dispatch!r} at position"
                f" {position} is not in the tables; run turnlog verify, then turnlog rebuild"
            )
        last = row.tries[-1]
        if (last["position"], last["claim"]) != (position, self._claim):
            return "unknown"
        is_late = self.ambient.uptime() - began > CHECK_S
        if row.status == "open" and not self.is_lost and not is_late:
            return "start"
        # of a repeated start only this try is known not to have run: an earlier one may have
        return "not_started" if len(row.tries) == 1 else "unknown"

    async def known(self, position: int) -> None:
        """Return once the tables hold a position; those of an embedded log do at once."""
        if self._tables_at < position:
            await self._wait(position)

    async def refresh(self, position: int) -> None:
        """Look who owns the session, in tables that reach a position of it."""
        if self._position < position:
            await self._wait(position)
            own, at = _known_of(self.tables, self.session)
            if at > self._position:  # it may have moved while this one waited
                self._own, self._position = own, at

    async def testify(self, events: Sequence[NewEvent]) -> None:
        """Append, under this owner's claim although it is no longer in force, what became of its
        dispatches: it is evidence. What is in the log already, in a frame that was fenced, is not
        said again. Sent once; raises LogError where that did not work."""
        async with self._turn:
            news = [event for event in events if event.id not in self._fenced]
            if not news:
                return
            self._seq += 1
            header = Header(self.session, self._claim, self._epoch, self._seq, self.host)
            await self.log.append(seal(header, news))

    async def release(self) -> None:
        """Give the session up: nothing but evidence is accepted from this owner afterwards."""
        data = {"claim": self._claim}
        now = self.ambient.now()
        await self.write([NewEvent("session_released", self.ambient.ids(), now, data)])

    async def claim(self, reason: str, expects_seq: int | None, id_: str | None = None) -> None:
        """Append the claim and read up to it. Raises ClaimLost where another one won."""
        self._claim = id_ or self.ambient.ids()
        data = {
            "claim": self._claim,
            "host": self.host,
            "expects": self._own.epoch,
            "expects_seq": expects_seq,
            "reason": reason,
        }
        event = NewEvent("session_claimed", self.ambient.ids(), self.ambient.now(), data)
        header = Header(self.session, None, None, None, self.host)
        position = await append(self.log, seal(header, [event]))
        self.ambient.reach(places.CLAIM_SENT)
        await self._read_to(position)
        self._check_reached(position)
        self._epoch, self._seq = self._own.epoch, 0
        self.ambient.reach(places.CLAIM_SAVED)
        if self._own.claim != self._claim:
            raise ClaimLost(
                f"session {self.session!r}: another claim won (epoch {self._own.epoch} is in"
                " force); open the session again to see whose it is"
            )

    async def _send(self, frame: SealedFrame) -> int:
        """In flight until its outcome is known. A cancelled call leaves it there, too: it may have
        arrived, and the next call finds out."""
        is_again, self._in_flight = self._in_flight is frame, frame
        try:
            position = await append(self.log, frame, in_doubt=is_again)
        except (AppendUnknown, asyncio.CancelledError):
            raise
        except BaseException:
            self._in_flight = None
            raise
        self.ambient.reach(places.FRAME_SENT)
        admission = await self._read_to(position, frame)
        self._check_reached(position)
        self._in_flight = None
        if admission is not Admission.APPLIES and self._own.digest != frame.frame.digest:
            # a duplicate below the last seq is saved only if it is this frame that stands there,
            # and with one frame in flight that is the last: another one is a copy of this host's
            if admission is Admission.FENCED:
                self._fenced = {event.id for event in frame.frame.events}
            self._check_owner(frame.frame.events, lost=True)
        self._seq = frame.frame.header.seq or 0
        self.ambient.reach(places.FRAME_SAVED)
        return position

    async def catch_up(self) -> None:
        """Read the session up to the log's end, for an owner that starts without tables."""
        await self._read_to(await self.log.end(self.log.partition_of(self.session)))

    def _dispatch(self, id_: str) -> Dispatch | None:
        if self.tables is None:
            raise StateError(f"session {self.session!r}: without tables nothing may be dispatched")
        row: Dispatch | None = self.tables.get(("dispatches", self.session, id_))
        return row

    async def _wait(self, position: int) -> None:
        if self.tables is not None:
            await self.tables.wait(position, self.log.partition_of(self.session))

    async def _read_to(self, position: int, sent: SealedFrame | None = None) -> Admission | None:
        """Follow the session up to a position; what the frame that was sent is, first copy."""
        if self._is_shown(position, sent):
            return Admission.APPLIES
        if self.tables is not None:
            # where they lag, or the log has lost its end, only the frames themselves tell
            with suppress(StateError, TimeoutError):
                async with asyncio.timeout(SOON_S):
                    await self._wait(position)
            if self._is_shown(position, sent):
                return Admission.APPLIES
        found: Admission | None = None
        partition = self.log.partition_of(self.session)
        async for stored in self.log.read(
            self._position, session=self.session, partition=partition
        ):
            if stored.position > position:
                break
            self._position = stored.position
            if sent is not None and stored.record == sent.record:
                admission, self._own = follow(self._own, sent.frame)
                found = found or admission
            else:
                _, self._own = follow(self._own, decode(stored.record))
        return found

    def _is_shown(self, position: int, sent: SealedFrame | None) -> bool:
        """Whether the tables reach a position, and the last frame in force is the owner's own."""
        if self.tables is None:
            return False
        own, at = _known_of(self.tables, self.session)
        if at < position or own.claim != self._claim:
            return False
        if sent is not None and own.digest != sent.frame.digest:
            return False
        self._own, self._position, self._tables_at = own, at, at
        return True

    def _check_reached(self, position: int) -> None:
        """The end of a read is the owner's own frame: anything before it is no answer."""
        if self._position < position:
            raise LogError(
                f"session {self.session!r}: position {position} was acknowledged but reading ended"
                f" at {self._position}; the log has lost data or is another one: run turnlog fsck"
            )

    def loss(self, events: Sequence[NewEvent | Event] = ()) -> Fenced:
        """The error that says that the session is lost, with the events that are not saved."""
        known, _ = _known_of(self.tables, self.session)  # which may be ahead of what was read
        if not self.is_taken and known.claim in (None, self._claim) and self._own.released:
            return Fenced(
                f"session {self.session!r}: this owner has given it up; open the session again",
                events,
            )
        epoch = max(known.epoch, self._own.epoch)
        return Fenced(
            f"session {self.session!r}: epoch {epoch} of another claim is in force,"
            " so nothing more of this owner is applied; open the session again",
            events,
        )

    def _check_owner(self, events: Sequence[NewEvent | Event], *, lost: bool = False) -> None:
        if lost or self.is_lost:
            raise self.loss(events)


async def claim(
    log: Log,
    session: str,
    *,
    tables: Known | None,
    host: str,
    reason: str,
    ambient: Ambient,
    expects_seq: int | None = None,
    id_: str | None = None,
) -> Owner:
    """Claim a session and know every event before the claim.

    `id_` is the claim's own, new and random; one is made by default. `tables` gives the session's
    head at some position, from which on the log is read where they do not follow; with None it is
    read from its beginning. Raises SchemaError for what is no session's id, ClaimLost where another
    claim won, and StateError for a session that a newer release has written to.
    """
    check_session(session)
    head: Head | None = tables.get(("sessions", session)) if tables is not None else None
    if head is not None and head.newer:
        raise StateError(
            f"session {session!r} was written by a newer turnlog and is read-only here;"
            " upgrade turnlog to write to it"
        )
    owner = Owner(log, session, host=host, ambient=ambient, tables=tables)
    if tables is None:
        await owner.catch_up()
    await owner.claim(reason, expects_seq, id_)
    return owner


async def append(log: Log, frame: SealedFrame, *, in_doubt: bool = False) -> int:
    """Append a sealed frame, and the same bytes again, a few times, while its outcome is unknown.

    `in_doubt` says that it was sent before. Raises AppendUnknown where it still may be in the log:
    what is refused after an unknown outcome is the copy, the first may have arrived. Before that,
    what the log raises.
    """
    for left in range(TRIES - 1, -1, -1):
        try:
            return await log.append(frame)
        except AppendUnknown:
            in_doubt = True
            if left == 0:
                raise
        except LogError as error:
            if not in_doubt:
                raise
            raise AppendUnknown(f"{error}; a copy sent before may be in the log") from error
    raise AssertionError("unreachable")  # pragma: no cover


def _known_of(tables: Tables | None, session: str) -> tuple[Ownership, int]:
    """Who owns a session by its head row, and the position that row is of."""
    head: Head | None = tables.get(("sessions", session)) if tables is not None else None
    if head is None:
        return Ownership(), 0
    own = Ownership(head.claim, head.epoch, head.seq, head.digest, head.released, head.lost_claims)
    return own, head.position
