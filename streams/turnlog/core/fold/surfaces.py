"""Surfaces: the ordered entries that the model sees, in pages of PAGE entry numbers.

An append rewrites one page. A compaction rewrites the pages from its first replaced node on, and
a navigation all of them. A node's *place* grows along the surface, so a node is found by halving.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import cast

from turnlog.core.fold.draft import Draft
from turnlog.core.rows import Entry, Surface

PAGE = 128


def append_node(draft: Draft, number: int) -> None:
    """Put an entry at the end of the surface."""
    page = draft.page
    if page is None:
        page = draft.page = list(read_page(draft, draft.pages - 1)) if draft.pages else []
        draft.pages = max(draft.pages, 1)
    if len(page) >= PAGE:
        write_page(draft)
        page = draft.page = []
        draft.pages += 1
    page.append(number)
    draft.nodes += 1


def write_page(draft: Draft) -> None:
    """Make the last page a row."""
    _put(draft, draft.pages - 1, draft.page or ())


def read_page(draft: Draft, page: int) -> Sequence[int]:
    """The entry numbers of one page."""
    if draft.page is not None and page == draft.pages - 1:
        return draft.page
    row: Surface = draft.get(("surfaces", draft.session, page))
    return row.nodes


def set_surface(draft: Draft, nodes: Sequence[int]) -> None:
    """Another surface in the place of the present one."""
    draft.nodes = len(nodes)
    _write_from(draft, 0, nodes)


def replace_span(draft: Draft, first: int, last: int, number: int) -> None:
    """Put one entry in the place of the nodes first..last, which are on the surface."""
    start, end = (cast("tuple[int, int]", locate(draft, node)) for node in (first, last))
    nodes: list[int] = []
    for page in range(start[0], draft.pages):
        nodes.extend(read_page(draft, page))
    offset = (end[0] - start[0]) * PAGE + end[1] + 1
    nodes[start[1] : offset] = [number]
    draft.nodes -= offset - start[1] - 1
    _write_from(draft, start[0], nodes)


def span(draft: Draft, first: int, last: int) -> list[int] | None:
    """The nodes first..last in order, or None where they are not on the surface in this order."""
    start, end = locate(draft, first), locate(draft, last)
    if start is None or end is None or start > end:
        return None
    nodes: list[int] = []
    for page in range(start[0], end[0] + 1):
        nodes.extend(read_page(draft, page))
    return nodes[start[1] : (end[0] - start[0]) * PAGE + end[1] + 1]


def locate(draft: Draft, number: int) -> tuple[int, int] | None:
    """The page and index of a node, or None where it is not on the surface."""
    place = _place(draft, number)
    low, high = 0, draft.pages
    while low < high:
        middle = (low + high) // 2
        if _place(draft, read_page(draft, middle)[0]) <= place:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return None
    page = read_page(draft, low - 1)
    index = bisect_left(page, place, key=lambda node: _place(draft, node))
    if index < len(page) and page[index] == number:
        return low - 1, index
    return None


def path_to(entry: Callable[[int], Entry], number: int) -> list[Entry]:
    """The entries from the root to one, in order. Parents are always older, so this ends."""
    rows: list[Entry] = []
    while number:
        row = entry(number)
        rows.append(row)
        number = row.parent
    rows.reverse()
    return rows


def surface_at(entry: Callable[[int], Entry], number: int, *, fork: bool) -> list[int]:
    """The surface at any entry, from its path alone. A fork's begins with node 0."""
    nodes, places = ([0], [0]) if fork else ([], [])
    for row in path_to(entry, number):
        if row.replaces is not None:
            first, last = row.replaces
            start = bisect_left(places, entry(first).place if first else 0)
            end = bisect_left(places, entry(last).place if last else 0)
            nodes[start : end + 1] = [row.number]
            places[start : end + 1] = [row.place]
        elif row.node:
            nodes.append(row.number)
            places.append(row.place)
    return nodes


def _place(draft: Draft, number: int) -> int:
    return draft.entry(number).place if number else 0


def _put(draft: Draft, page: int, nodes: Sequence[int]) -> None:
    draft.put("surfaces", Surface(draft.session, page, tuple(nodes), draft.position), page)


def _write_from(draft: Draft, page: int, nodes: Sequence[int]) -> None:
    """Write nodes as the pages from one on, and take away what is left behind them."""
    draft.generation += 1
    draft.page = None
    before = draft.pages
    draft.pages = page
    for start in range(0, len(nodes), PAGE):
        _put(draft, draft.pages, nodes[start : start + PAGE])
        draft.pages += 1
    for stale in range(draft.pages, before):
        draft.changes[("surfaces", draft.session, stale)] = None
