"""`turnlog health`: asking a process that runs on how it is, for health checks of containers."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from turnlog.cli.guard import FAILED
from turnlog.cli.plain import one_line
from turnlog.cli.process.address import parse_address, reachable, shown
from turnlog.cli.settings import settings
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import LogUnavailable, UsageError

ANSWER_S = 5.0
SAID_MAX = 64 * 1024


def print_health(terminal: Terminal, url: str | None, *, live: bool) -> None:
    """Print what a process says of itself; the status is 1 where it is not well."""
    host, port = _place(url)
    place = f"http://{shown(host, port)}"
    page = "/livez" if live else "/readyz"
    # not by urllib, which would ask the proxy of the environment
    connection = HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        connection.request("GET", f"{page}?verbose")
        answer = connection.getresponse()
        said = answer.read(SAID_MAX).decode(errors="replace").splitlines()
    except (OSError, HTTPException) as error:
        why = str(error) or type(error).__name__
        raise LogUnavailable(
            f"{place}{page}: no answer ({why}); is it the --admin of a process that runs?"
        ) from error
    finally:
        connection.close()
    is_good = answer.status == 200
    terminal.status = 0 if is_good else FAILED
    if terminal.common.json:
        terminal.rows([{"url": f"{place}{page}", "good": is_good, "said": said}])
        return
    for line in said:
        terminal.print(one_line(line))


def _place(url: str | None) -> tuple[str, int]:
    """Host and port to ask: as given, else where the settings let processes listen."""
    text = url if url is not None else str(settings()["admin"].value)
    if not text:
        raise UsageError(
            "which process? Give the HOST:PORT that it has as --admin, or set TURNLOG_ADMIN"
        )
    if "//" in text:
        parts = urlsplit(text)
        if parts.scheme != "http" or parts.path not in ("", "/"):
            raise UsageError(f"{text!r}: write http://HOST:PORT or HOST:PORT")
        text = parts.netloc
    host, port = parse_address(text)
    return reachable(host), port
