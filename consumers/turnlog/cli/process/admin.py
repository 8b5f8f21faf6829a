"""The admin port: /livez, /readyz and /metrics over HTTP, for probes, scrapers and people.

It has threads of its own, so it answers while the event loop is blocked, and can say so. It is
bound before the work begins and closed after its end. At most `REQUESTS_MAX` requests are answered
at a time, each within `REQUEST_S`; others are turned away. Nothing here changes anything, and
nothing is secret, but who can reach it can also keep it busy: bind it where only friends are.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from turnlog.cli.process.address import parse_address, shown
from turnlog.cli.process.health import Health, Report
from turnlog.cli.process.metrics import Metrics
from turnlog.core.errors import TurnlogError

REQUESTS_MAX = 8
REQUEST_S = 10.0
LOOK_S = 0.1
"""How often it is looked for requests that take too long, and for the end."""
_PLAIN = "text/plain; charset=utf-8"
_LOG = logging.getLogger(__name__)

Answer = tuple[int, bytes, str]
Page = Callable[["_Handler", bool], Answer]


class Admin:
    """The port, open from `with` on. Raises UsageError for what is no address, and
    TurnlogError where nothing can listen there."""

    def __init__(self, address: str, health: Health, metrics: Metrics) -> None:
        place = parse_address(address)
        try:
            family, _, _, _, bound = socket.getaddrinfo(
                *place, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self._server = _Server(family, bound, health, metrics)
        except OSError as error:
            raise TurnlogError(
                f"admin port {address}: {error.strerror or error}; see what else listens there, or"
                " give another one"
            ) from error
        self.url = f"http://{shown(place[0], self._server.server_address[1])}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(LOOK_S,), name="turnlog admin", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        _LOG.info("admin port: %s", self.url, extra={"admin": self.url})
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, family: socket.AddressFamily, place: Any, health: Health, metrics: Metrics
    ) -> None:
        self.address_family = family
        self.health = health
        self.metrics = metrics
        self._room = threading.BoundedSemaphore(REQUESTS_MAX)
        self._open: dict[socket.socket, float] = {}
        super().__init__(place, _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server what this machine is called."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.address_family == socket.AF_INET6:
            with suppress(OSError):  # [::] is IPv6 alone, whatever the system's habit
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.pop(request, None)
            self._room.release()

    def service_actions(self) -> None:
        """End what takes too long: a time limit for each read would let a slow sender go on."""
        too_old = time.monotonic() - REQUEST_S
        for request, began in list(self._open.items()):
            if began < too_old:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request
        _LOG.debug("admin port: a request of %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]  # it is always that one
    timeout = REQUEST_S

    def do_GET(self) -> None:
        """Answer a page."""
        self._answer()

    def do_HEAD(self) -> None:
        """The same without the page itself."""
        self._answer()

    def _refuse(self) -> None:
        self._send((405, b"only GET and HEAD\n", _PLAIN), Allow="GET, HEAD")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse  # noqa: N815

    def _answer(self) -> None:
        asked = urlsplit(self.path)
        page = _PAGES.get(asked.path)
        if page is None:
            self._send((404, f"there are {', '.join(_PAGES)}\n".encode(), _PLAIN))
            return
        verbose = "verbose" in parse_qs(asked.query, keep_blank_values=True)
        try:
            answer = page(self, verbose)
        except Exception:
            _LOG.exception("admin port: %s failed", asked.path)
            answer = (500, b"it failed; the process's log says why\n", _PLAIN)
        self._send(answer)

    def live(self, verbose: bool) -> Answer:
        """Whether the process lives."""
        return _told("livez", self.server.health.live(), verbose=verbose)

    def ready(self, verbose: bool) -> Answer:
        """Whether it is ready."""
        return _told("readyz", self.server.health.ready(), verbose=verbose)

    def metrics(self, verbose: bool) -> Answer:
        """The metrics."""
        del verbose
        body, kind = self.server.metrics.exposed(self.headers.get("Accept", ""))
        return 200, body, kind

    def _send(self, answer: Answer, **headers: str) -> None:
        status, body, kind = answer
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "turnlog"

    def log_message(self, format: str, *args: Any) -> None:
        _LOG.debug("admin port: " + format, *args)


_PAGES: dict[str, Page] = {
    "/livez": _Handler.live,
    "/readyz": _Handler.ready,
    "/healthz": _Handler.live,  # what Kubernetes called it before there were two
    "/metrics": _Handler.metrics,
}


def _told(name: str, report: Report, *, verbose: bool) -> Answer:
    """In the form of Kubernetes' own components: what is wrong is always said."""
    status = 200 if report.is_good else 503
    if report.is_good and not verbose:
        return status, b"ok\n", _PLAIN
    marks = [f"[-]{each}: {said}" if said else f"[+]{each} ok" for each, said in
             report.checks.items()]  # fmt: skip
    marks.append(f"{name} check {'passed' if report.is_good else 'failed'}")
    return status, "".join(f"{mark}\n" for mark in marks).encode(), _PLAIN
