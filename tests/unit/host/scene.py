"""What the host's tests share: a log with moods, counted effects, and what must hold of any log.

Time never decides anything here: the log yields to the loop before and after it appends, so "at
every step" means after any number of turns of the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from turnlog.core.errors import AppendRefused, AppendUnknown, TurnlogError
from turnlog.core.frames import SealedFrame, decode
from turnlog.core.rows import Dispatch, Head
from turnlog.host import Happened, Never, Reply, Session, Tool, ToolCall, open_session, run_turn
from turnlog.log.memory import MemoryLog
from turnlog.log.port import EmbeddedLog
from turnlog.owner.ambient import Ambient
from turnlog.tables.evidence import reports_of
from turnlog.tables.view import SessionView

Mood = Callable[[SealedFrame], str | None]
EFFECTS = ("read_only", "idempotent", "reconcilable", "opaque")
_serial = count()
AMBIENT = Ambient(clock=lambda: 0, ids=lambda: f"id-{next(_serial)}")


class MoodyLog(MemoryLog):
    """A log in memory whose `mood` says what becomes of each append: ok (or None), refused (it is
    not there), lost (not there, and nobody knows) or landed (there, and nobody knows). While `gate`
    is closed, appends of owners wait."""

    def __init__(self, mood: Mood | None = None) -> None:
        super().__init__(clock=lambda: 0)
        self.mood = mood
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = asyncio.Event()

    async def append(self, frame: SealedFrame) -> int:
        await asyncio.sleep(0)
        if not frame.frame.header.is_guest and not self.gate.is_set():
            self.held.set()
            await self.gate.wait()
        outcome = (self.mood(frame) if self.mood is not None else None) or "ok"
        if outcome == "refused":
            raise AppendRefused("no room", retriable=True)
        if outcome == "lost":
            raise AppendUnknown("no answer")
        position = await super().append(frame)
        await asyncio.sleep(0)
        if outcome == "landed":
            raise AppendUnknown("no answer")
        return position


def types_of(frame: SealedFrame) -> list[str]:
    """The types of a frame's events; a tool's answer is `T2`."""
    return [
        "T2" if event.type == "message" and event.data["role"] == "tool" else event.type
        for event in frame.frame.events
    ]


class Ledger:
    """The world outside: what took effect, by tool, and under which keys."""

    def __init__(self) -> None:
        self.effects: list[tuple[str, str]] = []
        self.keys: dict[str, set[str]] = {}

    def count(self, tool: str) -> int:
        return sum(name == tool for name, _ in self.effects)

    def tool(self, effect: str, **given: Any) -> Tool:
        """A tool of an effect class, with its name; it yields before and after its effect."""

        async def run(call: ToolCall) -> str:
            await asyncio.sleep(0)
            self.effects.append((effect, call.dispatch))
            self.keys.setdefault(f"{call.operation} {call.call_id}", set()).add(
                call.idempotency_key
            )
            await asyncio.sleep(0)
            return f"{effect} done"

        async def probe(call: ToolCall) -> Happened | Never:
            await asyncio.sleep(0)
            done = call.dispatch in {id_ for name, id_ in self.effects if name == effect}
            return Happened("probed: done") if done else Never()

        given.setdefault("probe", probe if effect == "reconcilable" else None)
        return Tool(effect, run, effect=effect, **given)

    def tools(self) -> list[Tool]:
        return [self.tool(effect) for effect in EFFECTS]


def tool(run: Callable[[ToolCall], Any], name: str = "t", **given: Any) -> Tool:
    """A tool of a plain function."""

    async def work(call: ToolCall) -> Any:
        return run(call)

    return Tool(name, work, **given)


def calls(*names: str, **args: Any) -> dict[str, Any]:
    """A model's message that calls tools."""
    return {
        "content": [
            {"type": "tool_call", "call_id": f"c{index}", "name": name, "args": args}
            for index, name in enumerate(names)
        ]
    }


class Script:
    """A model that says what the context asks for: the calls first, then that it is done."""

    def __init__(self, first: Any = None, last: str = "done") -> None:
        self.first = calls(*EFFECTS) if first is None else first
        self.last = last
        self.asked = 0

    async def __call__(self, context: list[dict[str, Any]]) -> Reply:
        self.asked += 1
        assert_balanced(context)
        await asyncio.sleep(0)
        since = max(index for index, said in enumerate(context) if said["role"] == "user")
        done = any(said["role"] == "assistant" for said in context[since:])
        return Reply(self.last if done else self.first, {"input": 1, "output": 1})


def host(log: EmbeddedLog, *tools: Tool, name: str = "h", **given: Any) -> open_session:
    """Session `s` on a host."""
    given.setdefault("ambient", AMBIENT)
    given.setdefault("window_s", 0)
    given.setdefault("on_error", lambda error: None)
    return open_session(log, given.pop("session", "s"), host=name, tools=tools, **given)


def head_of(log: EmbeddedLog, session: str = "s") -> Head:
    return log.tables.get(("sessions", session))


def rows(log: EmbeddedLog, table: str, session: str = "s") -> list[Any]:
    return list(log.tables.scan(table, session))


def dispatch_of(log: EmbeddedLog, tool_name: str | None = None, session: str = "s") -> Dispatch:
    """The only dispatch there is, or the only one of a tool."""
    found = [row for row in rows(log, "dispatches", session) if tool_name in (None, row.tool)]
    assert len(found) == 1, found
    return found[0]


def view_of(log: EmbeddedLog, session: str = "s") -> SessionView:
    return SessionView(log.tables, session)


def types_in(log: EmbeddedLog, session: str = "s") -> list[str]:
    """The types of all events of a session, in order."""
    records = log.tables.records(session)
    return [event.type for stored in records for event in decode(stored.record).events]


def told(log: EmbeddedLog | Session, session: str = "s") -> list[str]:
    """The context as `role: text`, to compare."""
    context = log.context() if isinstance(log, Session) else view_of(log, session).context()
    return [f"{said['role']}: {text_of(said)}" for said in context]


def text_of(said: dict[str, Any]) -> str:
    return " ".join(part.get("text") or part["type"] for part in said["content"])


def statuses(log: EmbeddedLog, session: str = "s") -> Counter[str]:
    return Counter(row.status for row in rows(log, "dispatches", session))


def assert_balanced(context: Iterable[dict[str, Any]]) -> None:
    """Results stand right after their call, one for each, and nowhere else."""
    open_: list[str] = []
    for said in context:
        if said["role"] == "tool":
            assert said["call_id"] in open_, f"a result of no call: {said}"
            open_.remove(said["call_id"])
        else:
            assert not open_, f"calls without results before {said}: {open_}"
            parts = said["content"]
            open_ = [part["call_id"] for part in parts if part["type"] == "tool_call"]
    assert not open_, f"calls without results at the end: {open_}"


def assert_sound(log: MemoryLog) -> None:
    """Nothing is damaged or corrupted, the tables are what a fold from zero gives, and every
    context is balanced."""
    assert list(log.verify()) == []
    for head in log.tables.scan("sessions"):
        assert head.damage == (), head.damage
        assert not head.missing_parents
        assert not head.overflow
        assert head.counts["jumps"] == 0
        assert [row.corruption for row in rows(log, "operations", head.session)] == [
            () for _ in rows(log, "operations", head.session)
        ]
        assert rows(log, "quarantine", head.session) == []
        assert_balanced(view_of(log, head.session).context())


def assert_ended(log: EmbeddedLog, session: str = "s") -> None:
    """Nothing is open any more."""
    head = head_of(log, session)
    assert not head.open_operations
    assert not head.open_dispatches
    assert reports_of(view_of(log, session), "host") == []


def assert_honest(log: EmbeddedLog, ledger: Ledger, session: str = "s") -> None:
    """What took effect is never shown as not started; opaque and keyed effects kept their rules."""
    effects = Counter(id_ for _, id_ in ledger.effects)
    for row in rows(log, "dispatches", session):
        if effects[row.dispatch] and row.status == "not_started":
            raise AssertionError(f"{row.dispatch} took effect and is shown as not started")
    assert ledger.count("opaque") <= 1
    assert ledger.count("reconcilable") <= 1
    assert all(len(keys) == 1 for keys in ledger.keys.values()), ledger.keys


async def steps(number: int) -> None:
    """Let the loop turn."""
    for _ in range(number):
        await asyncio.sleep(0)


async def until(condition: Callable[[], Any], limit: int = 20_000) -> None:
    """Let the loop turn until something is so."""
    for _ in range(limit):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to be so")


class Errors(list[TurnlogError]):
    """What a session's `on_error` was told."""

    def __call__(self, error: TurnlogError) -> None:
        self.append(error)


async def after_crash(log: MemoryLog, before: str | None = None) -> MoodyLog:
    """The log as a crash leaves it now, or before the first event of a type: whoever still works
    on the old one is dead, and writes nothing to this one."""
    fresh = MoodyLog()
    records = [stored.record for stored in log.tables.records("s")]
    if before is not None:
        types = [[event.type for event in decode(record).events] for record in records]
        records = records[: next(at for at, found in enumerate(types) if before in found)]
    await fresh.load(records)
    return fresh


class Hang:
    """Tools of all effect classes that take effect, if they may, and then hang."""

    def __init__(self, ledger: Ledger, *names: str, before_effect: bool = False) -> None:
        self.started: set[str] = set()
        self._ledger = ledger
        self._before_effect = before_effect
        self.tools = [self._tool(name) for name in names or EFFECTS]

    def _tool(self, name: str) -> Tool:
        made = self._ledger.tool(name)

        async def run(call: ToolCall) -> str:
            if not self._before_effect:
                await made.run(call)
            self.started.add(name)
            return await asyncio.Event().wait() or ""

        return Tool(name, run, effect=made.effect, probe=made.probe)


async def crashed_turn(
    ledger: Ledger, *names: str, before_effect: bool = False, message: Any = None
) -> MoodyLog:
    """The log of a host that died while its tools ran, after their effects or before them."""
    log = MoodyLog()
    hang = Hang(ledger, *names, before_effect=before_effect)
    async with host(log, *hang.tools) as session:
        said = calls(*(names or EFFECTS)) if message is None else message
        task = asyncio.create_task(run_turn(session, Script(said), "go"))
        await until(lambda: hang.started == set(names or EFFECTS))
        crashed = await after_crash(log)
        task.cancel()
        await asyncio.wait([task])
    return crashed
