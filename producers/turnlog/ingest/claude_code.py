"""Session files of Claude Code: their lines in order, as one session or several.

The first pass makes the outline and the plan; `ClaudeTeller` tells the events by it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from turnlog.core.shapes import is_object
from turnlog.ingest.claude_lines import content_of, first_text, group_of, kind_of, parent_of
from turnlog.ingest.claude_teller import ClaudeTeller
from turnlog.ingest.lines import Broken, LineFile, parse
from turnlog.ingest.outline import Facts, Kind, Outline, hash_of
from turnlog.ingest.plan import Plan
from turnlog.ingest.thread import Data
from turnlog.ingest.told import Notes, Reading, Session, Sheet, Spawns, Told
from turnlog.ingest.values import id_at, list_at, object_at, text_at

Json = Any

FORMAT = "claude-code"
_SPAWNERS = ("Task", "Agent")


class Call:
    """A call that may have started a sub-agent, as the first pass sees it."""

    def __init__(self, row: int, call_id: str, index: int, prompt: str) -> None:
        self.row = row
        self.call_id = call_id
        self.index = index
        self.prompt = hash_of(prompt.strip())
        self.point: Data = {}
        self.session = ""
        self.taken = False


class ClaudeFile:
    """One file. Its session goes by the first of `names` that its lines go by, else by the last.
    Lines of a side chain in the same file are sessions of their own, unless the whole file is one
    (`is_agent`)."""

    def __init__(
        self,
        file: LineFile,
        names: Sequence[str],
        *,
        is_agent: bool,
        cuts: Sequence[int],
        notes: Notes,
    ) -> None:
        self._file = file
        self._candidates = list(names)
        self._own = names[0]
        self._is_agent = is_agent
        self._cuts = list(cuts)
        self._notes = notes
        self._outline = Outline()
        self._plan = Plan(self._outline, exact=False)
        self._sheet = Sheet(file, self._outline)
        self._tracks: dict[str, int] = {}
        self._prompts: dict[int, int] = {}
        self._calls: list[Call] = []
        self._agents: dict[str, str] = {}
        self._first: dict[int, Data] = {}
        self._sessions: set[str] = set()
        self._first_child = array("I", [0])
        self._marks: dict[tuple[int, int], int] = {}
        self._origins: dict[int, int] = {}

    def read(self) -> Reading:
        """The first pass over the file."""
        cuts = [cut for cut in self._cuts if cut < self._file.end]
        old = self._cuts[-1] if self._cuts else 0
        for raw in self._file.scan():
            while cuts and raw.offset >= cuts[0]:
                self._plan.close_stage(cuts.pop(0))
            if raw.body is None:
                if raw.offset >= old:
                    self._notes.problem(raw.number, "the line is too long to be imported")
                continue
            try:
                parsed = parse(raw.body)
            except Broken as error:
                if raw.offset >= old:
                    self._notes.problem(raw.number, str(error))
                continue
            if raw.offset >= old:
                for note in parsed.notes:
                    self._notes.warning(raw.number, note)
            value: Json = parsed.value
            self._add(raw.number, raw.offset, value, is_new=raw.offset >= old)
        for end in [*cuts, self._file.end]:
            self._plan.close_stage(end)
        self._warn_of_cycles(old)
        return self._reading()

    def _add(self, number: int, offset: int, line: Json, *, is_new: bool) -> None:
        if not is_object(line):
            self._outline.add(number, offset, Facts(Kind.RECORD))
            self._first_child.append(0)
            return
        kind = kind_of(line)
        uuid = id_at(line, "uuid") if not kind & Kind.RECORD else None
        parent = parent_of(line)
        track = self._track(line, uuid or str(number), kind)
        above = self._outline.row(parent or "")
        above = self._origins.get(above, above)
        twin = self._twin(line, above) if uuid is not None and kind & Kind.MESSAGE else 0
        name = id_at(self._sheet.line(twin), "uuid") if twin else None
        facts = Facts(kind, uuid, parent, group_of(line), track)
        if name is not None and name != uuid:
            facts = Facts(Kind.ALIAS, uuid, name, None, track)
        row = self._outline.add(number, offset, facts)
        if not row:
            self._check_copy(number, offset, uuid or "", is_new=is_new)
            return
        if facts.kind == Kind.ALIAS:
            self._first_child.append(0)
            self._origins[row] = twin
            return
        self._note_child(row, above, line)
        first = self._first.setdefault(track, {})
        for name in ("cwd", "version"):
            if name not in first and isinstance(line.get(name), str):
                first[name] = line[name]
        session = text_at(line, "sessionId")
        if session is not None:
            self._sessions.add(session)
        if kind & (Kind.ASSISTANT | Kind.RESULT):
            self._note_spawn(row, line, kind)
        elif kind & Kind.PROMPT and track not in self._prompts:
            self._prompts[track] = hash_of(first_text(line).strip() or uuid or "")
        elif line.get("type") == "last-prompt":
            leaf = self._outline.row(id_at(line, "leafUuid") or "")
            if leaf and self._outline.tracks[leaf] == track:
                self._plan.point(track, row, leaf)

    def _twin(self, line: Data, above: int) -> int:
        """The row of an earlier line that this one repeats under a new id, as Claude Code does
        when it replays messages after a compaction: same parent, time and content."""
        first = self._first_child[above]
        if not above or not first:
            return 0
        if (above, 0) not in self._marks:
            self._marks[above, 0] = first
            self._marks[above, _mark(self._sheet.line(first))] = first
        return self._marks.get((above, _mark(line) or -1), 0)

    def _note_child(self, row: int, above: int, line: Data) -> None:
        self._first_child.append(0)
        if not above:
            return
        if not self._first_child[above]:
            self._first_child[above] = row
        elif (above, 0) in self._marks:
            self._marks.setdefault((above, _mark(line)), row)

    def _track(self, line: Data, name: str, kind: int) -> int:
        """Track 0 for the file's own session, another for each side chain in it."""
        if self._is_agent or line.get("isSidechain") is not True or kind & Kind.RECORD:
            return 0
        agent = id_at(line, "agentId")
        if agent is not None:
            return self._tracks.setdefault(f"agent-{agent}", len(self._tracks) + 1)
        parent = self._outline.row(parent_of(line) or "")
        track = self._outline.tracks[parent]
        return track or self._tracks.setdefault(f"side-{name}", len(self._tracks) + 1)

    def _note_spawn(self, row: int, line: Data, kind: int) -> None:
        blocks = list_at(object_at(line, "message"), "content")
        if kind & Kind.RESULT:
            agent = id_at(object_at(line, "toolUseResult"), "agentId")
            for block in blocks if agent is not None else []:
                if is_object(block) and isinstance(block.get("tool_use_id"), str):
                    self._agents.setdefault(agent or "", block["tool_use_id"])
            return
        index = 0
        for block in blocks:
            if not is_object(block) or block.get("type") != "tool_use":
                continue
            if block.get("name") in _SPAWNERS:
                prompt = text_at(object_at(block, "input"), "prompt") or ""
                self._calls.append(Call(row, str(block.get("id")), index, prompt))
            index += 1

    def _check_copy(self, number: int, offset: int, uuid: str, *, is_new: bool) -> None:
        """A line with the id of an earlier one is left out; say so where it says something else."""
        if not is_new:
            return
        first = self._outline.row(uuid)
        if self._file.at(self._outline.offsets[first]) != self._file.at(offset):
            self._notes.warning(
                number,
                f"it has the uuid of line {self._outline.numbers[first]} and other content;"
                " the earlier line was kept",
            )

    def _warn_of_cycles(self, old: int) -> None:
        for row in self._plan.broken:
            if self._outline.offsets[row] >= old:
                self._notes.warning(
                    self._outline.numbers[row],
                    "its parents form a cycle; it was put behind the line before it",
                )

    def _reading(self) -> Reading:
        known = [name for name in self._candidates if name in self._sessions]
        self._own = (known or self._candidates[-1:])[0]
        names = {0: self._own} | {
            track: f"{self._own}.{name}" for name, track in self._tracks.items()
        }
        for call in self._calls:
            self._place_call(call, names)
        sessions = [
            self._session(track, names)
            for track in sorted(self._plan.tracks)
            if self._plan.tracks[track].stages
        ]
        points = {call.call_id: call.point for call in self._calls}
        by_agent = {
            agent: points[call_id] for agent, call_id in self._agents.items() if call_id in points
        }
        by_prompt: dict[int, list[Data]] = {}
        for call in self._calls:
            by_prompt.setdefault(call.prompt, []).append(call.point)
        return Reading(sessions, Spawns(by_agent, by_prompt), self._prompts.get(0))

    def _place_call(self, call: Call, names: dict[int, str]) -> None:
        head = self._plan.resolve(call.row)
        index = call.index
        for part in self._plan.parts(head):
            if part == call.row:
                break
            index += len(content_of(self._sheet.line(part))[1])
        entry = id_at(self._sheet.line(head), "uuid") or f"line-{self._outline.numbers[head]}"
        call.point = {"entry": entry, "call_index": index, "dispatch": None}
        call.session = names[self._outline.tracks[call.row]]

    def _session(self, track: int, names: dict[int, str]) -> Session:
        first = self._first.get(track, {})
        created: Data = {
            "title": None,
            "cwd": text_at(first, "cwd"),
            "agent": FORMAT,
            "origin": {"format": FORMAT, "version": first.get("version")},
        }
        if track:
            call = self._spawner(track)
            created["parent_session"] = call.session if call is not None else self._own
            created["spawned_by"] = call.point if call is not None else None
        copied = self._own if self._own in self._sessions else None
        stages = self._plan.tracks[track].stages

        def tell() -> Iterator[Told]:
            teller = ClaudeTeller(self._plan, self._sheet, first=first, own=copied)
            return teller.tell(stages)

        return Session(names[track], created, [stage.end for stage in stages], tell)

    def _spawner(self, track: int) -> Call | None:
        """The call that started a side chain: by the agent's id, else by its prompt."""
        name = next(name for name, number in self._tracks.items() if number == track)
        call_id = self._agents.get(name.removeprefix("agent-"))
        by_id = [call for call in self._calls if call.call_id == call_id]
        prompt = self._prompts.get(track)
        for call in by_id or self._calls:
            if not call.taken and (by_id or call.prompt == prompt):
                call.taken = True
                return call
        return None


def _mark(line: Data) -> int:
    """What a repeated line has in common with the first; 0 where it has no time to go by."""
    if text_at(line, "timestamp") is None:
        return 0
    said = [line["timestamp"], line.get("type"), line.get("message")]
    return int.from_bytes(blake2b(orjson.dumps(said), digest_size=8).digest()) or 1
