"""A second opinion on who owns a session and how its calls stand, written from the design alone.

It sees every record in log order and remembers everything: all claims, all ids. The tables are held
to it after each record, so a rule that the fold no longer keeps shows where it first matters.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from turnlog.core.frames import Event, Frame


class Kind(StrEnum):
    """What a record is, by the design's "Who owns a session"."""

    GUEST = "guest"
    CLAIM = "claim"
    LOST = "lost claim"
    COPY = "copy of a claim"
    APPLIES = "applies"
    DUPLICATE = "duplicate"
    FENCED = "fenced"
    WRONG = "wrong"
    """Not applied, and no honest writer makes one: a foreign claim, other content under a seq."""
    GAP = "gap"
    """Applied, and no honest writer makes one: frames before it are missing."""


Said = tuple[str, str]
"""The id and digest of an event: a copy has both."""


class Try(NamedTuple):
    """One T1 in force."""

    number: int
    claim: str
    position: int
    result_entry: str
    content: Any


class Call:
    """One dispatch: its T1s, the answer that stands (an event id), and the evidence."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.tries: list[Try] = []
        self.status = "open"
        self.answer: Said | None = None
        self.by_person = False
        self.may_rerun = False
        self.evidence: dict[Said, str] = {}
        self.allowed = 0
        """How many of its T1s a person allowed."""

    @property
    def happened(self) -> bool:
        """Whether evidence says that the effect took place."""
        return any(status in ("ok", "error") for status in self.evidence.values())


class Judge:
    """One session."""

    def __init__(self) -> None:
        self.claims: dict[str, bool] = {}
        """Every claim by its id, and whether its first copy won."""
        self.claim: str | None = None
        self.epoch = 0
        self.seq = 0
        self.digest: str | None = None
        self.is_released = False
        self.applied: dict[tuple[str | None, int | None], str] = {}
        """The digest of each owner frame that applied, by claim and seq."""
        self.calls: dict[str, Call] = {}
        self.entries: set[str] = set()
        self._said: set[str] = set()

    def take(self, frame: Frame, position: int) -> Kind:
        """Judge the next record."""
        kind = self._kind(frame)
        for event in frame.events:
            if kind in (Kind.APPLIES, Kind.GAP):
                self._owner_event(event, position)
            elif kind is Kind.FENCED:
                self._fenced_event(event, frame.header.claim)
            elif kind is Kind.GUEST:
                self._person_event(event)
        return kind

    def _kind(self, frame: Frame) -> Kind:
        header = frame.header
        if header.claim is None:
            event = frame.events[0]
            return self._claim(event.data) if event.type == "session_claimed" else Kind.GUEST
        epoch, seq = header.epoch or 0, header.seq or 0
        if epoch < self.epoch or (header.claim == self.claim and self.is_released):
            return Kind.FENCED
        if header.claim != self.claim or epoch != self.epoch:
            return Kind.WRONG
        if seq <= self.seq:
            other = seq == self.seq and self.applied[header.claim, seq] != frame.digest
            return Kind.WRONG if other else Kind.DUPLICATE
        kind = Kind.APPLIES if seq == self.seq + 1 else Kind.GAP
        self.seq = seq
        self.applied[(header.claim, seq)] = frame.digest
        self.is_released = any(event.type == "session_released" for event in frame.events)
        return kind

    def _claim(self, data: dict[str, Any]) -> Kind:
        claim = data["claim"]
        if claim in self.claims:
            return Kind.COPY
        won = data["expects"] == self.epoch and data.get("expects_seq") in (None, self.seq)
        self.claims[claim] = won
        if not won:
            return Kind.LOST
        self.claim, self.epoch, self.seq, self.is_released = claim, self.epoch + 1, 0, False
        return Kind.CLAIM

    def _owner_event(self, event: Event, position: int) -> None:
        data = event.data
        if event.type == "tool_dispatched":
            self._start(data, position)
        elif event.type == "dispatch_settled":
            call = self.calls.get(data["dispatch"])
            if data.get("settled_by") == "person":
                self._person_event(event)
            elif call is not None:
                is_last = data.get("try") in (None, call.tries[-1].number)
                self._answer(call, event, settles=is_last)
        elif "parent" in data and event.id not in self.entries:
            self.entries.add(event.id)
            call = self.calls.get(data.get("dispatch") or "")
            if call is not None and data.get("role") == "tool":
                self._answer(call, event, settles=call.tries[-1].result_entry == event.id)

    def _fenced_event(self, event: Event, claim: str | None) -> None:
        call = self.calls.get(event.data.get("dispatch") or "")
        is_answer = event.type == "dispatch_settled" or event.data.get("role") == "tool"
        if call is not None and is_answer and any(item.claim == claim for item in call.tries):
            self._evidence(call, event)

    def _start(self, data: dict[str, Any], position: int) -> None:
        number = data.get("try") or 1
        call = self.calls.get(data["dispatch"])
        item = Try(number, self.claim or "", position, data["result_entry"], data)
        if call is None:
            call = self.calls[data["dispatch"]] = Call(data)
            call.tries.append(item)
            return
        if any(old.content == data for old in call.tries):
            return
        first, last = call.data, call.tries[-1]
        same = all(
            data.get(name) == first.get(name)
            for name in ("operation", "assistant_entry", "call_index", "args_hash")
        ) and data.get("idempotency_key") == first.get("idempotency_key")
        again = (
            call.status == "open"
            and first.get("effect") in ("read_only", "idempotent", "reconcilable")
            and last.claim != self.claim
            and last.result_entry == item.result_entry
        )
        rerun = call.may_rerun and call.status == "unknown"
        if same and number == last.number + 1 and (again or rerun):
            call.allowed += 0 if again else 1
            call.tries.append(item)
            call.status, call.answer, call.by_person = "open", None, False
            call.may_rerun = False

    def _answer(self, call: Call, event: Event, *, settles: bool) -> None:
        if call.status == "open" and settles:
            call.status, call.answer = event.data.get("status") or "ok", _said(event)
        else:
            self._evidence(call, event)

    def _evidence(self, call: Call, event: Event) -> None:
        if _said(event) == call.answer:
            return
        status = event.data.get("status") or "ok"
        call.evidence.setdefault(_said(event), status)
        if status in ("ok", "error"):
            call.may_rerun = False
            if call.by_person and call.status == "not_started":
                call.status, call.by_person = "unknown", False

    def _person_event(self, event: Event) -> None:
        data = event.data
        call = self.calls.get(data.get("dispatch") or "")
        if call is None or event.id in self._said:
            return
        self._said.add(event.id)
        is_last = data.get("try") in (None, call.tries[-1].number)
        if call.status != "unknown" or not is_last:
            return
        if event.type == "rerun_allowed":
            call.may_rerun = call.may_rerun or not call.happened
        elif data["status"] != "unknown" and not (
            data["status"] == "not_started" and call.happened
        ):
            call.status, call.answer, call.by_person = data["status"], _said(event), True
            call.may_rerun = False


def _said(event: Event) -> Said:
    return event.id, event.digest
