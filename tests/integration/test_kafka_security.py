"""A broker that encrypts and authenticates: what works, and what is said where it does not."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from pathlib import Path

import pytest

import turnlog.log
from tests.contract.adapter import talking
from tests.secured import PASSWORDS, Acl, Secured
from turnlog.core.errors import AppendRefused, LogUnavailable
from turnlog.core.frames import Record, SealedFrame
from turnlog.log import EmbeddedLog, topics
from turnlog.log.kafka.address import parse
from turnlog.log.kafka.log import KafkaLog

pytestmark = [pytest.mark.xdist_group("secured"), pytest.mark.timeout(240)]
HOST = ("Describe", "DescribeConfigs", "Read", "Write")


def granted(secured: Secured, user: str) -> str:
    """A new topic on which a user may do what a host does; gives its name."""
    name = secured.make_topic()
    meta = [Acl(each, f"{name}-meta") for each in ("Describe", "DescribeConfigs", "Read")]
    secured.allow(user, [*(Acl(each, name) for each in HOST), *meta])
    return name


def work(url: str, kafka: dict[str, str], tables: Path) -> None:
    """Look at the topic, append, and read it back."""
    frames = talking("s", 2)

    async def append_and_read() -> list[Record]:
        async with turnlog.log.open(url, tables=f"sqlite:{tables}", kafka=kafka) as log:
            for frame in frames:
                await log.append(frame)
            return [stored.record async for stored in log.read()]

    assert not topics.look(url, kafka=kafka).problems
    assert asyncio.run(append_and_read()) == [frame.record for frame in frames]


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_by_a_password_all_of_it_works(
    secured: Secured, tmp_path: Path, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    name = granted(secured, user)
    kafka = secured.settings(user)
    work(f"kafka://{secured.sasl}/{name}", kafka, tmp_path / "tables.db")
    assert "MetadataRequest" in caplog.text  # each request is logged, but for the one with
    assert PASSWORDS[user] not in caplog.text


def test_by_a_certificate_all_of_it_works(secured: Secured, tmp_path: Path) -> None:
    name = granted(secured, "carol")
    kafka = secured.certificate("client")
    work(f"kafka://{secured.tls}/{name}", kafka, tmp_path / "tables.db")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sasl_password": "wr0ng"}, r"refuses user 'alice': look at sasl\.username"),
        ({"sasl_mechanism": "PLAIN"}, r"refuses user 'alice'.*sasl\.mechanism \(PLAIN\)"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "does not know the mechanism SCRAM-SHA-256"),
        ({"ssl_ca_location": "other-ca.pem"}, r"is not trusted.*set ssl\.ca\.location"),
        ({"security_protocol": "PLAINTEXT"}, "closes the connection: security.protocol is PLAIN"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "closes the connection: security.protocol is "),
        ({"security_protocol": "SSL"}, "closes the connection: security.protocol is SSL"),
    ],
)
def test_who_does_not_get_in_is_told_why(
    secured: Secured, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    name = secured.make_topic()
    kafka = secured.settings("alice", **changed)
    check_refusal(f"kafka://{secured.sasl}/{name}", kafka, tmp_path, said)


def test_a_certificate_that_is_not_known(secured: Secured, tmp_path: Path) -> None:
    url = f"kafka://{secured.tls}/{secured.make_topic()}"
    check_refusal(url, secured.certificate("unknown"), tmp_path, "certificate")


def test_tls_where_there_is_none(secured: Secured, tmp_path: Path) -> None:
    url = f"kafka://{secured.broker.servers}/{secured.make_topic()}"
    said = "security.protocol is SASL_SSL; see which one that port has"
    check_refusal(url, secured.settings(), tmp_path, said)
    kafka = secured.settings(security_protocol="SASL_PLAINTEXT")
    check_refusal(url, kafka, tmp_path, "authenticates nobody.* must be PLAINTEXT there")


def test_a_certificate_for_another_host(secured: Secured, tmp_path: Path) -> None:
    servers = secured.sasl.replace("127.0.0.1", "localhost")
    url = f"kafka://{servers}/{secured.make_topic()}"
    check_refusal(url, secured.settings(), tmp_path, "is for another host")


def check_refusal(url: str, kafka: dict[str, str], folder: Path, said: str) -> None:
    """Opening fails for the reason that is said, and not since nobody answered for 15 s."""
    began = time.monotonic()
    with pytest.raises(LogUnavailable) as error:
        turnlog.log.open(url, tables=f"sqlite:{folder}/tables.db", kafka=kafka)
    print(f"{time.monotonic() - began:.1f} s: {error.value}")
    assert "no broker answers" not in str(error.value)
    assert re.search(said, str(error.value)), str(error.value)
    assert not any(each in str(error.value) for each in (*PASSWORDS.values(), "wr0ng"))


def test_a_right_that_is_taken_away_is_named_and_given_back_in_a_process_that_goes_on(
    secured: Secured, tmp_path: Path
) -> None:
    name = secured.make_topic()
    meta = [Acl(each, f"{name}-meta") for each in ("DescribeConfigs", "Read")]
    rights = [Acl(each, name) for each in HOST]
    frames = talking("s", 9)
    kafka = secured.settings()

    async def allow(*operations: str) -> None:
        kept = [right for right in rights if right.operation in operations]
        await asyncio.to_thread(secured.allow, "alice", [*kept, *meta])

    async def run() -> None:
        url = f"kafka://{secured.sasl}/{name}"
        async with turnlog.log.open(url, tables=f"sqlite:{tmp_path}/t.db", kafka=kafka) as log:
            await log.append(frames[0])
            assert [stored.position async for stored in log.read()] == [1]
            await allow("Describe", "DescribeConfigs", "Write")
            with pytest.raises(LogUnavailable, match=f"no right to Read topic '{name}'"):
                await append_and_read(log, frames[1:])
            end = await log.end()
            await allow("Describe", "DescribeConfigs", "Read")
            with pytest.raises(AppendRefused, match=f"no right to Write topic '{name}'"):
                await log.append(frames[-1])
            await allow(*HOST)
            assert await log.append(frames[-1]) == end + 1
            await until_read(log, [*range(1, end + 2)])

    secured.allow("alice", [*rights, *meta])
    asyncio.run(run())


async def append_and_read(log: EmbeddedLog, frames: list[SealedFrame]) -> None:
    """One after the other: a question that was under way is still answered when a right is gone."""
    for frame in frames:
        await log.append(frame)
        assert [stored.position async for stored in log.read()]


async def until_read(log: EmbeddedLog, positions: list[int]) -> None:
    """Return once these are read. A reader that was denied tries again by itself, within a second;
    what is asked for before is told of the last answer."""
    while True:
        try:
            assert [stored.position async for stored in log.read()] == positions
            return
        except LogUnavailable:
            await asyncio.sleep(0.1)


def test_a_password_that_is_no_longer_right_ends_an_append_at_once(
    secured: Secured, tmp_path: Path
) -> None:
    name = granted(secured, "alice")
    url = f"kafka://{secured.sasl}/{name}"
    (frame, *_) = talking("s", 2)

    async def run() -> None:
        log = KafkaLog(
            parse(url), tables=tmp_path / "t.db", busy_ms=5_000, kafka=secured.settings()
        )
        client = log._cluster.client  # as if it had changed since
        for settings in (client.every, client.producer):
            settings["sasl_plain_password"] = "wr0ng"
        async with log:
            with pytest.raises(AppendRefused, match="refuses user 'alice'") as error:
                await log.append(frame)
            assert not error.value.retriable

    asyncio.run(run())
