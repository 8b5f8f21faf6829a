"""The host's tests wait for nothing: what is new is looked at at once."""

import pytest

from turnlog.owner import tail


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PAUSE_S", 0.0, raising=False)
