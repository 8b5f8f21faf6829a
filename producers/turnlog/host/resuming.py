"""What a host finds open in a session: go on with it, or end it."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.core.errors import UsageError
from turnlog.core.recovery import CORRUPTED, Instruction, closing
from turnlog.core.rows import Operation
from turnlog.host.errors import OperationOpen
from turnlog.host.link import Link
from turnlog.owner.closing import closers, in_frames
from turnlog.tables.evidence import Report, reports_of


def under_way(link: Link) -> list[str]:
    """The compactions of this claim that are open. Whatever way one goes it ends, so it is running,
    and ends by itself; one under another claim is what a former host left."""
    view = link.view()
    rows = (view.operation(id_) for id_ in view.head.open_operations)
    return [
        row.operation
        for row in rows
        if row is not None and row.kind == "compaction" and row.claim == link.owner.claim_id
    ]


def check_free(link: Link) -> None:
    """Raise OperationOpen where an operation is open, but for a compaction that is under way: the
    conversation may go on beside it."""
    running = under_way(link)
    open_ = [id_ for id_ in link.view().head.open_operations if id_ not in running]
    if open_ or link.turn is not None:
        raise OperationOpen(
            f"session {link.id!r}: operation {next(iter(open_), 'a turn')!r} is open; go on with it"
            " by session.resume(), or end it by session.close_open()"
        )


async def left_open(link: Link, *, parked: bool) -> Operation:
    """The prompt that a host goes on with; whatever else is open, and not under way, is closed.

    Raises UsageError where there is none, where it is parked, nobody has said what it waits for and
    `parked` is not given, and where its log is damaged, so that nothing of it may run: it is parked
    then.
    """
    reports = reports_of(link.view(), "host")
    prompts = [item for item in reports if item.operation.kind == "prompt"]
    open_ = (item for item in prompts if item.is_open)
    prompt = next(open_, next((item for item in prompts if item.evidence.reruns), None))
    running = under_way(link)
    others = [item for item in reports if item is not prompt]
    await close(link, [item for item in others if item.operation.operation not in running])
    if prompt is None:
        raise UsageError(f"session {link.id!r}: no turn is open; begin one by session.turn()")
    operation = prompt.operation
    if prompt.verdict.name == CORRUPTED:
        await write_steps(link, prompt.instructions)
        raise UsageError(
            f"session {link.id!r}: nothing of operation {operation.operation!r} may run"
            f" ({prompt.verdict.why}); end it by session.close_open()"
        )
    if operation.parked is not None and not parked and not prompt.evidence.answered:
        raise UsageError(
            f"session {link.id!r}: operation {operation.operation!r} waits for a person"
            f" ({operation.parked}); resume(parked=True) goes on with it all the same"
        )
    return operation


async def end_brackets(link: Link) -> None:
    """End the compactions and navigations that former hosts left open: there is nothing in them to
    go on with, so they hold nothing up."""
    kinds, claim = ("compaction", "navigation"), link.owner.claim_id
    found = [item for item in reports_of(link.view(), "host") if item.is_open]
    await close(
        link,
        [item for item in found if item.operation.kind in kinds and item.operation.claim != claim],
    )


async def close(link: Link, reports: Sequence[Report]) -> None:
    """End some operations: every call gets an answer, all in one frame."""
    steps: list[Instruction] = []
    for report in reports:
        outcome = report.verdict.outcome or "interrupted"
        finish = {"do": "finish", "operation": report.operation.operation, "outcome": outcome}
        steps += closing(report.operation, report.evidence, {**finish, "inferred": True})
    if steps:
        await write_steps(link, steps)


async def write_steps(link: Link, steps: Sequence[Instruction]) -> None:
    """Carry out the instructions that only have to be written, in one frame if they fit in one."""
    made = closers(link.view(), steps, by="host", ambient=link.ambient)
    if not made.events:
        return
    for events in in_frames(made.events):
        await link.write_now(events, leaf=made.leaf)
    link.look_up_leaf()
