"""Compaction: a summary takes the place of a span of the surface, so that the model has room again.

The operation is in the log before the summary is asked for, and the summary comes with the end of
the operation in one frame. So a crash leaves a start that anybody can see, and never half a
surface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from turnlog.core.errors import EntryNotFound, LogError, TurnlogError, UsageError
from turnlog.core.frames import NewEvent
from turnlog.host import resuming
from turnlog.host.content import content_of
from turnlog.host.cuts import (
    Message,
    Meter,
    Span,
    characters,
    choose,
    newest_user,
    span_of,
    spots_of,
)
from turnlog.host.errors import CompactionFailed, OperationOpen, told
from turnlog.host.link import Link
from turnlog.host.provisional import Provisional
from turnlog.owner import places
from turnlog.tables.view import SessionView

Json = Any
Summary = str | tuple[str, dict[str, Json]]
"""The text, or the text and what it cost (`usage`)."""
Summarise = Callable[[list[Message]], Awaitable[Summary]]
"""Given messages, gives a shorter text that tells what matters of them."""
Trigger = Literal["pressure", "overflow", "manual"]
PRESSURE = 0.8
KEEP = 0.16
WORTH = 0.05
"""Under pressure a span below this share of the limit is left: it would soon be asked for again."""
WORDS = {"unbalanced": "a call in it has no answer in it, or an answer in it no call"}
"""Why the fold would not take a span (docs/RULES.md, reasons of void compactions)."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """How a host makes room. `limit` is how many tokens of messages its model takes.

    From `pressure` of the limit on a span is summarised; `keep` is the share of the limit that
    stays as it is at the end. Raises UsageError for shares that leave nothing to do.
    """

    summarise: Summarise
    limit: int | None
    meter: Meter = characters
    pressure: float = PRESSURE
    keep: float = KEEP

    def __post_init__(self) -> None:
        if (self.limit is not None and self.limit <= 0) or not 0 <= self.keep < self.pressure:
            raise UsageError(
                f"compaction with limit {self.limit}, pressure {self.pressure} and keep"
                f" {self.keep}: the limit is above 0, and keep is a smaller share than pressure"
            )


class _Job(NamedTuple):
    """A compaction under way: what was prepared before the summary was asked for."""

    operation: str
    entry: str
    span: Span
    prepared_at: str | None
    meter: Meter


async def compact_if_needed(link: Link, how: Compaction, reason: Trigger) -> str | None:
    """See `Session.compact_if_needed`."""
    link.check()
    least = 0.0
    if reason == "pressure":
        view = link.view()
        limit = how.limit or 0
        if sum(how.meter(message) for message in view.context()) < how.pressure * limit:
            return None
        if resuming.under_way(link):
            return None
        least = WORTH * limit
    return await compact_now(link, how, reason, least=least)


async def compact_now(
    link: Link, how: Compaction, trigger: Trigger, *, least: float = 0.0
) -> str | None:
    """Summarise what can be cut; None where that is nothing, or less than `least` tokens."""
    await make_way(link)
    span = choose(spots_of(link.view()), how.meter, keep=how.keep, limit=how.limit)
    if span is None or span.tokens < least:
        return None
    job = _prepare(link, span, how.meter)
    return await _replace(link, job, how, trigger) if _void_now(link, job) is None else None


async def compact(link: Link, first: str, last: str, how: Compaction) -> str:
    """See `Session.compact`."""
    await make_way(link)
    spots = spots_of(link.view())
    ids = [spot.id for spot in spots]
    for id_ in (first, last):
        if id_ not in ids:
            raise EntryNotFound(
                f"session {link.id!r}: {id_!r} is not on the surface; `entry` of the messages in"
                " session.context() is what can be compacted"
            )
    start, end = ids.index(first), ids.index(last)
    newest = newest_user(spots)
    if start > end:
        raise UsageError(f"session {link.id!r}: {first!r} stands behind {last!r}")
    if newest is not None and start <= newest <= end:
        raise UsageError(
            f"session {link.id!r}: {first!r} to {last!r} holds the newest message of a user"
            f" ({ids[newest]!r}), which is never summarised"
        )
    job = _prepare(link, span_of(spots[start : end + 1], how.meter), how.meter)
    void = _void_now(link, job)
    if void is not None:
        raise UsageError(
            f"session {link.id!r}: {first!r} to {last!r} cannot be summarised:"
            f" {WORDS.get(void, void)}"
        )
    return await _replace(link, job, how, "manual")


async def make_way(link: Link) -> None:
    """Raise OperationOpen where a compaction of this host is under way; end one that a former host
    left."""
    link.check()
    await resuming.end_brackets(link)
    if resuming.under_way(link):
        raise OperationOpen(
            f"session {link.id!r}: a compaction is under way; wait for it, one at a time"
        )


def leaf_of(view: SessionView) -> str | None:
    """The id of the leaf; None at the root, where a fork's surface has its parent's."""
    return view.entry(view.head.leaf).id if view.head.leaf else None


def _prepare(link: Link, span: Span, meter: Meter) -> _Job:
    view, ids = link.view(), link.ambient.ids
    return _Job(ids(), ids(), span, leaf_of(view), meter)


async def _replace(link: Link, job: _Job, how: Compaction, trigger: Trigger) -> str:
    """The operation from its start to its end. Gives the compaction's entry id."""
    accepted = {
        "operation": job.operation,
        "kind": "compaction",
        "trigger": trigger,
        "start_leaf": job.prepared_at,
    }
    try:
        await link.write_now([link.event("operation_accepted", accepted)])
        link.ambient.reach(places.COMPACTION_STARTED)
        text, usage = await _ask(link, how.summarise, job.span.messages)
        whole = [{"type": "text", "text": text}]  # as it is measured, however long it is
        after = how.meter({"role": "user", "content": whole, "entry": job.entry})
        content = await link.blobs(content_of(text))
        event = _second_look(link, job, content, after, usage)
        finished = {"operation": job.operation, "outcome": "completed"}
        await link.write_now([event, link.event("operation_finished", finished)], leaf=event.id)
    except asyncio.CancelledError:
        _end(link, job, "aborted")
        link.behind(_save(link))
        raise
    except Exception as error:
        _end(link, job, "failed", error)
        if not isinstance(error, LogError):  # then it waits for a flush, with what failed
            await _save(link)
        raise
    return event.id


async def _ask(
    link: Link, summarise: Summarise, messages: list[Message]
) -> tuple[str, dict[str, Json] | None]:
    """The summary and what it cost. Raises CompactionFailed for whatever goes wrong in it."""
    try:
        found = await summarise(messages)
    except TurnlogError:
        raise
    except Exception as error:
        what = ": ".join(told(error).values())
        raise CompactionFailed(f"session {link.id!r}: the summariser failed: {what}") from error
    text: Json = found
    usage: Json = None
    if isinstance(found, tuple):
        text, usage = cast("tuple[Json, Json]", found) if len(found) == 2 else (None, None)
    if not isinstance(text, str) or not text.strip():
        raise CompactionFailed(
            f"session {link.id!r}: the summariser gave {text!r:.60}; a text is asked for"
        )
    return text, usage


def _second_look(
    link: Link,
    job: _Job,
    content: list[dict[str, Json]],
    after: int,
    usage: dict[str, Json] | None,
) -> NewEvent:
    """The compaction entry, if it may be written as things are now: the summary took its time.

    Raises CompactionFailed. Nothing may be awaited between this and the write.
    """
    link.check()
    view = link.view()
    operation = view.operation(job.operation)
    if operation is not None and operation.aborting:
        raise CompactionFailed(f"session {link.id!r}: the compaction was asked to stop")
    if after >= job.span.tokens:
        raise CompactionFailed(
            f"session {link.id!r}: the summary does not shrink what it replaces ({after} tokens"
            f" for {job.span.tokens}); let the summariser tell less"
        )
    surface, numbers = view.surface(), job.span.numbers
    start = surface.index(numbers[0]) if numbers[0] in surface else 0
    extra: dict[str, Json] = {"tokens_before": job.span.tokens, "tokens_after": after}
    if usage is not None:
        extra["usage"] = usage
    event = _event(link, job, content, extra)
    if surface[start : start + len(numbers)] != numbers or _void(link, event) is not None:
        raise CompactionFailed(
            f"session {link.id!r}: what was to be summarised has changed meanwhile; compact again"
        )
    return event


def _event(
    link: Link, job: _Job, content: list[dict[str, Json]], extra: dict[str, Json]
) -> NewEvent:
    view, spots = link.view(), job.span.spots
    data = {
        "parent": leaf_of(view),
        "kind": "summary",
        "replaces": {"first": spots[0].id, "last": spots[-1].id},
        "content": content,
        "prepared_at": job.prepared_at,
        "operation": job.operation,
        **extra,
    }
    return link.event("compaction", data, job.entry)


def _void_now(link: Link, job: _Job) -> str | None:
    """Why the fold would not take a summary of this span, before one is asked for."""
    return _void(link, _event(link, job, [], {}))


def _void(link: Link, event: NewEvent) -> str | None:
    """Why the fold would not take a compaction now; None where it would. Raises Fenced where
    another claim is in force, so that it would not be asked."""
    if link.view().head.claim != link.owner.claim_id:
        link.lose(link.owner.loss())
    link.check()
    reader = Provisional(link.tables, link.id, [*link.batch.waiting, event])
    after = SessionView(reader, link.id)
    return after.entry(after.number(event.id)).void


def _end(link: Link, job: _Job, outcome: str, error: Exception | None = None) -> None:
    """End the operation where it is open, so that this claim can go on. The batch takes it at once:
    who called may be cancelled, and begin another compaction."""
    if link.is_lost or job.operation not in link.view().head.open_operations:
        return
    data: dict[str, Json] = {"operation": job.operation, "outcome": outcome}
    if error is not None:
        data["error"] = told(error)
    link.put([link.event("operation_finished", data)])


async def _save(link: Link) -> None:
    try:
        await link.write_now(())
    except TurnlogError as failure:
        link.fail(failure)
