"""The sample sessions of pi: one with all that version 3 has, one of version 1."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from turnlog.ingest.samples.claude_writer import CWD, named

Json = Any
Data = dict[str, Any]
Told = tuple[Path, str, dict[str, Any]]


class PiWriter:
    """One file. `at` is the last entry's id: the next one hangs under it."""

    def __init__(self, session: str, version: int, start: str, **header: Json) -> None:
        self.session = session
        self.linear = version == 1
        self.lines: list[str] = []
        self.at: str | None = None
        self.usage: Data = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
        self.cost = Decimal(0)
        self._start = start
        self._seconds = 0
        stamp = {} if self.linear else {"version": version}
        self._put({"type": "session", **stamp, "id": session, "cwd": CWD, **header})

    def entry(self, type_: str, **data: Json) -> str:
        """An entry; gives its id."""
        id_ = named(self.session, len(self.lines))[:8]
        base = {} if self.linear else {"id": id_, "parentId": self.at}
        self._put({"type": type_, **base, **data})
        self.at = id_
        return id_

    def prompt(self, words: str) -> str:
        """What the user typed."""
        content = [{"type": "text", "text": words}]
        return self.entry("message", message={"role": "user", "content": content})

    def answer(self, *blocks: Data, stop: str, output: int, error: str | None = None) -> str:
        """An answer with its price."""
        usage = {"input": 5, "output": output, "cacheRead": 2_400, "cacheWrite": 120}
        cost = {
            "input": 0.000015,
            "output": output * 0.000015,
            "cacheRead": 0.00072,
            "cacheWrite": 0.00045,
        }
        exact = sum((Decimal(str(round(part, 9))) for part in cost.values()), Decimal(0))
        total = exact.normalize()
        message: Data = {
            "role": "assistant",
            "content": list(blocks),
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": "claude-sonnet-4-5",
            "usage": {
                **usage,
                "totalTokens": sum(usage.values()),
                "cost": {**cost, "total": float(total)},
            },
            "stopReason": stop,
        }
        if error is not None:
            message["errorMessage"] = error
        self.usage["input"] += 5
        self.usage["output"] += output
        self.usage["cache_read"] += 2_400
        self.usage["cache_write"] += 120
        self.cost += total
        return self.entry("message", message=message)

    def result(self, id_: str, name: str, words: str, *, error: bool = False) -> str:
        """The result of a tool call."""
        message = {
            "role": "toolResult",
            "toolCallId": id_,
            "toolName": name,
            "content": [{"type": "text", "text": words}],
            "isError": error,
        }
        return self.entry("message", message=message)

    def save(self, folder: Path) -> Path:
        """Write the file under the name that pi would give it."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self._start}T08-00-00-000Z_{self.session}.jsonl"
        path.write_text("\n".join(self.lines) + "\n", "utf-8")
        return path

    def _put(self, data: Data) -> None:
        self._seconds += 3
        minutes, seconds = divmod(self._seconds, 60)
        stamp = f"{self._start}T08:{minutes:02}:{seconds:02}.000Z"
        line = {**data, "timestamp": stamp}
        self.lines.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))


def text(words: str) -> Data:
    """A text block."""
    return {"type": "text", "text": words}


def call(id_: str, name: str, **arguments: Json) -> Data:
    """A tool call."""
    return {"type": "toolCall", "id": id_, "name": name, "arguments": arguments}


def write(folder: Path) -> list[Told]:
    """Write the sessions into a folder as pi lays it out."""
    sessions = folder / "--home-ada-tide-table--"
    return [_branched(sessions), _linear(sessions)]


def _branched(folder: Path) -> Told:
    """A branch with a summary, a compaction, a label, a name, and prices."""
    out = PiWriter(named("pi-branched"), 3, "2026-03-05")
    out.entry("model_change", provider="anthropic", modelId="claude-sonnet-4-5")
    out.entry("thinking_level_change", thinkingLevel="off")
    out.prompt("Which tides does the table know?")
    out.answer(
        text("Let me look."),
        call("c1", "read", path="tide_table.py"),
        call("c2", "bash", command="ls data"),
        stop="toolUse",
        output=61,
    )
    out.result("c1", "read", "def rows(levels): ...")
    out.result("c2", "bash", "bergen.csv\nkiel.csv\n")
    fork = out.answer(text("Bergen and Kiel."), stop="stop", output=18)
    out.entry("label", targetId=fork, label="before the map")
    out.prompt("Draw a map of them.")
    left = out.answer(text("A map would need a new library."), stop="stop", output=23)
    out.at = fork
    out.entry("branch_summary", fromId=left, summary="A map was considered: it needs a library.")
    out.prompt("Then list them with their heights.")
    out.answer(text("Bergen 1.8 m, Kiel 0.3 m."), stop="stop", output=27)
    out.entry("thinking_level_change", thinkingLevel="high")
    kept = out.prompt("Sort by height.")
    out.answer(text("Bergen, Kiel."), stop="stop", output=12)
    out.entry(
        "compaction",
        summary="The table knows Bergen and Kiel, with their heights.",
        firstKeptEntryId=kept,
        tokensBefore=5_120,
    )
    out.prompt("Now the other way round.")
    out.answer(text("Kiel, Bergen."), stop="stop", output=11)
    out.entry("session_info", name="Which tides there are")
    return (
        out.save(folder),
        out.session,
        {
            "usage": {**out.usage, "cost_usd": f"{out.cost:f}"},
            "branches": 2,
            "unanswered": 0,
            "outcomes": {"completed": 5},
            "surface": ["user", "user", "assistant", "user", "assistant"],
        },
    )


def _linear(folder: Path) -> Told:
    """Version 1: no ids, an aborted answer, and a compaction that counts lines."""
    out = PiWriter(
        named("pi-linear"),
        1,
        "2025-11-20",
        provider="anthropic",
        modelId="claude-sonnet-4-5",
        thinkingLevel="off",
    )
    out.prompt("Add Oslo.")
    out.answer(
        call("o1", "edit", path="data/oslo.csv"),
        stop="aborted",
        output=9,
        error="Request was aborted",
    )
    out.prompt("Add Oslo with heights from last year.")
    out.answer(text("Added."), stop="stop", output=8)
    out.entry("compaction", summary="Oslo was added.", firstKeptEntryIndex=3, tokensBefore=900)
    out.prompt("Thanks.")
    return (
        out.save(folder),
        out.session,
        {
            "usage": {**out.usage, "cost_usd": f"{out.cost:f}"},
            "branches": 1,
            "unanswered": 0,
            "outcomes": {"aborted": 1, "completed": 1, "open": 1},
            "surface": ["user", "user", "assistant", "user"],
        },
    )
