"""What a host's own code raises, beside the errors of `turnlog.core.errors`."""

from __future__ import annotations

from turnlog.core.errors import TurnlogError, UsageError
from turnlog.core.text import well_formed

MESSAGE_CHARACTERS = 2_000


class Aborted(TurnlogError):
    """Somebody asked the turn to stop. Its calls are settled and it ends as aborted."""


class OperationOpen(UsageError):
    """A turn cannot begin while another operation of the session is open."""


class CompactionFailed(TurnlogError):
    """There is no summary, or none that may stand for what it was made from. The session is as it
    was, and can go on."""


class ContextOverflow(Exception):
    """Raised by a host's own model function: the context is more than the model takes."""


class Failed(Exception):
    """Raised by a tool whose work failed in a way that is known: the call is settled as error."""


class OutcomeUnknown(Exception):
    """Raised by a tool that cannot tell whether its effect took place: settled as unknown."""


def told(error: BaseException) -> dict[str, str]:
    """An error as the log takes it, whatever its own text is: {"type", "message"}."""
    try:
        text = str(error)
    except Exception:
        text = "its text cannot be told"
    if len(text) > MESSAGE_CHARACTERS:
        text = f"{text[:MESSAGE_CHARACTERS]}… ({len(text):,} characters)"
    return {"type": type(error).__name__, "message": well_formed(text)[0]}
