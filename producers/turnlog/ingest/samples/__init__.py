"""Session files of our own making, as Claude Code and pi would write them.

For a first look at turnlog, for tests and for measuring. The work in them is invented: a small
program that prints tide tables. The same files come out each time, with what is true of them, which
was counted when they were written and not by importing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnlog.ingest.samples import claude_files, pi_files
from turnlog.ingest.samples.large import big_claude_file

__all__ = ["Sample", "big_claude_file", "write_samples"]


class Sample(NamedTuple):
    """A file, the session in it, and what is true of the session.

    `expects` has `usage` (tokens, and the price where the format has one), `branches`,
    `unanswered` calls at the end, how many turns had which of the `outcomes` (or are `open`), and
    the `surface` at the leaf as roles.
    """

    format: str
    path: Path
    session: str
    expects: Mapping[str, Any]


def write_samples(folder: Path) -> list[Sample]:
    """Write the files into `folder`/claude-code and `folder`/pi, which may exist."""
    return [
        *(
            Sample("claude-code", path, session, expects)
            for path, session, expects in claude_files.write(folder / "claude-code")
        ),
        *(
            Sample("pi", path, session, expects)
            for path, session, expects in pi_files.write(folder / "pi")
        ),
    ]
