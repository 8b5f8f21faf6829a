"""New sessions that come from one: forks, and the sessions of sub-agents."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from turnlog.core.errors import ClaimLost, EntryNotFound, Fenced, UsageError
from turnlog.core.frames import MAX_ID
from turnlog.core.rows import Dispatch, Head
from turnlog.host.errors import OperationOpen
from turnlog.owner.owner import claim

if TYPE_CHECKING:
    from turnlog.host.link import Link


async def fork(link: Link, at: str | None, name: str | None) -> str:
    """See `Session.fork`. Raises UsageError where the new session exists."""
    view = link.view()
    head = view.head
    if head.open_operations:
        raise OperationOpen(
            f"session {link.id!r}: it cannot be forked inside an open operation;"
            " let the turn end, or abort it"
        )
    number = view.real(head.leaf if at is None else view.number(at))
    if number:
        point = {"entry": view.entry(number).id, "epoch": head.epoch, "seq": head.seq}
        origin: dict[str, Any] = {"parent_session": link.id, "fork_at": point}
    elif head.fork_at is not None:  # nothing was added yet, so it is another fork of the parent
        origin = {"parent_session": head.parent_session, "fork_at": head.fork_at}
    else:
        raise EntryNotFound(f"session {link.id!r} has no entry to fork from: it is empty")
    child = name or link.ambient.ids()
    created = {
        **origin,
        "initial_app_state": view.state(number),
        "cwd": head.cwd,
        "agent": head.agent,
        "title": head.title,
    }
    if not await _create(link, child, created):
        raise UsageError(f"session {child!r} exists: fork into another name")
    return child


async def spawn(link: Link, dispatch: str, title: str | None) -> str:
    """See `Session.spawn`. Raises UsageError for a dispatch that the session has not."""
    row: Dispatch | None = link.tables.get(("dispatches", link.id, dispatch))
    if row is None:
        raise UsageError(
            f"session {link.id!r} has no dispatch {dispatch!r}: give the one of the call"
        )
    head = link.view().head
    child = f"{link.id}/{dispatch}"
    if len(child) > MAX_ID:
        child = f"sub-{sha256(child.encode()).hexdigest()}"
    created = {
        "parent_session": link.id,
        "spawned_by": {
            "entry": row.assistant_entry,
            "call_index": row.call_index,
            "dispatch": dispatch,
        },
        "cwd": head.cwd,
        "agent": head.agent,
        "title": title,
    }
    await _create(link, child, created)
    return child


async def _create(link: Link, child: str, created: Mapping[str, Any]) -> bool:
    """Make a session and give it up for whoever opens it; False where it is there already."""
    owner, tables = link.owner, link.tables
    head: Head | None = tables.get(("sessions", child))
    if head is not None and head.listed:
        return False
    try:
        maker = await claim(
            owner.log, child, tables=tables, host=owner.host, reason="open", ambient=owner.ambient
        )
    except ClaimLost:
        return False
    data = {name: value for name, value in created.items() if value is not None}
    released = link.event("session_released", {"claim": maker.claim_id})
    try:
        await maker.write([link.event("session_created", data), released])
    except Fenced:  # whoever has claimed it since makes it, too
        return False
    return True
