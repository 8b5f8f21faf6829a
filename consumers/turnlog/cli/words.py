"""What commands say to a session as guests: each word is written, then looked for in the tables,
since being in the log is not yet having an effect."""

from __future__ import annotations

import getpass
import platform
from typing import cast

from turnlog.core.errors import NoEffect, StateError
from turnlog.core.frames import NewEvent
from turnlog.core.rows import Head
from turnlog.log import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.owner.guest import write_guest
from turnlog.recovery.liveness import holder_of, look_around


def head_of(log: EmbeddedLog, session: str) -> Head:
    """The head row of a session that may be written to. Raises StateError where it may not."""
    head = cast("Head", log.tables.get(("sessions", session)))
    if head.newer:
        raise StateError(
            f"session {session!r} was written by a newer turnlog and is read-only here;"
            " upgrade turnlog to write to it"
        )
    return head


async def say(log: EmbeddedLog, session: str, event: NewEvent, ambient: Ambient) -> int:
    """Write one event and wait until the tables hold it; gives its position."""
    writer = f"turnlog on {platform.node() or 'this machine'}"
    position = await write_guest(log, session, [event], writer=writer, ambient=ambient)
    await log.tables.wait(position, log.partition_of(session))
    return position


async def is_held(log: EmbeddedLog, head: Head, ambient: Ambient) -> bool:
    """Whether a living host holds a session, and so hears what is said to it."""
    return holder_of(log.tables, head, await look_around(log, ambient)) is not None


def who(by: str | None) -> str | None:
    """Who says it: as given, else the user of this process."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name
        return None


def overtaken(session: str, position: int, what: str) -> NoEffect:
    """The error for a word that is in the log and changed nothing, since others were faster."""
    return NoEffect(
        f"session {session!r}: written at position {position}, but it changed nothing: {what};"
        f" `turnlog pending {session}` shows how things stand"
    )
