"""What a host does about a call that a crash left open, by tool, by effect class, or by default.

The defaults are the design's second table of "Recovery". A policy can only be more careful than
they are: nothing makes an opaque effect run again by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from turnlog.core.errors import UsageError
from turnlog.host.tools import STRICTNESS

Action = Literal["run", "probe", "answer", "park"]
"""run: start it again; probe: ask the tool whether it happened; answer: tell the model that the
outcome is unknown; park: leave the operation to a person."""
ALLOWED: Mapping[str, tuple[Action, ...]] = {
    "read_only": ("run", "probe", "answer", "park"),
    "idempotent": ("run", "probe", "answer", "park"),
    "reconcilable": ("probe", "answer", "park"),
    "opaque": ("answer", "probe", "park"),
}
"""What may be chosen for each effect class; the first is the default."""
MAX_TRIES = 3


class Policy:
    """`by` maps a tool's name or an effect class to an action; a tool's own wins.

    `max_tries` is how often one dispatch may be started, all hosts together. Raises UsageError for
    an action that its effect class does not allow.
    """

    def __init__(
        self, by: Mapping[str, Action] | None = None, *, max_tries: int = MAX_TRIES
    ) -> None:
        self._by = dict(by or {})
        self.max_tries = max_tries
        for name, action in self._by.items():
            known = {item for allowed in ALLOWED.values() for item in allowed}
            allowed = ALLOWED[name] if name in STRICTNESS else tuple(sorted(known))
            if action not in allowed:
                raise UsageError(
                    f"policy for {name!r}: {action!r} is not possible; choose one of"
                    f" {', '.join(allowed)}"
                )

    def action(self, tool: str | None, effect: str) -> Action:
        """What to do about an open dispatch. What its effect class forbids counts as `answer`."""
        allowed = ALLOWED.get(effect, ALLOWED["opaque"])
        chosen = self._by.get(tool or "", self._by.get(effect, allowed[0]))
        return chosen if chosen in allowed else "answer"
