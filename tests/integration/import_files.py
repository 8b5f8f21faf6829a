"""Files for the import tests: real ones, through TURNLOG_SAMPLES, and those of our own making."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.unit.ingest.foreign import Desk
from turnlog.ingest.samples import write_samples
from turnlog.tables.view import SessionView

Json = Any

SAMPLES = os.environ.get("TURNLOG_SAMPLES")
needs_samples = pytest.mark.skipif(
    SAMPLES is None, reason="TURNLOG_SAMPLES names no folder with real session files"
)
REAL = {
    "01_claude_real_06381696.jsonl": "claude-code",
    "02_claude_real_full-session.jsonl": "claude-code",
    "04_pi_real_v1_large-session_head80.jsonl": "pi",
    "05_pi_v3_fixture.jsonl": "pi",
    "09_claude_fixture_dag_compact_after_rewind_preserved.jsonl": "claude-code",
}


class Foreign(NamedTuple):
    """A file by its name, its format and its bytes."""

    name: str
    format: str
    body: bytes


def real_file(name: str) -> Foreign:
    assert SAMPLES is not None
    return Foreign(name, REAL[name], Path(SAMPLES, name).read_bytes())


def own_files() -> Iterator[Foreign]:
    with tempfile.TemporaryDirectory() as folder:
        for sample in write_samples(Path(folder)):
            yield Foreign(sample.path.name, sample.format, sample.path.read_bytes())


def sessions_of(desk: Desk) -> list[str]:
    return [head.session for head in desk.log.tables.scan("sessions")]


def conversation(desk: Desk, session: str) -> Json:
    """What the model sees, whatever way it is cut into entries: parts of one message joined, each
    call with its answer, in the order of the calls."""
    view = SessionView(desk.log.tables, session)
    told: list[Json] = []
    messages: dict[str, Json] = {}
    for node in view.nodes(None):
        data = node.data
        if node.entry.role == "tool":
            found = (m for m in reversed(told) if data["call_id"] in m.get("calls", {}))
            said = next(found, None)
            if said is None:
                told.append({"role": "tool", "data": _said(data)})
            elif data["settled_by"] != "import":  # said of a call whose message was cut behind it
                said["calls"][data["call_id"]] = [data["status"], data["content"]]
        elif node.entry.role == "assistant":
            name = data.get("source", {}).get("message") or node.entry.id
            if name not in messages:
                messages[name] = {"role": "assistant", "parts": [], "calls": {}}
                told.append(messages[name])
            messages[name]["parts"] += data["content"]
            messages[name]["calls"] |= dict.fromkeys(node.entry.calls)
        else:
            told.append({"role": node.entry.role, "kind": node.entry.kind, "data": _said(data)})
    return told


def figures(desk: Desk, session: str) -> Json:
    """What must not depend on how often a file was imported while it grew."""
    shown = desk.show(session)
    usage = {name: value for name, value in shown["usage"].items() if name != "attempts"}
    return {
        "conversation": conversation(desk, session),
        "usage": {**usage, "cost_usd": float(usage["cost_usd"])},
        "state": shown["state"],
        "title": shown["title"],
        "damage": [(found["kind"], found["detail"]) for found in shown["damage"]],
        "voids": desk.voids(session),
        "quarantined": shown["counts"]["quarantined"],
        "corruption": {reason for row in shown["operations"] for reason in row["corruption"]},
    }


def _said(data: Json) -> Json:
    names = ("content", "summary", "value")
    return {name: data[name] for name in names if name in data}
