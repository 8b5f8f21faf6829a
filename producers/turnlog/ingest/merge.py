"""What is written into a session that is not as its file's reader left it.

Somebody else may have written since the last import: a recovery that closed what was open. And a
file may no longer hold what was imported from it. In both cases what is in the log stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from turnlog.core.events import ENTRY_TYPES
from turnlog.core.frames import NewEvent
from turnlog.core.rows import Head, Key, Operation
from turnlog.ingest.thread import Data, derived
from turnlog.ingest.told import Told

Json = Any
Get = Callable[[Key], Any]


class Rejoin:
    """Takes a session up where its reader left it, whatever was written since.

    The leaf is moved back, and a turn that was closed meanwhile is gone on with as a new operation.
    """

    def __init__(self, get: Get, session: str) -> None:
        self._get = get
        self._session = session
        self._started = False
        self._moved = False
        self._under: str | None = None
        self._names: dict[str, str] = {}

    def events(self, told: Told) -> list[NewEvent]:
        """The events of a unit as they are to be written."""
        found: list[NewEvent] = []
        if not self._started:
            self._started = True
            self._under = told.under
            found.extend(self._reopened(told))
        for event in told.events:
            if not self._moved and event.type in ENTRY_TYPES:
                self._moved = True
                found.extend(self._placed(event))
            else:
                found.append(event)
        return [self._renamed(event) for event in found] if self._names else found

    def _placed(self, event: NewEvent) -> Iterator[NewEvent]:
        head: Head | None = self._get(("sessions", self._session))
        leaf = leaf_of(self._get, head)
        if event.type == "branch" or leaf == self._under:
            yield event
            return
        back = derived("return", event.id)
        yield NewEvent("branch", back, event.time, {"parent": self._under, "from": leaf})
        parent: Json = event.data["parent"]
        yield event._replace(
            data={**event.data, "parent": back if parent == self._under else parent}
        )

    def _reopened(self, told: Told) -> Iterator[NewEvent]:
        if told.operation is None:
            return
        row: Operation | None = self._get(("operations", self._session, told.operation))
        if row is None or not (row.finished or row.superseded):
            return
        again = derived("turn", told.operation, told.line)
        data: Data = {
            "operation": again,
            "kind": "prompt",
            "input_entry": row.input_entry,
            "start_leaf": told.under,
            "trigger": None,
        }
        yield NewEvent("operation_accepted", f"{again}.accepted", told.events[0].time, data)
        self._names[told.operation] = again

    def _renamed(self, event: NewEvent) -> NewEvent:
        operation: Json = event.data.get("operation")
        again = self._names.get(operation) if isinstance(operation, str) else None
        if again is None:
            return event
        return event._replace(data={**event.data, "operation": again})


class Newcomers:
    """Of a file that has changed, what is new: entries with unknown ids, with their turns.

    What has no id of its own cannot be told from what is there, and is left out, unless the file
    only `grew` since. `entries` takes nothing but entries, with turns of their own.
    """

    def __init__(
        self, get: Get, session: str, format_: str, *, grew: bool = False, entries: bool = False
    ) -> None:
        self._grew = grew
        self._entries = entries
        self._get = get
        self._session = session
        self._format = format_
        self._written: set[str] = set()
        self._operations: set[str] = set()
        self._moves: dict[str, Json] = {}
        self._leaf = leaf_of(get, get(("sessions", session)))

    def events(self, told: Told) -> list[NewEvent]:
        """The events of a unit that are new."""
        found: list[NewEvent] = []
        for event in told.events:
            if event.type in ENTRY_TYPES:
                found.extend(self._entry(event))
            elif self._is_new_record(event):
                found.append(event)
        return found

    def _entry(self, event: NewEvent) -> Iterator[NewEvent]:
        if self._is_known(event.id):
            return
        data = dict(event.data)
        data["parent"] = self._moves.get(data["parent"], data["parent"])
        if event.type == "branch" and data.get("summary") is None:
            if self._grew:
                self._leaf = event.id
                self._written.add(event.id)
                yield event._replace(data=data)
            else:  # what hangs under it, and is new, is moved to by itself
                self._moves[event.id] = data["parent"]
            return
        type_ = event.type
        if type_ == "compaction":
            # what it replaced then need not be on the surface now
            kept = {name: value for name, value in data.items() if name not in ("parent", "usage")}
            type_ = "custom"
            data = {
                "parent": data["parent"],
                "kind": f"{self._format}:compaction",
                "value": kept,
                "in_context": True,
            }
        attempt: Json = data.get("attempt")
        if attempt is not None and attempt not in self._written:
            data["attempt"] = None
        parent: Json = data["parent"]
        if parent != self._leaf and (parent is None or self._is_known(parent)):
            back = derived("return", event.id)
            yield NewEvent("branch", back, event.time, {"parent": parent, "from": self._leaf})
            data["parent"] = back
        self._leaf = event.id
        self._written.add(event.id)
        yield event._replace(type=type_, data=data)

    def _is_new_record(self, event: NewEvent) -> bool:
        data = event.data
        operation: Json = data.get("operation")
        if event.type == "operation_accepted":
            if self._get(("operations", self._session, operation)) is not None:
                return False
            self._operations.add(operation)
            return True
        if isinstance(operation, str):
            return self._is_of_new_work(event, operation)
        if self._entries:
            return False
        if event.type == "fact":
            row: Json = self._get(("facts", self._session, data["name"]))
            return row is None or row.value != data["value"]
        return self._grew

    def _is_of_new_work(self, event: NewEvent, operation: str) -> bool:
        """Whether a record is of a turn that is new, or that is open and goes on."""
        if operation not in self._operations:
            row: Operation | None = self._get(("operations", self._session, operation))
            if not self._grew or row is None or row.finished or row.superseded:
                return False
        if event.type == "model_attempted":
            if self._is_known(event.data["assistant_entry"]):
                return False
            self._written.add(event.data["attempt"])
        elif event.type == "usage_settled":
            return event.data["attempt"] in self._written
        elif event.type == "operation_finished":
            self._operations.discard(operation)
        return True

    def _is_known(self, id_: str) -> bool:
        return id_ in self._written or self._get(("ids", self._session, id_)) is not None


def leaf_of(get: Get, head: Head | None) -> str | None:
    """The id of the leaf; None for the root position."""
    if head is None or not head.leaf:
        return None
    row: Json = get(("entries", head.session, head.leaf))
    id_: str = row.id
    return id_
