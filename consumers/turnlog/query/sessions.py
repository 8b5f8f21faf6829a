"""Which sessions there are, and which one a person means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from turnlog.core.errors import AmbiguousSession, SessionNotFound
from turnlog.core.rows import Head
from turnlog.tables.store import View

Json = Any
CANDIDATES = 8
"""How many sessions an ambiguous prefix is answered with."""


def heads(view: View) -> Iterator[Head]:
    """The head rows of all sessions, in the order of their ids."""
    return view.scan("sessions")


def list_sessions(
    view: View,
    *,
    cwd: str | None = None,
    agent: str | None = None,
    status: str | None = None,
    limit: int | None = None,
) -> list[dict[str, Json]]:
    """The listed sessions as plain data, the newest first.

    `cwd` takes that folder and all below it; `agent` and `status` are compared as they are.
    """
    found = [
        head
        for head in heads(view)
        if head.listed
        and (cwd is None or is_below(head.cwd, cwd))
        and agent in (None, head.agent)
        and status in (None, head.status)
    ]
    found.sort(key=lambda head: head.last_time or "", reverse=True)
    return [describe(head) for head in found[:limit]]


def describe(head: Head) -> dict[str, Json]:
    """What a list says of a session."""
    return {
        "session": head.session,
        "title": head.title,
        "cwd": head.cwd,
        "agent": head.agent,
        "status": head.status,
        "epoch": head.epoch,
        "owner": head.owner,
        "first_time": head.first_time,
        "last_time": head.last_time,
        "entries": head.counts["entries"],
        "messages": head.counts["messages"],
        "events": head.counts["events"],
        "depth": head.depth,
        "open_operations": len(head.open_operations),
        "open_dispatches": len(head.open_dispatches),
        "pending_inputs": len(head.pending_inputs),
        "usage": usage_of(head),
        "damage": len(head.damage) + len(head.missing_parents),
        "parent_session": head.parent_session,
        "fork_at": head.fork_at,
        "spawned_by": head.spawned_by,
        "origin": head.origin,
    }


def usage_of(head: Head) -> dict[str, Json]:
    """Tokens and cost, with those of fenced owners beside them."""
    return {**head.usage, "fenced": dict(head.fenced_usage)}


def find_session(view: View, text: str) -> str:
    """The session of an id, or of the beginning of one.

    Sub-agents' sessions are called by their parent's id, a point, and more; what could be both is
    the parent. Raises SessionNotFound, and AmbiguousSession, which lists those it could be.
    """
    if view.get(("sessions", text)) is not None:
        return text
    if not text:
        raise SessionNotFound("an empty session id names no session; see `turnlog sessions`")
    found: list[str] = []
    more = 0
    for head in view.scan("sessions", after=("sessions", text)):
        if not head.session.startswith(text):
            break
        if found and head.session.startswith(f"{found[0]}."):
            continue
        if len(found) < CANDIDATES:
            found.append(head.session)
        else:
            more += 1
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessionNotFound(
            f"no session {text!r}, and none that begins so, is in this log;"
            " `turnlog sessions` lists those that are"
        )
    others = f" and {more} more" if more else ""
    raise AmbiguousSession(
        f"{text!r} begins {len(found) + more} session ids: {', '.join(found)}{others};"
        " give more of it"
    )


def shortest(view: View, session: str) -> str:
    """The shortest beginning of a session's id, of 8 characters or more, that names it."""
    for length in range(8, len(session)):
        with suppress(AmbiguousSession):
            if find_session(view, session[:length]) == session:
                return session[:length]
    return session


def is_below(path: str | None, folder: str) -> bool:
    """Whether a path is a folder or lies below it, by name alone."""
    return path is not None and PurePath(path).is_relative_to(PurePath(folder))
