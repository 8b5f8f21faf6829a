"""Foreign session files for tests: lines as values, and a desk that imports them into a log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from turnlog.core.frames import Event, decode
from turnlog.ingest import Masker, Report, import_files
from turnlog.log.memory import MemoryLog
from turnlog.owner.ambient import Ambient
from turnlog.query.show import show_session
from turnlog.tables.view import SessionView

Json = Any
SESSION = "11111111-2222-4333-8444-555555555555"
TIME = "2026-01-01T00:00:00.000Z"


def user(id_: str, parent: str | None, text: Json = "hello", **more: Json) -> Json:
    return _line("user", id_, parent, {"message": {"role": "user", "content": text}, **more})


def answer(
    id_: str,
    parent: str | None,
    *blocks: Json,
    message: str | None = None,
    stop: str | None = "end_turn",
    output: int | None = 1,
    **more: Json,
) -> Json:
    usage = None if output is None else {"input_tokens": 2, "output_tokens": output}
    body = {
        "id": message or f"msg_{id_}",
        "role": "assistant",
        "model": "m",
        "content": list(blocks) or [text("done")],
        "stop_reason": stop,
        "usage": usage,
    }
    return _line("assistant", id_, parent, {"message": body, **more})


def result(id_: str, parent: str | None, call_id: str, content: Json = "ok", **more: Json) -> Json:
    error = {"is_error": True} if more.pop("error", False) else {}
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **error}
    return user(id_, parent, [block], **more)


def system(id_: str, parent: str | None, **more: Json) -> Json:
    return _line("system", id_, parent, more)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **arguments: Json) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def boundary(id_: str, logical: str | None, **meta: Json) -> Json:
    return system(
        id_,
        None,
        subtype="compact_boundary",
        logicalParentUuid=logical,
        compactMetadata={"preTokens": 9, **meta},
    )


def summary(id_: str, parent: str, words: str = "summary") -> Json:
    return user(id_, parent, words, isCompactSummary=True)


def pi_header(version: int | None = 3, **more: Json) -> Json:
    return {"type": "session", "version": version, "id": SESSION, "cwd": "/w", **more}


def pi(type_: str, id_: str, parent: str | None, **more: Json) -> Json:
    return {"type": type_, "id": id_, "parentId": parent, "timestamp": TIME, **more}


def pi_user(id_: str, parent: str | None, words: str = "hello") -> Json:
    return pi("message", id_, parent, message={"role": "user", "content": words})


def pi_answer(
    id_: str, parent: str | None, *blocks: Json, stop: str = "stop", **more: Json
) -> Json:
    content = list(blocks) or [text("done")]
    usage = {"input": 1, "output": 2, "cost": {"total": 0.5}}
    message = {"role": "assistant", "content": content, "stopReason": stop, "usage": usage, **more}
    return pi("message", id_, parent, message=message)


def pi_call(call_id: str, name: str = "bash") -> Json:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": {}}


def pi_result(id_: str, parent: str | None, call_id: str, words: str = "ok", **more: Json) -> Json:
    message = {"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": words}
    return pi("message", id_, parent, message={**message, **more})


class Desk:
    """A log in memory, and a folder of files to import into it."""

    def __init__(self, folder: Path, format_: str = "claude-code") -> None:
        self.folder = folder
        self.format = format_
        self.ms = 0
        self.log = MemoryLog(clock=self._clock)
        self.masker: Masker | None = Masker()

    def write(self, lines: Sequence[Json] | bytes, name: str = f"{SESSION}.jsonl") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines if isinstance(lines, bytes) else encode(lines))
        return path

    def load(self, *paths: Path, progress: Callable[[int, int], None] | None = None) -> Report:
        return asyncio.run(
            import_files(
                self.log,
                self.format,
                list(paths) or [self.folder],
                ambient=Ambient(self._clock),
                host="importer",
                masker=self.masker,
                progress=progress,
            )
        )

    def take(self, lines: Sequence[Json] | bytes, session: str = SESSION) -> Json:
        """Write the file, import it, show the session."""
        self.load(self.write(lines))
        return self.show(session)

    def show(self, session: str = SESSION) -> Json:
        return show_session(SessionView(self.log.tables, session))

    def events(self, session: str = SESSION) -> list[Event]:
        """The events of the owner's frames, without claims and releases."""
        found: list[Event] = []
        for stored in self.log.tables.records(session):
            frame = decode(stored.record)
            if not frame.header.is_guest:
                found.extend(e for e in frame.events if e.type != "session_released")
        return found

    def data(self, id_: str, session: str = SESSION) -> Json:
        """The data of an entry's event."""
        return next(event.data for event in self.events(session) if event.id == id_)

    def of_type(self, type_: str, session: str = SESSION) -> list[Event]:
        return [event for event in self.events(session) if event.type == type_]

    def path(self, session: str = SESSION) -> list[str]:
        """The entry ids from the root to the leaf."""
        view = SessionView(self.log.tables, session)
        number, found = view.head.leaf, []
        while number:
            row = view.entry(number)
            found.append(row.id)
            number = row.parent
        return found[::-1]

    def surface(self, session: str = SESSION) -> list[str]:
        return [node["entry"] for node in self.show(session)["surface"]]

    def outcomes(self, session: str = SESSION) -> dict[str, str | None]:
        """The outcome of each operation, by its id without the word `turn-`."""
        rows = self.log.tables.scan("operations", session)
        return {row.operation.removeprefix("turn-"): row.outcome for row in rows}

    def voids(self, session: str = SESSION) -> list[str]:
        rows = self.log.tables.scan("entries", session)
        return [f"{row.id}: {row.void}" for row in rows if row.void is not None]

    def _clock(self) -> int:
        self.ms += 1
        return self.ms


def encode(lines: Sequence[Json]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _line(type_: str, id_: str, parent: str | None, data: Json) -> Json:
    return {
        "type": type_,
        "uuid": id_,
        "parentUuid": parent,
        "sessionId": SESSION,
        "timestamp": f"2026-01-01T00:00:00.{crc32(id_.encode()) % 1_000_000:06}Z",
        **data,
    }
