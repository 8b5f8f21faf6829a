"""The events of a pi session, told row by row along the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnlog.core.shapes import is_list
from turnlog.ingest.outline import Kind
from turnlog.ingest.pi_lines import (
    BASE,
    CUSTOM_ROLES,
    bash_text,
    content_of,
    extra_of,
    model_of,
    stop_of,
    usage_of,
)
from turnlog.ingest.plan import ROOT, Plan
from turnlog.ingest.teller import Teller
from turnlog.ingest.thread import STANDS, USER, Call, Data
from turnlog.ingest.told import Sheet
from turnlog.ingest.turns import Answer
from turnlog.ingest.values import (
    count_at,
    id_at,
    object_at,
    opaque_part,
    text_at,
    text_part,
    without,
)

Json = Any

_STATE = {"provider": "provider", "modelId": "model", "thinkingLevel": "thinking_level"}
_CHANGES = ("model_change", "thinking_level_change")


class PiTeller(Teller):
    """See the module's text. `names` are the ids of lines that go by their ordinals. Lines older
    than `copied_before` were copied from the session that this one was forked from, and their
    usage is counted there."""

    def __init__(
        self,
        plan: Plan,
        sheet: Sheet,
        *,
        start: Data,
        linear: bool,
        names: Mapping[str, str],
        copied_before: str | None,
    ) -> None:
        super().__init__(plan, sheet)
        self._linear = linear
        self._names = names
        self._copied_before = copied_before
        self._summary: int | None = None
        self.thread.start_state(start)

    def id_at(self, row: int, line: Data) -> str:
        if self._linear:
            return f"line-{row - 1}"
        own = id_at(line, "id") or f"line-{self.outline.numbers[row]}"
        return self._names.get(own, own)

    def calls_of(self, row: int) -> Sequence[Call]:
        return content_of(object_at(self.sheet.line(row), "message").get("content"))[1]

    def moves_itself(self, row: int) -> bool:
        return self.sheet.line(row).get("type") == "branch_summary"

    def tell_entry(self, row: int, id_: str, line: Data) -> None:
        lost = None
        if row in self.plan.dangling:
            lost = id_at(line, "parentId")
        message = object_at(line, "message")
        kind = self.outline.kinds[row]
        if kind & Kind.PROMPT:
            self._tell_prompt(row, id_, line, lost)
        elif kind & Kind.ASSISTANT:
            self._tell_answer(row, id_, line, lost)
        elif kind & Kind.RESULT:
            self._tell_result(row, id_, line, lost)
        elif kind & Kind.SUMMARY:
            self._tell_compaction(row, id_, line)
        elif line.get("type") == "branch_summary":
            self._tell_branch(row, id_, line)
        elif line.get("type") in _CHANGES:
            state = state_of(self.thread.state(), line)
            self.thread.add_state(id_, text_at(line, "timestamp"), state, row=row)
        elif message.get("role") == "bashExecution" and not message.get("excludeFromContext"):
            self._tell_bash(row, id_, line, lost)
        else:
            self._tell_custom(row, id_, line, lost)

    def tell_record(self, row: int, line: Data, time: str | None) -> None:
        number = self.outline.numbers[row]
        type_ = line.get("type")
        if type_ == "session_info":
            name = text_at(line, "name")
            self.thread.record(
                "fact", f"line-{number}", time, {"name": "title", "value": name or None}
            )
        elif type_ == "label" and id_at(line, "targetId") is not None:
            target = self._entry_of(id_at(line, "targetId") or "")
            data = {"name": f"label:{target}", "value": text_at(line, "label") or None}
            self.thread.record("fact", f"line-{number}", time, data)
        elif type_ == "session" and number == self.outline.numbers[1]:
            rest = without(line, frozenset(("type", "id", "version", "cwd", *_STATE)))
            self.thread.record("pi.session", f"line-{number}", time, {"line": rest})
        else:
            name = type_[:100] if isinstance(type_, str) and type_ else "line"
            value: Json = line["value"] if line.keys() == {"value"} else line
            self.thread.record(f"pi.{name}", f"line-{number}", time, {"line": value})

    # ---- the kinds of lines ------------------------------------------------------------------

    def _tell_prompt(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        message = object_at(line, "message")
        content, _ = content_of(message.get("content"))
        data = {"content": self.marked(row, content), **_source(extra_of(line, message))}
        self.turns.prompt(id_, text_at(line, "timestamp"), data, row=row, lost_parent=lost)

    def _tell_answer(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        message = object_at(line, "message")
        content, calls = content_of(message.get("content"))
        time = text_at(line, "timestamp")
        usage = usage_of(message.get("usage"))
        if self._copied_before is not None and time is not None and time < self._copied_before:
            usage = None
        self.turns.answer(
            Answer(
                id_,
                time,
                self.marked(row, content),
                calls,
                stop_of(message),
                model_of(message),
                usage,
                row,
                _source(extra_of(line, message)),
                lost,
            )
        )

    def _tell_result(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        message = object_at(line, "message")
        content, _ = content_of(message.get("content"))
        extra = extra_of(line, message)
        for name in ("toolCallId", "toolName", "isError"):
            extra.pop(name, None)
        details = extra.pop("details", None)
        data: Data = {
            "role": "tool",
            "content": self.marked(row, content),
            "call_id": text_at(message, "toolCallId"),
            "tool": text_at(message, "toolName"),
            "dispatch": None,
            "status": "error" if message.get("isError") is True else "ok",
            "settled_by": "host",
            **_source(extra),
        }
        if details is not None:
            data["details"] = details
        time = text_at(line, "timestamp")
        self.thread.add_result(id_, time, data, row=row, lost_parent=lost)
        self.turns.touch(time)

    def _tell_compaction(self, row: int, id_: str, line: Data) -> None:
        """A summary of all before the first kept entry. Where nothing stands before it, the model
        saw the summary beside everything: a former one of that sort is superseded, the first is
        kept as a custom entry in context."""
        time = text_at(line, "timestamp")
        self.thread.answer_open(id_, time)
        parts = [text_part(text_at(line, "summary") or "")]
        tail: Json = line.get("retainedTail")
        if is_list(tail) and tail:
            parts.append(opaque_part({"retained_tail": tail}))
        content = self.marked(row, parts)
        known = ("summary", "firstKeptEntryId", "firstKeptEntryIndex", "tokensBefore", "usage")
        rest = without(line, BASE | {*known, "retainedTail"})
        kept = self._first_kept(line)
        span = self.thread.span_before(kept)
        if span is None and self._summary in self.thread.surface:
            place = self.thread.surface.index(self._summary or 0)
            span = (place, place)
        if span is not None and id_ not in self.thread.lost:
            data: Data = {
                "content": content,
                "tokens_before": count_at(line, "tokensBefore"),
                "usage": usage_of(line.get("usage")),
                **_source(rest),
            }
            self.thread.add_summary(id_, time, data, span, row=row)
            return
        value: Data = {"content": content, **rest}
        data = {"kind": "pi:compaction", "value": value, "in_context": True}
        self._summary = self.thread.add("custom", id_, time, data, row=row, role=STANDS)

    def _first_kept(self, line: Data) -> int | None:
        name = id_at(line, "firstKeptEntryId")
        index = count_at(line, "firstKeptEntryIndex")
        if name is None and index is not None:
            name = f"line-{index}"
        row = self.known_row(self._names.get(name or "", name))
        row = self.plan.resolve(row) if row else 0
        number = self.numbers[row] if row and row != ROOT else 0
        return number if number and self.thread.is_on_path(number) else None

    def _tell_branch(self, row: int, id_: str, line: Data) -> None:
        target = self.target(row)
        self.turns.end(passed=True)
        from_id = id_at(line, "fromId")
        data: Data = {"summary": text_at(line, "summary")}
        if from_id is not None:
            data["from"] = None if from_id == "root" else self._entry_of(from_id)
        data |= _source(without(line, BASE | {"fromId", "summary"}))
        self.thread.branch(
            self.thread.leaf if target is None else target,
            id_,
            text_at(line, "timestamp"),
            data,
            row=row,
        )

    def _tell_bash(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        message = object_at(line, "message")
        data: Data = {
            "role": "user",
            "content": self.marked(row, [text_part(bash_text(message))]),
            **_source(extra_of(line, message)),
        }
        time = text_at(line, "timestamp")
        self.thread.add("message", id_, time, data, row=row, role=USER, lost_parent=lost)
        self.turns.touch(time)

    def _tell_custom(self, row: int, id_: str, line: Data, lost: str | None) -> None:
        message = object_at(line, "message")
        told = message if message.get("role") in CUSTOM_ROLES else line
        in_context = told is message or line.get("type") == "custom_message"
        kind = text_at(told, "customType") or text_at(line, "type") or "line"
        value: Data = without(told, BASE | {"customType", "role"})
        if in_context:
            value["content"] = self.marked(row, content_of(told.get("content"))[0])
        data = {"kind": f"pi:{kind[:200]}", "value": value, "in_context": in_context}
        self.thread.add(
            "custom",
            id_,
            text_at(line, "timestamp"),
            data,
            row=row,
            role=STANDS if in_context else 0,
            lost_parent=lost,
        )

    def _entry_of(self, id_: str) -> str:
        """The entry that an id of the file stands for; the id itself where it is not known."""
        row = self.known_row(self._names.get(id_, id_))
        row = self.plan.resolve(row) if row else 0
        if not row or row == ROOT or not self.numbers[row]:
            return id_
        return self.thread.id_of(self.numbers[row]) or id_


def state_of(state: Data, line: Data) -> Data:
    """A state with what a header or a change says."""
    return state | {ours: line[theirs] for theirs, ours in _STATE.items() if theirs in line}


def _source(extra: Data) -> Data:
    return {"source": extra} if extra else {}
