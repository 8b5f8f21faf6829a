"""`turnlog show`: one session, for a person or as data."""

from __future__ import annotations

from typing import Any

from turnlog.cli.briefs import STYLES, words
from turnlog.cli.opening import reading
from turnlog.cli.plain import brief, counted, cut, lines, money, one_line, tokens, when
from turnlog.cli.sessions import title
from turnlog.cli.terminal import Terminal
from turnlog.cli.tree import draw
from turnlog.core.context import Node
from turnlog.core.shapes import is_list
from turnlog.query.sessions import find_session
from turnlog.query.show import (
    about,
    damage,
    dispatch,
    entry_id,
    find_entry,
    operations,
    show_session,
)
from turnlog.tables.view import SessionView

Json = Any
TEXT_LENGTH = 600
"""Code points of each message that `--surface` shows, unless -v asks for all."""
LINES_SHOWN = 5
"""Of open calls and of damage, in the overview."""


def print_session(
    terminal: Terminal,
    session: str,
    *,
    at: str | None,
    parts: frozenset[str],
) -> None:
    """Show a session: the parts that are asked for, else an overview with the tree."""
    with reading(terminal) as view:
        one = SessionView(view, find_session(view, session))
        entry = find_entry(one, at) if at is not None else None
        if terminal.common.json:
            terminal.document(show_session(one, entry))
            return
        if not parts:
            overview(terminal, one)
            terminal.print()
            draw(terminal, one, unfold=terminal.common.verbose)
            if entry is not None:
                parts = frozenset(["surface", "state"])
        for part, printer in PRINTERS.items():
            if part in parts:
                printer(terminal, one, entry)


def overview(terminal: Terminal, view: SessionView) -> None:
    """What a session is, in a few lines."""
    shown = about(view)
    terminal.fit(
        (brief(shown["session"], 512), "bold cyan"),
        "  ",
        (title(view), "bold"),
    )
    owner = "released" if shown["released"] else f"held by {brief(shown['owner'] or '–', 40)}"
    status_style = "dim" if shown["status"] == "idle" else "yellow"
    terminal.fit(
        ("  status   ", "dim"),
        (shown["status"], status_style),
        f", epoch {shown['epoch']} ({owner})",
    )
    _origin(terminal, shown)
    branches = sum(1 for _ in view.reader.scan("branches", view.session))
    terminal.fit(
        ("  size     ", "dim"),
        f"{counted(shown['counts']['entries'], 'entry', 'entries')}, {shown['depth']:,} on the"
        f" path, {counted(branches, 'branch', 'branches')}",
    )
    terminal.fit(
        ("  time     ", "dim"), f"{when(shown['first_time'])} to {when(shown['last_time'])}"
    )
    terminal.fit(("  usage    ", "dim"), usage_line(shown["usage"]))
    if shown["usage"]["fenced"]["attempts"]:
        terminal.fit(("  fenced   ", "dim"), usage_line(shown["usage"]["fenced"]))
    _open_work(terminal, view)
    for row in shown["pending_inputs"][:LINES_SHOWN]:
        terminal.fit(("  input    ", "dim"), f"waits: {brief(row['text'], 200)}")
    _damage(terminal, damage(view))


def _origin(terminal: Terminal, shown: Json) -> None:
    where = [brief(shown[name], 200) for name in ("agent", "cwd") if shown[name]]
    if where:
        terminal.fit(("  where    ", "dim"), " in ".join(where))
    if shown["parent_session"] is not None:
        what = "sub-agent of" if shown["spawned_by"] is not None else "fork of"
        terminal.fit(("  parent   ", "dim"), f"{what} {brief(shown['parent_session'], 512)}")


def usage_line(usage: Json) -> str:
    """Tokens and cost in a line."""
    cached = usage["cache_read"] + usage["cache_write"]
    return (
        f"{tokens(usage['input'])} in, {tokens(usage['output'])} out, {tokens(cached)} cached,"
        f" {money(usage['cost_usd'])} in {counted(usage['attempts'], 'request')}"
    )


def _open_work(terminal: Terminal, view: SessionView) -> None:
    """Open operations, and the calls whose outcome nobody knows."""
    opened = [view.operation(id_) for id_ in view.head.open_operations]
    for row in operations(view, [row for row in opened if row is not None]):
        terminal.fit(
            ("  open     ", "dim"),
            (f"{row['kind'] or 'operation'} {brief(row['operation'], 60)}", "yellow"),
            f": {row['verdict']}",
        )
    calls = [row for row in view.rows("dispatches") if row.status in ("open", "unknown")]
    for row in calls[:LINES_SHOWN]:
        what = f"{brief(row.tool or 'a tool', 40)} ({row.effect}) {row.status}"
        terminal.fit(("  call     ", "dim"), (what, "yellow"), f" {brief(row.dispatch, 60)}")
    if len(calls) > LINES_SHOWN:
        more = len(calls) - LINES_SHOWN
        terminal.fit(("  call     ", "dim"), f"and {more} more; see --operations")


def _damage(terminal: Terminal, rows: list[Json]) -> None:
    for row in rows[:LINES_SHOWN]:
        terminal.fit(
            ("  damage   ", "dim"),
            (f"{row['kind']} ", "bold red"),
            f"at {row['position']}: {brief(row['detail'], 200)}",
        )
    if len(rows) > LINES_SHOWN:
        more = len(rows) - LINES_SHOWN
        terminal.fit(("  damage   ", "dim"), f"and {more} more; see turnlog fsck")


def print_surface(terminal: Terminal, view: SessionView, at: str | None) -> None:
    """What the model sees, node by node."""
    nodes = view.nodes(_number(view, at))
    _title(terminal, f"Surface {_place(view, at)}", counted(len(nodes), "node"))
    for node in nodes:
        print_node(terminal, node, None if terminal.common.verbose else TEXT_LENGTH)


def print_node(terminal: Terminal, node: Node, length: int | None) -> None:
    """One node: a heading, and its text indented."""
    entry = node.entry
    kind = "" if entry.kind == "message" else f" {entry.kind}"
    terminal.fit(
        (f"{entry.role or entry.kind}{kind}", STYLES.get(entry.role or "", "")),
        (f"  {brief(entry.id, 512)}", "dim"),
    )
    for line in node_lines(node, length):
        terminal.print(f"  {line}".rstrip())


def node_lines(node: Node, length: int | None) -> list[str]:
    """A node's text as lines, and its calls."""
    content = node.data.get("content")
    if not is_list(content):
        return [words(node.entry, node.data, length or TEXT_LENGTH)]
    said: list[str] = []
    for part in content:
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str):
            said.extend(lines(cut(text, length or len(text))).rstrip("\n").split("\n"))
        else:
            one = Node(node.entry._replace(kind="message"), {"content": [part]})
            said.append(words(one.entry, one.data, length or TEXT_LENGTH))
    return said


def print_state(terminal: Terminal, view: SessionView, at: str | None) -> None:
    """The app state, as JSON that people can read."""
    import orjson

    state = view.state(_number(view, at))
    _title(terminal, f"State {_place(view, at)}", "")
    terminal.print(lines(orjson.dumps(state, option=orjson.OPT_INDENT_2).decode()))


def print_operations(terminal: Terminal, view: SessionView, _at: str | None) -> None:
    """Operations with their verdicts, and dispatches with their answers."""
    rows = operations(view, view.rows("operations"))
    _title(terminal, "Operations", counted(len(rows), "operation"))
    for row in rows:
        outcome = row["outcome"] or ("superseded" if row["superseded"] else "open")
        corrupt = f"  corrupted: {', '.join(row['corruption'])}" if row["corruption"] else ""
        terminal.fit(
            f"{row['kind'] or '?':<11}",
            (f"{outcome:<12}", "dim" if row["outcome"] else "yellow"),
            f"{row['verdict']:<21}",
            (brief(row["operation"], 512), "dim"),
            (corrupt, "bold red"),
        )
    calls = [dispatch(row) for row in view.rows("dispatches")]
    if calls:
        _title(terminal, "Dispatches", counted(len(calls), "dispatch", "dispatches"))
    for row in calls:
        evidence = (
            counted(len(row["evidence"]), "piece") + " of evidence" if row["evidence"] else ""
        )
        by = f"by {row['settled_by']}" if row["settled_by"] else ""
        tries = f"{row['tries']} tries" if row["tries"] > 1 else ""
        terminal.fit(
            (f"{row['status']:<12}", "yellow" if row["status"] in ("open", "unknown") else "dim"),
            f"{brief(row['tool'] or '?', 20):<20} {row['effect']:<12}",
            " ".join(part for part in (by, tries, evidence) if part),
            (f"  {brief(row['dispatch'], 512)}", "dim"),
        )


def _title(terminal: Terminal, text: str, beside: str) -> None:
    terminal.print()
    terminal.print((one_line(text), "bold"), (f"  {beside}" if beside else "", "dim"))


def _number(view: SessionView, at: str | None) -> int | None:
    return None if at is None else view.number(at)


def _place(view: SessionView, at: str | None) -> str:
    if at is not None:
        return f"at {one_line(at)}"
    leaf = entry_id(view, view.head.leaf)
    return "at the root" if leaf is None else f"at the leaf {one_line(leaf)}"


PRINTERS = {"surface": print_surface, "state": print_state, "operations": print_operations}
"""The parts that can be asked for, in the order in which they are printed."""
