"""Every error that turnlog raises, in one tree.

TurnlogError
├── SchemaError            bad data; quarantined on reading, refused on writing
│   └── TooLarge           data over one of the limits
├── LogError               the log could not do its work; `retriable` says whether to try again
│   ├── AppendRefused      the frame is certainly not in the log
│   ├── AppendUnknown      the frame may be in the log, or may still arrive there
│   └── LogUnavailable     the log cannot be opened or read
├── OwnershipError         the session belongs to somebody else
│   ├── ClaimLost          another claim won
│   └── Fenced             a newer claim is in force; carries the unsaved events
├── QueryError             one class per cause
│   ├── SessionNotFound
│   ├── AmbiguousSession
│   ├── EntryNotFound
│   ├── DispatchNotFound
│   ├── AmbiguousDispatch
│   └── NoEffect           a word to a session that changes nothing there
├── UsageError             a URL, option, file or archive that cannot be used
└── StateError             our own bug, or lost state: stop
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TurnlogError(Exception):
    """The root of all errors of turnlog.

    Its text says what failed, for which session and where, and what to do next.
    """


class SchemaError(TurnlogError):
    """Data that breaks the event vocabulary. Nothing was written."""


class TooLarge(SchemaError):
    """An event, part or frame over one of the limits of `turnlog.core.frames`."""


class LogError(TurnlogError):
    """The log could not do its work."""

    retriable: bool = False

    def __init__(self, message: str, *, retriable: bool | None = None) -> None:
        super().__init__(message)
        if retriable is not None:
            self.retriable = retriable


class AppendRefused(LogError):
    """The frame is certainly not in the log."""


class AppendUnknown(LogError):
    """The frame may be in the log, or may still arrive there: send the same bytes again."""

    retriable = True


class LogUnavailable(LogError):
    """The log cannot be opened or read."""


class OwnershipError(TurnlogError):
    """The session belongs to somebody else."""


class ClaimLost(OwnershipError):
    """Another claim won the race for the session."""


class Fenced(OwnershipError):
    """A newer claim is in force: what this owner still writes is not applied.

    `unsaved` holds the events that were accepted from the caller and are not saved.
    """

    def __init__(self, message: str, unsaved: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.unsaved = tuple(unsaved)


class QueryError(TurnlogError):
    """A question that cannot be answered; one class per cause."""


class SessionNotFound(QueryError):
    """No session of this id is in the log."""


class AmbiguousSession(QueryError):
    """The beginning of an id that more than one session has."""


class EntryNotFound(QueryError):
    """No entry of this id is in the session."""


class DispatchNotFound(QueryError):
    """No dispatch of this id is in the log."""


class AmbiguousDispatch(QueryError):
    """An id, or the beginning of one, that more than one dispatch has."""


class NoEffect(QueryError):
    """What a person says to a session, and by the session's tables changes nothing there."""


class UsageError(TurnlogError):
    """A URL, option, file or archive that cannot be used as it is."""


class StateError(TurnlogError):
    """Our own bug, or state that is lost or of another version: stop."""
