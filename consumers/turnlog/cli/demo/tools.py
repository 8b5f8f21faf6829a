"""The tools of the demo's hosts: files, commands, a helper, and calls to a receiver over HTTP."""

from __future__ import annotations

import asyncio
from http.client import HTTPConnection
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import urlencode

import orjson

from turnlog.cli.demo.script import MODEL, model
from turnlog.host import Failed, Happened, Never, Session, Tool, ToolCall, open_session, run_turn
from turnlog.log import EmbeddedLog

Json = Any
TIMEOUT_S = 60
"""Longer than the demo waits for anything: a call that is held back is not given up."""


class Files:
    """What works on the files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tools(self) -> list[Tool]:
        """To write the same text again changes nothing; what a command does nobody knows."""
        return [
            self.reading(),
            Tool("write_file", self._write, "idempotent"),
            Tool("run_command", self._run, "opaque"),
        ]

    def reading(self) -> Tool:
        """The one that changes nothing."""
        return Tool("read_file", self._read, "read_only")

    async def _read(self, call: ToolCall) -> Json:
        return await asyncio.to_thread((self._folder / call.args["path"]).read_text, "utf-8")

    async def _write(self, call: ToolCall) -> Json:
        path, text = self._folder / call.args["path"], call.args["text"]
        await asyncio.to_thread(path.write_text, text, "utf-8")
        return f"wrote {len(text)} characters"

    async def _run(self, call: ToolCall) -> Json:
        process = await asyncio.create_subprocess_exec(
            *call.args["command"], cwd=self._folder, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
        if process.returncode:
            raise Failed(f"status {process.returncode}: {err.decode(errors='replace')}")
        return out.decode(errors="replace")


class Helper:
    """A sub-agent: a session of its own, in this process, with a tool that only reads."""

    def __init__(self, log: EmbeddedLog, host: str, reading: Tool) -> None:
        self.session: Session | None = None
        """Whose calls it works for."""
        self._log = log
        self._host = host
        self._reading = reading

    def tool(self) -> Tool:
        """Idempotent: the same dispatch finds the same session, and goes on in it."""
        return Tool("ask_helper", self._ask, "idempotent")

    async def _ask(self, call: ToolCall) -> Json:
        assert self.session is not None
        child = await self.session.spawn(call.dispatch, title="Check the tide table")
        async with open_session(self._log, child, host=self._host, tools=[self._reading]) as own:
            if own.recovery or own.leaf is None:
                question = None if own.recovery else call.args["question"]
                await run_turn(own, model, question, name=MODEL)
            return own.context()[-1]["content"]


class Harbour:
    """Tools whose effects are at the receiver, where no crash of this process undoes them."""

    def __init__(self, port: int) -> None:
        self._port = port

    def tools(self) -> list[Tool]:
        """One of each effect class."""
        return [
            Tool("read_gauge", self._post, "read_only"),
            Tool("book_berth", self._post, "idempotent"),
            Tool("order_fuel", self._post, "reconcilable", probe=self._probe),
            Tool("send_notice", self._post, "opaque"),
        ]

    async def _post(self, call: ToolCall) -> Json:
        said = {"key": call.idempotency_key, "try": call.try_number, "args": call.args}
        answer = await self._request("POST", f"/{call.tool}", orjson.dumps(said))
        if "refused" in answer:
            raise Failed(answer["refused"])
        return answer["result"]

    async def _probe(self, call: ToolCall) -> Happened | Never:
        asked = urlencode({"key": call.idempotency_key, "try": call.try_number})
        answer = await self._request("GET", f"/{call.tool}?{asked}")
        return Happened(answer["result"]) if answer["happened"] else Never()

    async def _request(self, method: str, path: str, body: bytes | None = None) -> Json:
        return await asyncio.to_thread(self._send, method, path, body)

    def _send(self, method: str, path: str, body: bytes | None) -> Json:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body)
            return orjson.loads(connection.getresponse().read())
        finally:
            connection.close()
