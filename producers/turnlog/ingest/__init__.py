"""Importers: session files of other agents, as events in a log.

report = await import_files(
    log, "claude-code", [Path("~/.claude/projects").expanduser()],
    ambient=Ambient(), host="me", masker=Masker(),
)
"""

from turnlog.ingest.formats import FORMATS
from turnlog.ingest.importer import import_files
from turnlog.ingest.report import Finding, Report
from turnlog.ingest.secrets import Masker

__all__ = ["FORMATS", "Finding", "Masker", "Report", "import_files"]
