"""HOST:PORT of the admin port, as people write it."""

from __future__ import annotations

import re

from turnlog.core.errors import UsageError

LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\[\]:/@\s]+)):)?([0-9]{1,5})")
_ANY = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104  # nothing is bound here


def parse_address(text: str) -> tuple[str, int]:
    """Host and port; a port alone is on loopback. Raises UsageError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[3]) > 65_535:
        raise UsageError(
            f"the admin port {text!r} is no address: write HOST:PORT, [IPV6]:PORT, or PORT for"
            " this machine alone"
        )
    return found[1] or found[2] or LOOPBACK, int(found[3])


def shown(host: str, port: int) -> str:
    """The address as part of a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable(host: str) -> str:
    """Where on this machine one who listens there is to be asked."""
    return _ANY.get(host, host)
