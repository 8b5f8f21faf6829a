"""Copies to Kafka: broken off at any time, and taken up again without a frame lost or doubled."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contract.adapter import claiming, large, talking
from tests.every_log import Places, places
from tests.integration.kafka_topics import make_topic, open_log, producing, with_cluster
from tests.unit.cli.calls import Caller, isolated
from tests.unit.query.logs import random_session, woven
from turnlog.core.errors import AppendUnknown
from turnlog.core.frames import Record
from turnlog.ingest.samples import big_claude_file
from turnlog.log.kafka.partition import STRAY, partition_of
from turnlog.log.kafka.records import to_message
from turnlog.log.memory import MemoryLog
from turnlog.query import transfer
from turnlog.testing.broker import Broker

__all__ = ["places"]

ROOT = Path(__file__).parents[2]
ROOTS = [str(ROOT / name) for name in ("streams", "producers", "consumers")]
SLOWLY = (
    "from turnlog.query import transfer; transfer.BATCH_RECORDS = 20; "
    "from turnlog.cli.app import main; main()"
)
"""`turnlog` with small batches, so that there is a middle to break it off in."""
SESSIONS = 12
FRAMES = 100
TOTAL = SESSIONS * FRAMES


def talk() -> list[Record]:
    """Sessions that are woven into one another, some with all that a log may hold."""
    plain = [
        [frame.record for frame in talking(f"s{number}", FRAMES - 1)]
        for number in range(SESSIONS - 4)
    ]
    odd = [random_session(number, f"odd{number}", FRAMES) for number in range(4)]
    return woven(*plain, *odd)


@pytest.fixture
def turnlog(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Caller:
    isolated(monkeypatch, tmp_path)
    return Caller(tmp_path, capsysbinary)


def start_copy(turnlog: Caller, url: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    return subprocess.Popen(
        [sys.executable, "-c", SLOWLY, "copy", turnlog.url, url],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def frames_in(url: str) -> int:
    """How many records a topic holds."""
    _, _, rest = url.partition("//")
    servers, _, topic = rest.partition("/")
    return sum(with_cluster(servers, lambda cluster: cluster.offsets(topic, -1)))


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)


def records_by_session(records: list[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.session, []).append(record)
    return found


def test_a_copy_killed_at_any_time_is_taken_up_again(kafka_servers: str, turnlog: Caller) -> None:
    records = talk()
    turnlog.write(records)
    url = make_topic(kafka_servers, 3)
    dice = random.Random(4)
    broken_off = 0
    for _ in range(3):
        before = frames_in(url)
        enough = before + dice.randrange(20, TOTAL // 5)
        with start_copy(turnlog, url) as process:
            wait_until(lambda enough=enough: frames_in(url) >= enough, process)
            process.kill()
            process.communicate()
        broken_off += before < frames_in(url) < TOTAL
    assert broken_off == 3
    done = turnlog("copy", turnlog.url, url, "--json")
    assert (done.status, done.err) == (0, "")
    assert (done.json["verified"], done.json["grown"]) == (SESSIONS, 0)
    assert sum(row["added"] for row in done.json["sessions"]) < TOTAL
    assert frames_in(url) == TOTAL  # no frame is there twice
    assert sum(row["added"] for row in turnlog("copy", turnlog.url, url, "--json").json["sessions"]
               ) == 0  # fmt: skip
    again = [record for _, _, record in asyncio.run(read_everything(url, turnlog.folder))]
    assert records_by_session(again) == records_by_session(records)
    turnlog.good("verify", log=url)


MEASURED = """
import atexit, re
status = "/proc/self/status"  # getrusage counts what the parent had before exec
atexit.register(lambda: print(re.search(r"VmHWM:\\s+(\\d+) kB", open(status).read())[1]))
from turnlog.cli.app import main
main()
"""
LARGE = 850_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nothing tells the peak")
@pytest.mark.parametrize("kind", ["zstd", "kafka"])
def test_a_copy_takes_no_more_memory_for_more_bytes(
    places: Places, turnlog: Caller, kind: str
) -> None:
    def peak_kib(frames: int) -> int:
        origin = f"sqlite:{turnlog.folder}/large-{frames}.db"
        records = [large(f"s{number % 3}", number // 3 + 1, LARGE) for number in range(frames)]
        for start in range(0, frames, 10):
            turnlog.write([frame.record for frame in records[start : start + 10]], log=origin)
        command = [sys.executable, "-c", MEASURED, "copy", origin, places.url(kind), "--quiet"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        return int(done.stdout)

    few, many = peak_kib(20), peak_kib(100)
    assert (many - few) * 1024 < 40 * LARGE


def test_an_import_killed_in_the_middle_is_taken_up_again(
    kafka_servers: str, turnlog: Caller
) -> None:
    """An import claims each session and appends frame by frame, as a host does."""
    folder = turnlog.folder / "claude"
    big_claude_file(folder / "large.jsonl", 4)
    whole = turnlog.good("import", "claude-code", folder, "--json").json
    url = make_topic(kafka_servers, 3)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    command = [sys.executable, "-c", "from turnlog.cli.app import main; main()"]
    for enough in (2, 4):
        with subprocess.Popen(
            [*command, "import", "claude-code", str(folder), "--log", url], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            before = frames_in(url)
            wait_until(lambda: frames_in(url) >= before + enough, process)  # noqa: B023
            process.kill()
            process.communicate()
    assert whole["events"]
    turnlog.good("import", "claude-code", folder, log=url)
    assert "1 unchanged" in turnlog.good("import", "claude-code", folder, log=url).err
    [one], [there] = (turnlog.good("sessions", "--json", log=log).json for log in (None, url))
    for name in ("session", "title", "entries", "usage", "status"):
        assert one[name] == there[name]
    turnlog.good("fsck", "--damage", log=url)
    turnlog.good("verify", log=url)


async def read_everything(url: str, folder: Path) -> list[Any]:
    """All records of a topic, read anew."""
    async with open_log(url, folder / "fresh.db") as log:
        return [
            stored
            for partition in range(log.partitions)
            async for stored in log.read(partition=partition)
        ]


def test_what_a_topic_does_not_take_is_refused_first(kafka_servers: str, turnlog: Caller) -> None:
    large = Record("big", None, random.Random(1).randbytes(1_200_000))
    turnlog.write([*talk(), large])
    url = make_topic(kafka_servers, 3)
    done = turnlog("copy", turnlog.url, url)
    assert (done.status, done.out) == (1, "")
    assert f"position {TOTAL + 1}: session 'big': the record has 1,200," in done.err
    assert frames_in(url) == 0
    assert turnlog("dump", "--log", turnlog.url, "-o", "a").status == 0
    assert "session 'big': the record has 1,200," in turnlog.on("restore", "a", log=url).err
    assert frames_in(url) == 0
    assert turnlog("copy", turnlog.url, url, "--session", "s1").status == 0


def test_a_topic_that_is_not_there_is_named_first(kafka_servers: str, turnlog: Caller) -> None:
    turnlog.write(talk()[:10])
    url = f"kafka://{kafka_servers}/nowhere"
    for arguments in (["copy", turnlog.url, url], ["restore", "nothing", "--log", url]):
        Path("nothing").write_bytes(b"")
        done = turnlog(*arguments)
        assert (done.status, done.out) == (1, "")
        assert "make it by `turnlog topics create" in done.err


async def spoil(servers: str, url: str) -> None:
    """Records that are not ours: on the wrong partition, without a session."""
    body = talking("s0", 1)[1].record
    topic = url.rpartition("/")[2]
    async with producing(servers) as producer:
        for partition in range(3):
            headers = to_message(body, 3).headers
            await producer.send_and_wait(topic, b"%d" % partition, None, partition, headers=headers)
            if partition_of("s0", 3) != partition:
                await producer.send_and_wait(topic, body.body, b"s0", partition, headers=headers)


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_a_topic_moves_to_one_with_other_partitions_whatever_is_in_it(
    kafka_servers: str, turnlog: Caller, partitions: int
) -> None:
    turnlog.write(talk())
    url, other = make_topic(kafka_servers, 3), make_topic(kafka_servers, partitions)
    assert turnlog("copy", turnlog.url, url).status == 0
    asyncio.run(spoil(kafka_servers, url))
    done = turnlog("copy", url, other, "--json")
    assert (done.status, done.err) == (0, "")
    strays = {row["session"]: row["frames"] for row in done.json["sessions"]
              if row["session"].startswith(STRAY)}  # fmt: skip
    assert sum(strays.values()) == 3 + 2
    assert done.json["verified"] == SESSIONS + len(strays)
    assert sum(row["added"] for row in turnlog("copy", url, other, "--json").json["sessions"]) == 0
    back = f"sqlite:{turnlog.folder}/back.db"
    assert turnlog("copy", other, back, "--json").json["verified"] == SESSIONS + len(strays)
    assert turnlog("copy", turnlog.url, back, "--json").json["verified"] == SESSIONS


async def test_of_a_load_that_failed_each_session_has_its_first_records(
    kafka_servers: str, tmp_path: Path
) -> None:
    """Whatever made a producer useless, those behind what it had do not overtake it."""
    url = await asyncio.to_thread(make_topic, kafka_servers, 3)
    bytes_of = random.Random(1).randbytes  # nothing packs them, so they take their time
    records = [Record(f"s{number % 20}", None, bytes_of(3_000)) for number in range(4_000)]
    async with open_log(url, tmp_path / "tables.db") as log:
        loading = asyncio.ensure_future(log.load(records))

        async def give_up() -> None:
            appender = log._appender

            def waiting() -> int:
                return sum(map(len, appender._waiting.values()))

            while len(appender._sent) + waiting() in (0, len(records)):  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert appender._waiting, "all is under way before the first one is there"
            appender._give_up("a test")

        await log._thread.ask(give_up())
        with pytest.raises(AppendUnknown, match="some may be in the log"):
            await loading
        await log.append(claiming("s21"))
        found = [
            stored.record
            for partition in range(3)
            async for stored in log.read(partition=partition)
            if stored.record.session != "s21"
        ]
        assert 0 < len(found) < len(records)
        wanted = records_by_session(records)
        for session, there in records_by_session(found).items():
            assert there == wanted[session][: len(there)]


async def test_a_copy_goes_on_where_nobody_knows_what_arrived(
    kafka_servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producers are given up with frames under way, again and again: none is lost or doubled."""
    monkeypatch.setattr(transfer, "BATCH_RECORDS", 100)
    monkeypatch.setattr(transfer, "TRIES", 20)
    url = await asyncio.to_thread(make_topic, kafka_servers, 3)
    origin = MemoryLog(clock=lambda: 0)
    await origin.load(talk())
    unknown = 0
    async with open_log(url, tmp_path / "tables.db") as log:
        load = log.load

        async def counted(records: Sequence[Record]) -> list[int]:
            nonlocal unknown
            loading = asyncio.ensure_future(load(records))
            if unknown < 5:
                await log._thread.ask(give_up(loading))
            try:
                return await loading
            except AppendUnknown:
                unknown += 1
                raise

        async def give_up(loading: asyncio.Future[list[int]]) -> None:
            while not log._appender._sent and not loading.done():  # noqa: ASYNC110
                await asyncio.sleep(0)
            log._appender._give_up("a test")

        monkeypatch.setattr(log, "load", counted)
        lines = await transfer.lines_of(origin)
        plan = await transfer.examine(lines, log, lambda *_: None)
        await transfer.fill(lines, log, plan, lambda *_: None)
        await transfer.confirm(log, plan, lambda *_: None)
        assert unknown == 5
        assert sum([await log.end(partition) for partition in range(3)]) == TOTAL
        assert list(log.verify()) == []


# ---- a broker that goes away --------------------------------------------------------------


def come_back(broker: Broker) -> None:
    (node,) = broker.nodes
    node.launch()
    node.wait(time.monotonic() + 60)


@pytest.mark.timeout(240)
def test_a_copy_goes_on_when_its_broker_is_back(broker: Broker, turnlog: Caller) -> None:
    turnlog.write(talk())
    url = make_topic(broker.servers, 3)
    with start_copy(turnlog, url) as process:
        wait_until(lambda: frames_in(url) >= TOTAL // 4, process)
        broker.nodes[0].kill()
        time.sleep(1)
        come_back(broker)
        said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert f"verified: {TOTAL:,} frames of {SESSIONS} sessions are equal in both logs" in said[1]
    assert frames_in(url) == TOTAL
    assert sum(row["added"] for row in turnlog("copy", turnlog.url, url, "--json").json["sessions"]
               ) == 0  # fmt: skip
