"""The owner of a session: it claims by an event, then writes one sealed frame at a time.

A frame is saved when the log holds it and it was in force there; the owner learns that by reading
its session's frames up to the position of its own. After an unknown outcome it sends the same
bytes again, and nothing else before that is settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from turnlog.core.errors import AppendUnknown, ClaimLost, Fenced, LogError, StateError
from turnlog.core.frames import Event, Header, NewEvent, SealedFrame, decode, seal
from turnlog.core.ownership import Admission, Ownership, follow
from turnlog.core.rows import Head, Tables
from turnlog.log.port import Log
from turnlog.owner.ambient import Ambient

TRIES = 5
"""How often a frame with an unknown outcome is sent again before its writer is told."""


class Owner:
    """Whoever's claim is in force. Make one with `claim`."""

    def __init__(
        self, log: Log, session: str, *, host: str, ambient: Ambient, head: Head | None
    ) -> None:
        self.log = log
        self.session = session
        self.host = host
        self.ambient = ambient
        head = head or Head(session)
        self._own = Ownership(
            head.claim, head.epoch, head.seq, head.digest, head.released, head.lost_claims
        )
        self._position = head.position
        self._claim = ""
        self._in_flight: SealedFrame | None = None
        self._turn = asyncio.Lock()

    @property
    def position(self) -> int:
        """The session is known up to here; the owner's claim and frames are at or below."""
        return self._position

    @property
    def epoch(self) -> int:
        """The epoch this owner writes under."""
        return self._own.epoch

    @property
    def claim_id(self) -> str:
        """The random id of this owner's claim."""
        return self._claim

    async def write(self, events: Sequence[NewEvent]) -> int:
        """Append events as one frame and return its position once it is saved.

        Raises SchemaError and TooLarge before anything is written, AppendRefused where the frame
        is certainly not in the log (the same events may be written again), AppendUnknown where it
        still may arrive (the next call sends it again first), and Fenced, with the events, where
        another claim is in force.
        """
        async with self._turn:
            if self._in_flight is not None:
                await self._send(self._in_flight)
            header = Header(
                self.session, self._claim, self._own.epoch, self._own.seq + 1, self.host
            )
            self._check_owner(events)
            return await self._send(seal(header, events))

    async def release(self) -> None:
        """Give the session up: nothing but evidence is accepted from this owner afterwards."""
        data = {"claim": self._claim}
        now = self.ambient.now()
        await self.write([NewEvent("session_released", self.ambient.ids(), now, data)])

    async def claim(self, reason: str, expects_seq: int | None) -> None:
        """Append the claim and read up to it. Raises ClaimLost where another one won."""
        self._claim = self.ambient.ids()
        data = {
            "claim": self._claim,
            "host": self.host,
            "expects": self._own.epoch,
            "expects_seq": expects_seq,
            "reason": reason,
        }
        event = NewEvent("session_claimed", self.ambient.ids(), self.ambient.now(), data)
        header = Header(self.session, None, None, None, self.host)
        position = await self._append(seal(header, [event]))
        await self._read_to(position)
        self._check_reached(position)
        if self._own.claim != self._claim:
            raise ClaimLost(
                f"session {self.session!r}: another claim won (epoch {self._own.epoch} is in"
                " force); open the session again to see whose it is"
            )

    async def _send(self, frame: SealedFrame) -> int:
        self._in_flight = frame
        try:
            position = await self._append(frame)
        except AppendUnknown:
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                raise  # it may have arrived; the next call finds out
            self._in_flight = None
            raise
        admission = await self._read_to(position, frame)
        self._check_reached(position)
        self._in_flight = None
        if admission not in (Admission.APPLIES, Admission.DUPLICATE):
            self._check_owner(frame.frame.events, lost=True)
        return position

    async def _append(self, frame: SealedFrame) -> int:
        for left in range(TRIES - 1, -1, -1):
            try:
                return await self.log.append(frame)
            except AppendUnknown:
                if left == 0:
                    raise
        raise AssertionError("unreachable")  # pragma: no cover

    async def catch_up(self) -> None:
        """Read the session up to the log's end, for an owner that starts without tables."""
        await self._read_to(await self.log.end(self.log.partition_of(self.session)))

    async def _read_to(self, position: int, sent: SealedFrame | None = None) -> Admission | None:
        """Follow the session up to a position; what the frame that was sent is, first copy."""
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

    def _check_reached(self, position: int) -> None:
        """The end of a read is the owner's own frame: anything before it is no answer."""
        if self._position < position:
            raise LogError(
                f"session {self.session!r}: position {position} was acknowledged but reading ended"
                f" at {self._position}; the log has lost data or is another one: run turnlog fsck"
            )

    def _check_owner(self, events: Sequence[NewEvent | Event], *, lost: bool = False) -> None:
        if lost or self._own.claim != self._claim or self._own.released:
            raise Fenced(
                f"session {self.session!r}: epoch {self._own.epoch} of another claim is in force,"
                " so nothing more of this owner is applied; open the session again",
                events,
            )


async def claim(
    log: Log,
    session: str,
    *,
    tables: Tables | None,
    host: str,
    reason: str,
    ambient: Ambient,
    expects_seq: int | None = None,
) -> Owner:
    """Claim a session and know every event before the claim.

    `tables` gives the session's head at some position, from which on the log is read; with None it
    is read from its beginning. Raises ClaimLost where another claim won, and StateError for a
    session that a newer release has written to.
    """
    head: Head | None = tables.get(("sessions", session)) if tables is not None else None
    if head is not None and head.newer:
        raise StateError(
            f"session {session!r} was written by a newer turnlog and is read-only here;"
            " upgrade turnlog to write to it"
        )
    owner = Owner(log, session, host=host, ambient=ambient, head=head)
    if tables is None:
        await owner.catch_up()
    await owner.claim(reason, expects_seq)
    return owner
