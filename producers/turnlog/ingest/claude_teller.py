"""The events of one session of a Claude Code file, told row by row along the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turnlog.core.shapes import is_object
from turnlog.ingest.claude_lines import (
    INTERRUPTED,
    bare,
    content_of,
    details_of,
    extra_of,
    first_text,
    parent_of,
    results_of,
    stop_of,
    usage_of,
    usage_since,
)
from turnlog.ingest.outline import Kind
from turnlog.ingest.plan import ROOT, Plan
from turnlog.ingest.teller import Teller
from turnlog.ingest.thread import STANDS, USER, Call, Data, derived
from turnlog.ingest.told import Sheet
from turnlog.ingest.turns import Answer
from turnlog.ingest.values import count_at, id_at, list_at, object_at, text_at

Json = Any
_TITLES = {
    "custom-title": ("customTitle", 2),
    "ai-title": ("aiTitle", 1),
    "summary": ("summary", 0),
}
_CHANGING = {"cwd": "cwd", "gitBranch": "git_branch", "version": "version"}


class ClaudeTeller(Teller):
    """See the module's text. `own` is the session id of the file's own lines: usage of lines that
    were copied from another session is counted there. None: no line is known to be a copy."""

    def __init__(self, plan: Plan, sheet: Sheet, *, first: Data, own: str | None) -> None:
        super().__init__(plan, sheet)
        self._own = own
        self._rank = -1
        self._boundary: Data = {}
        self._known = dict(first)

    def id_at(self, row: int, line: Data) -> str:
        return id_at(line, "uuid") or f"line-{self.outline.numbers[row]}"

    def calls_of(self, row: int) -> Sequence[Call]:
        calls: list[Call] = []
        for part in self.plan.parts(row):
            calls.extend(content_of(self.sheet.line(part))[1])
        return calls

    def in_order(self, rows: Sequence[int]) -> Iterator[int]:
        """Rows as planned, but results that an earlier part of a message waits for come before
        a later part that an import did not see then."""
        kinds = self.outline.kinds
        early: set[int] = set()
        for index, row in enumerate(rows):
            if row in early:
                continue
            if row in self.plan.continues and self.thread.open:
                for later in rows[index + 1 :]:
                    if kinds[later] & (Kind.MESSAGE & ~Kind.RESULT) or not self.thread.open:
                        break
                    if kinds[later] & Kind.RESULT and self._answers_open(later):
                        early.add(later)
                        yield later
            yield row

    def tell_entry(self, row: int, id_: str, line: Data) -> None:
        kind = self.outline.kinds[row]
        lost = parent_of(line) if row in self.plan.dangling else None
        if kind & Kind.ASSISTANT:
            self._tell_answer(row, id_, lost)
        elif kind & Kind.RESULT:
            self._tell_results(row, id_, line, lost)
        elif kind & Kind.SUMMARY:
            self._tell_summary(row, id_, line)
        elif kind & Kind.OTHER:
            self._tell_other(row, id_, line, lost)
        else:
            self._tell_user(row, id_, line, lost)

    # ---- the kinds of lines ------------------------------------------------------------------

    def _tell_user(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        kind = self.outline.kinds[row]
        time = text_at(line, "timestamp")
        content, _ = content_of(line)
        data = {"content": self.marked(row, content), **self._source(row, line)}
        if kind & Kind.PROMPT:
            self.turns.prompt(id_, time, data, row=row, lost_parent=lost)
            return
        if kind & Kind.COMMAND:
            self.turns.end(passed=True)
            self.thread.answer_open(id_, time)
        self.thread.add(
            "message", id_, time, {"role": "user", **data}, row=row, role=USER, lost_parent=lost
        )
        self.turns.touch(time)
        if first_text(line).lstrip().startswith(INTERRUPTED):
            self.turns.end(passed=True, outcome="aborted")

    def _tell_answer(self, row: int, id_: str, lost: str | None) -> None:
        rows = self.plan.parts(row)
        content: list[Data] = []
        calls: list[Call] = []
        stop: str | None = None
        usage: Data | None = None
        time: str | None = None
        first = self.sheet.line(row)
        for part in rows:
            line = first if part == row else self.sheet.line(part)
            parts, more = content_of(line)
            content.extend(self.marked(part, parts))
            calls.extend(more)
            stop = stop_of(line) or stop
            usage = usage_of(line) or usage
            time = text_at(line, "timestamp") or time
        if self._is_copy(first):
            usage = None
        elif usage is not None and row in self.plan.continues:
            usage = usage_since(self._usage_before(self.plan.continues[row]), usage)
        answer = Answer(
            id_,
            time,
            content,
            calls,
            stop,
            text_at(object_at(first, "message"), "model"),
            usage,
            row,
            self._source(row, first),
            lost,
        )
        self.turns.answer(answer)

    def _usage_before(self, row: int) -> Data | None:
        usage: Data | None = None
        for part in self.plan.parts(row):
            usage = usage_of(self.sheet.line(part)) or usage
        return usage

    def _tell_results(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        time = text_at(line, "timestamp")
        results = results_of(line)
        source = self._source(row, line)
        details = details_of(line, results)
        if details is not None:
            source["details"] = details
        for index, result in enumerate(results):
            data = {
                "role": "tool",
                "content": self.marked(row, result.content),
                "call_id": result.call_id,
                "dispatch": None,
                "status": result.status,
                "settled_by": "host",
            }
            if index == 0:
                data |= source
            name = id_ if index == 0 else derived("result", id_, index)
            self.thread.add_result(
                name, time, data, row=0 if index else row, lost_parent=None if index else lost
            )
            self.thread.close()
        self.turns.touch(time)
        content, _ = content_of(line)
        if content:
            data = {"role": "user", "content": self.marked(row, content)}
            self.thread.add("message", derived("text", id_), time, data, role=USER)
        if first_text(line).lstrip().startswith(INTERRUPTED):
            self.turns.end(passed=True, outcome="aborted")

    def _tell_summary(self, row: int, id_: str, line: Data) -> None:
        time = text_at(line, "timestamp")
        self.thread.answer_open(id_, time)
        content, _ = content_of(line)
        meta, self._boundary = self._boundary, {}
        span = self.thread.span_before(self._first_kept(meta))
        data: Data = {"content": self.marked(row, content), **self._source(row, line)}
        if span is None or id_ in self.thread.lost:
            # nothing came before what is kept: the model saw the summary, and it replaced nothing
            value = {"kind": "claude-code:compact_summary", "value": data, "in_context": True}
            self.thread.add("custom", id_, time, value, row=row, role=STANDS)
        else:
            data["tokens_before"] = count_at(meta, "preTokens")
            self.thread.add_summary(id_, time, data, span, row=row)

    def _first_kept(self, meta: Data) -> int | None:
        """The entry from which on a compaction kept the messages, or None."""
        names = [id_at(object_at(meta, "preservedSegment"), "headUuid")]
        names += [
            name if isinstance(name, str) else None
            for name in list_at(object_at(meta, "preservedMessages"), "uuids")
        ]
        for name in names:
            row = self.known_row(name)
            number = self.numbers[self.plan.resolve(row)] if row else 0
            if number and self.thread.is_on_path(number):
                return number
        return None

    def _tell_other(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        if line.get("type") == "system" and line.get("subtype") == "compact_boundary":
            self._boundary = object_at(line, "compactMetadata")
        data = {
            "kind": f"claude-code:{_name(line)}",
            "value": bare(line),
            "in_context": False,
            **self._source(row, line, only_changes=True),
        }
        self.thread.add("custom", id_, text_at(line, "timestamp"), data, row=row, lost_parent=lost)

    def tell_record(self, row: int, line: Data, time: str | None) -> None:
        if self.outline.kinds[row] & Kind.ALIAS:
            return  # it repeats a line that was told
        id_ = f"line-{self.outline.numbers[row]}"
        field, rank = _TITLES.get(_name(line), ("", -1))
        title = text_at(line, field)
        if title is not None and rank >= self._rank and self._is_about_this(line):
            self._rank = rank
            self.thread.record("fact", id_, time, {"name": "title", "value": title})
        else:
            value: Json = line["value"] if line.keys() == {"value"} else line
            self.thread.record(f"claude-code.{_name(line)}", id_, time, {"line": value})

    # ---- small things ------------------------------------------------------------------------

    def _answers_open(self, row: int) -> bool:
        results = results_of(self.sheet.line(row))
        return any(result.call_id in self.thread.open for result in results)

    def _is_about_this(self, line: Data) -> bool:
        """A summary names the leaf that it is about, which may lie in another file."""
        return line.get("type") != "summary" or bool(self.known_row(id_at(line, "leafUuid")))

    def _is_copy(self, line: Data) -> bool:
        if is_object(line.get("forkedFrom")):
            return True
        return self._own is not None and text_at(line, "sessionId") not in (None, self._own)

    def _source(self, row: int, line: Data, *, only_changes: bool = False) -> Data:
        """What a line says beside its message, as the field `source`; empty where it is nothing."""
        extra = {} if only_changes else extra_of(line)
        for name, ours in _CHANGING.items():
            value: Json = line.get(name)
            if value is not None and value != self._known.get(name):
                self._known[name] = extra[ours] = value
        parent = self.outline.parents[row]
        if parent and row not in self.plan.dangling:
            head = self.plan.resolve(parent)
            if head != ROOT and not self.thread.is_at(self.numbers[head]):
                extra["parent"] = parent_of(line)
        return {"source": extra} if extra else {}


def _name(line: Data) -> str:
    type_ = line.get("type")
    return type_[:100] if isinstance(type_, str) and type_ else "line"
