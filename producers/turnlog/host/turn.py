"""A turn: one prompt operation, from the message that it answers to its end.

Running and resuming are one thing: `plan` says what can be done now, from the log alone, and
`carry_out` does it, all but asking the model. A turn that begins is a plan that asks the model; one
that a crash left is the same plan with more in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from turnlog.core.errors import Fenced, SchemaError, UsageError
from turnlog.core.recovery import Instruction, closing
from turnlog.core.rows import Dispatch, Operation
from turnlog.host import calls, resuming
from turnlog.host.attempt import Attempt, Said
from turnlog.host.calls import ModelCall, Result
from turnlog.host.content import content_of
from turnlog.host.decide import decide
from turnlog.host.effects import GRACE_S
from turnlog.host.evidence import testify
from turnlog.host.messages import args_of, calls_of, pending, queued
from turnlog.host.tools import Tools
from turnlog.owner import places
from turnlog.owner.closing import CLOSES
from turnlog.tables.evidence import Report, report_on

if TYPE_CHECKING:
    from turnlog.host.link import Link

Json = Any
Work = Callable[[], Awaitable[Result]]
RUNS = {"run_again": calls.run_again, "probe": calls.probe, "rerun": calls.run_allowed}
AT_ONCE = 64
"""How many calls of a turn run at the same time."""


class Turn:
    """See the module's text; `Session.turn` and `Session.resume` give one."""

    def __init__(self, link: Link, operation: str) -> None:
        self.link = link
        self.operation = operation
        self.outcome: str | None = None
        """completed, failed, aborted, blocked or interrupted, once it has ended."""
        self.parked: str | None = None
        """Why it waits for a person, where it does."""
        self.said: Said | None = None
        self.is_aborting = False
        self.busy: set[str] = set()
        self._made: set[tuple[str, int]] = set()
        self._running: set[tuple[str, int]] = set()
        self._tasks: dict[asyncio.Task[Any], None] = {}  # in order: a replay stops them alike
        self._call_no = 0
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._task: asyncio.Task[Any] | None = None
        self._is_stopped = False
        self._is_cancelling = False
        self._cancelled_before = 0

    @property
    def tools(self) -> Tools:
        """The host's tools by name."""
        return self.link.settings.tools

    @property
    def open_dispatches(self) -> int:
        """How many dispatches of the session may be open now, at most."""
        return len(self.busy.union(self.link.view().head.open_dispatches))

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be done in it any more: it has an outcome, or is parked."""
        return self.outcome is not None or self.parked is not None

    # ---- what can be done

    def plan(self) -> list[Instruction]:
        """What is enabled now, as `turnlog.core.recovery.plan` gives it, made more careful by the
        tools and the policy of this host. What is being worked on is not in it."""
        report = self._report()
        if report.operation.aborting:
            return self._closing(report, {"outcome": "aborted"})
        link = self.link
        view = link.view()
        return decide(
            report,
            tools=self.tools,
            policy=link.settings.policy,
            claim=link.owner.claim_id,
            busy=self.busy | self._running,
            args_of=lambda row: args_of(view, row),
        )

    async def carry_out(self, steps: Sequence[Instruction]) -> list[Result]:
        """Do what a plan says, all but asking the model: run calls, all at once, then write what
        only has to be written. Gives the results of the calls. What is no longer enabled is left
        out, so carrying out a plan again adds nothing."""
        self.check_open()
        enabled = self.plan()
        steps = [step for step in steps if step in enabled]
        results = await self._all(self._jobs(steps))
        if results:
            enabled = self.plan()
        written = [step for step in steps if step["do"] in CLOSES and step in enabled]
        if written and not self.has_ended:
            await self._write(written)
        return results

    def attempt(
        self,
        model: str,
        *,
        system: Json = None,
        tools: Json = None,
        settings: Json = None,
        request_digest: str | None = None,
    ) -> Attempt:
        """A model request. What it is asked with is written when it has changed."""
        said = {"system": system, "tools": tools, "settings": settings}
        return Attempt(
            self,
            model,
            {name: value for name, value in said.items() if value is not None},
            request_digest,
        )

    async def call(self, call: ModelCall | dict[str, Json]) -> Result:
        """Run one call of the model's last answer: validate, permit, T1, effect, T2.

        `call` is one of `Said.calls`, or its content part. Raises UsageError for a call that the
        answer does not have, or that was made already.
        """
        return (await self.call_all([call]))[0]

    async def call_all(
        self, some: Iterable[ModelCall | dict[str, Json]] | None = None
    ) -> list[Result]:
        """Run calls of the model's last answer at once, all of them by default; gives the results
        in their order."""
        if some is None:
            some = [] if self.said is None else self.said.calls
        found = [self._find(call) for call in some]
        return await self._all([(call, partial(calls.run_call, self, call)) for call in found])

    async def finish(self, outcome: str = "completed", error: Json = None) -> None:
        """End the turn. Calls that have no answer get one."""
        self.check_open()
        report = self._report()
        if not report.is_open:  # it was resumed for the sake of one call
            self.outcome = report.operation.outcome or "interrupted"
            return
        await self._write(self._closing(report, {"outcome": outcome, "error": error}))

    # ---- for the parts of this package

    def next_call_no(self) -> int:
        """The ordinal of the next logical call (design, T1)."""
        self._call_no += 1
        return self._call_no - 1

    async def accept(self, message: Json) -> None:
        """Begin: the user's message and the operation in one frame."""
        link = self.link
        if message is not None:
            content, entry, trigger = content_of(message), link.ambient.ids(), "user"
        else:
            row = next(iter(pending(link.view())), None)
            if row is None:
                raise UsageError(f"session {link.id!r}: nothing is queued; give the turn a message")
            content, entry, trigger = queued(link.view(), row), row.entry, "queue"
        parts, start_leaf = await link.blobs(content), link.leaf
        said = {"parent": start_leaf, "role": "user", "content": parts}
        accepted = {
            "operation": self.operation,
            "kind": "prompt",
            "input_entry": entry,
            "start_leaf": start_leaf,
            "trigger": trigger,
        }
        events = [
            link.event("message", said, entry),
            link.event("operation_accepted", accepted),
        ]
        try:
            await link.write_now(events, leaf=entry, withdraw=True)
        except Fenced as error:
            if events[0] not in error.unsaved:  # it was lost before, so nobody has heard of this
                await asyncio.shield(link.behind(testify(link, events)))
            raise

    def adopt(self, operation: Operation) -> None:
        """Go on with what a former host left."""
        view = self.link.view()
        rows = view.dispatches_of(operation.operation)
        self._call_no = max((row.call_no or 0 for row in rows), default=-1) + 1
        self.is_aborting = operation.aborting

    def enter(self) -> None:
        """The body of the turn begins to run in the present task."""
        task = self._task = asyncio.current_task()
        self._cancelled_before = task.cancelling() if task is not None else 0
        if self._is_stopped:
            self._stop()

    def abort(self) -> None:
        """Stop the body; `TurnScope` then ends the turn as aborted."""
        if not self.is_aborting:
            self.is_aborting = True
            self._stop()

    def lose(self) -> None:
        """The session is lost: stop the body; `TurnScope` then raises Fenced."""
        self._stop()

    def look(self) -> None:
        """Somebody else has written: perhaps an abort request."""
        operation = self.link.view().operation(self.operation)
        if operation is not None and operation.aborting and operation.outcome is None:
            self.abort()

    async def leave(self, error: BaseException | None) -> bool:
        """The body has ended. Whether the turn itself has stopped it; its cancellation is then
        taken back. Raises CancelledError where somebody else has cancelled it as well, and the body
        did not see it."""
        task, self._task = self._task, None
        is_cancelled = isinstance(error, asyncio.CancelledError)
        if error is not None and not isinstance(error, (Exception, asyncio.CancelledError)):
            return False  # the process ends, and nothing may be waited for
        if self._is_cancelling and not is_cancelled:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # it may not have been delivered yet
        await self._stop_calls()
        if task is None or not self._is_cancelling:
            return False
        if task.uncancel() <= self._cancelled_before:
            return True
        if error is None:
            raise asyncio.CancelledError
        return False

    def inferred_outcome(self) -> str:
        """The outcome that the log shows already, else completed."""
        return self._report().verdict.outcome or "completed"

    def _stop(self) -> None:
        self._is_stopped = True
        if self._task is not None and not self._is_cancelling:
            self._is_cancelling = True
            self._task.cancel()
        for task in self._tasks:
            if task is not self._task:
                task.cancel()

    async def _stop_calls(self) -> None:
        """Stop calls that the body has left running in tasks of its own."""
        strays = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in strays:
            task.cancel()
        if strays:
            await asyncio.wait(strays, timeout=GRACE_S)

    def _report(self) -> Report:
        view = self.link.view()
        operation = view.operation(self.operation)
        assert operation is not None, "it was accepted by this host, or found by it"
        return report_on(view, operation._replace(parked=None), "host")

    def _closing(self, report: Report, finish: dict[str, Json]) -> list[Instruction]:
        step = {"do": "finish", "operation": self.operation, **finish}
        return closing(report.operation, report.evidence, step)

    async def _write(self, steps: Sequence[Instruction]) -> None:
        """Write answers, settlements, the finish, or that it is parked."""
        ends = next((step for step in steps if step["do"] in ("finish", "park")), None)
        if ends is not None:  # from here on nothing of it may start
            self.outcome, self.parked = ends.get("outcome"), ends.get("reason")
            self.link.ambient.reach(places.FINISH_READY)
        try:
            await resuming.write_steps(self.link, steps)
        except (Fenced, SchemaError):  # it was not written, and does not wait to be
            self.outcome = self.parked = None
            raise

    def _jobs(self, steps: Sequence[Instruction]) -> list[tuple[ModelCall, Work]]:
        view = self.link.view()
        jobs: list[tuple[ModelCall, Work]] = []
        for step in steps:
            if step["do"] == "permit_and_run" or (step["do"] == "leave" and "call_index" in step):
                index: int = step["call_index"]
                made = calls_of(view, step["assistant_entry"])[index]
                jobs.append((made, partial(calls.run_call, self, made)))
            elif step["do"] in RUNS:
                row: Dispatch = view.reader.get(("dispatches", view.session, step["dispatch"]))
                args = args_of(view, row)
                call = ModelCall(
                    row.assistant_entry, row.call_index, row.call_id or "", row.tool or "", args
                )
                jobs.append((call, partial(RUNS[step["do"]], self, row, args)))
        return jobs

    async def _all(self, jobs: Sequence[tuple[ModelCall, Work]]) -> list[Result]:
        """Run jobs at once, but those with one call id in turn: a result that was not dispatched
        answers the first unanswered call with its id (rule 5)."""
        self.check_open()
        if len(jobs) == 1:
            return [await self._one(*jobs[0], None)]
        before: dict[tuple[str, str], asyncio.Task[Result]] = {}
        tasks: list[asyncio.Task[Result]] = []
        for call, work in jobs:
            key = (call.entry, call.call_id)
            self._running.add((call.entry, call.index))
            task = asyncio.create_task(self._one(call, work, before.get(key)))
            task.add_done_callback(partial(self._ended, (call.entry, call.index)))
            before[key] = task
            tasks.append(task)
        if not tasks:
            return []
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        failed = [task for task in tasks if task.cancelled() or task.exception() is not None]
        return [task.result() for task in failed or tasks]

    async def _one(
        self,
        call: ModelCall,
        work: Work,
        before: asyncio.Task[Result] | None,
    ) -> Result:
        key, task = (call.entry, call.index), asyncio.current_task()
        assert task is not None
        self._running.add(key)
        self._made.add(key)
        self._tasks[task] = None
        try:
            if before is not None:
                await asyncio.wait([before])
            async with self._slots:
                return await work()
        finally:
            self._running.discard(key)
            self._tasks.pop(task, None)

    def _ended(self, key: tuple[str, int], task: asyncio.Task[Result]) -> None:
        """A call's task has ended, perhaps before its first step."""
        del task
        self._running.discard(key)

    def _find(self, call: ModelCall | dict[str, Json]) -> ModelCall:
        known = [] if self.said is None else self.said.calls
        for one in known:
            if (one.entry, one.index) in self._made:
                continue
            if one is call or one == call or (isinstance(call, dict) and _is_part(one, call)):
                self._made.add((one.entry, one.index))
                return one
        name = call.get("name") if isinstance(call, dict) else call.tool
        raise UsageError(
            f"session {self.link.id!r}: the model's last answer makes no call of {name!r} like"
            " this, or it was made already; call what attempt.finish gave, once each"
        )

    def check_open(self) -> None:
        """Raise Fenced where the session is lost, and UsageError where the turn has ended."""
        self.link.check()
        if self.has_ended:
            ended = self.outcome or f"parked: {self.parked}"
            raise UsageError(f"session {self.link.id!r}: this turn has ended ({ended})")


def _is_part(call: ModelCall, part: Mapping[str, Json]) -> bool:
    given: tuple[Json, ...] = (part.get("call_id"), part.get("name"), part.get("args") or {})
    return given == (call.call_id, call.tool, call.args)
