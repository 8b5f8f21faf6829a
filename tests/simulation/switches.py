"""The rules of the protocol, each with a way to switch it off: the real function made wrong.

Whoever breaks a rule by accident breaks it like this. `test_bites` shows that the simulation finds
each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import turnlog.core.fold as fold
from turnlog.core import ownership, recovery
from turnlog.core.errors import AppendUnknown
from turnlog.core.fold import compactions, dispatches, entries, messages
from turnlog.core.frames import NewEvent, seal
from turnlog.core.ownership import Admission, Ownership
from turnlog.owner.owner import Owner, append
from turnlog.testing.simulation.stores import TornStore

Patch = pytest.MonkeyPatch


def fencing(patch: Patch) -> None:
    """A frame of a former owner applies."""
    real = ownership.admit

    def admit(own: Ownership, *of: Any) -> Admission:
        found = real(own, *of)
        return Admission.APPLIES if found is Admission.FENCED else found

    _admit(patch, admit)


def compare_and_set(patch: Patch) -> None:
    """Any claim wins, whatever it expects."""
    real = ownership.after_claim

    def after_claim(own: Ownership, data: Mapping[str, Any]) -> tuple[bool, Ownership]:
        return real(own, {**data, "expects": own.epoch, "expects_seq": None})

    patch.setattr(ownership, "after_claim", after_claim)
    patch.setattr(fold, "after_claim", after_claim)


def claims_known_by_id(patch: Patch) -> None:
    """A copy of a claim that lost may win."""
    patch.setattr(ownership, "_is_remembered", lambda own, claim: False)


def reading_to_the_own_claim(patch: Patch) -> None:
    """Who claims believes that it won, and that nothing came before."""
    real = Owner.claim

    async def claim(self: Owner, reason: str, expects_seq: int | None) -> None:
        async def believe(position: int, sent: Any = None) -> None:
            self._own = Ownership(self._claim, self._own.epoch + 1)
            self._position = position

        self._read_to = believe  # type: ignore[method-assign,assignment]  # of this owner, once
        try:
            await real(self, reason, expects_seq)
        finally:
            del self._read_to

    patch.setattr(Owner, "claim", claim)


def t1_rule(patch: Patch) -> None:
    """An effect starts as soon as T1 is acknowledged."""
    real = Owner._send

    async def check_start(self: Owner, *of: Any) -> str:
        return "start"

    async def send(self: Owner, frame: Any) -> int:
        if all(event.type != "tool_dispatched" for event in frame.frame.events):
            return await real(self, frame)
        self._in_flight = frame
        position = await append(self.log, frame)
        self._in_flight, self._seq = None, frame.frame.header.seq
        return position

    patch.setattr(Owner, "check_start", check_start)
    patch.setattr(Owner, "_send", send)


def position_check(patch: Patch) -> None:
    """It is enough that the dispatch is open under the own claim, wherever its T1 is."""
    real = Owner.check_start

    async def check_start(self: Owner, dispatch: str, position: int, began: float) -> str:
        await self._wait(position)
        row = self._dispatch(dispatch)
        at = position if row is None else row.tries[-1]["position"]
        return await real(self, dispatch, at, began)

    patch.setattr(Owner, "check_start", check_start)


def sealed_frames(patch: Patch) -> None:
    """After an unknown outcome later events go into the frame that was sent."""
    real = Owner._send

    async def send(self: Owner, frame: Any) -> int:
        try:
            return await real(self, frame)
        except AppendUnknown:
            later = NewEvent("fact", self.ambient.ids(), None, {"name": "n", "value": 1})
            old = [NewEvent(e.type, e.id, e.time, e.data, e.v) for e in frame.frame.events]
            self._in_flight = seal(frame.frame.header, [*old, later])
            raise

    patch.setattr(Owner, "_send", send)


def seq(patch: Patch) -> None:
    """A frame under the claim in force applies whatever its seq."""
    real = ownership.admit

    def admit(own: Ownership, *of: Any) -> Admission:
        found = real(own, *of)
        inside = (Admission.DUPLICATE, Admission.GAP, Admission.SEQ_CONFLICT)
        return Admission.APPLIES if found in inside else found

    _admit(patch, admit)


def first_answer_wins(patch: Patch) -> None:
    """The last answer stands."""

    def add_answer(draft: Any, dispatch: Any, event: Any, claim: str | None = None) -> None:
        dispatches.settle(draft, dispatch, event, "host")

    patch.setattr(dispatches, "add_answer", add_answer)
    patch.setattr(messages, "add_answer", add_answer)


def placement_of_results(patch: Patch) -> None:
    """A result hangs where it declares."""
    real = entries.add_entry

    def add_entry(draft: Any, event: Any, place: Any, shape: Any) -> Any:
        if event.data.get("dispatch") is not None:
            place = entries.find_place(draft, event)
        return real(draft, event, place, shape)

    patch.setattr(messages, "add_entry", add_entry)


def evidence_by_claim(patch: Patch) -> None:
    """Whatever a fenced frame says of a dispatch is evidence."""
    real = dispatches.take_evidence

    def take_evidence(draft: Any, event: Any, claim: str | None) -> None:
        row = draft.dispatch(event.data.get("dispatch"))
        real(draft, event, claim if row is None else row.tries[0]["claim"])

    patch.setattr(dispatches, "take_evidence", take_evidence)


def second_starts(patch: Patch) -> None:
    """Any T1 of an open dispatch may repeat it."""
    patch.setattr(dispatches, "_is_retry", lambda draft, old, event: True)
    patch.setattr(
        recovery,
        "_host_step",
        lambda dispatch, evidence: {"do": "run_again", "dispatch": dispatch.dispatch},
    )


def validity_of_compactions(patch: Patch) -> None:
    """A compaction may cover a call without its result."""
    patch.setattr(compactions, "_is_balanced", lambda rows: True)


def rows_all_or_none(patch: Patch) -> None:
    """A row is read although its frame's head row was never written."""
    patch.setattr(TornStore, "choose", staticmethod(lambda kept, head_position: kept.row))


SWITCHES: dict[str, Callable[[Patch], None]] = {
    switch.__name__: switch
    for switch in (
        fencing,
        compare_and_set,
        claims_known_by_id,
        reading_to_the_own_claim,
        t1_rule,
        position_check,
        sealed_frames,
        seq,
        first_answer_wins,
        placement_of_results,
        evidence_by_claim,
        second_starts,
        validity_of_compactions,
        rows_all_or_none,
    )
}


def _admit(patch: Patch, admit: Callable[..., Admission]) -> None:
    patch.setattr(ownership, "admit", admit)
    patch.setattr(fold, "admit", admit)
