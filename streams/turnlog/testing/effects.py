"""The world outside the agent, which no crash of the agent undoes: it counts what is done to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from turnlog.host.errors import Failed
from turnlog.host.tools import Effect, Happened, Never, Tool, ToolCall, Unsure

Json = Any
Returns = Callable[[ToolCall], Json]


class Start(NamedTuple):
    """One time that a tool was started, whatever came of it."""

    tool: str
    call: ToolCall


class EffectCounter:
    """Tools whose effects are counted, by tool and by idempotency key.

        effects = EffectCounter()
        tools = [effects.tool("pay", effect="idempotent"), effects.tool("look", effect="read_only")]

    Make one for each test and give its tools to every host of it. `starts` lists each start of a
    tool, in order; `count` gives how often an effect took place, which is later: see `hold`.
    """

    def __init__(self) -> None:
        self.starts: list[Start] = []
        self._happened: list[Start] = []
        self._classes: dict[str, Effect] = {}
        self._kept: dict[tuple[str, str], Json] = {}
        self._closed: dict[tuple[str, str], int] = {}
        self._unproven: list[Start] = []
        self._unsure: set[str] = set()
        self._gates: dict[str, asyncio.Event] = {}

    def tool(
        self,
        name: str,
        effect: Effect = "opaque",
        *,
        returns: Json | Returns = "done",
        refuses_duplicates: bool = False,
        timeout_s: float | None = None,
    ) -> Tool:
        """A tool that counts and then gives `returns`, a JSON value or a function of the call.

        With `refuses_duplicates` it is a receiver that knows keys: a start with a key that it has
        seen has no second effect and gives what the first one gave. A reconcilable tool can be
        probed: once it has said never, it refuses the starts up to the one that was asked about.
        """
        self._classes[name] = effect

        async def run(call: ToolCall) -> Json:
            return await self._run(Start(name, call), returns, refuses_duplicates)

        async def probe(call: ToolCall) -> Happened | Never | Unsure:
            return self._probe(name, call)

        probing = probe if effect == "reconcilable" else None
        return Tool(name, run, effect, probe=probing, timeout_s=timeout_s)

    # ---- what the test does to the world

    def hold(self, tool: str) -> None:
        """Starts of a tool hang from now on, before their effect, until `release`."""
        self._gates.setdefault(tool, asyncio.Event())

    def release(self, tool: str) -> None:
        """Let the starts go on that hang, and those to come."""
        gate = self._gates.pop(tool, None)
        if gate is not None:
            gate.set()

    def forget(self, tool: str) -> None:
        """From now on the probe of a tool cannot tell what happened."""
        self._unsure.add(tool)

    # ---- what the test asks

    def started(self, tool: str) -> int:
        """How often a tool was started."""
        return sum(start.tool == tool for start in self.starts)

    def count(self, tool: str) -> int:
        """How often the effect of a tool took place."""
        return sum(start.tool == tool for start in self._happened)

    def by_key(self, tool: str) -> dict[str, int]:
        """How often the effect of a tool took place under each idempotency key."""
        found = [start.call.idempotency_key for start in self._happened if start.tool == tool]
        return dict(Counter(found))

    def assert_count(self, tool: str, count: int) -> None:
        """Assert how often the effect of a tool took place."""
        found = self.count(tool)
        assert found == count, self._report(
            f"{tool!r} took effect {found} times and not {count}", self._happened, tool
        )

    def assert_once_per_key(self, tool: str | None = None) -> None:
        """Assert that no effect took place twice under one key: of a tool, or of any but those that
        only read."""
        names = [name for name, effect in self._classes.items() if effect != "read_only"]
        for name in names if tool is None else [tool]:
            for key, count in self.by_key(name).items():
                assert count == 1, self._report(
                    f"{name!r} took effect {count} times under the key {key!r}",
                    self._happened,
                    name,
                )

    def assert_as_declared(self) -> None:
        """Assert that each tool was started only as its effect class allows.

        Every start of a call has the same key, which no other call has. An opaque call is started
        once (a test in which a person allows another start cannot use this), a reconcilable one
        again only after a probe has said never.
        """
        keys: dict[str, str] = {}
        for tool, call in self.starts:
            first = keys.setdefault(call.idempotency_key, call.dispatch)
            assert first == call.dispatch, self._report(
                f"two calls have the key {call.idempotency_key!r}", self.starts, tool
            )
        for name, effect in self._classes.items():
            self._assert_class(name, effect)

    def _assert_class(self, name: str, effect: Effect) -> None:
        starts = [start.call for start in self.starts if start.tool == name]
        by_call: dict[str, list[ToolCall]] = {}
        for call in starts:
            by_call.setdefault(call.dispatch, []).append(call)
        for calls in by_call.values():
            keys = {call.idempotency_key for call in calls}
            assert len(keys) == 1, self._report(
                f"one call of {name!r} was started under {len(keys)} keys", self.starts, name
            )
            assert effect != "opaque" or len(calls) == 1, self._report(
                f"one call of {name!r}, which is opaque, was started {len(calls)} times",
                self.starts,
                name,
            )
        unproven = [start for start in self._unproven if start.tool == name]
        assert not unproven, self._report(
            f"{name!r} was started again although no probe had said never", unproven, name
        )

    def _report(self, fault: str, starts: Iterable[Start], tool: str) -> str:
        lines = [
            f"  try {call.try_number} of dispatch {call.dispatch!r}, key {call.idempotency_key!r},"
            f" arguments {call.args!r}"
            for name, call in starts
            if name == tool
        ]
        return "\n".join([f"{fault}:", *lines])

    # ---- the receiver

    async def _run(self, start: Start, returns: Json | Returns, refuses_duplicates: bool) -> Json:
        call = start.call
        key = (start.tool, call.idempotency_key)
        self.starts.append(start)
        is_again = self._classes[start.tool] == "reconcilable" and call.try_number > 1
        if is_again and self._closed.get(key, 0) < call.try_number - 1:
            self._unproven.append(start)
        gate = self._gates.get(start.tool)
        if gate is not None:
            await gate.wait()
        if call.try_number <= self._closed.get(key, 0):
            raise Failed("refused: a probe was told that this start never took effect")
        if refuses_duplicates and key in self._kept:
            return self._kept[key]
        self._happened.append(start)
        self._kept[key] = returns(call) if callable(returns) else returns
        return self._kept[key]

    def _probe(self, tool: str, call: ToolCall) -> Happened | Never | Unsure:
        key = (tool, call.idempotency_key)
        if tool in self._unsure:
            return Unsure()
        if key in self._kept:
            return Happened(self._kept[key])
        self._closed[key] = call.try_number - 1  # a probe is asked as the try that would come next
        return Never()
