"""Which dispatch a person means, and what it was called with."""

from __future__ import annotations

from typing import Any

from turnlog.core.errors import AmbiguousDispatch, DispatchNotFound
from turnlog.core.rows import Dispatch
from turnlog.core.shapes import is_list
from turnlog.query.sessions import CANDIDATES
from turnlog.tables.store import View
from turnlog.tables.view import SessionView

Json = Any


def find_dispatch(view: View, text: str, session: str | None = None) -> Dispatch:
    """The dispatch of an id, or of the beginning of one, of one session or of all.

    Raises DispatchNotFound, and AmbiguousDispatch, which lists those it could be.
    """
    found = [row for row in view.scan("dispatches", session) if row.dispatch.startswith(text)]
    exact = [row for row in found if row.dispatch == text]
    if len(exact or found) == 1 and text:
        one: Dispatch = (exact or found)[0]
        return one
    where = "in this log" if session is None else f"in session {session!r}"
    if not found or not text:
        raise DispatchNotFound(
            f"no dispatch {text!r}, and none that begins so, is {where}; `turnlog pending` lists"
            " those that wait for somebody"
        )
    if exact:
        sessions = ", ".join(row.session for row in exact[:CANDIDATES])
        raise AmbiguousDispatch(
            f"{len(exact)} sessions have a dispatch {text!r}: {sessions}; say which by --session"
        )
    names = ", ".join(row.dispatch for row in found[:CANDIDATES])
    more = f" and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
    raise AmbiguousDispatch(
        f"{text!r} begins {len(found)} dispatch ids: {names}{more}; give more of it"
    )


def arguments(view: SessionView, row: Dispatch) -> Json:
    """What a dispatch was called with: its T1's arguments, where validation changed them, else
    those of the call in the assistant's message; None where neither can be read."""
    last = row.tries[-1]
    said = view.event_data(last["position"], last["index"])
    if said.get("args") is not None:
        return said["args"]
    number: int | None = view.reader.get(("ids", view.session, row.assistant_entry))
    content = view.data(view.entry(number)).get("content") if number else None
    if not is_list(content):
        return None
    calls = [part for part in content if part.get("type") == "tool_call"]
    return calls[row.call_index].get("args") if row.call_index < len(calls) else None


def evidence_of_effect(row: Dispatch) -> Json:
    """The late answer which says that the effect took place, or None."""
    return next((item for item in row.evidence if item["status"] in ("ok", "error")), None)
