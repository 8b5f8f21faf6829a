"""The dispatches of the model: every T1, every answer and every note that was ever seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from turnlog.core.frames import Data, Event, canonical

OPEN_MAX = 256
PIECES_MAX = 64


def same_content(one: Event | None, other: Event) -> bool:
    """Whether two records of one natural key say the same; their event ids do not matter."""
    return one is not None and canonical(one.data) == canonical(other.data)


class Try(NamedTuple):
    """One T1 in force."""

    event: Event
    claim: str
    position: int

    @property
    def data(self) -> Data:
        """The data of the T1."""
        return self.event.data

    @property
    def number(self) -> int:
        """The physical attempt; the first where the T1 does not say."""
        return int(self.data.get("try") or 1)


@dataclass
class Dispatch:
    """One tool call that was dispatched."""

    tries: list[Try]
    status: str = "open"
    settled_by: str | None = None
    answer: Event | None = None
    evidence: list[Event] = field(default_factory=list)
    notes: list[Event] = field(default_factory=list)
    rerun: bool = False
    was_allowed: bool = False  # for the last try, whatever became of it
    listed: bool = False

    @property
    def id(self) -> str:
        """The dispatch id."""
        return str(self.tries[0].data["dispatch"])

    @property
    def operation(self) -> str:
        """The operation that the first T1 names."""
        return str(self.tries[0].data["operation"])

    @property
    def call(self) -> tuple[str, int]:
        """The call as the first T1 names it: assistant entry and call index."""
        data = self.tries[0].data
        return data["assistant_entry"], data["call_index"]

    @property
    def effect(self) -> str:
        """The effect as first declared."""
        return self.tries[0].data.get("effect") or "opaque"

    @property
    def last(self) -> Try:
        """The last T1."""
        return self.tries[-1]

    @property
    def is_open(self) -> bool:
        """Whether it has no terminal answer."""
        return self.status == "open"

    @property
    def happened(self) -> bool:
        """Whether evidence says that the effect took place."""
        return any(status_of(piece) in ("ok", "error") for piece in self.evidence)

    def is_settled_by(self, entry: str) -> bool:
        """Whether a result entry of this id would settle it now."""
        return self.is_open and entry == self.last.data["result_entry"]

    def speaks_of_last(self, event: Event) -> bool:
        """Whether a record is about the last T1."""
        return event.data.get("try") in (None, self.last.number)


def status_of(event: Event) -> str:
    """What an answer says."""
    return event.data.get("status") or "ok"


def is_copy(event: Event, other: Event | None) -> bool:
    """Whether two events are one: same id, same content."""
    return other is not None and (event.id, event.digest) == (other.id, other.digest)


class Dispatches:
    """All dispatches of a session, and what settles them."""

    def __init__(self, overflow: Callable[[str], None]) -> None:
        self.all: dict[str, Dispatch] = {}
        self.overflow = overflow

    def open_of(self, operation: str) -> list[Dispatch]:
        """The open dispatches of one operation."""
        return [d for d in self.all.values() if d.operation == operation and d.is_open]

    def open_up(self, dispatch: Dispatch) -> None:
        """A T1 opens a dispatch: it is listed while there is room."""
        dispatch.status, dispatch.settled_by, dispatch.answer = "open", None, None
        dispatch.rerun = dispatch.was_allowed = False
        if dispatch.listed:
            return
        if sum(d.listed for d in self.all.values()) < OPEN_MAX:
            dispatch.listed = True
        else:
            self.overflow("open_dispatches")

    def settle(self, dispatch: Dispatch, answer: Event, settled_by: str) -> None:
        """The answer that stands."""
        dispatch.status, dispatch.settled_by = status_of(answer), settled_by
        dispatch.answer, dispatch.listed = answer, False

    def add_evidence(self, dispatch: Dispatch, event: Event) -> None:
        """Keep an answer that does not stand, once; it may take a verdict back."""
        if is_copy(event, dispatch.answer):
            return
        if any(is_copy(event, piece) for piece in dispatch.evidence):
            return
        tells = status_of(event) in ("ok", "error")
        if len(dispatch.evidence) >= PIECES_MAX and not (tells and not dispatch.happened):
            self.overflow("evidence")
            return
        dispatch.evidence.append(event)
        if tells:
            dispatch.rerun = False
            if (dispatch.status, dispatch.settled_by) == ("not_started", "person"):
                dispatch.status, dispatch.settled_by = "unknown", "recovery"

    def is_noted(self, dispatch: Dispatch, event: Event) -> bool:
        """Note what a person says, once for each event id; whether it is news."""
        if event.id in [note.id for note in dispatch.notes]:
            return False
        if len(dispatch.notes) >= PIECES_MAX:
            self.overflow("notes")
            return False
        dispatch.notes.append(event)
        return True

    def dispatch_settled(self, event: Event) -> None:
        """An answer without an entry, from a frame in force or a guest."""
        dispatch = self.all.get(event.data["dispatch"])
        if dispatch is None:
            return
        if event.data.get("settled_by") == "person":
            self._judged_by_person(dispatch, event)
        elif dispatch.is_open and dispatch.speaks_of_last(event):
            self.settle(dispatch, event, event.data.get("settled_by") or "host")
        else:
            self.add_evidence(dispatch, event)

    def _judged_by_person(self, dispatch: Dispatch, event: Event) -> None:
        status = status_of(event)
        if not self.is_noted(dispatch, event):
            return
        if (
            dispatch.speaks_of_last(event)
            and dispatch.status == "unknown"
            and status != "unknown"
            and not (status == "not_started" and dispatch.happened)
        ):
            self.settle(dispatch, event, "person")

    def rerun_allowed(self, event: Event) -> None:
        """A person allows one T1 more."""
        dispatch = self.all.get(event.data["dispatch"])
        if dispatch is None:
            return
        may = dispatch.status == "unknown" and not dispatch.happened
        if self.is_noted(dispatch, event) and may and dispatch.speaks_of_last(event):
            dispatch.rerun = dispatch.was_allowed = True

    def fenced(self, event: Event, claim: str | None) -> None:
        """An answer that a fenced owner still wrote."""
        dispatch = self.all.get(event.data.get("dispatch") or "")
        if dispatch is not None and claim in [t.claim for t in dispatch.tries]:
            self.add_evidence(dispatch, event)

    def was_taken_back(self, dispatch: Dispatch, event: Event, is_new: bool) -> bool:
        """Whether a T1 would be a rerun, had the permission not been taken back since."""
        holds = dispatch.rerun and dispatch.status == "unknown"
        return dispatch.was_allowed and not holds and is_new and self._is_next(dispatch, event)

    def _is_next(self, dispatch: Dispatch, event: Event) -> bool:
        last, data = dispatch.last, event.data
        if (data.get("try") or 1) != last.number + 1:
            return False
        kept = ("operation", "assistant_entry", "call_index", "args_hash", "idempotency_key")
        return all(data.get(name) == dispatch.tries[0].data.get(name) for name in kept)

    def may_repeat(self, dispatch: Dispatch, event: Event, claim: str, is_new: bool) -> bool:
        """Rule 9; `is_new` says that the result entry is nobody's."""
        last, data = dispatch.last, event.data
        if not self._is_next(dispatch, event):
            return False
        if dispatch.is_open:
            same = data["result_entry"] == last.data["result_entry"]
            return same and dispatch.effect != "opaque" and last.claim != claim
        return dispatch.rerun and dispatch.status == "unknown" and is_new
