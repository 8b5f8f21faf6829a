"""A writer of Claude Code session files: it keeps ids, times and parents as Claude Code does."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

Json = Any
Data = dict[str, Any]

NAMESPACE = uuid.UUID("5c1f60d4-3f3b-4a55-9b0f-6f1d8a2f7e10")
CWD = "/home/ada/tide-table"
VERSION = "2.1.4"
MODEL = "claude-sonnet-4-5-20250929"


def named(*parts: object) -> str:
    """A UUID that is the same for the same parts."""
    return str(uuid.uuid5(NAMESPACE, ":".join(map(str, parts))))


class ClaudeWriter:
    """One file. `at` is the last line's uuid: the next one hangs under it."""

    def __init__(self, session: str, *, agent: str | None = None, start: str) -> None:
        self.session = session
        self.agent = agent
        self.lines: list[str] = []
        self.at: str | None = None
        self.usage = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
        self._start = start
        self._seconds = 0
        self._count = 0

    def line(self, type_: str, data: Data, *, parent: str | bool | None = True) -> str:
        """A line of the tree; gives its uuid. `parent` True is the line before."""
        self._count += 1
        id_ = named(self.agent or self.session, self._count)
        envelope: Data = {
            "parentUuid": self.at if parent is True else parent,
            "isSidechain": self.agent is not None,
            "userType": "external",
            "cwd": CWD,
            "sessionId": self.session,
            "version": VERSION,
            "gitBranch": "main",
            "type": type_,
            **data,
            "uuid": id_,
            "timestamp": self.time(),
        }
        if self.agent is not None:
            envelope["agentId"] = self.agent
        self.bare(envelope)
        self.at = id_
        return id_

    def bare(self, data: Data) -> None:
        """A line that is no node."""
        self.lines.append(json.dumps(data, separators=(",", ":"), ensure_ascii=False))

    def time(self, step: int = 4) -> str:
        """The next time, as the format writes it."""
        self._seconds += step
        hours, rest = divmod(self._seconds, 3600)
        return f"{self._start}T{9 + hours:02}:{rest // 60:02}:{rest % 60:02}.000Z"

    def prompt(self, text: str, *, parent: str | bool | None = True) -> str:
        """What the user typed."""
        return self.line("user", {"message": {"role": "user", "content": text}}, parent=parent)

    def answer(self, name: str, *blocks: Data, stop: str | None, usage: list[int]) -> list[str]:
        """An answer, one line for each block; `usage` is its output tokens line by line."""
        ids: list[str] = []
        cached = 11_000 + 400 * (self._count % 200)
        for index, block in enumerate(blocks):
            last = index == len(blocks) - 1
            figures = {
                "input_tokens": 6,
                "cache_creation_input_tokens": 380,
                "cache_read_input_tokens": cached,
                "output_tokens": usage[min(index, len(usage) - 1)],
                "service_tier": "standard",
            }
            message = {
                "id": f"msg_{name}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [block],
                "stop_reason": stop if last else None,
                "stop_sequence": None,
                "usage": figures,
            }
            ids.append(self.line("assistant", {"message": message, "requestId": f"req_{name}"}))
        self.usage["input"] += 6
        self.usage["cache_write"] += 380
        self.usage["cache_read"] += cached
        self.usage["output"] += usage[-1]
        return ids

    def result(
        self, call: str, text: str, *, parent: str | bool = True, error: bool = False, **more: Json
    ) -> str:
        """The result of a tool call."""
        block: Data = {"tool_use_id": call, "type": "tool_result", "content": text}
        if error:
            block["is_error"] = True
        data: Data = {"message": {"role": "user", "content": [block]}, "toolUseResult": text}
        return self.line("user", {**data, **more}, parent=parent)

    def compact(self, head: str, tail: str, summary: str) -> None:
        """A compaction that keeps the lines from `head` to `tail` as they are."""
        kept = {"headUuid": head, "anchorUuid": "", "tailUuid": tail}
        meta = {"trigger": "manual", "preTokens": 48_200, "preservedSegment": kept}
        boundary: Data = {
            "subtype": "compact_boundary",
            "logicalParentUuid": tail,
            "content": "Conversation compacted",
            "compactMetadata": meta,
        }
        self.line("system", boundary, parent=None)
        said = {"role": "user", "content": summary}
        self.line("user", {"isCompactSummary": True, "message": said})

    def save(self, path: Path, *, torn: str = "") -> Path:
        """Write the file, with a torn last line where one is given."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines) + "\n" + torn, "utf-8")
        return path


def text(words: str) -> Data:
    """A text block."""
    return {"type": "text", "text": words}


def thinking(words: str) -> Data:
    """A thinking block with a signature, which is opaque."""
    return {"type": "thinking", "thinking": words, "signature": "EqQBCgIYAhIkMWY5" + "c2ln" * 12}


def call(id_: str, name: str, **arguments: Json) -> Data:
    """A tool call."""
    return {"type": "tool_use", "id": f"toolu_{id_}", "name": name, "input": arguments}
