"""What every test shares: how much runs. TURNLOG_PROOF=1 asks for full counts and long tests."""

import os

import pytest
from hypothesis import settings

from tests.kafka import broker, java, kafka_servers
from tests.secured import secured

__all__ = ["broker", "java", "kafka_servers", "secured"]

PROOF = os.environ.get("TURNLOG_PROOF") == "1"

# No deadline: a slow machine is no fault, and pytest-timeout ends what really hangs.
settings.register_profile("quick", max_examples=100, deadline=None, print_blob=True)
settings.register_profile("proof", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("proof" if PROOF else "quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave `proof` tests out unless they are asked for; pytest counts them as deselected."""
    if PROOF:
        return
    left_out = [item for item in items if item.get_closest_marker("proof")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def proof() -> bool:
    """Whether full counts are asked for: `count = 1_000 if proof else 100`."""
    return PROOF
