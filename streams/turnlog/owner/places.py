"""The places of the protocol that code tells when it reaches them (`Ambient.reach`).

They are where a crash makes a difference, so tests kill or freeze a host there by name.
"""

from __future__ import annotations

CLAIM_SENT = "claim.sent"
CLAIM_SAVED = "claim.saved"
FRAME_SENT = "frame.sent"
FRAME_SAVED = "frame.saved"
T1_READY = "t1.ready"
"""The call is permitted and T1 is about to be sent."""
T1_SENT = "t1.sent"
"""T1 is acknowledged; whether the effect may start is not known yet."""
T1_CHECKED = "t1.checked"
"""The effect may start, and is about to."""
EFFECT_DONE = "effect.done"
"""The tool has returned; its result is not in the log."""
T2_SAVED = "t2.saved"
ATTEMPT_STARTED = "attempt.started"
ANSWER_READY = "answer.ready"
"""The model has answered; its message is not in the log."""
FINISH_READY = "finish.ready"
COMPACTION_STARTED = "compaction.started"
RECOVERY_READY = "recovery.ready"
"""A recovery has claimed and decided; its closing frame is not in the log."""

PLACES = tuple(value for name, value in list(globals().items()) if name.isupper())
