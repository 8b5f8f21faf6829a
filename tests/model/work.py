"""The operations of the model, their attempts and approvals: rules 6, 8 and 9."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.model.dispatches import Dispatch, Dispatches, Try, same_content
from tests.model.tree import Node, Tree
from turnlog.core.frames import Event, canonical

STATUS_OF_STOP = {
    "stop": "completed",
    "length": "completed",
    "content_filter": "completed",
    "error": "failed",
    "aborted": "aborted",
}


@dataclass
class Operation:
    """One unit of work."""

    id: str
    claim: str
    accepted: Event | None = None
    finish: Event | None = None
    superseded: bool = False
    parked: bool = False
    aborting: bool = False
    attempt: str | None = None
    corruption: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str | None:
        """Its kind, unknown until it is accepted."""
        return None if self.accepted is None else str(self.accepted.data["kind"])

    @property
    def is_open(self) -> bool:
        """Whether work may go on; parked work may."""
        return self.finish is None and not self.superseded

    def corrupt(self, reason: str) -> None:
        """Name a corruption, once."""
        if reason not in self.corruption:
            self.corruption.append(reason)


@dataclass
class Attempt:
    """One model request."""

    asked: Event | None = None
    claim: str | None = None
    usage: Any = None
    settled: Event | None = None
    fenced: bool = False
    conflict: bool = False
    status: str = "started"
    operation: str = ""


@dataclass
class Approval:
    """Whether a call may run, asked and decided."""

    asked: bool = False
    decided: Event | None = None
    waiting: bool = False


class Work:
    """Everything that is or was under way in a session."""

    def __init__(self, tree: Tree, overflow: Callable[[str], None]) -> None:
        self.tree = tree
        self.operations: dict[str, Operation] = {}
        self.attempts: dict[str, Attempt] = {}
        self.approvals: dict[tuple[str, str, str], Approval] = {}
        self.dispatches = Dispatches(overflow)
        self.reserved: dict[str, str] = {}

    def open(self) -> list[Operation]:
        """The operations that are open, in the order of their first records."""
        return [operation for operation in self.operations.values() if operation.is_open]

    def end(self, operation: Operation) -> None:
        """Nobody waits for an operation that is finished or superseded."""
        for key, approval in self.approvals.items():
            if key[0] == operation.id:
                approval.waiting = False

    def named(self, event: Event, claim: str, *, ends: bool = True) -> Operation:
        """The operation that an owner's record names; `ends` where none may follow its finish."""
        id_ = event.data["operation"]
        operation = self.operations.get(id_)
        if operation is None:
            operation = self.operations[id_] = Operation(id_, claim)
            operation.corrupt("not_accepted")
        if operation.is_open:
            operation.claim = claim
        if operation.finish is not None and ends:
            operation.corrupt("after_finished")
        return operation

    def is_taken(self, entry: str, holder: str) -> bool:
        """Whether an entry id is an entry, or reserved by somebody else."""
        return self.tree.find(entry) is not None or self.reserved.get(entry, holder) != holder

    def operation_accepted(self, event: Event, claim: str) -> None:
        """An operation begins."""
        id_, kind = event.data["operation"], event.data["kind"]
        known = self.operations.get(id_)
        if known is not None:
            if same_content(known.accepted, event):
                return
            if known.accepted is not None:
                known.corrupt("accepted_twice")
                return
            known.accepted, known.claim = event, claim
            self._check_input(known, event)
            return
        others = [other for other in self.open() if other.kind == kind]
        for other in others:
            if other.claim != claim:
                other.superseded = True
                self.end(other)
        operation = Operation(id_, claim, accepted=event)
        if any(other.is_open for other in others):
            operation.corrupt("second_of_kind")
        if kind == "navigation" and any(other.kind == "compaction" for other in self.open()):
            operation.corrupt("inside_compaction")
        self._check_input(operation, event)
        self.operations[id_] = operation

    def _check_input(self, operation: Operation, event: Event) -> None:
        entry = self.tree.find(event.data.get("input_entry"))
        if event.data["kind"] == "prompt" and entry is None:
            operation.corrupt("input_missing")

    def model_attempted(self, event: Event, claim: str) -> None:
        """A model request is about to be sent."""
        id_, entry = event.data["attempt"], event.data["assistant_entry"]
        attempt = self.attempts.get(id_)
        if attempt is not None and same_content(attempt.asked, event):
            return
        operation = self.named(event, claim)
        if attempt is not None and attempt.asked is not None:
            operation.corrupt("entry_reused")
            return
        attempt = self.attempts.setdefault(id_, Attempt())
        attempt.asked, attempt.claim, attempt.operation = event, claim, operation.id
        if self.is_taken(entry, f"attempt {id_}"):
            operation.corrupt("entry_reused")
        self.reserved.setdefault(entry, f"attempt {id_}")
        operation.attempt, operation.parked = id_, False

    def answered(self, node: Node) -> None:
        """An assistant message may be the one that an attempt is to write."""
        attempt = self.attempts.get(node.data.get("attempt") or "")
        if attempt is None or attempt.asked is None or not node.is_message("assistant"):
            return
        if attempt.asked.data["assistant_entry"] == node.id:
            attempt.status = STATUS_OF_STOP.get(node.data.get("stop_reason") or "", "continues")

    def usage_settled(self, event: Event, claim: str) -> None:
        """What an attempt cost."""
        id_, usage = event.data["attempt"], event.data.get("usage") or {}
        attempt = self.attempts.get(id_)
        if attempt is not None and attempt.settled is not None and is_same_bill(attempt, event):
            return
        self.named(event, claim, ends=False)
        if attempt is None:
            attempt = self.attempts[id_] = Attempt(conflict=True, operation=event.data["operation"])
        if attempt.settled is None:
            attempt.settled, attempt.usage = event, usage
        else:
            attempt.conflict = True

    def usage_fenced(self, event: Event, claim: str | None) -> None:
        """What an attempt cost, as its fenced owner says."""
        attempt = self.attempts.get(event.data["attempt"])
        if attempt is None or attempt.claim != claim or attempt.settled is not None:
            return
        attempt.settled, attempt.usage = event, event.data.get("usage") or {}
        attempt.fenced = True

    def approval(self, event: Event) -> Approval:
        """The approval of the call that a record names."""
        data = event.data
        key = (data["operation"], data["assistant_entry"], data["call_id"])
        return self.approvals.setdefault(key, Approval())

    def approval_asked(self, event: Event, claim: str) -> None:
        """A call waits for a person."""
        approval = self.approval(event)
        if approval.asked:
            return
        operation = self.named(event, claim)
        approval.asked = True
        approval.waiting = operation.is_open and approval.decided is None

    def approval_decided(self, event: Event, claim: str | None) -> None:
        """The first decision of a call wins; a guest's touches no operation."""
        approval = self.approval(event)
        before = approval.decided
        if before is not None and said(before) == said(event):
            return
        if claim is not None:
            self.named(event, claim)
        if before is None:
            approval.decided, approval.waiting = event, False

    def tool_dispatched(self, event: Event, claim: str, position: int) -> None:
        """T1."""
        id_ = event.data["dispatch"]
        known = self.dispatches.all.get(id_)
        mine = Try(event, claim, position)
        if known is not None and any(
            t.number == mine.number and same_content(t.event, event) for t in known.tries
        ):
            return
        if known is None:
            dispatch = Dispatch([mine])
            operation = self.named(event, claim)
            self._first_of(dispatch, operation)
            self.dispatches.all[id_] = dispatch
        elif not self._repeat_of(known, mine):
            return
        else:
            dispatch = known
            operation = self.operations[event.data["operation"]]
        self.reserved.setdefault(event.data["result_entry"], f"dispatch {id_}")
        self.dispatches.open_up(dispatch)
        operation.parked = False
        for key, approval in self.approvals.items():
            data = event.data
            if key == (data["operation"], data["assistant_entry"], data.get("call_id")):
                approval.waiting = False

    def _first_of(self, dispatch: Dispatch, operation: Operation) -> None:
        data = dispatch.last.data
        if self.tree.find(data["assistant_entry"]) is None:
            operation.corrupt("assistant_missing")
        if self.is_taken(data["result_entry"], f"dispatch {dispatch.id}"):
            operation.corrupt("entry_reused")

    def _repeat_of(self, dispatch: Dispatch, mine: Try) -> bool:
        entry = mine.data["result_entry"]
        is_new = not self.is_taken(entry, "nobody")
        is_rerun = not dispatch.is_open
        if self.dispatches.was_taken_back(dispatch, mine.event, is_new):
            return False
        if not self.dispatches.may_repeat(dispatch, mine.event, mine.claim, is_new):
            self.named(mine.event, mine.claim).corrupt("t1_repeated")
            return False
        operation = self.named(mine.event, mine.claim, ends=not is_rerun)
        if is_rerun and operation.finish is not None:
            operation.finish = None
            if not operation.superseded:
                self.named(mine.event, mine.claim)
        dispatch.tries.append(mine)
        return True

    def operation_parked(self, event: Event, claim: str) -> None:
        """An operation needs a person."""
        operation = self.named(event, claim)
        operation.parked = operation.parked or operation.is_open

    def operation_finished(self, event: Event, claim: str) -> None:
        """An operation ends, once."""
        known = self.operations.get(event.data["operation"])
        if known is not None and same_content(known.finish, event):
            return
        operation = self.named(event, claim)
        if self.dispatches.open_of(operation.id) and not operation.superseded:
            operation.corrupt("open_dispatch")
        if operation.finish is None:
            operation.finish = event
            self.end(operation)

    def abort_requested(self, event: Event) -> None:
        """Somebody wants an operation to stop."""
        operation = self.operations.get(event.data["operation"])
        if operation is not None and operation.is_open:
            operation.aborting = True


def said(decision: Event) -> tuple[str, str | None]:
    """What a decision says, and who."""
    return decision.data["decision"], decision.data.get("by")


def is_same_bill(attempt: Attempt, event: Event) -> bool:
    """Whether usage is what an attempt was already charged with."""
    assert attempt.settled is not None
    models = attempt.settled.data.get("model"), event.data.get("model")
    usage = event.data.get("usage") or {}
    return canonical(attempt.usage) == canonical(usage) and models[0] == models[1]
