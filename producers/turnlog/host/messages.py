"""Reading back what messages and records say: calls, their arguments, queued inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnlog.core.blobs import is_reference, resolve_value
from turnlog.core.rows import Dispatch, Input
from turnlog.core.shapes import is_list
from turnlog.host.calls import ModelCall
from turnlog.host.content import Content, fitting
from turnlog.tables.view import SessionView

Json = Any
Fetch = Callable[[str], bytes | None]


def calls_in(
    entry: str, parts: Sequence[dict[str, Json]], fetch: Fetch | None = None
) -> list[ModelCall]:
    """The tool calls of an assistant message, in order; arguments in blobs are fetched."""
    calls = [part for part in parts if part.get("type") == "tool_call"]
    return [
        ModelCall(entry, index, part["call_id"], part["name"], _args(part.get("args"), fetch))
        for index, part in enumerate(calls)
    ]


def calls_of(view: SessionView, entry: str) -> list[ModelCall]:
    """The calls of an assistant entry that is in the log, or waits for it."""
    content = view.data(view.entry(view.number(entry)))["content"]
    return calls_in(entry, content if is_list(content) else [], view.blob)


def args_of(view: SessionView, row: Dispatch) -> Json:
    """The arguments that a dispatch ran with: those of its T1, else those of its call."""
    last = row.tries[-1]
    data = view.event_data(last["position"], last["index"])
    if data.get("args") is not None:
        return _args(data["args"], view.blob)
    calls = calls_of(view, row.assistant_entry)
    return calls[row.call_index].args if row.call_index < len(calls) else None


def queued(view: SessionView, row: Input) -> Content:
    """The content of a queued input. A guest may have queued more than fits beside its turn."""
    frame = view.frame(row.queued)
    content = next(
        event.data["content"]
        for event in frame.events
        if event.type == "input_queued" and event.data["input"] == row.input
    )
    return fitting(content) if is_list(content) else Content(content, [])


def pending(view: SessionView, delivery: str | None = None) -> list[Input]:
    """The inputs that are queued and not placed, in the order in which they came."""
    rows: list[Input] = [
        view.reader.get(("inputs", view.session, id_)) for id_ in view.head.pending_inputs
    ]
    return [row for row in rows if delivery in (None, row.delivery or "follow_up")]


def _args(args: Json, fetch: Fetch | None) -> Json:
    if args is None:
        return {}
    if fetch is not None and is_reference(args):
        return resolve_value(args, fetch)
    return args
