"""The world outside the demo's hosts: a little HTTP server that no crash of a host undoes.

It counts what is asked of it and what takes effect, by tool and idempotency key. It can hold its
answers back, so that whoever asked is between the effect and knowing of it for as long as is
wanted.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self, cast
from urllib.parse import parse_qs, urlsplit

import orjson

Json = Any
RESULTS = {
    "read_gauge": "143 cm",
    "book_berth": "berth 4",
    "order_fuel": "900 l, at the quay at eleven",
    "send_notice": "sent to 12 ships",
}
"""What each tool is answered."""
READS = frozenset({"read_gauge"})
"""Tools without an effect."""
KEYED = frozenset({"book_berth", "order_fuel"})
"""Tools whose receiver knows keys: the same key again has no second effect."""
POLL_S = 0.05


class Counted(NamedTuple):
    """What was asked of the receiver for one call: to do it, how often that took effect, and
    whether it had happened."""

    requests: int
    effects: int
    probes: int


class Receiver:
    """Serves on a free port of this machine while its block runs."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._effects: Counter[tuple[str, str]] = Counter()
        self._probes: Counter[tuple[str, str]] = Counter()
        self._refused: dict[tuple[str, str], int] = {}
        self._answers = threading.Event()
        self._answers.set()
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.receiver = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="receiver", daemon=True
        )

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def hold(self) -> None:
        """From now on nothing is answered, though it takes effect."""
        self._answers.clear()

    def release(self) -> None:
        """Answer again, also what was held."""
        self._answers.set()

    def wait_for(self, tools: set[str], still: Callable[[], None]) -> None:
        """Return once each of some tools was asked for. `still` raises where it is no use."""
        with self._changed:
            while not tools <= {tool for tool, _ in self._requests}:
                self._changed.wait(POLL_S)
                still()

    def counted(self, tool: str | None, key: str | None) -> Counted:
        """What was asked for a call."""
        call = (tool or "", key or "")
        return Counted(self._requests[call], self._effects[call], self._probes[call])

    def keys(self, tool: str | None) -> list[str]:
        """The keys that a tool was asked for with."""
        return [key for name, key in self._requests if name == tool]

    # ---- for the handler's threads

    def take(self, tool: str, key: str, number: int) -> Json:
        """A request, with the number of the try; gives the answer, once it may be given."""
        with self._changed:
            self._requests[tool, key] += 1
            self._changed.notify_all()
            if number <= self._refused.get((tool, key), 0):
                return {"refused": f"try {number} was given up"}
            if tool not in READS and not (tool in KEYED and self._effects[tool, key]):
                self._effects[tool, key] += 1
        self._answers.wait()
        return {"result": RESULTS[tool]}

    def probe(self, tool: str, key: str, number: int) -> Json:
        """Whether a key took effect. Where it did not, tries before this one are refused now."""
        with self._changed:
            self._probes[tool, key] += 1
            if self._effects[tool, key]:
                return {"happened": True, "result": RESULTS[tool]}
            self._refused[tool, key] = number - 1
            return {"happened": False}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    receiver: Receiver

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked was killed: nothing to say."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """POST /TOOL with {"key", "try", "args"}."""
        body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(self._receiver().take(self.path[1:], body["key"], body["try"]))

    def do_GET(self) -> None:
        """GET /TOOL?key=KEY&try=N asks whether it happened."""
        where = urlsplit(self.path)
        asked = parse_qs(where.query)
        tool, key, number = where.path[1:], asked["key"][0], int(asked["try"][0])
        self._answer(self._receiver().probe(tool, key, number))

    def _receiver(self) -> Receiver:
        return cast("_Server", self.server).receiver

    def _answer(self, value: Json) -> None:
        body = orjson.dumps(value)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is said on a person's terminal."""
