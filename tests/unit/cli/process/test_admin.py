"""The admin port as a probe, a scraper and a stranger see it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from turnlog.cli.process import admin as module
from turnlog.cli.process.admin import REQUESTS_MAX, Admin
from turnlog.cli.process.health import Health
from turnlog.cli.process.metrics import Metrics
from turnlog.cli.process.stop import Stop
from turnlog.core.errors import TurnlogError, UsageError


class Port:
    def __init__(self, address: str = "127.0.0.1:0") -> None:
        self.stop = Stop()
        self.health = Health(self.stop)
        self.metrics = Metrics()
        self.admin = Admin(address, self.health, self.metrics)
        self.place = self.admin.url.removeprefix("http://")

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, str]:
        connection = HTTPConnection(self.place, timeout=30)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        return answer, said

    def connect(self) -> socket.socket:
        host, _, port = self.place.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=30)


@pytest.fixture
def port() -> Iterator[Port]:
    made = Port()
    with made.admin:
        yield made


def test_what_a_probe_sees(port: Port) -> None:
    answer, said = port.ask("/livez")
    assert (answer.status, said) == (200, "ok\n")
    answer, said = port.ask("/readyz")
    assert (answer.status, said) == (503, "[+]loop ok\n[-]running: starting\nreadyz check failed\n")
    port.health.add("log", lambda: None)
    answer, said = port.ask("/readyz")
    assert (answer.status, said) == (200, "ok\n")
    answer, said = port.ask("/readyz?verbose")
    assert (answer.status, said) == (200, "[+]loop ok\n[+]log ok\nreadyz check passed\n")
    port.stop.ask()
    answer, said = port.ask("/readyz")
    assert answer.status == 503
    assert "[-]running: stopping\n" in said
    for path in ("/livez?verbose=1", "/healthz"):
        assert port.ask(path)[0].status == 200


def test_both_formats_that_scrapers_read(port: Port) -> None:
    port.metrics.count_appended("kafka", ["message", "of_somebody_else"], 10)
    for accept, parse in (
        ("", plain),
        ("text/plain;version=nonsense", plain),
        ("application/openmetrics-text; version=1.0.0", openmetrics),
    ):
        answer, said = port.ask("/metrics", Accept=accept)
        assert answer.status == 200
        found = {
            (sample.name, *sample.labels.values()): sample.value
            for family in parse(said)
            for sample in family.samples
        }
        assert found["turnlog_append_bytes_total", "kafka"] == 10
        assert found["turnlog_events_appended_total", "kafka", "message"] == 1
        assert found["turnlog_events_appended_total", "kafka", "other"] == 1


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_head_is_get_without_a_body(port: Port, path: str) -> None:
    whole, said = port.ask(path)
    head, nothing = port.ask(path, "HEAD")
    assert (head.status, nothing) == (whole.status, "")
    assert head.headers["Content-Type"] == whole.headers["Content-Type"]
    if path != "/metrics":  # time passes
        assert head.headers["Content-Length"] == str(len(said))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(port: Port, method: str) -> None:
    answer, _ = port.ask("/livez", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_other_paths_are_not_there(port: Port) -> None:
    for path in ("/", "/metrics/", "/livez/x", "/%2e%2e/livez"):
        answer, said = port.ask(path)
        assert answer.status == 404
        assert "/livez" in said


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n",
        b"nonsense\r\n\r\n",
        b"GET\r\n",
        b"\x16\x03\x01\x00",
        b"GET / HTTP/9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n" + b"a: b\r\n" * 500 + b"\r\n",
        b"G" * 100_000,
    ],
)
def test_nonsense_does_no_harm(port: Port, sent: bytes) -> None:
    # it may be turned away while it still talks
    with port.connect() as client, suppress(OSError):
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass
    assert port.ask("/livez")[0].status == 200


def test_it_answers_while_others_say_nothing(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes and says nothing has a place for a while, and then no more."""
    silent = [port.connect() for _ in range(REQUESTS_MAX)]
    with port.connect() as one_too_many:
        assert one_too_many.recv(1) == b""
    monkeypatch.setattr(module, "REQUEST_S", 0.0)
    for each in silent:
        assert each.recv(1) == b""  # turned away, once its time is over
        each.close()
    monkeypatch.undo()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            if port.ask("/livez")[0].status == 200:
                break
        except OSError:
            time.sleep(0.05)
    assert port.ask("/livez")[0].status == 200


def test_many_at_once_are_all_answered_or_turned_away(port: Port) -> None:
    found: list[int] = []

    def ask() -> None:
        for _ in range(10):
            try:
                found.append(port.ask("/metrics")[0].status)
            except OSError:
                found.append(0)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 200
    assert set(found) <= {0, 200}
    assert 200 in found
    assert port.ask("/livez")[0].status == 200


def test_ipv6() -> None:
    try:
        made = Port("[::1]:0")
    except TurnlogError:
        pytest.skip("no IPv6 on this machine")
    assert made.place.startswith("[::1]:")
    with made.admin:
        assert made.ask("/livez")[0].status == 200


def test_a_port_that_is_taken_is_named() -> None:
    made = Port()
    with made.admin, pytest.raises(TurnlogError, match=f"admin port {made.place}: .*in use; see"):
        Port(made.place)


def test_a_page_that_fails_says_so(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port.metrics, "exposed", lambda accept: 1 / 0)
    answer, said = port.ask("/metrics")
    assert (answer.status, said) == (500, "it failed; the process's log says why\n")


def test_what_is_no_place_is_refused() -> None:
    with pytest.raises(UsageError):
        Port("nowhere")
    with pytest.raises(TurnlogError, match=r"admin port host\.invalid:1: "):
        Port("host.invalid:1")


def test_it_is_closed_afterwards() -> None:
    made = Port()
    with made.admin:
        assert made.ask("/livez")[0].status == 200
    with pytest.raises(ConnectionRefusedError):
        made.connect()
