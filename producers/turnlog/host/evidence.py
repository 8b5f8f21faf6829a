"""What still goes out once a session is lost: what is known of effects, and what a person said.

Answers and usage go out under the old claim, where they count as evidence. A user's message whose
turn was not accepted is offered again as a queued input, so that nobody has to type it twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from turnlog.core.errors import TurnlogError
from turnlog.core.frames import NewEvent
from turnlog.owner.guest import queue_input, write_guest

if TYPE_CHECKING:
    from turnlog.host.link import Link


async def testify(link: Link, unsaved: Sequence[NewEvent]) -> None:
    """Publish what is left of the events that a fenced owner could not save.

    What the log does not take is told through the session's `on_error`.
    """
    owner = link.owner
    for event in unsaved:  # each in a frame of its own: together they may not fit one
        if is_answer(event):
            await _publish(link, owner.testify([event]))
    for event in _unheard(unsaved):
        again = event
        if event.type == "message":
            again = queue_input(
                event.data["content"], owner.ambient, input_=event.id, entry=event.id
            )
        sent = write_guest(owner.log, link.id, [again], writer=owner.host, ambient=owner.ambient)
        await _publish(link, sent)


async def _publish(link: Link, sent: Awaitable[object]) -> None:
    try:
        await sent
    except TurnlogError as error:
        link.settings.on_error(error)


def is_answer(event: NewEvent) -> bool:
    """Whether an event counts as evidence under a claim that is no longer in force."""
    if event.type == "message":
        return event.data["role"] == "tool" and event.data.get("dispatch") is not None
    return event.type in ("dispatch_settled", "usage_settled")


def _unheard(unsaved: Sequence[NewEvent]) -> list[NewEvent]:
    """What users said that nobody has heard: messages whose turn was not accepted, and inputs that
    were not queued. A turn that took a queued input leaves that queued as it was."""
    accepted = {
        event.data.get("input_entry")
        for event in unsaved
        if event.type == "operation_accepted" and event.data.get("trigger") != "queue"
    }
    return [
        event
        for event in unsaved
        if event.type == "input_queued" or (event.type == "message" and event.id in accepted)
    ]
