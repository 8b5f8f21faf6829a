"""How the golden logs were made: `python -m tests.golden.make`. It overwrites nothing.

A version-1 log must stay readable for ever. So the logs are written here as plain JSON, without the
library, and stand as files; what their tables said was taken once, read against the design by a
person, and stands beside them. A change that alters either file is a break: do not make them anew.
A new event version gets a new log.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.golden.reading import FOLDER, observe, read

Data = dict[str, Any]


class Log:
    """Lines of an archive, one session's; times go by one second for each event."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.lines: list[Data] = []
        self.seconds = 0

    def event(self, type_: str, id_: str, data: Data, v: int = 1) -> Data:
        self.seconds += 1
        time = f"2026-03-01T10:{self.seconds // 60:02}:{self.seconds % 60:02}Z"
        return {"type": type_, "v": v, "id": id_, "time": time, "data": data}

    def frame(self, claim: str | None, epoch: int | None, seq: int | None, *events: Data) -> None:
        """A frame; each event is {type: data}, with its id under "id" and a version under "v"."""
        made = []
        for item in events:
            ((type_, data),) = ((n, d) for n, d in item.items() if n not in ("id", "v"))
            made.append(self.event(type_, item["id"], data, item.get("v", 1)))
        header = {"session": self.session, "claim": claim, "epoch": epoch, "seq": seq}
        writer = "guest" if claim is None else "host-of-" + claim
        frame = {**header, "writer": writer, "events": made}
        self.lines.append({"position": len(self.lines) + 1, "frame": frame})

    def guest(self, *events: Data) -> None:
        self.frame(None, None, None, *events)

    def raw(self, header: Data | None, body: bytes) -> None:
        line: Data = {"position": len(self.lines) + 1, "session": self.session}
        if header is not None:
            line |= header
        self.lines.append({**line, "raw": base64.b64encode(body).decode()})

    def bytes(self) -> bytes:
        dumped = (
            json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in self.lines
        )
        return "".join(line + "\n" for line in dumped).encode()


def text(words: str) -> list[Data]:
    return [{"type": "text", "text": words}]


def message(id_: str, parent: str | None, role: str, content: Any, **more: Any) -> Data:
    return {"id": id_, "message": {"parent": parent, "role": role, "content": content, **more}}


def call(call_id: str, name: str, args: Data) -> Data:
    return {"type": "tool_call", "call_id": call_id, "name": name, "args": args}


def claimed(claim: str, expects: int, **more: Any) -> Data:
    return {
        "id": f"claimed-{claim}",
        "session_claimed": {"claim": claim, "expects": expects, **more},
    }


def begun(session: str) -> Log:
    """Claim `c1`, and the owner's first frame with a user's message under an accepted prompt."""
    log = Log(session)
    log.guest(claimed("c1", 0, host="alpha", reason="open"))
    log.frame(
        "c1",
        1,
        1,
        {"id": "created", "session_created": {"title": session}},
        message("u1", None, "user", text("list the files")),
        {
            "id": "accepted",
            "operation_accepted": {
                "operation": "op",
                "kind": "prompt",
                "input_entry": "u1",
                "start_leaf": None,
                "trigger": "user",
            },
        },
    )
    log.frame("c1", 1, 2, attempted("at1", "op", "a1"))
    return log


def attempted(attempt: str, operation: str, entry: str) -> Data:
    data = {"operation": operation, "attempt": attempt, "assistant_entry": entry, "model": "m-1"}
    return {"id": f"attempted-{attempt}", "model_attempted": {**data, "context": "ctx"}}


def used(attempt: str, operation: str, **usage: Any) -> Data:
    data = {"operation": operation, "attempt": attempt, "model": "m-1", "usage": usage}
    return {"id": f"used-{attempt}", "usage_settled": data}


def t1(dispatch: str, operation: str, entry: str, index: int, result: str, **more: Any) -> Data:
    data = {
        "operation": operation,
        "dispatch": dispatch,
        "call_no": index,
        "try": 1,
        "call_id": f"call_{index}",
        "call_index": index,
        "tool": "bash",
        "args_hash": f"hash-{dispatch}",
        "assistant_entry": entry,
        "result_entry": result,
        "effect": "opaque",
        "idempotency_key": f"key-{dispatch}",
    }
    data |= more
    return {"id": f"t1-{dispatch}-{data['try']}", "tool_dispatched": data}


def t2(id_: str, parent: str, index: int, dispatch: str, content: Any, **more: Any) -> Data:
    data = {"call_id": f"call_{index}", "tool": "bash", "dispatch": dispatch, "status": "ok"}
    return message(id_, parent, "tool", content, **{**data, "settled_by": "host", **more})


# ---- design, "Examples that must come out so" --------------------------------------------------


def rewind() -> Log:
    log = Log("rewind")
    log.guest(claimed("c1", 0, host="alpha", reason="open"))
    log.frame(
        "c1",
        1,
        1,
        {"id": "created", "session_created": {"title": "Rewind", "initial_app_state": {}}},
        message("e0", None, "user", text("one")),
        {"id": "e1", "app_state": {"parent": "e0", "value": {"k": 1}}},
        message("e2", "e1", "assistant", text("two"), stop_reason="stop"),
    )
    log.frame(
        "c1",
        1,
        2,
        message("e3", "e2", "user", text("three")),
        {"id": "e4", "app_state": {"parent": "e3", "value": {"k": 2}}},
    )
    log.frame("c1", 1, 3, {"id": "e5", "branch": {"parent": "e2", "from": "e4"}})
    log.frame("c1", 1, 4, message("e6", "e5", "user", text("three, again")))
    return log


def asked() -> list[Data]:
    return [
        *text("I look."),
        call("call_0", "bash", {"command": "ls"}),
        call("call_1", "bash", {"command": "pwd"}),
    ]


def crash_while_streaming() -> Log:
    return begun("crash-while-streaming")


def crash_before_t1(session: str = "crash-before-t1") -> Log:
    log = begun(session)
    more = {"attempt": "at1", "stop_reason": "tool_use"}
    log.frame("c1", 1, 3, message("a1", "u1", "assistant", asked(), **more))
    return log


def crash_after_t1() -> Log:
    log = crash_before_t1("crash-after-t1")
    log.frame("c1", 1, 4, t1("d1", "op", "a1", 0, "r1"))
    return log


def crash_before_finish() -> Log:
    log = begun("crash-before-finish")
    more = {"attempt": "at1", "stop_reason": "stop"}
    log.frame("c1", 1, 3, message("a1", "u1", "assistant", text("a.txt, b.txt"), **more))
    return log


# ---- every event of version 1 ------------------------------------------------------------------


def every_event() -> Log:
    """Each type and role, all fields filled in once; two crashes, a takeover, odd records."""
    log = Log("every-event")
    _first_turn(log)
    _second_thoughts(log)
    _crash_and_recovery(log)
    _takeover(log)
    _oddities(log)
    return log


def _first_turn(log: Log) -> None:
    log.guest(claimed("c1", 0, host="alpha", expects_seq=0, reason="open"))
    created = {
        "title": "Every event",
        "cwd": "/home/ann/project",
        "agent": "example 1.0",
        "initial_app_state": {"mode": "draft"},
        "parent_session": "the-parent",
        "spawned_by": {"entry": "a9", "call_index": 2, "dispatch": "d9"},
        "origin": {"format": "pi", "version": 3, "path": "s.jsonl", "cursor": {"line": 7}},
    }
    context = {
        "digest": "ctx",
        "system": "be brief",
        "tools": [{"name": "bash"}],
        "settings": {"temperature": 0.5},
        "model": "m-1",
    }
    accepted = {
        "operation": "op-1",
        "kind": "prompt",
        "input_entry": "u1",
        "start_leaf": "sys",
        "trigger": "user",
    }
    log.frame(
        "c1",
        1,
        1,
        {"id": "created", "session_created": created},
        {"id": "context", "context_set": context},
        message("sys", None, "system", text("be brief")),
        message("u1", "sys", "user", [*text("grüß 😀 \u0000"), {"type": "image", "data": "aW1n"}]),
        {"id": "accepted-1", "operation_accepted": accepted},
    )
    log.frame(
        "c1",
        1,
        2,
        attempted("at1", "op-1", "a1"),
        {
            "id": "chunk-1",
            "chunk": {
                "entry": "a1",
                "attempt": "at1",
                "part": 0,
                "deltas": ["I ", "look"],
                "dt": [3, 9],
            },
        },
    )
    content = [
        {"type": "reasoning", "text": "hm", "signature": "sig"},
        *asked(),
        {"type": "opaque"},
    ]
    usage = {"input": 100, "output": 20, "cache_read": 5, "cache_write": 6, "reasoning": 7}
    log.frame(
        "c1",
        1,
        3,
        message("a1", "u1", "assistant", content, attempt="at1", stop_reason="tool_use"),
        used("at1", "op-1", **usage, cost_usd="0.001"),
        {
            "id": "asked-1",
            "approval_asked": {"operation": "op-1", "call_id": "call_1", "assistant_entry": "a1"},
        },
    )
    decided = {"operation": "op-1", "call_id": "call_1", "assistant_entry": "a1"}
    log.guest(
        {"id": "decided-1", "approval_decided": {**decided, "decision": "allow", "by": "ann"}}
    )
    log.frame(
        "c1",
        1,
        4,
        t1("d0", "op-1", "a1", 0, "r0", effect="read_only", args={"command": "ls -a"}),
        t1("d1", "op-1", "a1", 1, "r1"),
    )
    blob = {
        "type": "blob",
        "digest": "blob-1",
        "size": 3,
        "media_type": "text/plain",
        "preview": "A",
    }
    log.frame(
        "c1",
        1,
        5,
        {"id": "part-1", "blob_part": {"digest": "blob-1", "index": 0, "of": 1, "bytes": "QUJD"}},
        t2("r1", "a1", 1, "d1", [*text("/home/ann"), blob]),
        t2("r0", "a1", 0, "d0", text("no such file"), status="error"),
    )


def _second_thoughts(log: Log) -> None:
    log.guest(
        {
            "id": "queued-1",
            "input_queued": {
                "input": "i1",
                "delivery": "steer",
                "entry": "u2",
                "content": text("stop"),
            },
        },
        {
            "id": "queued-2",
            "input_queued": {
                "input": "i2",
                "delivery": "follow_up",
                "entry": "u9",
                "content": {"sealed": "key", "alg": "a", "nonce": "n", "ct": "c"},
            },
        },
        {"id": "cancelled-2", "input_cancelled": {"input": "i2"}},
        {"id": "title-1", "fact": {"name": "title", "value": "Given by a guest", "replaces": None}},
    )
    compaction = {"operation": "op-k", "kind": "compaction", "trigger": "pressure"}
    summary = {
        "parent": "p1",
        "kind": "summary",
        "replaces": {"first": "u1", "last": "r0"},
        "content": text("ann asked for files"),
        "prepared_at": "r0",
        "operation": "op-k",
        "tokens_before": 900,
        "tokens_after": 90,
        "usage": {"input": 900, "output": 90},
    }
    prune = {"parent": "t1", "kind": "prune", "replaces": {"first": "r1", "last": "r1"}}
    log.frame(
        "c1",
        1,
        6,
        {"id": "s1", "app_state": {"parent": "r0", "value": {"mode": "edit", "deep": {"n": [1]}}}},
        {
            "id": "t1",
            "custom": {"parent": "s1", "kind": "todo", "value": ["a"], "in_context": False},
        },
        {"id": "accepted-k", "operation_accepted": {**compaction, "start_leaf": "t1"}},
        {"id": "p1", "compaction": {**prune, "content": text("[trimmed]"), "prepared_at": "t1"}},
        {"id": "k1", "compaction": summary},
        {"id": "finished-k", "operation_finished": {"operation": "op-k", "outcome": "completed"}},
        message("u2", "k1", "user", text("stop")),
    )
    log.frame("c1", 1, 7, attempted("at2", "op-1", "a2"))
    log.frame(
        "c1",
        1,
        8,
        message("a2", "u2", "assistant", text("done"), attempt="at2", stop_reason="stop"),
        used("at2", "op-1", input=50, output=2, cost_usd="0.0005"),
        {
            "id": "finished-1",
            "operation_finished": {"operation": "op-1", "outcome": "completed", "error": None},
        },
    )
    navigation = {"operation": "op-n", "kind": "navigation", "trigger": "manual"}
    branch = {"parent": "u1", "from": "a2", "operation": "op-n", "label": "other way"}
    log.frame(
        "c1",
        1,
        9,
        {"id": "accepted-n", "operation_accepted": {**navigation, "start_leaf": "a2"}},
        {"id": "b1", "branch": {**branch, "summary": "it listed files"}},
        {"id": "finished-n", "operation_finished": {"operation": "op-n", "outcome": "completed"}},
        {
            "id": "n1",
            "custom": {"parent": "b1", "kind": "note", "value": "mind", "in_context": True},
        },
    )


def _crash_and_recovery(log: Log) -> None:
    accepted = {"operation": "op-3", "kind": "prompt", "input_entry": "u3", "start_leaf": "n1"}
    log.frame(
        "c1",
        1,
        10,
        message("u3", "n1", "user", text("pay the bill")),
        {"id": "accepted-3", "operation_accepted": {**accepted, "trigger": "queue"}},
        attempted("at3", "op-3", "a3"),
    )
    log.frame(
        "c1",
        1,
        11,
        message("a3", "u3", "assistant", asked(), attempt="at3", stop_reason="tool_use"),
        t1("d2", "op-3", "a3", 0, "r2", effect="idempotent"),
        t1("d3", "op-3", "a3", 1, "r3"),
    )
    log.guest({"id": "abort-3", "abort_requested": {"operation": "op-3"}})
    log.guest(claimed("c2", 1, host="beta", expects_seq=11, reason="recovery"))
    closer = {"settled_by": "recovery", "status": "unknown"}
    log.frame(
        "c2",
        2,
        1,
        t2("r3", "a3", 1, "d3", [], **closer),
        {
            "id": "settled-2",
            "dispatch_settled": {
                "dispatch": "d2",
                "status": "unknown",
                "try": 1,
                "settled_by": "recovery",
                "by": "beta",
                "note": "host gone",
            },
        },
        {"id": "parked-3", "operation_parked": {"operation": "op-3", "reason": "outcome unknown"}},
        {"id": "released-2", "session_released": {"claim": "c2"}},
    )
    # the former host wakes up: evidence, and its usage
    log.frame(
        "c1",
        1,
        12,
        t2("r2", "a3", 0, "d2", text("paid")),
        used("at3", "op-3", input=10, output=1, cost_usd="0.25"),
        message("zombie", "a3", "user", text("not applied")),
    )
    verdict = {"dispatch": "d2", "try": 1, "settled_by": "person", "by": "ann"}
    log.guest(
        {"id": "note-2", "dispatch_settled": {**verdict, "status": "not_started", "note": "no"}},
        {"id": "verdict-2", "dispatch_settled": {**verdict, "status": "ok", "note": "I asked"}},
        {
            "id": "rerun-3",
            "rerun_allowed": {"dispatch": "d3", "try": 1, "by": "ann", "note": "again"},
        },
    )


def _takeover(log: Log) -> None:
    log.guest(claimed("c3", 2, host="alpha", reason="takeover"))
    log.guest(claimed("late", 2, host="gamma", reason="takeover"))
    log.frame("c3", 3, 1, t1("d3", "op-3", "a3", 1, "r3b", **{"try": 2}))
    log.frame(
        "c3",
        3,
        2,
        t2("r3b", "r3", 1, "d3", text("second time"), status="ok"),
        attempted("at4", "op-3", "a4"),
    )
    log.frame(
        "c3",
        3,
        3,
        message("a4", "r3b", "assistant", text("paid"), attempt="at4", stop_reason="length"),
        used("at4", "op-3", input=1),
        {
            "id": "finished-3",
            "operation_finished": {
                "operation": "op-3",
                "outcome": "failed",
                "error": {"code": 7},
                "inferred": True,
            },
        },
        {"id": "label-1", "fact": {"name": "label:a2", "value": "first way"}},
        {"id": "score-1", "fact": {"name": "score:help", "value": 0.5, "replaces": None}},
    )


def _oddities(log: Log) -> None:
    log.frame(
        "c3",
        3,
        4,
        {"id": "zzz-1", "zzz": {"of": "another release"}, "v": 3},
        {"id": "opaque-1", "node": {"parent": "a4", "of": "another release"}},
        {"id": "newer-1", "message": {"parent": "opaque-1", "parts": []}, "v": 2},
        {"id": "bad-1", "app_state": {"parent": "newer-1", "value": 7}},
        message("u4", "lost", "user", text("a parent is missing")),
    )
    header = {"claim": "c3", "epoch": 3, "seq": 5, "writer": "h"}
    log.raw(header, b'{"session":"every-event", torn')
    log.raw(None, b"\x00\xff")
    log.frame("c3", 3, 7, message("u5", "u4", "user", text("after a gap")))


def fork() -> Log:
    """A fork whose parent is in another log, a summary of the parent's surface, and a release."""
    log = Log("fork")
    log.guest(claimed("c1", 0, host="alpha", reason="open"))
    created = {"parent_session": "parent", "fork_at": {"entry": "p9", "epoch": 2, "seq": 40}}
    state = {"initial_app_state": {"from": "the parent"}}
    log.frame(
        "c1",
        1,
        1,
        {"id": "created", "session_created": {**created, **state}},
        message("u1", None, "user", text("go on")),
        message("u2", "u1", "user", text("and on")),
    )
    replaces = {"first": "p9", "last": "u1"}
    summary = {"parent": "u2", "kind": "summary", "replaces": replaces, "content": text("so far")}
    log.frame(
        "c1",
        1,
        2,
        {"id": "k1", "compaction": summary},
        {"id": "void", "compaction": {**summary, "parent": "k1"}},
        {"id": "b1", "branch": {"parent": "u1", "from": "k1"}},
        {"id": "released", "session_released": {"claim": "c1"}},
    )
    return log


LOGS = {
    "rewind": rewind,
    "crash_while_streaming": crash_while_streaming,
    "crash_before_t1": crash_before_t1,
    "crash_after_t1": crash_after_t1,
    "crash_before_finish": crash_before_finish,
    "every_event": every_event,
    "fork": fork,
}


def files(folder: Path) -> Iterable[Path]:
    """The files that this script makes."""
    return [folder / f"{name}.{ending}" for name in LOGS for ending in ("ndjson", "json")]


def main(folder: Path = FOLDER) -> None:
    """Write all files, or none where one of them is there."""
    there = [path.name for path in files(folder) if path.exists()]
    if there:
        sys.exit(f"golden files are never made anew; there are already: {', '.join(there)}")
    for name, make in LOGS.items():
        log = folder / f"{name}.ndjson"
        log.write_bytes(make().bytes())
        expected = [f"{dumped(k)}: {lines(v)}" for k, v in observe(read(log)).items()]
        (folder / f"{name}.json").write_text("{\n" + ",\n".join(expected) + "\n}\n", "utf-8")


def dumped(value: Any) -> str:
    """JSON for people: text as it is, but for what they cannot see."""
    return json.dumps(value, ensure_ascii=False)


def lines(value: Any) -> str:
    """A collection with an item on each line."""
    if isinstance(value, dict):
        items = [f" {dumped(name)}: {dumped(item)}" for name, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n}" if items else "{}"
    if isinstance(value, list) and not all(isinstance(item, str | None) for item in value):
        return "[\n" + ",\n".join(f" {dumped(item)}" for item in value) + "\n]"
    return dumped(value)


if __name__ == "__main__":
    main()
