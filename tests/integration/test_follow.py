"""`turnlog follow` on a file, on files, and on a real broker: as it comes, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

import turnlog.log
from tests.contract.adapter import talking
from tests.integration.kafka_topics import make_topic
from tests.integration.running import TURNLOG, Running, asked, running
from tests.unit.cli.calls import isolated
from tests.unit.query.logs import random_session, woven
from turnlog.cli.follow import FIRST, Place, follow_session, parse_place
from turnlog.cli.options import Common
from turnlog.cli.process.process import Process
from turnlog.cli.process.stop import Stopped
from turnlog.cli.terminal import Terminal
from turnlog.core.errors import UsageError
from turnlog.core.frames import Record, SealedFrame
from turnlog.log import EmbeddedLog
from turnlog.query.events import list_events
from turnlog.testing.broker import Broker
from turnlog.testing.broker_jars import Java

Json = Any
KINDS = ["sqlite", "file", "kafka"]


class Site(NamedTuple):
    """A log, as the test writes it beside who follows it."""

    url: str
    folder: Path

    def open(self) -> EmbeddedLog:
        tables = f"sqlite:{self.folder}/writer.db" if self.url.startswith("kafka:") else None
        return turnlog.log.open(self.url, tables=tables)

    def write(self, frames: Sequence[SealedFrame]) -> list[int]:
        async def append() -> list[int]:
            async with self.open() as log:
                return [await log.append(frame) for frame in frames]

        return asyncio.run(append())

    def load(self, records: Iterable[Record], pause_s: float = 0) -> None:
        """Append records one by one, as time goes by."""

        async def load() -> None:
            async with self.open() as log:
                for record in records:
                    await log.load([record])
                    await asyncio.sleep(pause_s)

        asyncio.run(load())

    def events(self, session: str) -> list[Json]:
        """What `turnlog events --json` says."""
        with self.open() as log:
            return [json.loads(json.dumps(row)) for row in list_events(log.tables, session)]

    def follow(self, session: str, *options: str) -> Any:
        tables = f"sqlite:{self.folder}/follower.db"
        arguments = ["follow", session, "--log", self.url, "--admin", "127.0.0.1:0", *options]
        return running(self.folder, *arguments, TURNLOG_TABLES=tables)


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    isolated(monkeypatch, tmp_path)
    monkeypatch.setenv("TURNLOG_TABLES", f"sqlite:{tmp_path}/follower.db")
    if request.param == "kafka":
        servers = request.getfixturevalue("kafka_servers")
        return Site(make_topic(servers, partitions=3), tmp_path)
    return Site(f"{request.param}:{tmp_path}/log", tmp_path)


def places(rows: list[Json]) -> list[tuple[int, int]]:
    return [(row["position"], row["index"]) for row in rows]


# ---- as a process ------------------------------------------------------------------------


def test_events_come_as_they_are_appended(site: Site) -> None:
    frames = talking("s1", 6)
    site.write([*frames[:3], *talking("s2", 2)])
    with site.follow("s1", "--all", "--json") as process:
        place = process.admin()
        rows = process.rows(3)
        site.write([*talking("s2", 4)[3:], *frames[3:5]])
        rows += process.rows(2)
        site.write(frames[5:])
        rows += process.rows(2)
        assert rows == site.events("s1")
        status, said = asked(place, "/readyz?verbose")
        assert (status, said) == (
            200,
            "[+]loop ok\n[+]log ok\n[+]tables ok\n[+]follow ok\nreadyz check passed\n",
        )
        check_metrics(place, rows)
        assert process.end() == 0
        assert process.rest() == []
        assert process.errors == []


def check_metrics(place: str, rows: list[Json]) -> None:
    _, text = asked(place, "/metrics")
    found = {
        sample.name: (sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    labels, count = found["turnlog_events_consumed_total"]
    assert (labels["group"], count) == ("follow", len(rows))
    assert found["turnlog_consumer_lag_records"][0].keys() == {"group", "topic", "partition"}
    assert found["turnlog_log_end_position"][1] >= 3
    assert found["turnlog_projection_position"][0]["projection"] == "tables"


def test_it_begins_now_unless_told_otherwise(site: Site) -> None:
    frames = talking("s1", 5)
    site.write(frames[:4])
    with site.follow("s1", "--json", "--type", "message") as process:
        process.until_said("following")
        site.write(frames[4:])
        rows = process.rows(2)
        assert rows == site.events("s1")[-2:]
        assert process.end(signal.SIGINT) == 130
    position, index = places(rows)[0]
    for begin, wanted in (
        (f"{position}", rows),
        (f"{position}.{index}", rows),
        (f"{position}.{index + 1}", rows[1:]),
        (f"{position + 1}", rows[1:]),
        ("0", site.events("s1")),
        ("0.7", site.events("s1")),
    ):
        with site.follow("s1", "--from", begin, "--json") as process:
            assert process.rows(len(wanted)) == wanted
            assert process.end() == 0
            assert process.rest() == []


def test_a_session_that_is_not_there(site: Site) -> None:
    site.write(talking("other", 1))
    with site.follow("s1") as process:
        assert process.ended() == 1
        assert "no session 's1'" in process.errors[0]
    with site.follow("s1", "--wait", "--json") as process:
        process.until_said("following")
        site.write(talking("s11", 1) + talking("s1", 1))
        assert process.rows(2) == site.events("s1")
        assert process.end() == 0


def test_lines_for_people(site: Site) -> None:
    site.write(talking("s1", 2))
    options = ["s1", "--all", "--log-format", "text", "--no-color"]
    with site.follow(*options) as process:
        found = [process.line() for _ in range(3)]
        process.send(signal.SIGTERM)
        assert process.process.wait(60) == 0
    assert [line.split()[3:5] for line in found] == [
        ["session_claimed", found[0].split()[4]],
        ["message", "m1"],
        ["message", "m2"],
    ]


@pytest.mark.parametrize("more", [True, False])
def test_it_ends_quietly_when_nobody_reads_on(tmp_path: Path, more: bool) -> None:
    """Also where no further event would show that nobody does."""
    site = Site(f"sqlite:{tmp_path}/log", tmp_path)
    site.write(talking("s1", 500 if more else 2))
    command = [*TURNLOG, "follow", "s1", "--all", "--json", "--log", site.url]
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["position"] == 1
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait(60) == 0
    assert not [line for line in said.splitlines() if json.loads(line)["level"] != "info"]


def test_opening_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that have far to go are no work that has to be finished."""
    isolated(monkeypatch, tmp_path)
    site = Site(f"sqlite:{tmp_path}/log", tmp_path)
    site.write(talking("s1", 3))
    process = Process(Terminal(Common(log=site.url)))

    async def opening() -> None:
        def asked_meanwhile(*_: object, progress: Any, **__: object) -> EmbeddedLog:
            progress(1, 10)
            assert process.health.ready().checks["log"] == (
                "being opened: the tables are at 1 of 10"
            )
            process.stop.ask()
            progress(2, 10)
            raise AssertionError("went on")

        monkeypatch.setattr("turnlog.cli.process.process.open_log", asked_meanwhile)
        async with process.open_log():
            raise AssertionError("went on")

    with pytest.raises(Stopped):
        asyncio.run(opening())


# ---- going on ----------------------------------------------------------------------------


class Collecting(Terminal):
    """Keeps what is printed, and asks for a stop after some of it."""

    def __init__(self, url: str, enough: int) -> None:
        super().__init__(Common(log=url, json=True))
        self.kept: list[Json] = []
        self.enough = enough
        self.process = Process(self)

    def rows(self, values: Iterable[Json]) -> None:
        self.kept += values
        if len(self.kept) >= self.enough:
            self.process.stop.ask()


def leg(site: Site, begin: Place, *, enough: int, within_s: float | None = None) -> list[Json]:
    """Follow for a while; gives what was printed."""
    terminal = Collecting(site.url, enough)
    timer = threading.Timer(within_s or 0, terminal.process.stop.ask)
    if within_s is not None:
        timer.start()
    with suppress(Stopped):  # it was still being opened
        asyncio.run(follow_session(terminal.process, "s1", begin=begin, wait=True, types=()))
    timer.cancel()
    return [json.loads(json.dumps(row)) for row in terminal.kept]


def test_going_on_misses_and_repeats_nothing(site: Site, proof: bool) -> None:
    """Whoever reads stops anywhere, also within a frame, while others append."""
    rng = random.Random(site.url if proof else 7)
    records = woven(
        random_session(rng.randrange(1000), "s1"), random_session(rng.randrange(1000), "s2")
    )
    site.load(records[:1])
    writer = threading.Thread(target=site.load, args=(records[1:], 0.02))
    writer.start()
    seen: list[Json] = []
    begin, legs = FIRST, 0
    while writer.is_alive():
        found = leg(site, begin, enough=rng.randint(1, 12), within_s=rng.uniform(0.05, 1))
        kept = found[: rng.randint(0, len(found))]  # it dies before it has dealt with the rest
        seen += kept
        if kept:
            begin = Place(kept[-1]["position"], kept[-1]["index"] + 1)
        legs += 1
    writer.join()
    expected = site.events("s1")
    if len(seen) < len(expected):
        seen += leg(site, begin, enough=len(expected) - len(seen))
    assert places(seen) == places(expected)
    # what became of an event shows in the tables, and may change after it was printed
    fixed = ("session", "position", "index", "frame", "type", "id", "data")
    assert [[row[name] for name in fixed] for row in seen] == [
        [row[name] for name in fixed] for row in expected
    ]
    assert legs > 1


def test_all_of_any_history_is_what_events_says(site: Site, proof: bool) -> None:
    """Fenced, lost, damaged, unknown and raw records among them."""
    is_shared = site.url.startswith("kafka:")
    for seed in range(1 if is_shared else 40 if proof else 4):
        one = site if is_shared else site._replace(url=f"{site.url}{seed}")
        one.load(random_session(seed, "s1", 120))
        expected = one.events("s1")
        assert leg(one, FIRST, enough=len(expected)) == expected


def test_killed_readers_go_on_by_their_last_line(site: Site) -> None:
    frames = talking("s1", 150)
    site.write(frames[:1])
    writer = threading.Thread(target=site.load, args=([each.record for each in frames[1:]], 0.02))
    writer.start()
    seen: list[Json] = []
    begin = "0"
    while writer.is_alive():
        with site.follow("s1", "--from", begin, "--json") as process:
            process.until_said("following")
            time.sleep(random.uniform(0.2, 0.6))
            process.process.kill()
            process.process.wait()
            for line in process.rest():
                with suppress(json.JSONDecodeError):  # the last one may be cut
                    seen.append(json.loads(line))
        if seen:
            begin = f"{seen[-1]['position']}.{seen[-1]['index'] + 1}"
    writer.join()
    expected = site.events("s1")
    with site.follow("s1", "--from", begin, "--json") as process:
        process.until_said("following")
        seen += process.rows(len(expected) - len(seen))
        assert process.end() == 0
        assert process.rest() == []
    assert places(seen) == places(expected)


@pytest.mark.parametrize(
    ("text", "place"), [("0", Place(0)), ("17", Place(17)), ("17.2", Place(17, 2))]
)
def test_places(text: str, place: Place) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "x", "-1", "1.", ".1", "1.2.3", "1.-1", "9" * 30, "1 "])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UsageError, match="--from"):
        parse_place(text)


# ---- the broker away ---------------------------------------------------------------------


@pytest.mark.timeout(240)
def test_it_waits_for_a_broker_that_is_away(java: Java, tmp_path: Path) -> None:
    with Broker(tmp_path / "broker", java=java) as broker:
        site = Site(make_topic(broker.servers), tmp_path)
        frames = talking("s1", 4)
        site.write(frames[:3])
        with site.follow("s1", "--all", "--json") as process:
            place = process.admin()
            rows = process.rows(3)
            ready(process)
            broker.nodes[0].kill()
            process.until_said("not ready: log: kafka://")
            status, said = asked(place, "/readyz")
            assert status == 503
            assert "[-]log: " in said
            assert asked(place, "/livez")[0] == 200
            broker.nodes[0].launch()
            broker.nodes[0].wait(time.monotonic() + 60)
            site.write(frames[3:])
            rows += process.rows(2)
            ready(process)
            assert rows == site.events("s1")
            assert process.end() == 0
    assert len(process.said) < 100  # aiokafka says fifty lines a second


def ready(process: Running) -> None:
    process.until(lambda line: line["message"] == "ready")
