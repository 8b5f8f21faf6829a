"""A session as its host uses it."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, cast

import orjson

from turnlog.core.blobs import resolve
from turnlog.core.errors import UsageError
from turnlog.core.frames import canonical
from turnlog.core.rows import Head, Input
from turnlog.host import compaction, forks, messages, resuming
from turnlog.host.compaction import KEEP, PRESSURE, Compaction, Summarise
from turnlog.host.content import content_of
from turnlog.host.cuts import Meter, characters
from turnlog.host.errors import OperationOpen
from turnlog.host.link import Link
from turnlog.host.prune import HEAD, TAIL, THRESHOLD, Trim, prune
from turnlog.host.scope import TurnScope
from turnlog.host.turn import Turn
from turnlog.tables.evidence import Report, reports_of
from turnlog.tables.view import SessionView

Json = Any
_T = TypeVar("_T")
Delivery = Literal["steer", "follow_up"]
MAX_PENDING = 64


class Session:
    """One claimed session; `open_session` gives one.

    Every method that writes raises Fenced once another claim is in force, LogError where the log
    does not take what is written (nothing is lost then: `flush` tries again), and SchemaError or
    TooLarge for data that no log would take.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.recovery: list[Report] = []
        """What was open when the session was opened: each operation with its verdict and plan."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.link.id

    async def start(self, created: dict[str, Json]) -> None:
        """Make the session where it is new, and look at what is in it. For `open_session`."""
        link = self.link
        head: Head | None = link.tables.get(("sessions", link.id))
        if head is None or not head.listed:
            await link.write_now([link.event("session_created", created)])
        link.look_up_leaf()
        self.recovery = self.reports()

    # ---- reading

    def view(self) -> SessionView:
        """The session with everything this host has written, saved or not."""
        return self.link.view()

    def context(self) -> list[dict[str, Json]]:
        """What to send to the model: the balanced surface at the leaf, unflushed events included.

        A list of {"role", "content", "entry"}; tool messages also have "call_id", "tool", "status".
        """
        return self.view().context()

    def whole(self, part: dict[str, Json]) -> dict[str, Json]:
        """A content part with what is kept outside of its event, as a blob, put back.

        A context shows no more than a preview of a large part. A part that is no blob, or whose
        blob is in no session that this one was forked from, is given back as it is.
        """
        return resolve(part, self.view().blob)

    @property
    def leaf(self) -> str | None:
        """The id of the entry that the next one hangs under; None at the root."""
        return self.link.leaf

    @property
    def state(self) -> dict[str, Json]:
        """The app state in force at the leaf."""
        return _own(self.view().state())

    def extension(self, kind: str) -> Json:
        """The value of the newest `custom` entry of a kind on the leaf's path, or None. A fork's
        path goes on in its parent."""
        view = self.view()
        number, seen = view.head.leaf, {view.session}
        while True:
            while number:
                entry = view.entry(number)
                if entry.kind == "custom":
                    data = view.data(entry)
                    if data["kind"] == kind:
                        return _own(data["value"])
                number = entry.parent
            parent = view.parent()
            if parent is None or parent[0].session in seen:
                return None
            view, number = parent
            seen.add(view.session)

    def pending(self, delivery: Delivery | None = None) -> list[Input]:
        """The inputs that are queued and not placed, in the order in which they came."""
        return messages.pending(self.view(), delivery)

    def reports(self) -> list[Report]:
        """What is open now, each operation with its verdict and what a host would do about it."""
        return reports_of(self.view(), "host")

    # ---- writing

    async def set_state(self, value: dict[str, Json]) -> None:
        """Set the whole app state. Nothing is written where it is what it was."""
        if not _is_same(value, self.state):
            await self.link.add_entry("app_state", {"value": value})

    async def set_extension(self, kind: str, value: Json, *, in_context: bool = False) -> str:
        """Write state of an extension that rides on the tree; gives the entry's id."""
        return await self.link.add_entry(
            "custom", {"kind": kind, "value": value, "in_context": in_context}
        )

    async def set_fact(self, name: str, value: Json) -> None:
        """Set a named value of the session, such as `title`, `label:<entry>` or `score:<name>`."""
        await self.link.write([self.link.event("fact", {"name": name, "value": value})])

    async def flush(self) -> None:
        """Return when everything written so far is saved. Raises the error of an earlier write in
        the background, too, where trying again does not help."""
        await self.link.write_now(())

    async def navigate(
        self, entry: str | None, *, label: str | None = None, summary: str | None = None
    ) -> str:
        """Move the leaf to an entry (None: the root); what was said after it stays in the log.

        With a summary the model is told what the branch left behind held. Gives the id of the
        branch entry. Raises EntryNotFound.
        """
        self.link.check()
        view = self.view()
        if entry is not None:
            view.number(entry)
        if any(item["kind"] == "compaction" for item in view.head.open_operations.values()):
            raise OperationOpen(
                f"session {self.id!r}: a compaction is under way; navigate once it has ended"
            )
        operation, branch = self.link.ambient.ids(), self.link.ambient.ids()
        accepted = {"operation": operation, "kind": "navigation", "trigger": "manual"}
        data = {"parent": entry, "from": self.link.leaf, "operation": operation}
        if label is not None:
            data["label"] = label
        if summary is not None:
            data["summary"] = summary
        await self.link.write_now(
            [
                self.link.event("operation_accepted", {**accepted, "start_leaf": self.link.leaf}),
                self.link.event("branch", data, branch),
                self.link.event(
                    "operation_finished", {"operation": operation, "outcome": "completed"}
                ),
            ],
            leaf=branch,
        )
        return branch

    async def fork(self, at: str | None = None, *, session: str | None = None) -> str:
        """Make a new session that goes on from an entry of this one (the leaf by default).

        Nothing is copied. Gives the new session's id, to be opened with `open_session`. Raises
        OperationOpen inside an open operation and EntryNotFound.
        """
        await self.flush()
        return await forks.fork(self.link, at, session)

    async def spawn(self, dispatch: str, *, title: str | None = None) -> str:
        """The session of a sub-agent that a tool call started: made once, the same id each time.

        `dispatch` is the call's, so a call that runs again after a crash finds what its first try
        began. Gives the session's id, to be opened with `open_session`.
        """
        return await forks.spawn(self.link, dispatch, title)

    async def queue_input(self, content: Json, *, delivery: Delivery = "follow_up") -> str:
        """Queue something for the agent to read: `steer` before its next model request, `follow_up`
        as a turn of its own. Gives the input's id. Raises UsageError where the queue is full, or
        for steering after an abort request."""
        self.link.check()
        head = self.view().head
        if len(head.pending_inputs) >= MAX_PENDING:
            raise UsageError(
                f"session {self.id!r}: {MAX_PENDING} inputs are pending; let the agent read them"
            )
        if delivery == "steer" and self._is_aborting():
            raise UsageError(
                f"session {self.id!r}: its turn is being aborted, so it can no longer be steered;"
                " queue a follow_up"
            )
        input_, entry = self.link.ambient.ids(), self.link.ambient.ids()
        found = await self.link.blobs(content_of(content))
        data = {"input": input_, "entry": entry, "delivery": delivery, "content": found}
        await self.link.write_now([self.link.event("input_queued", data)])
        return input_

    async def cancel_input(self, input_: str) -> None:
        """Take a queued input back; one that was placed stays."""
        await self.link.write_now([self.link.event("input_cancelled", {"input": input_})])

    async def abort(self) -> None:
        """Ask the open turn to stop: its tools are cancelled, its calls settled, and it ends as
        aborted. One that a former host or a cancelled task left open ends so once it is resumed.
        Nothing happens where no turn is open."""
        turn = self.link.turn
        open_ = self.view().head.open_operations
        prompts = [id_ for id_, item in open_.items() if item["kind"] == "prompt"]
        if prompts:
            await self.link.write_now(
                [self.link.event("abort_requested", {"operation": id_}) for id_ in prompts]
            )
        if isinstance(turn, Turn):
            turn.abort()

    async def decide(
        self, operation: str, entry: str, call_id: str, *, allow: bool, by: str
    ) -> None:
        """A person's decision on a call that waits for one; the first counts, and none once the
        operation has ended. Raises UsageError for an operation that the session has not."""
        self.link.check()
        row = self.view().operation(operation)
        if row is None:
            raise UsageError(f"session {self.id!r} has no operation {operation!r}")
        if row.outcome is not None or row.superseded:
            return
        data = {
            "operation": operation,
            "assistant_entry": entry,
            "call_id": call_id,
            "decision": "allow" if allow else "deny",
            "by": by,
        }
        await self.link.write_now([self.link.event("approval_decided", data)])
        self.link.tell()

    # ---- when the context grows too long (docs/compaction.md)

    async def compact_if_needed(
        self,
        summarise: Summarise,
        *,
        limit: int,
        reason: Literal["pressure", "overflow"] = "pressure",
        meter: Meter = characters,
        pressure: float = PRESSURE,
        keep: float = KEEP,
    ) -> str | None:
        """Summarise where the context, as `meter` counts tokens, has grown to the share `pressure`
        of `limit`; for `overflow`, which a model has told, without counting. Gives the compaction's
        entry id, or None where nothing was needed or nothing can be cut.

        Raises CompactionFailed where no summary came that may stand, and OperationOpen, but for
        `pressure`, while a compaction is under way.
        """
        how = Compaction(summarise, limit, meter, pressure, keep)
        return await compaction.compact_if_needed(self.link, how, reason)

    async def compact_now(
        self,
        summarise: Summarise,
        *,
        limit: int | None = None,
        meter: Meter = characters,
        keep: float = KEEP,
    ) -> str | None:
        """Summarise however much room there is; None where nothing can be cut safely. What is kept
        is the share `keep` of the limit, or of the context where that is less."""
        how = Compaction(summarise, limit, meter, keep=keep)
        return await compaction.compact_now(self.link, how, "manual")

    async def compact(
        self, first: str, last: str, summarise: Summarise, *, meter: Meter = characters
    ) -> str:
        """Summarise a span of the surface, ends included; the ids are `entry` of the context's
        messages. Raises EntryNotFound, UsageError for a span that would part a call from its result
        or holds the newest message of a user, and what `compact_now` raises."""
        how = Compaction(summarise, None, meter)
        return await compaction.compact(self.link, first, last, how)

    async def prune(
        self,
        *,
        threshold: int = THRESHOLD,
        head: int = HEAD,
        tail: int = TAIL,
        keep: int = 0,
        meter: Meter = characters,
    ) -> list[str]:
        """Trim each tool result of the surface that is longer than `threshold` to its head and
        tail, in characters; the newest `keep` results stay whole. Gives the ids of the prunes; a
        second pass does nothing."""
        return await prune(self.link, Trim(threshold, head, tail, keep), meter)

    # ---- turns

    def turn(self, message: Json = None) -> TurnScope:
        """A turn: `async with session.turn("…") as turn`. Without a message it takes the oldest
        queued input. Raises OperationOpen, once entered, where a turn is open already or a former
        host left one (see `resume`, `close_open`)."""
        return TurnScope(self.link, message, resume=False)

    def resume(self, *, parked: bool = False) -> TurnScope:
        """The turn that a former host left open, as a turn of this one: what it left to do is in
        `turn.plan()`. Raises UsageError, once entered, where nothing is open; a parked one is left
        alone until a person has said what became of its calls, or asked to abort it, unless
        `parked` says that whatever it waited for has come."""
        return TurnScope(self.link, None, resume=True, parked=parked)

    async def close_open(self) -> None:
        """End everything that is open without going on with it: a call without an answer is told as
        unknown or not started, an operation ends as interrupted. Raises OperationOpen in a turn and
        beside a compaction that is under way."""
        self.link.check()
        if resuming.under_way(self.link):
            raise OperationOpen(f"session {self.id!r}: a compaction is under way; wait for its end")
        if self.link.turn is not None:
            raise OperationOpen(f"session {self.id!r}: this host's own turn is open; end that")
        await resuming.close(self.link, self.reports())

    async def close(self) -> None:
        """Write what waits and give the session up. Does nothing where it is lost or given up."""
        await self.link.settle_background()
        if not self.link.is_lost and not self.link.owner.is_lost:
            data = {"claim": self.link.owner.claim_id}
            await self.link.write_now([self.link.event("session_released", data)])
        await self.link.settle_background()

    def _is_aborting(self) -> bool:
        view = self.view()
        rows = (view.operation(id_) for id_ in view.head.open_operations)
        return any(row is not None and row.aborting for row in rows)


def _is_same(value: Json, state: dict[str, Json]) -> bool:
    """Whether a value is the state; one that is no JSON is none, and is refused when written."""
    try:
        return canonical(value) == canonical(state)
    except TypeError:
        return False


def _own(value: _T) -> _T:
    """A copy: whoever changes it changes nothing of the session."""
    return cast("_T", orjson.loads(orjson.dumps(value)))
