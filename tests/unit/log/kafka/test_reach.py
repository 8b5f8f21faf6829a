"""Why a broker cannot be spoken to, where there is none: sockets that do something else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from turnlog.core.errors import LogUnavailable
from turnlog.log.kafka import reach
from turnlog.log.kafka.cluster import Cluster
from turnlog.log.kafka.reach import denial, find_obstacle
from turnlog.log.kafka.settings import Client

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
    "sasl.password": "hunter2",
}


async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def refusal(serve: Serve, kafka: dict[str, str], ask_s: float) -> LogUnavailable:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    cluster = Cluster(f"127.0.0.1:{port}", kafka, ask_s=ask_s)
    with pytest.raises(LogUnavailable) as error:
        await cluster.topic("t")
    await cluster.close()
    server.close()
    return error.value


async def test_a_port_that_ends_each_connection_speaks_another_protocol() -> None:
    error = await refusal(close, SASL, 60)
    assert "closes the connection: security.protocol is SASL_PLAINTEXT" in str(error)
    assert error.retriable  # what stands before a broker that is starting does so, too


async def test_a_port_that_says_nothing_is_not_waited_for_longer_than_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reach, "TRY_S", 0.3)
    error = await refusal(say_nothing, {}, 0.5)
    assert "does not answer within 0.3 s" in str(error)


async def test_a_broker_that_does_not_run_yet_is_waited_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        cluster = Cluster(f"127.0.0.1:{taken.getsockname()[1]}", {}, ask_s=0.3)
        with pytest.raises(LogUnavailable, match=r"no broker answers .*see that it runs") as error:
            await cluster.topic("t")
        await cluster.close()
    assert error.value.retriable


async def test_the_worst_of_several_addresses_is_told() -> None:
    server = await asyncio.start_server(close, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = Client(f"127.0.0.1:1,127.0.0.1:{port}", {})
    obstacle = await find_obstacle(client)
    server.close()
    assert obstacle is not None
    assert obstacle.odd
    assert f"127.0.0.1:{port}" in obstacle.said


def test_a_right_that_is_missing_comes_with_the_command_that_gives_it() -> None:
    said = denial(Client("h:1", SASL), "Read", "t")
    assert "user 'me' has no right to Read topic 't'; give it by: kafka-acls.sh" in said
    assert said.endswith(
        "--bootstrap-server h:1 --add --allow-principal User:me --operation Read --topic t"
    )
    assert "this client has no right to Describe topic 't' (Read and Write bring it along)" in (
        denial(Client("h:1", {}), "Describe", "t")
    )
