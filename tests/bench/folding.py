"""Decode and fold: 700-byte events in frames of 8, one core, next to `orjson.loads` alone."""

from __future__ import annotations

import time
from statistics import median

import orjson

from tests.bench.figures import Figure, report
from turnlog.core.fold import fold
from turnlog.core.frames import Header, NewEvent, Record, decode, seal
from turnlog.core.rows import Key, Row

FRAMES = 4000
EVENTS = 8
TIME = "2026-01-01T00:00:00Z"


def messages(frames: int) -> list[Record]:
    """A session of user and assistant messages."""
    claim = {"claim": "c", "expects": 0, "host": "h", "reason": "open"}
    guest = Header("s", None, None, None, "h")
    records = [seal(guest, [NewEvent("session_claimed", "e", TIME, claim)]).record]
    parent: str | None = None
    for seq in range(1, frames + 1):
        events: list[NewEvent] = []
        if seq == 1:
            events.append(NewEvent("session_created", "created", TIME, {}))
        for index in range(EVENTS):
            id_ = f"entry-{seq:06d}-{index}"
            data = {
                "parent": parent,
                "role": ("user", "assistant")[index % 2],
                "content": [{"type": "text", "text": "lorem ipsum dolor " * 29}],
            }
            events.append(NewEvent("message", id_, TIME, data))
            parent = id_
        records.append(seal(Header("s", "c", 1, seq, "h"), events).record)
    return records


def turns(frames: int) -> list[Record]:
    """A session of whole turns: prompt, attempt, call, T1, T2, answer, usage, finish."""
    claim = {"claim": "c", "expects": 0, "host": "h", "reason": "open"}
    guest = Header("s", None, None, None, "h")
    records = [seal(guest, [NewEvent("session_claimed", "e", TIME, claim)]).record]
    pad = "lorem ipsum dolor " * 30
    parent: str | None = None
    for seq in range(1, frames + 1):
        op, ask, said, did = f"op-{seq}", f"u-{seq}", f"a-{seq}", f"r-{seq}"
        call = {"type": "tool_call", "call_id": "c1", "name": "bash", "args": {"cmd": pad}}
        usage = {"input": 900, "output": 90, "cost_usd": "0.0123"}
        plain = [{"type": "text", "text": pad}]
        datas = [
            ("message", ask, {"parent": parent, "role": "user", "content": plain}),
            ("operation_accepted", "x1", {"operation": op, "kind": "prompt", "input_entry": ask}),
            ("model_attempted", "x2", {"operation": op, "attempt": op, "assistant_entry": said}),
            ("message", said, {"parent": ask, "role": "assistant", "content": [call]}),
            (
                "tool_dispatched",
                "x3",
                {
                    "operation": op,
                    "dispatch": did,
                    "call_index": 0,
                    "assistant_entry": said,
                    "result_entry": did,
                    "try": 1,
                    "args": {"cmd": pad},
                },
            ),
            (
                "message",
                did,
                {"parent": said, "role": "tool", "content": plain, "dispatch": did},
            ),
            ("usage_settled", "x4", {"operation": op, "attempt": op, "usage": usage}),
            ("operation_finished", "x5", {"operation": op, "outcome": "completed"}),
        ]
        parent = did
        events = [
            NewEvent(type_, f"{id_}-{seq}" if id_[0] == "x" else id_, TIME, data)
            for type_, id_, data in datas
        ]
        records.append(seal(Header("s", "c", 1, seq, "h"), events).record)
    return records


def _rate(records: list[Record]) -> tuple[float, float]:
    """Events a second of `orjson.loads` alone, and of decoding and folding."""
    events = len(records) * EVENTS
    start = time.perf_counter()
    for record in records:
        orjson.loads(record.body)
    loads = events / (time.perf_counter() - start)
    rows: dict[Key, Row | None] = {}
    start = time.perf_counter()
    for position, record in enumerate(records, 1):
        rows.update(fold(decode(record), position, rows))
    return loads, events / (time.perf_counter() - start)


def measure(runs: int = 5) -> list[Figure]:
    figures: list[Figure] = []
    for name, records, goal in (
        ("decode and fold, messages", messages(FRAMES), ">= 30000"),
        ("decode and fold, whole turns", turns(FRAMES), ""),
    ):
        size = sum(len(record.body) for record in records) / len(records) / EVENTS
        rates = [_rate(records) for _ in range(runs)]
        loads, folded = median(rate[0] for rate in rates), median(rate[1] for rate in rates)
        reference = f"{size:.0f} B an event; orjson.loads alone {loads:,.0f}/s"
        figures.append(Figure(name, folded, "events/s", goal, reference))
    return figures


if __name__ == "__main__":
    report(measure())
