"""HOST:PORT as people write it."""

import pytest

from turnlog.cli.process.address import parse_address, reachable, shown
from turnlog.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("9100", ("127.0.0.1", 9100)),
        ("localhost:0", ("localhost", 0)),
        ("0.0.0.0:9100", ("0.0.0.0", 9100)),
        ("[::1]:9100", ("::1", 9100)),
        ("[fe80::1%eth0]:65535", ("fe80::1%eth0", 65535)),
    ],
)
def test_good_ones(text: str, place: tuple[str, int]) -> None:
    assert parse_address(text) == place
    assert parse_address(shown(*place)) == place


@pytest.mark.parametrize(
    "text",
    ["", ":9100", "host", "host:", "host:x", "host:65536", "::1:9100", "::1", "http://h:1", "a b:1",
     "h:1/metrics", "9100\n"],
)  # fmt: skip
def test_others_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write HOST:PORT"):
        parse_address(text)


def test_who_listens_everywhere_is_asked_here() -> None:
    assert [reachable(host) for host in ("0.0.0.0", "::", "10.0.0.1")] == [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
    ]
