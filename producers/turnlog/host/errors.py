"""What a host's own code raises, beside the errors of `turnlog.core.errors`."""

from __future__ import annotations

from turnlog.core.errors import TurnlogError, UsageError


class Aborted(TurnlogError):
    """Somebody asked the turn to stop. Its calls are settled and it ends as aborted."""


class OperationOpen(UsageError):
    """A turn cannot begin while another operation of the session is open."""


class Failed(Exception):
    """Raised by a tool whose work failed in a way that is known: the call is settled as error."""


class OutcomeUnknown(Exception):
    """Raised by a tool that cannot tell whether its effect took place: settled as unknown."""
