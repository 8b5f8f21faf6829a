"""Where a surface may be cut: spans that a summary can replace, and how much they hold.

A span keeps every call together with its results (rule 4). What is never in one: a call without a
result on the surface, a result whose call is not there, the newest message of a user, and the
system messages that the surface begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from turnlog.core.context import Answer, Node, balanced
from turnlog.core.rows import Entry
from turnlog.core.shapes import is_list, is_object
from turnlog.tables.view import SessionView

Json = Any
Message = dict[str, Json]
Meter = Callable[[Message], int]
"""How many tokens a message takes."""
CHARACTERS_PER_TOKEN = 4
IMAGE_CHARACTERS = 6_000
"""An image costs by its size in pixels, not by that of its file: about 1,500 tokens."""


def characters(message: Message) -> int:
    """The default meter: a token for every 4 characters (code points), rounded up.

    Counts what the context shows: of a blob its preview, of a tool call its name and arguments.
    """
    content = message["content"]
    parts: list[Json] = content if is_list(content) else [content]
    count = sum(_characters(part) for part in parts)
    return -(-count // CHARACTERS_PER_TOKEN)


def _characters(part: Json) -> int:
    if is_object(part):
        kind, text = part.get("type"), part.get("text")
        if kind in ("text", "reasoning") and isinstance(text, str):
            return len(text)
        if kind == "tool_call":
            return len(part.get("name") or "") + len(orjson.dumps(part.get("args")).decode())
        if kind == "blob":
            return len(part.get("preview") or "")
        if kind == "image":
            return IMAGE_CHARACTERS
    return len(orjson.dumps(part).decode())


class Spot(NamedTuple):
    """One node of the surface. Number 0 is the surface of a fork's parent, with all its nodes; in
    `replaces` it goes by `id`, the entry that was forked at."""

    number: int
    id: str
    nodes: Sequence[Node]

    @property
    def row(self) -> Entry | None:
        """The node's entry; None for a parent's surface."""
        return self.nodes[0].entry if self.number else None


class Piece(NamedTuple):
    """Spots `start` to `end` (exclusive) of a surface that stay together."""

    start: int
    end: int
    tokens: int
    fixed: bool


class Span(NamedTuple):
    """What a summary is to replace: spots of a surface, and the tokens of its messages."""

    spots: Sequence[Spot]
    messages: list[Message]
    tokens: int

    @property
    def numbers(self) -> list[int]:
        """The surface nodes of the span."""
        return [spot.number for spot in self.spots]


def spots_of(view: SessionView) -> list[Spot]:
    """The surface at the leaf."""
    surface, nodes = view.surface(), view.nodes()
    own = len([number for number in surface if number])
    inherited, rest = nodes[: len(nodes) - own], nodes[len(nodes) - own :]
    spots = [Spot(node.entry.number, node.entry.id, [node]) for node in rest]
    if len(surface) > own:
        spots.insert(0, Spot(0, view.head.fork_at["entry"], inherited))
    return spots


def span_of(spots: Sequence[Spot], meter: Meter) -> Span:
    """A span of these spots."""
    messages = balanced([node for spot in spots for node in spot.nodes], _not_here)
    return Span(spots, messages, sum(meter(message) for message in messages))


def choose(spots: Sequence[Spot], meter: Meter, *, keep: float, limit: int | None) -> Span | None:
    """The span to summarise, or None where nothing can be cut.

    At the end as much is kept as fits in `keep` of the limit, or of what the surface holds where
    that is less, and the newest piece always. Of what can be cut before that, the most.
    """
    pieces = pieces_of(spots, meter)
    total = sum(piece.tokens for piece in pieces)
    kept = _kept(pieces, keep * min(total, limit or total))
    best: list[Piece] = []
    for fixed, group in groupby(pieces[:kept], key=lambda piece: piece.fixed):
        run = list(group)
        if not fixed and _tokens(run) > _tokens(best) and not _is_summary(spots, run):
            best = run
    return span_of(spots[best[0].start : best[-1].end], meter) if best else None


def newest_user(spots: Sequence[Spot]) -> int | None:
    """The place of the newest message of a user; None where there is none."""
    for index in range(len(spots) - 1, -1, -1):
        for node in spots[index].nodes:
            if node.entry.kind == "message" and node.entry.role == "user":
                return index
    return None


def pieces_of(spots: Sequence[Spot], meter: Meter) -> list[Piece]:
    """The surface as pieces between which it may be cut."""
    ends, fixed = _bound(spots)
    fixed |= set(range(_leading(spots)))
    newest = newest_user(spots)
    if newest is not None:
        fixed.add(newest)
    pieces: list[Piece] = []
    start = 0
    while start < len(spots):
        end = start
        last = ends[start]
        while end <= last:
            last = max(last, ends[end])
            end += 1
        tokens = span_of(spots[start:end], meter).tokens
        is_fixed = not fixed.isdisjoint(range(start, end))
        pieces.append(Piece(start, end, tokens, is_fixed))
        start = end
    return pieces


def _bound(spots: Sequence[Spot]) -> tuple[list[int], set[int]]:
    """For each place the last one that belongs with it, and the places that no span may hold."""
    place = {spot.number: index for index, spot in enumerate(spots)}
    ends = list(range(len(spots)))
    fixed: set[int] = set()
    answered: set[tuple[int, int]] = set()
    for index, spot in enumerate(spots):
        answers = spot.row.answers if spot.row is not None else None
        if answers is None:
            continue
        call = place.get(answers[0])
        if call is None:
            fixed.add(index)
        else:
            ends[call] = index
            answered.add(answers)
    for index, spot in enumerate(spots):
        calls = spot.row.calls if spot.row is not None else ()
        if any((spot.number, call) not in answered for call in range(len(calls))):
            fixed.add(index)
    return ends, fixed


def _leading(spots: Sequence[Spot]) -> int:
    """How many system messages the surface begins with."""
    for index, spot in enumerate(spots):
        if spot.row is None or spot.row.role != "system":
            return index
    return len(spots)


def _kept(pieces: Sequence[Piece], budget: float) -> int:
    """The first piece of the tail that is kept."""
    kept = len(pieces)
    while kept and (kept == len(pieces) or pieces[kept - 1].tokens <= budget):
        kept -= 1
        budget -= pieces[kept].tokens
    return kept


def _tokens(pieces: Sequence[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _is_summary(spots: Sequence[Spot], run: Sequence[Piece]) -> bool:
    """Whether nothing is there but a summary: another one of it would only lose."""
    row = spots[run[0].start].row
    is_one = run[-1].end - run[0].start == 1
    return is_one and row is not None and row.kind == "compaction"


def _not_here(entry: Entry, index: int) -> Answer:
    """A call without a result is in no span; where it is only measured, this will do."""
    del entry, index
    return Answer("unknown")
