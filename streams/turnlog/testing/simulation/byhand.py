"""A host written straight on the owner, in the plainest way that keeps the order of a call.

It stands for hosts that are not ours: it compacts spans that it picks blindly, declares the call as
the parent of each of its results, and repairs nothing that it need not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from turnlog.core.errors import Fenced, LogError
from turnlog.core.frames import NewEvent, canonical, digest_of
from turnlog.core.recovery import Instruction, idempotency_key
from turnlog.core.rows import Dispatch, Head
from turnlog.host.tools import ToolCall
from turnlog.owner import places
from turnlog.owner.ambient import Ambient
from turnlog.owner.closing import CLOSES, closers
from turnlog.owner.owner import Owner, claim
from turnlog.tables.evidence import Report, reports_of
from turnlog.tables.view import SessionView
from turnlog.testing.simulation.client import Client
from turnlog.testing.simulation.tools import SESSION, Workshop

Json = Any
PATIENCE = 20
"""How often a host by hand sends again what the log did not take."""


class _Call(NamedTuple):
    """A call to make: a part of an assistant message, and under which dispatch and try."""

    operation: str
    entry: str
    place: int
    part: dict[str, Json]
    dispatch: str
    result: str
    number: int
    call_no: int
    effect: str


class ByHand:
    """One session of such a host. `claim` first; every method may raise Fenced and LogError."""

    def __init__(
        self, client: Client, name: str, ambient: Ambient, workshop: Workshop, draw: Random
    ) -> None:
        self._client = client
        self._session = SESSION
        self._name = name
        self._ambient = ambient
        self._workshop = workshop
        self._draw = draw
        self._owner: Owner | None = None
        self._calls = 0
        self._writing = asyncio.Lock()

    @property
    def owner(self) -> Owner:
        """The owner, once claimed."""
        assert self._owner is not None, "claim first"
        return self._owner

    async def claim(self, reason: str) -> None:
        """Claim the session. Raises ClaimLost."""
        tables = self._client.tables
        if self._draw.random() < 0.9:  # else it claims by what it happens to know
            await tables.wait(await self._client.end())
        self._owner = await claim(
            self._client,
            self._session,
            tables=tables,
            host=self._name,
            reason=reason,
            ambient=self._ambient,
        )
        await tables.wait(self.owner.position)
        head: Head | None = tables.get(("sessions", self._session))
        if head is None or not head.listed:
            await self._write([self._event("session_created", {"title": self._session})])

    async def pick_up(self) -> None:
        """Do about everything that is open what the plan for a host says."""
        for report in reports_of(self._view(), "host"):
            again = [step for step in report.instructions if step["do"] in ("run_again", "probe")]
            close = [step for step in report.instructions if step["do"] in CLOSES]
            if close:
                await self._close(close)
            for step in again:
                await self._again(step, report)
            for step in report.instructions:
                if step["do"] == "permit_and_run":
                    await self._call(self._call_of(step, report.operation.operation))
                elif step["do"] in ("ask_model", "continue"):
                    await self._go_on(report.operation.operation)

    async def turn(self) -> None:
        """One turn: input, model, calls, model, finish; sometimes a compaction on the way."""
        if self._view().head.open_operations:
            return  # parked: it needs a person
        operation, entry = self._ambient.ids(), self._ambient.ids()
        said = {"role": "user", "content": [{"type": "text", "text": "please"}]}
        accepted = {"operation": operation, "kind": "prompt", "input_entry": entry}
        leaf = self._leaf()
        await self._write(
            [
                self._event("message", {"parent": leaf, **said}, entry),
                self._event("operation_accepted", {**accepted, "start_leaf": leaf}),
            ]
        )
        self._calls = 0
        message = await self._ask(operation, self._draw.randrange(4))
        calls = [
            self._new_call(operation, message.id, index, part)
            for index, part in enumerate(message.data["content"][1:])
        ]
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(self._call(call))
        if self._draw.random() < 0.5:
            await self._compact()
        if calls:
            await self._go_on(operation)
        else:
            await self._finish(operation)

    async def release(self) -> None:
        """Give the session up."""
        await self._write([self._event("session_released", {"claim": self.owner.claim_id})])

    # ---- parts of a turn ---------------------------------------------------------------------

    async def _go_on(self, operation: str) -> None:
        await self._ask(operation, 0)
        await self._finish(operation)

    async def _ask(self, operation: str, calls: int) -> NewEvent:
        attempt, entry = self._ambient.ids(), self._ambient.ids()
        named = {"operation": operation, "attempt": attempt}
        await self._write([self._event("model_attempted", {**named, "assistant_entry": entry})])
        self._ambient.reach(places.ATTEMPT_STARTED)
        await self._workshop.think()
        content = [{"type": "text", "text": "well"}, *self._workshop.calls(calls)]
        data: Json = {"role": "assistant", "content": content, "attempt": attempt}
        data |= {"parent": self._leaf(), "stop_reason": "tool_use" if calls else "stop"}
        message = self._event("message", data, entry)
        self._ambient.reach(places.ANSWER_READY)
        usage = self._event("usage_settled", {**named, "usage": {"input": 1, "output": 2}})
        await self._write([message, usage])
        return message

    async def _finish(self, operation: str) -> None:
        self._ambient.reach(places.FINISH_READY)
        await self._write(
            [self._event("operation_finished", {"operation": operation, "outcome": "completed"})]
        )

    async def _call(self, call: _Call) -> None:
        """T1, the T1 rule, the effect, T2."""
        owner, part = self.owner, call.part
        key = idempotency_key(self._session, call.operation, call.call_no)
        began = self._ambient.uptime()
        self._ambient.reach(places.T1_READY)
        position = await self._write([self._event("tool_dispatched", self._t1(call, key))])
        self._ambient.reach(places.T1_SENT)
        may = await owner.check_start(call.dispatch, position, began)
        if may == "start":
            self._ambient.reach(places.T1_CHECKED)
            tool = self._workshop.tools[part["name"]]
            names = self._session, call.operation, part["name"], part["call_id"], part["args"]
            start = ToolCall(*names, call.dispatch, call.number, key)
            status, text = await self._workshop.run(tool, start)
            self._ambient.reach(places.EFFECT_DONE)
        else:  # a former try may have started: of the call as a whole nothing is known then
            status = may if call.number == 1 else "unknown"
            text = f"it was not started here: {may}"
        await self._answer(call, status, text)

    def _t1(self, call: _Call, key: str) -> dict[str, Json]:
        return {
            "operation": call.operation,
            "dispatch": call.dispatch,
            "call_no": call.call_no,
            "try": call.number,
            "call_id": call.part["call_id"],
            "call_index": call.place,
            "tool": call.part["name"],
            "args_hash": digest_of(canonical(call.part["args"])),
            "assistant_entry": call.entry,
            "result_entry": call.result,
            "effect": call.effect,
            "idempotency_key": key,
        }

    async def _answer(self, call: _Call, status: str, text: str) -> None:
        data = {
            "parent": call.entry,  # the leaf is another one when calls run beside each other
            "role": "tool",
            "content": [{"type": "text", "text": text}],
            "call_id": call.part["call_id"],
            "tool": call.part["name"],
            "dispatch": call.dispatch,
            "status": status,
            "settled_by": "host",
        }
        event = self._event("message", data, call.result)
        try:
            await self._write([event])
        except Fenced:
            await self.owner.testify([event])
            raise
        self._ambient.reach(places.T2_SAVED)

    async def _compact(self) -> None:
        """A compaction of any span: valid or void, as the fold decides."""
        view = self._view()
        nodes = [node for node in view.surface() if node]
        start = self._draw.randrange(len(nodes))
        stop = self._draw.randrange(start, len(nodes))
        operation, named = self._ambient.ids(), [view.entry(nodes[i]).id for i in (start, stop)]
        prepared = self._leaf()
        accepted = {"operation": operation, "kind": "compaction", "trigger": "manual"}
        await self._write([self._event("operation_accepted", accepted)])
        self._ambient.reach(places.COMPACTION_STARTED)
        await self._workshop.think()
        data: Json = {"kind": "summary", "replaces": {"first": named[0], "last": named[1]}}
        data |= {"parent": self._leaf(), "prepared_at": prepared, "operation": operation}
        data |= {"content": [{"type": "text", "text": "in short"}]}
        ended = {"operation": operation, "outcome": "completed"}
        compaction = self._event("compaction", data)
        await self._write([compaction, self._event("operation_finished", ended)])

    # ---- what a former host left -------------------------------------------------------------

    async def _close(self, steps: Sequence[Instruction]) -> None:
        made = closers(self._view(), steps, by="host", ambient=self._ambient)
        self._ambient.reach(places.RECOVERY_READY)
        await self._write(made.events)

    async def _again(self, step: Instruction, report: Report) -> None:
        row = next(r for r in report.evidence.dispatches if r.dispatch == step["dispatch"])
        call = self._call_again(row)
        if step["do"] == "probe" and await self._workshop.probe(row, call.part["args"]):
            await self._answer(call, "ok", "it had happened")
        else:
            await self._call(call)

    def _call_again(self, row: Dispatch) -> _Call:
        view = self._view()
        data = view.data(view.entry(view.number(row.assistant_entry)))
        part = [item for item in data["content"] if item["type"] == "tool_call"][row.call_index]
        return _Call(
            row.operation,
            row.assistant_entry,
            row.call_index,
            part,
            row.dispatch,
            row.result_entry,
            row.tries[-1]["try"] + 1,
            row.call_no or 0,
            row.effect,
        )

    def _call_of(self, step: Instruction, operation: str) -> _Call:
        view = self._view()
        data = view.data(view.entry(view.number(step["assistant_entry"])))
        parts = [item for item in data["content"] if item["type"] == "tool_call"]
        self._calls = len(view.dispatches_of(operation))
        index = step["call_index"]
        return self._new_call(operation, step["assistant_entry"], index, parts[index])

    def _new_call(self, operation: str, entry: str, index: int, part: dict[str, Json]) -> _Call:
        number, self._calls = self._calls, self._calls + 1
        effect = self._workshop.tools[part["name"]].effect
        ids = self._ambient.ids(), self._ambient.ids()
        return _Call(operation, entry, index, part, *ids, 1, number, effect)

    # ---- writing and reading -----------------------------------------------------------------

    async def _write(self, events: Sequence[NewEvent]) -> int:
        """Write until it is saved. One at a time, so that a frame in doubt is this one."""
        owner, position = self.owner, 0
        async with self._writing:
            for left in range(PATIENCE, -1, -1):
                try:
                    position = await (owner.settle() if owner.in_doubt else owner.write(events))
                    break
                except LogError as error:
                    if left == 0 or not error.retriable:
                        raise
                    await asyncio.sleep(0.3)
        await self._client.tables.wait(position)
        return position

    def _view(self) -> SessionView:
        return SessionView(self._client.tables, self._session)

    def _leaf(self) -> str | None:
        view = self._view()
        return view.entry(view.head.leaf).id or None

    def _event(self, type_: str, data: dict[str, Json], id_: str | None = None) -> NewEvent:
        return NewEvent(type_, id_ or self._ambient.ids(), self._ambient.now(), data)
