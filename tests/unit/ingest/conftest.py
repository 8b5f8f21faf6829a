from pathlib import Path

import pytest

from tests.unit.ingest.foreign import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Imports Claude Code files."""
    return Desk(tmp_path)


@pytest.fixture
def pi_desk(tmp_path: Path) -> Desk:
    """Imports pi files."""
    return Desk(tmp_path, "pi")


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import that holds a session is dead at once."""
    monkeypatch.setattr("turnlog.ingest.writing.PATIENCE_S", 0.0)
