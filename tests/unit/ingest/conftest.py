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
