"""Strategies: sessions that Claude Code and pi could have written, turn by turn."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.ingest.foreign import (
    answer,
    boundary,
    call,
    pi,
    pi_answer,
    pi_call,
    pi_header,
    pi_result,
    pi_user,
    result,
    summary,
    system,
    text,
    user,
)

Json = Any
STOPS = ["end_turn", "max_tokens", "refusal", None]


class ClaudeSession:
    """A session as it is written: its lines so far, and where a next one may hang."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.lines: list[Json] = []
        self.at: str | None = None
        self.ends: list[str | None] = [None]
        """Where a turn ended: what a person can rewind to."""
        self.prompts: list[str] = []
        self.count = 0

    def id(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def put(self, line: Json) -> str:
        self.lines.append(line)
        self.at = line["uuid"]
        return str(self.at)

    def maybe(self, chance: int) -> bool:
        return bool(self.draw(st.integers(1, 100)) <= chance)

    def noise(self) -> None:
        if self.maybe(15):
            self.put(system(self.id(), self.at, subtype="info"))
        if self.maybe(10):
            self.lines.append({"type": "mode", "mode": "plan"})

    def prompt(self) -> None:
        if self.maybe(20):
            self.at = self.draw(st.sampled_from(self.ends))
        elif self.maybe(5):
            self.at = "gone"
        self.prompts.append(self.put(user(self.id(), self.at, f"prompt {self.count}")))
        self.noise()

    def turn(self) -> None:
        self.prompt()
        for _ in range(self.draw(st.integers(0, 3))):
            self.step()
            if self.maybe(10):
                self.compact()
        if self.maybe(15):
            words = [text("[Request interrupted by user]")]
            self.put(user(self.id(), self.at, words))
        elif self.maybe(80):
            stop = self.draw(st.sampled_from(STOPS))
            self.put(answer(self.id(), self.at, text("said"), stop=stop, output=self.count))
        self.ends.append(self.at)
        self.noise()

    def step(self) -> None:
        """An answer with calls, in one line or several, and results in any order."""
        message = f"m{self.count}"
        calls = [f"c{self.count}-{n}" for n in range(self.draw(st.integers(1, 3)))]
        blocks = [text("let me"), *(call(id_) for id_ in calls)]
        sources: dict[str, str] = {}
        if self.maybe(60):
            for number, block in enumerate(blocks):
                stop = "tool_use" if number + 1 == len(blocks) else None
                part = answer(
                    self.id(), self.at, block, message=message, stop=stop, output=number + 1
                )
                sources[block.get("id", "")] = self.put(part)
        else:
            sources = dict.fromkeys(calls, self.put(answer(self.id(), self.at, *blocks)))
        parallel = self.maybe(50)
        for id_ in self.draw(st.permutations(calls)):
            if self.maybe(90):
                self.put(result(self.id(), sources[id_] if parallel else self.at, id_))

    def compact(self) -> None:
        meta = {}
        if self.prompts and self.maybe(60):
            meta = {"preservedSegment": {"headUuid": self.draw(st.sampled_from(self.prompts))}}
        self.put(boundary(self.id(), self.at, **meta))
        self.put(summary(self.id(), str(self.at)))


@st.composite
def claude_sessions(draw: Any) -> list[Json]:
    session = ClaudeSession(draw)
    for _ in range(draw(st.integers(1, 5))):
        session.turn()
        if session.maybe(15):
            session.compact()
            session.ends.append(session.at)
    if session.maybe(15):
        leaf = draw(st.sampled_from([*session.ends[1:], session.lines[0]["uuid"]]))
        session.lines.append({"type": "last-prompt", "leafUuid": leaf})
    return session.lines


@st.composite
def pi_sessions(draw: Any) -> list[Json]:
    lines = [pi_header()]
    ids: list[str | None] = [None]
    calls: list[str] = []
    for number in range(draw(st.integers(1, 14))):
        id_ = f"n{number}"
        parent = ids[-1] if draw(st.integers(1, 100)) <= 85 else draw(st.sampled_from(ids))
        kind = draw(st.sampled_from("uuaaarrkblms"))
        if kind == "u":
            line = pi_user(id_, parent)
        elif kind == "a":
            calls = [f"c{number}-{n}" for n in range(draw(st.integers(0, 2)))]
            stop = draw(st.sampled_from(["stop", "toolUse", "aborted", "error"]))
            line = pi_answer(id_, parent, text("x"), *map(pi_call, calls), stop=stop)
        elif kind == "r" and calls:
            line = pi_result(id_, parent, draw(st.sampled_from(calls)))
        elif kind == "k":
            kept = draw(st.sampled_from([*ids, "gone"]))
            line = pi("compaction", id_, parent, summary="s", firstKeptEntryId=kept)
        elif kind == "b":
            line = pi("branch_summary", id_, parent, fromId=ids[-1] or "root", summary="b")
        elif kind == "l":
            line = pi("label", id_, parent, targetId=ids[-1] or "x", label="l")
        elif kind == "m":
            line = pi("model_change", id_, parent, modelId=str(number))
        else:
            line = pi("custom_message", id_, parent, customType="t", content="c")
        lines.append(line)
        ids.append(id_)
    return lines
