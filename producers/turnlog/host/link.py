"""What ties a host to its session: one claim, one writer, the leaf, and what waits to be written.

Everything that is read is read from the tables, with the waiting events folded over them, so what
the host sees is what any reader will see once those are saved. An idle session has no task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from turnlog.core.errors import AppendUnknown, Fenced, SchemaError, TurnlogError
from turnlog.core.frames import NewEvent, canonical, digest_of
from turnlog.core.rows import Head
from turnlog.host.batch import Batch
from turnlog.host.content import Content
from turnlog.host.evidence import testify
from turnlog.host.policy import Policy
from turnlog.host.provisional import Provisional
from turnlog.host.tools import Tools
from turnlog.log.port import Stored
from turnlog.owner.owner import Owner
from turnlog.tables.store import Store
from turnlog.tables.view import SessionView

Json = Any
_T = TypeVar("_T")


class Settings(NamedTuple):
    """What a host chooses for its sessions; see `open_session`."""

    tools: Tools
    policy: Policy
    window_s: float
    on_error: Callable[[TurnlogError], None]


class Stoppable(Protocol):
    """The turn that is open, as the link knows it."""

    def lose(self) -> None:
        """The session is lost."""
        ...

    def look(self) -> None:
        """Somebody else has written to the session."""
        ...


class Link:
    """See the module's text.

    Whatever writes raises Fenced once another claim is in force, LogError where the log does not
    take it (nothing is lost then: a flush tries again), SchemaError and TooLarge for data that no
    log would take.
    """

    def __init__(self, owner: Owner, tables: Store, settings: Settings) -> None:
        self.owner = owner
        self.ambient = owner.ambient
        self.id = owner.session
        self.tables = tables
        self.settings = settings
        self.batch = Batch(
            owner, window_s=settings.window_s, on_error=self.fail, on_less=self._forget
        )
        self.turn: Stoppable | None = None
        self.leaf: str | None = None
        """The id of the entry that the next one hangs under; None at the root."""
        self._lost: Fenced | None = None
        self._layer: tuple[int, Provisional, SessionView] | None = None
        """What shows the waiting events, over the tables as of a position of the session."""
        self.asked_with: str | None = None
        """The digest of the last `context_set` that was taken."""
        self._news = asyncio.Event()
        self._background: set[asyncio.Task[Any]] = set()

    def view(self) -> SessionView:
        """The session with everything this host has written, saved or not."""
        while waiting := self.batch.waiting:
            position = self._reached()
            if self._lost is not None:
                break  # nothing is shown over what another owner has written
            if self._layer is None or self._layer[0] != position:
                reader = Provisional(self.tables, self.id, waiting)
                self._layer = position, reader, SessionView(reader, self.id, is_known=True)
            else:
                self._layer[1].take(waiting)
            if self._reached() == position:  # else a part was folded over what has it already
                return self._layer[2]
        return SessionView(self.tables, self.id, is_known=True)

    def event(self, type_: str, data: Mapping[str, Json], id_: str | None = None) -> NewEvent:
        """A new event, now."""
        return NewEvent(type_, id_ or self.ambient.ids(), self.ambient.now(), dict(data))

    async def add_entry(self, type_: str, data: dict[str, Json], id_: str | None = None) -> str:
        """Add an entry under the leaf; gives its id."""
        event = self.event(type_, {"parent": self.leaf, **data}, id_)
        await self.write([event], leaf=event.id)
        return event.id

    async def write(self, events: Sequence[NewEvent], *, leaf: str | None = None) -> None:
        """Write events that belong in one frame, within the window. `leaf` is the last entry."""
        self.put(events, leaf=leaf)
        await self.batch.relieve()

    def put(self, events: Sequence[NewEvent], *, leaf: str | None = None) -> None:
        """As `write`, without waiting for the log where too much is waiting already."""
        self.check()
        self.batch.put(events)
        self.leaf = leaf or self.leaf

    async def write_now(
        self, events: Sequence[NewEvent], *, leaf: str | None = None, withdraw: bool = False
    ) -> int:
        """Write events that belong in one frame; gives its position once it is saved. `leaf` is the
        last entry, `withdraw` as `Batch.send` says. Cancelled, it is written all the same."""
        self.check()
        saved = self.batch.send(events, withdraw=withdraw)
        self.leaf = leaf or self.leaf
        try:
            return await saved
        except (AppendUnknown, Fenced):
            raise
        except TurnlogError:
            if withdraw:
                self.look_up_leaf()
            raise

    async def blobs(self, content: Content) -> list[dict[str, Json]]:
        """Take the blob parts of a content, without waiting for the log; gives its parts."""
        for data in content.blobs:
            self.put([self.event("blob_part", data)])
        return content.parts

    def context_digest(self, said: dict[str, Json]) -> tuple[str, list[NewEvent]]:
        """The digest of what an attempt is asked with, and the event that says so where that is not
        what `asked_with` says was told last."""
        try:
            digest = digest_of(canonical(said))
        except TypeError as error:
            raise SchemaError(
                f"session {self.id!r}: what the model is asked with is no JSON: {error}"
            ) from error
        if digest == self.asked_with:
            return digest, []
        return digest, [self.event("context_set", {"digest": digest, **said})]

    def look_up_leaf(self) -> None:
        """Take the leaf from the tables, where what was written may not have moved it."""
        view = self.view()
        number = view.head.leaf
        self.leaf = view.entry(number).id if number else None

    @property
    def is_lost(self) -> bool:
        """Whether another claim is in force."""
        return self._lost is not None

    @property
    def unsaved(self) -> tuple[NewEvent, ...]:
        """What a lost session could not save."""
        return () if self._lost is None else self._lost.unsaved

    def check(self) -> None:
        """Raise Fenced where the session is lost."""
        if self._lost is not None:
            raise Fenced(str(self._lost), self._lost.unsaved)

    def behind(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run something whose caller may be cancelled; `close` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def news(self) -> None:
        """Return once somebody else has written to the session."""
        self._news.clear()
        await self._news.wait()

    def tell(self) -> None:
        """Wake who waits for news."""
        self._news.set()

    async def settle_background(self) -> None:
        """Wait for what was left running."""
        while self._background:
            await asyncio.wait(tuple(self._background))

    def lose(self, error: Fenced) -> None:
        """The session is somebody else's: tell everybody who works on it, once."""
        if self._lost is not None:
            return
        unsaved = [*error.unsaved] or self.batch.waiting
        self._lost = Fenced(str(error), unsaved)
        self.batch.drop(self._lost)
        self.behind(testify(self, unsaved))
        if self.turn is not None:
            self.turn.lose()
        self.tell()

    def see(self, stored: Stored) -> None:
        """Called with each record of this session, whoever wrote it."""
        header = stored.record.header
        if header is None or header.claim != self.owner.claim_id:
            self.behind(self._take(stored))

    async def _take(self, stored: Stored) -> None:
        try:
            await self.tables.wait(stored.position, self.owner.log.partition_of(self.id))
            if self._lost is None:
                await self.owner.refresh(stored.position)
        except TurnlogError as error:  # nobody waits for this; whoever writes next is told, too
            self.fail(error)
        if self.owner.is_taken:  # its own release, which may be under way, is no loss
            self.lose(self.owner.loss())
        if self.turn is not None:
            self.turn.look()
        self.tell()

    def _reached(self) -> int:
        """The position of the session in the tables; notices there that it is lost."""
        head: Head | None = self.tables.get(("sessions", self.id))
        if head is None:
            return 0
        if head.epoch > self.owner.epoch:
            self.lose(self.owner.loss())
        return head.position

    def _forget(self) -> None:
        self._layer = None

    def fail(self, error: TurnlogError) -> None:
        """Something failed in the background. That the session is lost is told once."""
        if isinstance(error, Fenced):
            if self._lost is not None:
                return
            self.lose(error)
        self.settings.on_error(error)
