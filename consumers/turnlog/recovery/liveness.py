"""Whose session it is, as far as signs of life tell. Being wrong is safe: see `turnlog.owner`."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.core.frames import decode
from turnlog.core.ownership import sole_claim
from turnlog.core.rows import Head
from turnlog.log import EmbeddedLog, Heartbeat
from turnlog.owner.ambient import Ambient
from turnlog.owner.heartbeat import DEAD_AFTER_S, has_made, is_marked, living, system_boot
from turnlog.tables.store import View


async def look_around(
    log: EmbeddedLog, ambient: Ambient, *, dead_after_s: float = DEAD_AFTER_S
) -> list[Heartbeat]:
    """The hosts that are alive now. Raises LogUnavailable."""
    beats = await log.heartbeats()
    return living(beats, uptime=ambient.uptime(), boot=system_boot(), dead_after_s=dead_after_s)


def holder_of(view: View, head: Head, alive: Sequence[Heartbeat]) -> Heartbeat | None:
    """The living host that holds a session; None where nobody does.

    Most claims tell which process has made them. Of one that does not, as an import's, only the
    name is known, and a name may be used again after a restart, which does not bring old claims
    back: it must have come since a living instance of that name began. Only records since then are
    read, and in most cases one.
    """
    if head.claim is None or head.released:
        return None
    if is_marked(head.claim):
        return next((beat for beat in alive if has_made(beat, head.claim)), None)
    instances = [beat for beat in alive if beat.host == head.owner]
    if not instances:
        return None
    partition = view.partition_of(head.session)
    first = min(instances, key=lambda beat: beat.since_in(partition))
    for stored in view.records(head.session, after=first.since_in(partition)):
        header = stored.record.header
        if header is not None and header.claim == head.claim:
            return None  # written under a claim that was there before
        claim = sole_claim(decode(stored.record))
        if claim is not None and claim.data["claim"] == head.claim:
            return first
    return None
