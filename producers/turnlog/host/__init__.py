"""What an agent host uses: sessions, turns, tools, and going on after a crash.

async with turnlog.log.open("sqlite:sessions.db", clock=system_clock) as log:
    async with open_session(log, "trip-42", host="h1", tools=tools) as session:
        await run_turn(session, model, "Book the train.")
"""

from turnlog.host.attempt import Attempt, Said
from turnlog.host.calls import ModelCall, Result
from turnlog.host.compaction import Compaction
from turnlog.host.errors import (
    Aborted,
    CompactionFailed,
    ContextOverflow,
    Failed,
    OperationOpen,
    OutcomeUnknown,
)
from turnlog.host.loop import Model, Reply, run_turn
from turnlog.host.opening import open_session
from turnlog.host.policy import Policy
from turnlog.host.session import Session
from turnlog.host.tools import Ask, Denied, Happened, Never, Tool, ToolCall, Unsure
from turnlog.host.turn import Turn

__all__ = [
    "Aborted",
    "Ask",
    "Attempt",
    "Compaction",
    "CompactionFailed",
    "ContextOverflow",
    "Denied",
    "Failed",
    "Happened",
    "Model",
    "ModelCall",
    "Never",
    "OperationOpen",
    "OutcomeUnknown",
    "Policy",
    "Reply",
    "Result",
    "Said",
    "Session",
    "Tool",
    "ToolCall",
    "Turn",
    "Unsure",
    "open_session",
    "run_turn",
]
