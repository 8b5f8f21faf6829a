"""Faults that the simulation has found and that are not mended yet: take out what is mended."""

from __future__ import annotations

from turnlog.testing.simulation import Report

KNOWN = {
    "saved": "was told",
    "opaque": "try 1: start 2",
    "one key": "try 1 with another key",
    "not started": "try_number=",
    "no error": "EntryNotFound",
}
"""A part of what is told, by rule.

saved: an owner takes its frame for saved that is a duplicate below the last seq, although that seq
is another frame's (a copy of the host). opaque, one key: a rerun opens an operation again after a
navigation, and calls of a later operation that are on the path count as not started. not started:
of a repeated T1 that came too late the host says not_started, although an earlier try did start.
no error: `compact_now` of a host that is fenced, and has not heard it, raises EntryNotFound.
"""


def is_known(report: Report) -> bool:
    """Whether what failed is one of these."""
    rule, detail = report.violations[0]
    return rule in KNOWN and KNOWN[rule] in detail
