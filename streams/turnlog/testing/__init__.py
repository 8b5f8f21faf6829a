"""What the authors of hosts test their agents with: a log in memory, crashes, a scripted model.

docs/testing.md shows how. The pytest fixtures are in `turnlog.testing.plugin`.
"""

from turnlog.testing.crashes import Crash, NotReached, crash_at, dying
from turnlog.testing.effects import EffectCounter
from turnlog.testing.everywhere import World, for_each_crash
from turnlog.testing.memory import ManualClock, counted_ids, fixed_ambient, memory_log
from turnlog.testing.model import ScriptedModel, ScriptEnded, call

__all__ = [
    "Crash",
    "EffectCounter",
    "ManualClock",
    "NotReached",
    "ScriptEnded",
    "ScriptedModel",
    "World",
    "call",
    "counted_ids",
    "crash_at",
    "dying",
    "fixed_ambient",
    "for_each_crash",
    "memory_log",
]
