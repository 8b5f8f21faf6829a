"""What still goes out once a session is lost: what is known of effects, and what a person said.

Answers and usage go out under the old claim, where they count as evidence. A user's message whose
turn was not accepted is offered again as a queued input, so that nobody has to type it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnlog.core.errors import LogError
from turnlog.core.frames import NewEvent
from turnlog.owner.guest import queue_input, write_guest

if TYPE_CHECKING:
    from turnlog.host.link import Link


async def testify(link: Link, unsaved: Sequence[NewEvent]) -> None:
    """Publish what is left of the events that a fenced owner could not save.

    What the log does not take is told through the session's `on_error`.
    """
    owner = link.owner
    answers = [event for event in unsaved if is_answer(event)]
    try:
        if answers:
            await owner.testify(answers)
        for event in _unheard(unsaved):
            again = queue_input(
                event.data["content"], owner.ambient, input_=event.id, entry=event.id
            )
            await write_guest(owner.log, link.id, [again], writer=owner.host, ambient=owner.ambient)
    except LogError as error:
        link.settings.on_error(error)


def is_answer(event: NewEvent) -> bool:
    """Whether an event counts as evidence under a claim that is no longer in force."""
    if event.type == "message":
        return event.data["role"] == "tool" and event.data.get("dispatch") is not None
    return event.type in ("dispatch_settled", "usage_settled")


def _unheard(unsaved: Sequence[NewEvent]) -> list[NewEvent]:
    """The messages of users whose turn was not accepted. A queued input is queued as it was."""
    accepted = {
        event.data.get("input_entry")
        for event in unsaved
        if event.type == "operation_accepted" and event.data.get("trigger") != "queue"
    }
    return [event for event in unsaved if event.type == "message" and event.id in accepted]
